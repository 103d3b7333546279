/** What the GC track shows: collections, flags that are too near merged, captions that fit (B-14). Pure. */

import { NARROW_SPACE, duration } from "../format";
import type { Collection } from "../protocol/types";
import { type Axis, toNs, xOf } from "./axis";

export interface Flag {
  x: number;
  /** Starts open to the right, ends to the left. */
  isStart: boolean;
  /** Digit of the generation, or how many flags are merged. */
  text: string;
  generation: number | null;
  count: number;
}

export interface GcMark {
  collection: Collection;
  from: number;
  to: number;
  isBackground: boolean;
  caption: string;
}

const FLAG_PX = 13;
/** A start opens towards the end behind it, so the two need room for both. */
const PAIR_PX = 20;

export function isBackground(collection: Collection): boolean {
  return collection.gcType === 1;
}

/** `#3 gen 1 · paused 12.4 ms`. */
export function caption(collection: Collection): string {
  const generation = collection.generation === null ? "" : ` gen ${collection.generation}`;
  if (isBackground(collection)) {
    const length = collection.startNs !== null && collection.endNs !== null ? ` · ${duration(collection.endNs - collection.startNs)}` : "";
    return `#${collection.count} background${generation}${length}`;
  }
  const pause = collection.pauseNs === null ? "" : ` · paused ${duration(collection.pauseNs)}`;
  return `#${collection.count}${generation}${pause}`;
}

/** Collections that are in view. A half-recorded one is a flag without a bar. */
export function marksIn(axis: Axis, collections: Collection[]): GcMark[] {
  const marks: GcMark[] = [];
  for (const collection of collections) {
    const start = collection.startNs ?? collection.endNs;
    const end = collection.endNs ?? collection.startNs;
    if (start === null || end === null || end < axis.fromNs || start > toNs(axis)) continue;
    marks.push({ collection, from: xOf(axis, start), to: xOf(axis, end), isBackground: isBackground(collection), caption: caption(collection) });
  }
  return marks;
}

/** Flags of starts and ends from left to right; those nearer than 13 px are one. */
export function flagsOf(marks: GcMark[]): Flag[] {
  const all: Flag[] = [];
  for (const { collection, from, to } of marks) {
    const { generation } = collection;
    const text = generation === null ? "?" : `${generation}`;
    if (collection.startNs !== null) all.push({ x: from, isStart: true, text, generation, count: 1 });
    if (collection.endNs !== null) all.push({ x: to, isStart: false, text, generation, count: 1 });
  }
  all.sort((a, b) => a.x - b.x);
  const merged: Flag[] = [];
  for (const flag of all) {
    const last = merged[merged.length - 1];
    const apart = last === undefined ? Number.POSITIVE_INFINITY : flag.x - last.x;
    const isPair = last?.isStart === true && !flag.isStart;
    if (last !== undefined && apart < (isPair ? PAIR_PX : FLAG_PX)) {
      last.count += 1;
      last.text = `${last.count}`;
      last.generation = Math.max(last.generation ?? 0, flag.generation ?? 0);
    } else merged.push({ ...flag });
  }
  return merged;
}

/** Time in a window during which the runtime was suspended, as the gutter says it. */
export function suspendedText(ns: number): string {
  return ns === 0 ? `0${NARROW_SPACE}ms` : duration(ns);
}
