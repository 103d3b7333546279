/**
 * Documents of the server (crates/typhon-workbench/API.md). Times are ns on the session's axis. Texts may come from a
 * trace and hold anything: show them as text nodes.
 */

export type SessionState =
  | { is: "opening"; bytesDone: number; bytesTotal: number; bytesPerSecond: number | null; remainingMs: number | null }
  | { is: "ready" }
  | { is: "failed"; detail: string }
  | { is: "cancelled" };

export interface SessionSummary {
  id: string;
  name: string;
  path: string;
  fileBytes: number;
  /** Grows whenever the answer to a tile request may have changed. */
  generation: number;
  state: SessionState;
  onDisk: "same" | "grown" | "changed" | "truncated" | "replaced" | "overwritten" | "gone";
  remarks: string[];
}

export type LaneKind = "gc" | "gauge" | "thread" | "system" | "strip";
export type StripName = "phases" | "pageCache" | "diskIo" | "transactions" | "wal" | "checkpoint";

export interface Lane {
  id: number;
  kind: LaneKind;
  label: string;
  gauge: number | null;
  system: number | null;
  strip: StripName | null;
  slot: number | null;
  incarnation: number | null;
  threadNumber: number | null;
  threadKind: number | null;
  threadKindName: string | null;
  /** Rows that nest; overflow rows come behind them. */
  nestedRows: number;
  rows: number;
  spans: number;
  instants: number;
  samples: number;
  /** Scale of a gauge for the whole session. */
  valueRange: [number, number] | null;
  extentNs: [number, number] | null;
}

export interface Meta {
  isComplete: boolean;
  generation: number;
  file: { name: string; path: string; bytes: number; blocks: number; format: number; dialect: string; isClosed: boolean };
  /** `zeroTicks` is the clock tick at 0 of the axis. */
  time: { endNs: number; zeroNs: number; zeroTicks?: string; ticksPerSecond: string; startUnixNs: string | null };
  world: {
    databaseName: string;
    baseTickRate: number;
    workers: number;
    systems: number;
    archetypes: number;
    components: number;
  };
  totals: {
    events: number;
    withheldEvents: number;
    droppedRecords: number;
    gcNotKept: number;
    notices: number;
    losses: number;
    capped: number;
  };
  kinds: { id: number; count: number }[];
  ticks: { count: number; first: number | null; last: number | null; p95Ns: number | null };
  stacks: Record<string, number | null>;
  families: string[];
  lanes: Lane[];
}

/** Columns: the id of `texts[i]` is `from + i`. */
export interface Names {
  from: number;
  texts: string[];
  kinds: number[];
  systems: (number | null)[];
  groups: number[];
}

/** Columns of ticks by place. */
export interface TickColumns {
  numbers: number[];
  startNs: number[];
  durationNs: (number | null)[];
  levels: number[];
  multipliers: number[];
  collections: number[];
  missingBefore: number[];
}

export interface Ticks extends TickColumns {
  total: number;
  first: number;
}

export interface SlowestTicks extends TickColumns {
  places: number[];
}

export interface GaugeInfo {
  lane: number;
  gauge: number;
  name: string;
  valueKind: "U32Count" | "U64Bytes" | "I64Signed" | "U32PercentHundredths";
  isOnce: boolean;
  samples: number;
  min: string;
  max: string;
  stack: string | null;
}

export interface Gauges {
  gauges: GaugeInfo[];
  stacks: { stack: string; max: number | null; gauges: number[] }[];
}

export interface Collection {
  count: number;
  generation: number | null;
  reason: number | null;
  reasonName: string | null;
  gcType: number | null;
  gcTypeName: string | null;
  startNs: number | null;
  endNs: number | null;
  pauseNs: number | null;
  promotedBytes: number | null;
  gen0Bytes: number | null;
  gen1Bytes: number | null;
  gen2Bytes: number | null;
  lohBytes: number | null;
  pohBytes: number | null;
  committedBytes: number | null;
}

export interface GcSummary {
  collections: Record<string, number>;
  halfRecorded: number;
  pauses: { count: number; totalNs: number; maxNs: number; p99Ns: number; source: string };
  suspendedShare: number;
}

export interface Collections {
  total: number;
  first: number;
  collections: Collection[];
  summary: GcSummary | null;
}

export interface Notice {
  code: string;
  severity: string;
  offset: number | null;
  block: number | null;
  record: number | null;
  count: number | null;
  message: string;
  hint: string | null;
  rangeNs: [number, number] | null;
}

export interface Notices {
  notices: Notice[];
  losses: { atNs: number; records: number; marker: string }[];
  missingTicks: { count: number; places: number };
  capped: { what: string; kind: number; shown: number; total: number; atNs: number; times: number }[];
  damagedEvents: number;
}

/** Where an entry is drawn: `row` null for instants. */
export interface Place {
  lane: number;
  row: number | null;
  index: number;
}

export interface RelatedSpan {
  event: string;
  place: Place | null;
  /** Id in the names. */
  name: number;
  startNs: number;
  durationNs: number;
}

export interface FieldView {
  name: string;
  type: string;
  unit: string;
  /** Null when the record does not have the field, which is not 0. u64 and i64 are strings. */
  value: number | string | boolean | unknown[] | null;
  valueName: string | null;
  /** It is an id of one of the trace's tables: without a name, the tables do not have it. */
  isTableId: boolean;
  ns: number | null;
  note: string | null;
}

export interface EventDetail {
  event: string;
  place: Place | null;
  kind: number;
  kindName: string;
  family: string;
  name: string;
  slot: number;
  thread: string | null;
  system: number | null;
  systemName: string | null;
  tick: number;
  tickOffsetNs: number | null;
  startNs: number;
  tsNs: number;
  startTicks: string;
  durationNs: number | null;
  selfNs: number | null;
  depth: number | null;
  hasNoEnd: boolean;
  spanId: string | null;
  parentSpanId: string | null;
  traceId: string | null;
  /** File, line and method are null where the tables do not tell. */
  site: { id: number; file: string | null; line: number | null; method: string | null; hasSource: boolean } | null;
  fields: FieldView[];
  /** The innermost first. */
  parents: RelatedSpan[];
  children: number;
  bytes: string;
}

export interface Children {
  total: number;
  first: number;
  spans: RelatedSpan[];
}

/** Why two events are linked: from `from` on, or by its end, `to` could go on (B-20). */
export type LinkReason = "ready" | "dependency" | "schedule" | "durability" | "completion";

export interface Link {
  reason: LinkReason;
  from: RelatedSpan;
  to: RelatedSpan;
}

export interface Links {
  isCut: boolean;
  links: Link[];
}

export interface Siblings {
  name: number;
  count: number;
  shorter: number;
  equal: number;
  percentile: number;
}

export interface Nearest {
  place: Place | null;
  event: string | null;
}

export type StatsBy = "kind" | "family" | "name" | "system" | "thread";

export interface StatsRow {
  key: string;
  count: number;
  spans: number;
  totalNs: number | null;
  selfNs: number | null;
  meanNs: number | null;
  minNs: number | null;
  p50Ns: number | null;
  p95Ns: number | null;
  p99Ns: number | null;
  maxNs: number | null;
  approx: boolean;
  /** Durations, where they were asked for. */
  buckets?: Bucket[];
}

/** So many durations from `fromNs` on and below `toNs`. */
export interface Bucket {
  fromNs: number;
  toNs: number;
  count: number;
}

export interface Stats {
  by: StatsBy;
  window: { fromNs: number; toNs: number; durationNs: number };
  rows: StatsRow[];
  rowCount: number;
  /** What the rows have in all that are not in `rows`. */
  left: { rows: number; count: number; totalNs: number; selfNs: number };
  ticks: {
    count: number;
    p50Ns: number;
    p95Ns: number;
    p99Ns: number;
    maxNs: number;
    worst: { tick: number; durNs: number }[];
  } | null;
  gc: GcSummary | null;
}

export interface Histogram {
  key: string;
  count: number;
  buckets: Bucket[];
  approx: boolean;
}

export interface TopSpan extends RelatedSpan {
  selfNs: number;
  tick: number;
}

export interface Hit extends RelatedSpan {
  tick: number;
}

export interface Hits {
  matches: number;
  hits: Hit[];
}

export interface FilterInfo {
  filterId: number;
  text: string;
  matches: number;
}

export interface Source {
  site: number;
  file: string;
  line: number;
  method: string;
  firstLine: number;
  lines: string[];
}

export interface Bookmark {
  id: string;
  fromNs: number;
  toNs: number | null;
  event: string | null;
  note: string;
}

export interface FileEntry {
  name: string;
  path: string;
  isFolder: boolean;
  bytes: number | null;
  modifiedUnixMs: number | null;
}

export interface Files {
  dir: string;
  parent: string | null;
  entries: FileEntry[];
  left: number;
}

export interface Kinds {
  families: string[];
  registry: { kinds: KindInfo[]; enums: Record<string, unknown>; gauges: unknown[] };
}

export interface KindInfo {
  id: number;
  name: string;
  shape: string;
  family: string;
  summary: string;
  [more: string]: unknown;
}

/** RFC 9457, with `code` for programs. */
export interface Problem {
  status: number;
  title?: string;
  code: string;
  detail: string;
  hint?: string | null;
  /** Filters: 0-based characters. */
  column?: number;
  length?: number;
}
