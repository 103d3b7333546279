/**
 * Where entries of tiles lie. The painter and the hit test use these functions and no others, so that what is hit is what
 * is seen. Pure; CSS pixels.
 */

import { ENTRY_FLAG, TILE_BUCKETS } from "../protocol/tile";
import { type Axis, bucketPx, snap, tileX } from "./axis";

/** Between bars of neighbouring rows. */
export const ROW_GAP_PX = 1.5;
/** At a bar's right end, so that neighbours stay countable. */
export const BAR_GAP_PX = 0.75;
/** A pointer need not be nearer than this to hit. */
export const HIT_SLACK_PX = 3;

/** A tile on the screen. `clip…` is the part of x it is drawn for. */
export interface PlacedTile {
  x: number;
  scale: number;
  ratio: number;
  clipFrom: number;
  clipTo: number;
}

export interface Span1d {
  x: number;
  w: number;
}

/** Extent of buckets in a tile, from the tile's left edge: at least a pixel. */
export function bucketBox(x0: number, x1: number, scale: number, ratio: number): Span1d {
  const x = snap(x0 * scale, ratio);
  return { x, w: Math.max(snap(x1 * scale, ratio) - x, 1) };
}

/** Height of a bar in a row. */
export function barHeight(pitchPx: number, ratio: number): number {
  return Math.max(snap(pitchPx - ROW_GAP_PX, ratio), 1);
}

export function placeTile(axis: Axis, level: number, tile: number, clipFrom = 0, clipTo = axis.widthPx): PlacedTile {
  return { x: tileX(axis, level, tile), scale: bucketPx(axis, level), ratio: axis.ratio, clipFrom, clipTo };
}

/** Width of a whole tile. */
export function tileWidth(scale: number): number {
  return TILE_BUCKETS * scale;
}

/** An entry of a tile's row that the pointer meets. */
export interface Met {
  /** Number of the entry in the frame. */
  at: number;
  /** Distance in pixels; 0 within. */
  distance: number;
}

/** The entry of a row at x: of those that contain it the last drawn, else the nearest within the slack. */
export function entryAt(body: DataView, count: number, row: number, placed: PlacedTile, x: number): Met | null {
  if (x < placed.clipFrom || x >= placed.clipTo) return null;
  let best: Met | null = null;
  const local = x - placed.x;
  for (let at = 0; at < count; at += 1) {
    const offset = at * 16;
    if (body.getUint8(offset + 4) !== row) continue;
    const box = bucketBox(body.getUint16(offset, true), body.getUint16(offset + 2, true), placed.scale, placed.ratio);
    const distance = local < box.x ? box.x - local : local >= box.x + box.w ? local - box.x - box.w + Number.MIN_VALUE : 0;
    if (distance <= HIT_SLACK_PX && (best === null || distance <= best.distance)) best = { at, distance };
  }
  return best;
}

/** One span, put together from its parts in neighbouring tiles. */
export interface WholeSpan {
  row: number;
  index: number;
  name: number;
  flags: number;
  x: number;
  /** Right edge. */
  to: number;
  /** It begins, or ends, outside of what is shown. */
  isCutLeft: boolean;
  isCutRight: boolean;
}

export function spanKey(row: number, index: number): number {
  return row * 2 ** 32 + index;
}

const EDGES = ENTRY_FLAG.fromLeft | ENTRY_FLAG.toRight;

/** Numbers of the exact entries of a tile that are at least `leastPx` wide, or touch an edge of the tile. */
export function wideEntries(body: DataView, count: number, scale: number, ratio: number, leastPx: number): number[] {
  const numbers: number[] = [];
  for (let at = 0; at < count; at += 1) {
    const offset = at * 16;
    const flags = body.getUint8(offset + 5);
    if (flags & ENTRY_FLAG.aggregate) continue;
    const isWide = bucketBox(body.getUint16(offset, true), body.getUint16(offset + 2, true), scale, ratio).w >= leastPx;
    if (isWide || flags & EDGES) numbers.push(at);
  }
  return numbers;
}

/** Adds these entries of a tile to a map by row and index; parts of one span become one. */
export function gatherSpans(spans: Map<number, WholeSpan>, body: DataView, numbers: readonly number[], firstRow: number, placed: PlacedTile): void {
  for (const at of numbers) {
    const offset = at * 16;
    const flags = body.getUint8(offset + 5);
    const box = bucketBox(body.getUint16(offset, true), body.getUint16(offset + 2, true), placed.scale, placed.ratio);
    const [from, to] = [Math.max(placed.x + box.x, placed.clipFrom), Math.min(placed.x + box.x + box.w, placed.clipTo)];
    if (to <= from) continue;
    const row = firstRow + body.getUint8(offset + 4);
    const index = body.getUint32(offset + 8, true);
    const key = spanKey(row, index);
    const known = spans.get(key);
    const isCutLeft = (flags & ENTRY_FLAG.fromLeft) !== 0 || from > placed.x + box.x;
    const isCutRight = (flags & ENTRY_FLAG.toRight) !== 0 || to < placed.x + box.x + box.w;
    if (known === undefined) {
      spans.set(key, { row, index, name: body.getUint16(offset + 6, true), flags, x: from, to, isCutLeft, isCutRight });
      continue;
    }
    if (from < known.x) {
      known.x = from;
      known.isCutLeft = isCutLeft;
    }
    if (to > known.to) {
      known.to = to;
      known.isCutRight = isCutRight;
    }
    known.flags |= flags & ~EDGES;
  }
}
