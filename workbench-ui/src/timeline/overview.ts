/** The bars of the tick overview and of the overload strip (B-8, B-9). Pure. */

import type { TickColumns } from "../protocol/types";

export interface TickBar {
  x: number;
  w: number;
  /** Places of the ticks it stands for: first, and one behind the last. */
  first: number;
  end: number;
  /** The longest of them. */
  maxNs: number;
  /** Place of the longest. */
  worst: number;
  collections: number;
  multiplier: number;
}

/** Numbers that are missing between two ticks. */
export interface TickGap {
  x: number;
  w: number;
  missing: number;
}

export interface TickStrip {
  bars: TickBar[];
  gaps: TickGap[];
  /** Ticks per bar, a power of two. */
  perBar: number;
  widthPx: number;
  /** Up to here there are ticks; what lies behind is not read yet. */
  readPx: number;
}

const GAP_PX = 14;
/** Gaps take at most this share of the width; beyond they are not drawn as bands. */
const GAP_SHARE = 0.25;

/** One bar per tick; with more ticks than pixels one per 2^k, showing the maximum. Ticks take the share that is read. */
export function tickStrip(ticks: TickColumns, widthPx: number, readShare = 1): TickStrip {
  const total = ticks.numbers.length;
  const readPx = widthPx * readShare;
  const strip: TickStrip = { bars: [], gaps: [], perBar: 1, widthPx, readPx };
  if (total === 0 || readPx < 1) return strip;
  const gapPlaces = ticks.missingBefore.flatMap((missing, place) => (missing > 0 ? [place] : []));
  const hasBands = gapPlaces.length * GAP_PX <= readPx * GAP_SHARE;
  const room = readPx - (hasBands ? gapPlaces.length * GAP_PX : 0);
  while (total / strip.perBar > room) strip.perBar *= 2;
  const perTick = room / total;
  let x = 0;
  let nextGap = 0;
  for (let first = 0; first < total; first += strip.perBar) {
    const end = Math.min(first + strip.perBar, total);
    const bar: TickBar = { x: 0, w: (end - first) * perTick, first, end, maxNs: 0, worst: first, collections: 0, multiplier: 1 };
    for (let place = first; place < end; place += 1) {
      const ns = ticks.durationNs[place] ?? 0;
      if (ns > bar.maxNs) [bar.maxNs, bar.worst] = [ns, place];
      bar.collections += ticks.collections[place] ?? 0;
      bar.multiplier = Math.max(bar.multiplier, ticks.multipliers[place] ?? 1);
    }
    while (hasBands && (gapPlaces[nextGap] ?? total) < end) {
      strip.gaps.push({ x, w: GAP_PX, missing: ticks.missingBefore[gapPlaces[nextGap] ?? 0] ?? 0 });
      x += GAP_PX;
      nextGap += 1;
    }
    bar.x = x;
    x += bar.w;
    strip.bars.push(bar);
  }
  return strip;
}

/** The bar at x. */
export function barAt(strip: TickStrip, x: number): TickBar | null {
  return strip.bars.find((bar) => x >= bar.x && x < bar.x + bar.w) ?? null;
}

/** Where a moment lies between the bars, for the band of the window. */
export function xOfMoment(strip: TickStrip, ticks: TickColumns, placeAt: (ns: number) => number, ns: number): number {
  const place = placeAt(ns);
  if (place < 0) return 0;
  const bar = strip.bars[Math.floor(place / strip.perBar)];
  if (bar === undefined) return strip.readPx;
  const [from, to] = [ticks.startNs[bar.first] ?? 0, ticks.startNs[bar.end] ?? (ticks.startNs[bar.end - 1] ?? 0) + bar.maxNs];
  const end = bar.x + Math.min(Math.max((ns - from) / Math.max(to - from, 1), 0), 1) * bar.w;
  // Behind the last tick that is read lies the rest of the trace.
  return bar.end === ticks.startNs.length && ns > to && strip.readPx < strip.widthPx ? strip.widthPx : end;
}

/**
 * Top of the scale, for the whole trace: three budgets, or a fifth above P95, so that one very long tick does not flatten all
 * others; but not more than what is to be shown needs.
 */
export function tickScaleNs(budgetNs: number | null, p95Ns: number | null, maxNs: number): number {
  const wish = Math.max(budgetNs === null ? 0 : 3 * budgetNs, p95Ns === null ? 0 : 1.2 * p95Ns);
  const need = Math.max(maxNs, budgetNs ?? 0, p95Ns ?? 0, 1);
  return wish > 0 ? Math.min(wish, need) : need;
}

/** Is there anything to show in the overload strip? */
export function hasOverload(ticks: TickColumns, budgetNs: number | null): boolean {
  return (
    ticks.multipliers.some((multiplier) => multiplier > 1) ||
    (budgetNs !== null && ticks.durationNs.some((ns) => ns !== null && ns >= budgetNs))
  );
}
