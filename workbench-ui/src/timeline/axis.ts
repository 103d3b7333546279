/** Time along x: one axis for every track. CSS pixels; edges fall on device pixels. Pure. */

import { MAX_LEVEL, MAX_TILES, tileNs } from "../protocol/tile";

export interface Axis {
  fromNs: number;
  /** Nanoseconds per CSS pixel. */
  nsPerPx: number;
  widthPx: number;
  /** Device pixels per CSS pixel. */
  ratio: number;
}

export function makeAxis(window: { fromNs: number; toNs: number }, widthPx: number, ratio: number): Axis {
  return { fromNs: window.fromNs, nsPerPx: (window.toNs - window.fromNs) / Math.max(widthPx, 1), widthPx, ratio };
}

/** The nearest edge of a device pixel. */
export function snap(px: number, ratio: number): number {
  return Math.round(px * ratio) / ratio;
}

export function xOf(axis: Axis, ns: number): number {
  return (ns - axis.fromNs) / axis.nsPerPx;
}

export function nsAt(axis: Axis, x: number): number {
  return axis.fromNs + x * axis.nsPerPx;
}

export function toNs(axis: Axis): number {
  return axis.fromNs + axis.widthPx * axis.nsPerPx;
}

/** Level whose buckets are half a device pixel to one wide. */
export function levelOf(axis: Axis): number {
  const nsPerDevicePx = axis.nsPerPx / axis.ratio;
  return Math.min(Math.max(Math.floor(Math.log2(nsPerDevicePx)), 0), MAX_LEVEL);
}

/** CSS pixels per bucket. */
export function bucketPx(axis: Axis, level: number): number {
  return 2 ** level / axis.nsPerPx;
}

/** Where a tile begins. */
export function tileX(axis: Axis, level: number, tile: number): number {
  return snap(xOf(axis, tile * tileNs(level)), axis.ratio);
}

/** The tiles that a range of x shows: first, and one behind the last. */
export function tilesIn(axis: Axis, level: number, fromX: number, toX: number): [number, number] {
  const size = tileNs(level);
  const first = Math.max(0, Math.floor(nsAt(axis, fromX) / size));
  const end = Math.max(first, Math.ceil(nsAt(axis, toX) / size));
  return [first, Math.min(end, first + MAX_TILES)];
}
