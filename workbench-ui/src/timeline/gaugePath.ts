/** Values of gauges along x. Pure. */

import { counterEntry } from "../protocol/tile";
import { BAND_ROWS } from "./cache";
import type { PlacedBand } from "./scene";

export interface GaugePoint {
  x: number;
  min: number;
  max: number;
  last: number;
  /** It repeats the value from before the tile. */
  isCarried: boolean;
}

/** The values of a lane in view, from left to right. */
export function gaugePoints(bands: readonly PlacedBand[], lane: number): GaugePoint[] {
  const points: GaugePoint[] = [];
  for (const { tile, at } of bands) {
    if (tile.lane !== lane || tile.counters === null || tile.band * BAND_ROWS !== 0) continue;
    for (let entry = 0; entry < tile.counters.count; entry += 1) {
      const { x, samples, min, max, last } = counterEntry(tile.counters.body, entry);
      points.push({ x: Math.max(at.x + x * at.scale, at.clipFrom), min, max, last, isCarried: samples === 0 });
    }
  }
  return points.sort((a, b) => a.x - b.x);
}

/** The value of a lane that holds at x, without a list of all of them; null where no tile tells. */
export function laneValueAt(bands: readonly PlacedBand[], lane: number, x: number): number | null {
  let value: number | null = null;
  for (const { tile, at } of bands) {
    if (tile.lane !== lane || tile.counters === null || at.clipFrom > x) continue;
    const { body, count } = tile.counters;
    let [from, to] = [0, count];
    while (from < to) {
      const middle = (from + to) >> 1;
      if (at.x + counterEntry(body, middle).x * at.scale <= x) from = middle + 1;
      else to = middle;
    }
    if (from > 0) value = counterEntry(body, from - 1).last;
  }
  return value;
}

/** Differences from value to value, of cumulative counters: what was added at each. */
export function rates(points: GaugePoint[]): GaugePoint[] {
  const steps: GaugePoint[] = [];
  let before: number | null = null;
  for (const point of points) {
    if (!point.isCarried && before !== null) {
      const added = Math.max(point.last - before, 0);
      steps.push({ ...point, min: added, max: added, last: added });
    }
    before = point.last;
  }
  return steps;
}

/** The value that holds at x: that of the last point at or before it. */
export function valueAt(points: GaugePoint[], x: number): number | null {
  let from = 0;
  let to = points.length;
  while (from < to) {
    const middle = (from + to) >> 1;
    if ((points[middle]?.x ?? 0) <= x) from = middle + 1;
    else to = middle;
  }
  return points[from - 1]?.last ?? null;
}
