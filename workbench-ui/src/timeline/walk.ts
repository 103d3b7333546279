/** Which row the arrow keys go to: the next one that has something in the window. Pure but for the question it is given. */

import type { EventDetail, Place } from "../protocol/types";
import type { Range } from "../state/store";

/** A row of a lane. */
export interface RowOf {
  lane: number;
  row: number;
}

/** What the walk has to know of a lane that is shown. */
export interface Walkable {
  lane: number;
  rows: number;
  /** From its first event to its last one; null when that is not known. */
  extentNs: readonly [number, number] | null;
}

export interface Found {
  place: Place;
  detail: EventDetail;
}

/** The entry of a row that covers a moment, or else begins nearest to it. */
export type Ask = (of: RowOf, atNs: number) => Promise<Found | null>;

/** So many rows are asked about at a time: what a browser sends at once to one server. */
const AT_ONCE = 6;

export function isWithin({ startNs, durationNs }: Pick<EventDetail, "startNs" | "durationNs">, { fromNs, toNs }: Range): boolean {
  return startNs < toNs && startNs + Math.max(durationNs ?? 0, 1) > fromNs;
}

/** Rows of lanes in one direction, without lanes that lie wholly outside of the window. */
export function rowsOf(lanes: readonly Walkable[], { fromNs, toNs }: Range, from: "first" | "last" = "first"): RowOf[] {
  const near = lanes.filter(({ extentNs }) => extentNs === null || (extentNs[0] < toNs && extentNs[1] >= fromNs));
  return near.flatMap(({ lane, rows }) => Array.from({ length: rows }, (_, at) => ({ lane, row: from === "first" ? at : rows - 1 - at })));
}

/** What a row has in the window, near a moment where it can be; null when it has nothing there. */
async function inRow(of: RowOf, window: Range, aboutNs: number, ask: Ask): Promise<Found | null> {
  const first = await ask(of, aboutNs);
  if (first === null || isWithin(first.detail, window)) return first;
  // Spans of a row do not overlap: one that is in the window begins in it, or covers its beginning.
  const others = await Promise.all([(window.fromNs + window.toNs) / 2, window.fromNs].map((ns) => ask(of, ns)));
  return others.find((found) => found !== null && isWithin(found.detail, window)) ?? null;
}

/** The first of the rows that has something in the window. */
export async function firstWithin(rows: readonly RowOf[], window: Range, aboutNs: number, ask: Ask, signal: AbortSignal): Promise<Found | null> {
  for (let at = 0; at < rows.length && !signal.aborted; at += AT_ONCE) {
    const answers = await Promise.all(rows.slice(at, at + AT_ONCE).map((row) => inRow(row, window, aboutNs, ask)));
    const found = answers.find((answer) => answer !== null);
    if (found) return found;
  }
  return null;
}
