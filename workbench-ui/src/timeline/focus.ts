/** Walking over spans with the keyboard. The grid handles its own arrows; the key dispatcher may call these too. */

import { batch } from "@preact/signals";
import { ApiError, type SessionApi } from "../protocol/http";
import { Latest } from "../protocol/latest";
import type { EventDetail, Place } from "../protocol/types";
import { ENTRY_FLAG, spanEntry } from "../protocol/tile";
import { announce, report, reveal, select } from "../state/actions";
import { windowAhead } from "../state/motion";
import { type Range, focused, nameOf, names, sessionApi } from "../state/store";
import { duration, visible } from "../format";
import { BAND_ROWS } from "./cache";
import type { Track } from "./tracks";
import type { TimelineView } from "./view";
import { type Found, type RowOf, type Walkable, firstWithin, rowsOf } from "./walk";

let view: TimelineView | null = null;
const walking = new Latest();
/** The event behind the focus, when it is known. */
let current: EventDetail | null = null;

export function setFocusView(of: TimelineView | null): void {
  view = of;
}

/** Name of an entry on the screen. */
function entryName(of: TimelineView, { lane, row, index }: Place): string | null {
  for (const { track, band, tile } of of.scene?.bands ?? []) {
    if (track.lane?.id !== lane || row === null || band !== Math.floor(row / BAND_ROWS) || tile.spans === null) continue;
    for (let at = 0; at < tile.spans.count; at += 1) {
      const entry = spanEntry(tile.spans.body, at);
      if (entry.row === row % BAND_ROWS && entry.index === index && !(entry.flags & ENTRY_FLAG.aggregate)) return nameOf(entry.name);
    }
  }
  return null;
}

function walkable(): Track[] {
  if (view === null) return [];
  const { pinned, scrolled } = view.layout.peek();
  return [...pinned, ...scrolled].filter((track) => track.lane !== null && track.rows > 0);
}

function trackOf(place: Place | null): Track | null {
  return walkable().find((track) => track.lane?.id === place?.lane) ?? null;
}

/** What the bar says; in strips that is more than the kind. */
function shownName(detail: EventDetail): string {
  const place = detail.place;
  const hit = place === null || view?.scene == null ? null : entryName(view, place);
  return hit ?? detail.name;
}

/** What a screen reader says of the focused span. */
export function spoken(detail: EventDetail): string {
  const track = trackOf(detail.place ?? focused.peek());
  const rows = track === null || detail.place?.row === null ? "" : `row ${(detail.place?.row ?? 0) + 1} of ${track.lane?.rows ?? 1}`;
  const parts = [
    visible(track?.label ?? detail.thread ?? ""),
    visible(shownName(detail)),
    detail.durationNs === null ? "" : duration(Math.max(detail.durationNs, 0)),
    rows,
    detail.tick > 0 ? `tick ${detail.tick}` : "",
    detail.hasNoEnd ? "no end" : "",
  ];
  return parts.filter((part) => part !== "").join(", ");
}

/** Less of a span than this share of the window is hardly seen. */
const SEEN_SHARE = 0.02;

/** Can a range be seen without moving the window? */
function isSeen({ fromNs, toNs }: Range): boolean {
  const window = windowAhead();
  const seen = Math.min(toNs, window.toNs) - Math.max(fromNs, window.fromNs);
  return seen >= Math.min(toNs - fromNs, (window.toNs - window.fromNs) * SEEN_SHARE);
}

function land({ place, detail }: Found): void {
  // The place asked for, not the event's own: in lanes of systems and strips the two differ.
  current = { ...detail, place };
  const range = { fromNs: detail.startNs, toNs: detail.startNs + Math.max(detail.durationNs ?? 0, 1) };
  batch(() => {
    focused.value = place;
    if (view !== null) view.focusRange.value = range;
  });
  view?.showTrack(place.lane);
  if (!isSeen(range)) reveal(range);
  announce(spoken(current));
}

async function goTo(find: (api: SessionApi, signal: AbortSignal) => Promise<Found | null>, otherwise: string | null = null): Promise<void> {
  const api = sessionApi.peek();
  if (api === null) return;
  try {
    await walking.run(async (signal) => {
      const found = await find(api, signal);
      if (signal.aborted) return;
      if (found !== null) land(found);
      else if (otherwise !== null) announce(otherwise);
    });
  } catch (error) {
    // Behind the last span of a row there is none; staying is the answer.
    if (!(error instanceof ApiError && error.problem.code === "unknown")) report(error);
  }
}

/** The moment at which the walk over rows goes up and down: a long or early span on the way does not lead it aside. */
let columnNs: number | null = null;

/** The moment of the walk, else where the focus is, or the middle of the window when that is elsewhere. */
function aboutNs({ fromNs, toNs }: Range): number {
  if (columnNs !== null && columnNs >= fromNs && columnNs < toNs) return columnNs;
  const range = view?.focusRange.peek() ?? null;
  const isIn = range !== null && range.toNs > fromNs && range.fromNs < toNs;
  return isIn ? (Math.max(range.fromNs, fromNs) + Math.min(range.toNs, toNs)) / 2 : (fromNs + toNs) / 2;
}

/** To the first of the rows that has something in the window: the keys explain what is looked at, and do not leave it. */
function goToFirst(rows: readonly RowOf[], otherwise: string): void {
  const window = windowAhead();
  void goTo((api, signal) => {
    const ask = async ({ lane, row }: RowOf, atNs: number) => {
      const { place } = await api.nearest(lane, row, atNs, signal);
      return place === null ? null : { place, detail: await api.at(place, signal) };
    };
    columnNs = aboutNs(window);
    return firstWithin(rows, window, columnNs, ask, signal);
  }, otherwise);
}

function lanesOf(tracks: readonly Track[]): Walkable[] {
  return tracks.flatMap(({ lane, rows }) => (lane === null ? [] : [{ lane: lane.id, rows, extentNs: lane.extentNs }]));
}

/** The first focus: the first row that has something in the window. */
function start(): void {
  goToFirst(rowsOf(lanesOf(walkable()), windowAhead()), "No span is in the window");
}

/** Tracks above or below the one of the focus, the nearest first. */
function beyond(track: Track, by: -1 | 1): Track[] {
  const tracks = walkable();
  const at = tracks.indexOf(track);
  return by > 0 ? tracks.slice(at + 1) : tracks.slice(0, at).reverse();
}

const nothing = (by: -1 | 1) => `Nothing ${by > 0 ? "below" : "above"} is in the window`;

/** One row up or down, over the borders of lanes, to what the window has. */
export function moveRow(by: -1 | 1): void {
  const place = focused.peek();
  const track = trackOf(place);
  if (place === null || track === null) return start();
  const row = place.row ?? track.rows;
  const own = Array.from({ length: track.rows }, (_, at) => ({ lane: place.lane, row: at }));
  const rest = by > 0 ? own.slice(row + 1) : own.slice(0, row).reverse();
  goToFirst([...rest, ...rowsOf(lanesOf(beyond(track, by)), windowAhead(), by > 0 ? "first" : "last")], nothing(by));
}

/** One lane up or down, to what the window has. */
export function moveLane(by: -1 | 1): void {
  const track = trackOf(focused.peek());
  if (track === null) return start();
  goToFirst(rowsOf(lanesOf(beyond(track, by)), windowAhead()), nothing(by));
}

/** The previous or next span of the row. */
export function moveSpan(by: -1 | 1): void {
  const place = focused.peek();
  if (place === null) return start();
  const next = { ...place, index: place.index + by };
  columnNs = null;
  if (next.index >= 0) void goTo(async (api, signal) => ({ place: next, detail: await api.at(next, signal) }));
}

/** Selects what the keyboard is on. */
export function selectFocused(add = false): void {
  const place = focused.peek();
  if (place === null) return start();
  const known = current?.place === place ? current : null;
  const range = view?.focusRange.peek();
  const name = known === null ? 0 : names.peek().texts.indexOf(known.name);
  select([{ event: known?.event ?? null, place, startNs: range?.fromNs ?? 0, durationNs: (range?.toNs ?? 0) - (range?.fromNs ?? 0), name }], { add });
}

/** What the focus is on, for the grid. */
export function focusedDetail(): EventDetail | null {
  return current?.place === focused.peek() ? current : null;
}

/** Follows a selection by mouse, so that keys go on from there. */
export function focusOn(place: Place, fromNs: number, toNs: number): void {
  columnNs = null;
  batch(() => {
    focused.value = place;
    if (view !== null) view.focusRange.value = { fromNs, toNs };
  });
}
