/** Which tracks there are and where they lie (B-7). Pure. */

import type { Gauges, Lane } from "../protocol/types";
import { type LaneView, type TrackHeight, laneKey } from "../state/store";
import { type GaugeSpec, gaugeTracks } from "./gauges";

export type TrackKind = "phases" | "gc" | "gauge" | "group" | "thread" | "system" | "strip";

export interface Track {
  key: string;
  kind: TrackKind;
  label: string;
  /** Second line of the gutter. */
  sub: string;
  /** Lane of spans and instants; null for gauges and groups. */
  lane: Lane | null;
  gauge: GaugeSpec | null;
  isPinned: boolean;
  isFolded: boolean;
  canFold: boolean;
  /** Number of members, of groups. */
  members: number;
  /** From the top of its area: the pinned ones have an area of their own. */
  top: number;
  height: number;
  /** Where row 0 begins, from the top of the track. */
  rowsTop: number;
  pitch: number;
  rows: number;
  /** Rows from here on hold what overlaps without nesting. */
  overflowFrom: number;
  /** Where the markers of instants lie, from the top of the track; null without. */
  markersTop: number | null;
}

export interface Measures {
  row: number;
  strip: number;
  gc: number;
  gauge: number;
  memory: number;
}

export interface TrackLayout {
  pinned: Track[];
  scrolled: Track[];
  pinnedHeight: number;
  scrolledHeight: number;
}

const LANE_TOP_PX = 6;
const LANE_BOTTOM_PX = 3;
const SLIM_PX = 22;
const MARKER_ROW_PX = 12;
const GROUP_PX = 22;
/** Two lines of the gutter. */
const TWO_LINES_PX = 38;
const SUMMARY_PX = 22;

/** Main, workers by index, pool, other. */
const THREAD_ORDER = ["Main", "Worker", "Pool", "Other"];

/** The thread that drives ticks stands with Main: recordings of the reference engine give it no kind of its own. */
function threadRank(lane: Lane): number {
  if (/tick ?driver$/i.test(lane.label)) return 0;
  const at = THREAD_ORDER.indexOf(lane.threadKindName ?? "");
  return at < 0 ? THREAD_ORDER.length : at;
}

const byLabel = new Intl.Collator("en", { numeric: true });

/** Threads in the order of B-7; a thread without a kind is placed by its name. */
export function orderThreads(lanes: Lane[]): Lane[] {
  const isEmpty = (lane: Lane) => (lane.spans + lane.instants === 0 ? 1 : 0);
  return [...lanes].sort(
    (a, b) =>
      isEmpty(a) - isEmpty(b) ||
      threadRank(a) - threadRank(b) ||
      byLabel.compare(a.label, b.label) ||
      (a.incarnation ?? 0) - (b.incarnation ?? 0) ||
      a.id - b.id,
  );
}

/** Is the lane folded when the user has said nothing? */
function foldsByDefault(kind: TrackKind, lane: Lane | null): boolean {
  return kind === "group" || kind === "system" || (kind === "strip" && lane !== null && lane.strip !== "phases");
}

/** Pinned when the user has said nothing: the phases, under the ruler. The list holds what differs. */
function isPinned(key: string, view: LaneView): boolean {
  return (key === "strip:phases") !== view.pinned.includes(key);
}

interface Draft {
  kind: TrackKind;
  key: string;
  label: string;
  sub?: string;
  lane?: Lane;
  gauge?: GaugeSpec;
  members?: number;
}

/** How tall the track of a gauge is: as the user wants it, or only that of the heap at its full height. */
export function gaugeHeight(view: LaneView, key: string, gauge: GaugeSpec): TrackHeight {
  return view.heights[key] ?? (gauge.isMemory ? "normal" : "summary");
}

function shape(draft: Draft, view: LaneView, measures: Measures): Track {
  const { kind, key, label, sub = "", lane = null, gauge = null, members = 0 } = draft;
  const isFolded = foldsByDefault(kind, lane) !== view.collapsed.includes(key);
  const base = {
    key, kind, label, sub, lane, gauge, members, isFolded, isPinned: isPinned(key, view), canFold: false, top: 0,
    height: SLIM_PX, rowsTop: 0, pitch: measures.row, rows: 0, overflowFrom: 0, markersTop: null,
  } satisfies Track;
  if (kind === "group") return { ...base, canFold: true, height: GROUP_PX };
  if (gauge !== null) {
    const size = gaugeHeight(view, key, gauge);
    const normal = gauge.isMemory ? measures.memory : measures.gauge;
    return { ...base, height: size === "summary" ? SUMMARY_PX : size === "double" ? normal * 2 : normal };
  }
  if (lane === null) return base;
  if (kind === "gc") return { ...base, height: measures.gc, rowsTop: 15, pitch: 13, rows: lane.rows };
  if (lane.rows === 0 && lane.instants === 0) return base;
  const rows = isFolded ? Math.min(lane.rows, 1) : lane.rows;
  if (kind === "strip") {
    return { ...base, canFold: lane.rows > 1, rows, rowsTop: 3, overflowFrom: lane.nestedRows, height: measures.strip + (rows - 1) * measures.row };
  }
  const markers = lane.instants > 0 && !isFolded ? MARKER_ROW_PX : 0;
  const content = LANE_TOP_PX + rows * measures.row + markers + LANE_BOTTOM_PX;
  return {
    ...base,
    rows,
    canFold: lane.rows > 1 || lane.instants > 0,
    rowsTop: LANE_TOP_PX,
    overflowFrom: lane.nestedRows,
    markersTop: markers > 0 ? LANE_TOP_PX + rows * measures.row : null,
    height: isFolded || sub === "" ? content : Math.max(content, TWO_LINES_PX),
  };
}

function threadSub(lane: Lane): string {
  const parts: string[] = [];
  if (lane.threadNumber !== null) parts.push(`tid ${lane.threadNumber}`);
  if (lane.incarnation !== null && lane.incarnation > 0) parts.push(`incarnation ${lane.incarnation}`);
  return parts.join(" · ");
}

/** All tracks in the order of B-7, before the user's own order and pins. */
function drafts(lanes: Lane[], gauges: Gauges | null, view: LaneView): Draft[] {
  const of = (kind: Lane["kind"]) => lanes.filter((lane) => lane.kind === kind);
  const list: Draft[] = [];
  for (const lane of of("gc")) list.push({ kind: "gc", key: laneKey(lane), label: "GC", sub: "suspended in window", lane });
  const specs = gaugeTracks(lanes, gauges);
  const gauge = (spec: GaugeSpec): Draft => ({ kind: "gauge", key: `gauges:${spec.key}`, label: spec.label, gauge: spec });
  list.push(...specs.filter((spec) => spec.isMain).map(gauge));
  const more = specs.filter((spec) => !spec.isMain);
  group(list, view, "group:gauges", "More gauges", more.map(gauge));
  for (const lane of orderThreads(of("thread"))) {
    list.push({ kind: "thread", key: laneKey(lane), label: lane.label, sub: threadSub(lane), lane });
  }
  const system = (lane: Lane): Draft => ({ kind: "system", key: laneKey(lane), label: lane.label, lane });
  group(list, view, "group:systems", "Systems", of("system").map(system));
  for (const lane of of("strip")) list.push({ kind: "strip", key: laneKey(lane), label: lane.label, lane });
  return list;
}

/** A head that can be folded, and its members while it is not. */
function group(list: Draft[], view: LaneView, key: string, label: string, members: Draft[]): void {
  if (members.length === 0) return;
  list.push({ kind: "group", key, label, members: members.length });
  // Folded by default; the list holds what differs. Pinned members stay.
  const isOpen = view.collapsed.includes(key);
  list.push(...members.filter((member) => isOpen || isPinned(member.key, view)));
}

/** The user's own order, within each kind: those that are in it take each other's places. */
export function reorder<T extends { kind: string; key: string }>(list: T[], order: string[]): T[] {
  if (order.length === 0) return list;
  const rank = new Map(order.map((key, at) => [key, at]));
  const ranked = list.filter(({ key }) => rank.has(key)).sort((a, b) => (rank.get(a.key) ?? 0) - (rank.get(b.key) ?? 0));
  const queues = new Map<string, T[]>();
  for (const one of ranked) queues.set(one.kind, [...(queues.get(one.kind) ?? []), one]);
  return list.map((one) => (rank.has(one.key) ? (queues.get(one.kind)?.shift() ?? one) : one));
}

function stack(tracks: Track[]): number {
  let top = 0;
  for (const track of tracks) {
    track.top = top;
    top += track.height;
  }
  return top;
}

export function layOut(lanes: Lane[], gauges: Gauges | null, view: LaneView, measures: Measures): TrackLayout {
  const shown = reorder(drafts(lanes, gauges, view), view.order).filter(({ key }) => !view.hidden.includes(key));
  const tracks = shown.map((draft) => shape(draft, view, measures));
  const pinned = tracks.filter((track) => track.isPinned);
  const scrolled = tracks.filter((track) => !track.isPinned);
  return { pinned, scrolled, pinnedHeight: stack(pinned), scrolledHeight: stack(scrolled) };
}

/** The track at a height, from the top of its area. */
export function trackAt(tracks: Track[], y: number): Track | null {
  let from = 0;
  let to = tracks.length;
  while (from < to) {
    const middle = (from + to) >> 1;
    const track = tracks[middle];
    if (track !== undefined && track.top + track.height <= y) from = middle + 1;
    else to = middle;
  }
  const track = tracks[from];
  return track !== undefined && y >= track.top ? track : null;
}

/** The row of a track at a height from the top of the track; null between rows and beside them. */
export function rowAt(track: Track, y: number): number | null {
  const row = Math.floor((y - track.rowsTop) / track.pitch);
  return y >= track.rowsTop && row < track.rows ? row : null;
}
