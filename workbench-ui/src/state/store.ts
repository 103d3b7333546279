/**
 * What the page knows and shows. Direction: URL → store → panels. Panels read signals and call the actions in
 * `actions.ts`; nobody else writes.
 */

import { computed, signal } from "@preact/signals";
import type { TimeDisplay } from "../format";
import { SessionApi } from "../protocol/http";
import type { Connection } from "../protocol/socket";
import type * as t from "../protocol/types";

export interface Range {
  fromNs: number;
  toNs: number;
}

/** One selected event. `event` is null until the server has named the place of a tile entry. */
export interface Selected {
  event: string | null;
  place: t.Place | null;
  startNs: number;
  durationNs: number;
  /** Id in the names. */
  name: number;
}

export type SearchMode = "dim" | "isolate" | "list";

/** `first` are the first hits of the trace, as far as they were known before the others. */
export type FilterState =
  | { is: "none" }
  | { is: "running"; text: string; done: number; total: number; first: t.Hit[] }
  | { is: "failed"; text: string; problem: t.Problem }
  | { is: "ready"; text: string; filterId: number; matches: number; first: t.Hit[] };

export type Theme = "dark" | "light" | "system";
export type ColourMode = "family" | "kind" | "system" | "thread" | "duration" | "depth";
export type BottomTab = "statistics" | "top" | "search" | "ticks" | "collections" | "gauges";
export type InspectorTab = "inspector" | "bookmarks" | "notices" | "lanes";
export type TrackHeight = "summary" | "normal" | "double";
export type Float = "none" | "palette" | "help" | "open";

/** The names of a session by id. */
export interface NameTable {
  texts: string[];
  kinds: number[];
  systems: (number | null)[];
  groups: number[];
}

/** All ticks of a session, in columns. */
export interface TickTable extends t.TickColumns {
  /** Place of the last tick that began at or before a moment, -1 before the first. */
  placeAt(ns: number): number;
  /** Places of the ticks that overlap a range: first, and one behind the last. One without an end lasts until the next begins. */
  placesIn(range: Range): { first: number; end: number };
}

/** What the user made of the lanes; kept per application in the settings. Keys are {@link laneKey}s. */
export interface LaneView {
  pinned: string[];
  hidden: string[];
  collapsed: string[];
  /** Lanes that are not in the list keep their place. */
  order: string[];
  heights: Record<string, TrackHeight>;
  fitted: string[];
}

export interface Layout {
  gutterPx: number | null;
  inspectorPx: number | null;
  bottomPx: number | null;
  isInspectorOpen: boolean;
  isBottomOpen: boolean;
  inspectorTab: InspectorTab;
  bottomTab: BottomTab;
}

export const EMPTY_LANE_VIEW: LaneView = { pinned: [], hidden: [], collapsed: [], order: [], heights: {}, fitted: [] };
export const DEFAULT_LAYOUT: Layout = {
  gutterPx: null,
  inspectorPx: null,
  bottomPx: null,
  isInspectorOpen: true,
  isBottomOpen: true,
  inspectorTab: "inspector",
  bottomTab: "statistics",
};

// The connection and the sessions
export const connection = signal<Connection>({ is: "connecting" });
export const sessions = signal<t.SessionSummary[]>([]);
export const activeId = signal<string | null>(null);
export const activeSession = computed(() => sessions.value.find(({ id }) => id === activeId.value) ?? null);
/** Requests about the active session. */
export const sessionApi = computed(() => (activeId.value === null ? null : new SessionApi(activeId.value)));
export const generation = computed(() => activeSession.value?.generation ?? 0);
/** What went wrong and concerns no panel; shown in the notice bar. */
export const lastProblem = signal<t.Problem | null>(null);

// The trace
export const meta = signal<t.Meta | null>(null);
export const names = signal<NameTable>({ texts: [], kinds: [], systems: [], groups: [] });
export const ticks = signal<TickTable>(emptyTicks());
export const gauges = signal<t.Gauges | null>(null);
export const collections = signal<t.Collection[]>([]);
export const gcSummary = signal<t.GcSummary | null>(null);
export const notices = signal<t.Notices | null>(null);
export const bookmarks = signal<t.Bookmark[]>([]);
/** False while the file is being indexed: then only timeline requests are answered. */
export const isReady = computed(() => activeSession.value?.state.is === "ready");
/**
 * Where the trace is expected to end, while a part of it is not read yet (B-3): as far as the part that is read reaches, by
 * the bytes of both. Null when it is known.
 */
export const expectedEndNs = signal<number | null>(null);
export const wholeRange = computed<Range>(() => ({ fromNs: 0, toNs: Math.max(1, expectedEndNs.value ?? meta.value?.time.endNs ?? 1) }));
/** Share of {@link wholeRange} that is read, 0..1. */
export const readShare = computed(() => (expectedEndNs.value === null ? 1 : (meta.value?.time.endNs ?? 0) / wholeRange.value.toNs));

// What is looked at
/** The one global window. While a motion runs it changes each frame; {@link settledWindow} follows when it rests. */
export const timeWindow = signal<Range>({ fromNs: 0, toNs: 1 });
export const settledWindow = signal<Range>({ fromNs: 0, toNs: 1 });
export const selection = signal<Selected[]>([]);
export const primary = computed(() => selection.value[selection.value.length - 1] ?? null);
/** What the primary event waited for and what waited for it; null until that is known. */
export const links = signal<(t.Links & { event: string }) | null>(null);
/** The entry that the keyboard is on. */
export const focused = signal<t.Place | null>(null);
/** Time under the mouse. */
export const cursorNs = signal<number | null>(null);
/** The ruler of R and drag. */
export const measure = signal<Range | null>(null);
export const isMeasuring = signal(false);
/** What is being dragged out: of the window to come, or of a selection. */
export const draggedRange = signal<Range | null>(null);
/** The range that was dragged with Shift (B-22). The tables are about it until it is taken back. */
export const selectedRange = signal<Range | null>(null);

/** A recording that was opened before. */
export interface Recent {
  path: string;
  durationNs: number;
  ticks: number;
}
/** The last one first. */
export const recent = signal<Recent[]>([]);

// Search
export const filter = signal<FilterState>({ is: "none" });
export const searchMode = signal<SearchMode>("dim");
/** The hit that N stepped to, from 0. */
export const hitAt = signal<number | null>(null);
/** Filter id for tile requests: 0 shows everything. */
export const activeFilterId = computed(() => (filter.value.is === "ready" ? filter.value.filterId : 0));

// How it looks
export const theme = signal<Theme>("system");
export const colourMode = signal<ColourMode>("family");
export const timeDisplay = signal<TimeDisplay>("start");
export const showLegends = signal(true);
export const layout = signal<Layout>(DEFAULT_LAYOUT);
export const laneView = signal<LaneView>(EMPTY_LANE_VIEW);
export const openFloat = signal<Float>("none");
/** Says what happened, for screen readers; at most one message per second is spoken. */
export const announcement = signal("");

export function emptyTicks(): TickTable {
  return tickTable({ numbers: [], startNs: [], durationNs: [], levels: [], multipliers: [], collections: [], missingBefore: [] });
}

export function tickTable(columns: t.TickColumns): TickTable {
  const { startNs } = columns;
  const placeAt = (ns: number) => {
    let from = 0;
    let to = startNs.length;
    while (from < to) {
      const middle = (from + to) >> 1;
      if ((startNs[middle] ?? 0) <= ns) from = middle + 1;
      else to = middle;
    }
    return from - 1;
  };
  const placesIn = ({ fromNs, toNs }: Range) => {
    let first = Math.max(placeAt(fromNs), 0);
    let end = Math.max(placeAt(toNs) + 1, first);
    const length = columns.durationNs[first];
    // The last tick that began before the range may have ended before it as well.
    if (length !== null && length !== undefined && (startNs[first] ?? 0) + Math.max(length, 1) <= fromNs) first += 1;
    while (end > first && (startNs[end - 1] ?? 0) >= toNs) end -= 1;
    return { first, end: Math.max(end, first) };
  };
  return { ...columns, placeAt, placesIn };
}

/** What names a lane in the settings; stays the same from recording to recording of an application. */
export function laneKey(lane: t.Lane): string {
  switch (lane.kind) {
    case "gc":
      return "gc";
    case "gauge":
      return `gauge:${lane.gauge}`;
    case "thread":
      return `thread:${lane.label}:${lane.incarnation}`;
    case "system":
      return `system:${lane.label}`;
    case "strip":
      return `strip:${lane.strip}`;
  }
}

/** What a name id stands for. */
export function nameOf(id: number): string {
  return names.value.texts[id] ?? "other names";
}
