/** Walking over spans with the keyboard. The grid handles its own arrows; the key dispatcher may call these too. */

import { batch } from "@preact/signals";
import { ApiError } from "../protocol/http";
import { Latest } from "../protocol/latest";
import type { EventDetail, Place } from "../protocol/types";
import { ENTRY_FLAG, spanEntry } from "../protocol/tile";
import { announce, report, reveal, select } from "../state/actions";
import { focused, nameOf, names, sessionApi, timeWindow } from "../state/store";
import { duration, visible } from "../format";
import { BAND_ROWS } from "./cache";
import type { Track } from "./tracks";
import type { TimelineView } from "./view";

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

function land(detail: EventDetail, place: Place): void {
  current = { ...detail, place };
  const range = { fromNs: detail.startNs, toNs: detail.startNs + Math.max(detail.durationNs ?? 0, 1) };
  batch(() => {
    focused.value = place;
    if (view !== null) view.focusRange.value = range;
  });
  view?.showTrack(place.lane);
  reveal(range);
  announce(spoken(current));
}

async function goTo(find: (signal: AbortSignal) => Promise<Place | null>): Promise<void> {
  const api = sessionApi.peek();
  if (api === null) return;
  try {
    await walking.run(async (signal) => {
      const place = await find(signal);
      if (place === null) return;
      const detail = await api.at(place, signal);
      // The place asked for, not the event's own: in lanes of systems and strips the two differ.
      if (!signal.aborted) land(detail, place);
    });
  } catch (error) {
    // Behind the last span of a row there is none; staying is the answer.
    if (!(error instanceof ApiError && error.problem.code === "unknown")) report(error);
  }
}

/** The entry of a row that is nearest to where the focus is, or to the middle of the window. */
async function nearest(lane: number, row: number | null, signal: AbortSignal): Promise<Place | null> {
  const { fromNs, toNs } = timeWindow.peek();
  const range = view?.focusRange.peek() ?? null;
  const isIn = range !== null && range.toNs > fromNs && range.fromNs < toNs;
  const at = isIn ? (Math.max(range.fromNs, fromNs) + Math.min(range.toNs, toNs)) / 2 : (fromNs + toNs) / 2;
  return (await sessionApi.peek()?.nearest(lane, row, at, signal))?.place ?? null;
}

/** The first focus: the selection's lane, else the first lane that can be seen. */
function start(): void {
  const track = walkable()[0];
  if (track?.lane) void goTo((signal) => nearest(track.lane?.id ?? 0, 0, signal));
}

/** One row up or down, over the borders of lanes. */
export function moveRow(by: -1 | 1): void {
  const place = focused.peek();
  const track = trackOf(place);
  if (place === null || track === null) return start();
  const row = (place.row ?? track.rows) + by;
  if (row >= 0 && row < track.rows) return void goTo((signal) => nearest(place.lane, row, signal));
  moveLane(by, by > 0 ? "first" : "last");
}

/** One lane up or down. */
export function moveLane(by: -1 | 1, row: "first" | "last" = "first"): void {
  const tracks = walkable();
  const at = tracks.findIndex((track) => track.lane?.id === focused.peek()?.lane);
  if (at < 0) return start();
  const next = tracks[at + by];
  const lane = next?.lane?.id;
  if (next !== undefined && lane !== undefined) void goTo((signal) => nearest(lane, row === "first" ? 0 : next.rows - 1, signal));
}

/** The previous or next span of the row. */
export function moveSpan(by: -1 | 1): void {
  const place = focused.peek();
  if (place === null) return start();
  const index = place.index + by;
  if (index >= 0) void goTo(() => Promise.resolve({ ...place, index }));
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
  batch(() => {
    focused.value = place;
    if (view !== null) view.focusRange.value = { fromNs, toNs };
  });
}
