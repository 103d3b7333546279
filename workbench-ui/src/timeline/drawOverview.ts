/** Tick overview, overload strip and minimap: the whole session, above the tracks (B-8, B-9, B-10). */

import { count, duration } from "../format";
import { spanEntry } from "../protocol/tile";
import type { Lane } from "../protocol/types";
import { bookmarks, collections, meta, names, notices, ticks, timeWindow, wholeRange } from "../state/store";
import { type Axis, bucketPx, makeAxis, tileX, xOf } from "./axis";
import type { TileCache } from "./cache";
import { CHIP_EDGES_PX, type Context, chip, hatch, textWidth, useFont } from "./draw";
import { WAITING_KINDS } from "./families";
import { stripLabels } from "./labels";
import { type TickStrip, hasOverload, tickScaleNs, xOfMoment } from "./overview";
import { type NameStyle, type Palette, SLOT, type SignalToken } from "./palette";
import { orderThreads } from "./tracks";

export interface OverviewHeights {
  ticks: number;
  overload: number;
  minimap: number;
}

export function budgetNs(): number | null {
  const rate = meta.value?.world.baseTickRate ?? 0;
  return rate > 0 ? 1e9 / rate : null;
}

/** Heights of the three parts; the overload strip takes no room while there is no overload. */
export function overviewHeights(measures: OverviewHeights): OverviewHeights {
  const hasTicks = ticks.value.numbers.length > 0;
  return { ...measures, ticks: hasTicks ? measures.ticks : 0, overload: hasOverload(ticks.value, budgetNs()) ? measures.overload : 0 };
}

/** Then nothing is chosen, and a wash over everything would say nothing. */
function isWholeShown(): boolean {
  const { fromNs, toNs } = timeWindow.value;
  return toNs - fromNs >= (wholeRange.value.toNs - wholeRange.value.fromNs) * 0.999;
}

const VALUES_PX = 15;
const NUMBERS_PX = 13;
const WORST = 3;
/** Bars that have room for a dot among the numbers. */
const DOT_LEAST_PX = 8;

/** Where the ticks of the window lie on the strip; null when nothing is chosen. */
export function windowOnStrip(strip: TickStrip): { from: number; to: number; bars: { from: number; to: number } } | null {
  if (isWholeShown()) return null;
  const { fromNs, toNs } = timeWindow.value;
  const { placeAt } = ticks.value;
  const xAt = (ns: number) => xOfMoment(strip, ticks.value, placeAt, ns);
  const [first, last] = [placeAt(fromNs), placeAt(toNs)];
  const inside = strip.bars.filter((bar) => bar.end > first && bar.first <= last);
  const end = inside[inside.length - 1];
  return { from: xAt(fromNs), to: xAt(toNs), bars: { from: inside[0]?.x ?? 0, to: end === undefined ? 0 : end.x + end.w } };
}

/** Ticks as they look outside of the window, or all as they look in it: neither depends on where the window is. */
export function drawTickOverview(context: Context, palette: Palette, strip: TickStrip, height: number, isIn: boolean): void {
  if (height === 0) return;
  const { signal } = palette;
  const [p95, budget] = [meta.value?.ticks.p95Ns ?? null, budgetNs()];
  const worstFirst = [...strip.bars].sort((a, b) => b.maxNs - a.maxNs);
  const scale = tickScaleNs(budget, p95, worstFirst[0]?.maxNs ?? 0);
  const [top, bottom] = [VALUES_PX, height - NUMBERS_PX];
  const yOf = (ns: number) => bottom - Math.min(ns / scale, 1) * (bottom - top);
  for (const bar of strip.bars) {
    const isHot = p95 !== null && bar.maxNs > p95;
    context.fillStyle = isHot ? signal.hot : isIn ? signal["text-2"] : signal["text-3"];
    context.globalAlpha = isHot || isIn ? 1 : 0.75;
    const gap = bar.w >= 4 ? 1 : 0;
    const y = yOf(bar.maxNs);
    context.fillRect(bar.x, y, Math.max(bar.w - gap, 0.75), Math.max(bottom - y, 1));
    context.globalAlpha = 1;
    if (bar.maxNs > scale && bar.w >= 4) notch(context, signal["bg-canvas"], bar.x, top + 5, bar.w);
    if (bar.collections > 0) {
      context.fillStyle = signal["gc-pause"];
      // Beside the number of a wide bar; of narrow ones above the numbers, which may be those of neighbours.
      if (bar.w < DOT_LEAST_PX) context.fillRect(bar.x + bar.w / 2 - 1.5, bottom + 0.5, 3, 2.5);
      else {
        context.beginPath();
        context.arc(bar.x + bar.w / 2, bottom + 7, 2, 0, Math.PI * 2);
        context.fill();
      }
    }
  }
  for (const gap of strip.gaps) drawGap(context, palette, gap, height);
  const lines = [
    ...(p95 === null ? [] : [{ text: `P95 ${duration(p95)}`, dash: [3, 3], y: yOf(p95) }]),
    ...(budget === null ? [] : [{ text: `budget ${duration(budget)}`, dash: [], y: yOf(budget) }]),
  ];
  const worst = worstFirst.slice(0, WORST).filter(({ maxNs }) => p95 !== null && maxNs > p95);
  drawLines(context, palette, strip, lines);
  drawLabels(context, palette, strip, lines, worst.map(({ x, w, maxNs }) => ({ x: x + w / 2, y: yOf(maxNs), text: duration(maxNs) })), bottom);
  drawNumbers(context, palette, strip, height);
}

/** A bar that is taller than the scale. */
function notch(context: Context, colour: string, x: number, y: number, w: number): void {
  context.fillStyle = colour;
  context.beginPath();
  context.moveTo(x - 1, y + 3);
  context.lineTo(x + w + 1, y - 1);
  context.lineTo(x + w + 1, y + 1.5);
  context.lineTo(x - 1, y + 5.5);
  context.fill();
}

function drawGap(context: Context, palette: Palette, gap: { x: number; w: number; missing: number }, height: number): void {
  context.fillStyle = hatch(context, palette.signal["loss-hatch"], 6);
  context.fillRect(gap.x + 1, 0, gap.w - 2, height);
  context.save();
  context.translate(gap.x + gap.w / 2 + 3.5, height - 3);
  context.rotate(-Math.PI / 2);
  useFont(context, palette, 10);
  const text = `${count(gap.missing)} missing`;
  context.fillStyle = palette.signal["bg-canvas"];
  context.fillRect(-2, -9, textWidth(context, text) + 4, 12);
  context.fillStyle = palette.signal.loss;
  context.fillText(text, 0, 0);
  context.restore();
}

interface LabelledLine {
  text: string;
  dash: number[];
  y: number;
}

function drawLines(context: Context, palette: Palette, strip: TickStrip, lines: readonly LabelledLine[]): void {
  context.strokeStyle = palette.signal["text-3"];
  context.lineWidth = 1;
  for (const { y, dash } of lines) {
    context.setLineDash(dash);
    context.beginPath();
    context.moveTo(0, Math.round(y) + 0.5);
    context.lineTo(strip.widthPx, Math.round(y) + 0.5);
    context.stroke();
  }
  context.setLineDash([]);
}

/** What the lines and the worst bars stand for, where there is room for it: the gutter says the same. */
function drawLabels(context: Context, palette: Palette, strip: TickStrip, lines: readonly LabelledLine[], worst: readonly { x: number; y: number; text: string }[], bottom: number): void {
  useFont(context, palette, 10);
  const sized = worst.map((bar) => ({ ...bar, width: textWidth(context, bar.text) }));
  const sizedLines = lines.map(({ y, text }) => ({ y, width: textWidth(context, text) + CHIP_EDGES_PX }));
  for (const { of, box } of stripLabels(sized, sizedLines, strip.widthPx, bottom)) {
    const text = (of.is === "line" ? lines : worst)[of.at]?.text ?? "";
    if (of.is === "line") chip(context, palette, text, box.x + box.w, box.y);
    else {
      useFont(context, palette, 10);
      context.fillStyle = palette.signal.hot;
      context.fillText(text, box.x + 3, box.y + 9);
    }
  }
}

function drawNumbers(context: Context, palette: Palette, strip: TickStrip, height: number): void {
  const { numbers } = ticks.value;
  useFont(context, palette, 10);
  context.fillStyle = palette.signal["text-3"];
  const barWidth = strip.bars[0]?.w ?? 1;
  const perLabel = 60 / (barWidth / strip.perBar);
  const power = 10 ** Math.floor(Math.log10(Math.max(perLabel, 1)));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((wish) => wish >= perLabel) ?? 10 * power;
  let right = 0;
  for (const bar of strip.bars) {
    for (let place = bar.first; place < bar.end; place += 1) {
      const number = numbers[place] ?? 0;
      if (number % step !== 0) continue;
      const text = count(number);
      const width = textWidth(context, text);
      const x = bar.x + bar.w / 2 - width / 2 + (bar.collections > 0 && bar.w >= DOT_LEAST_PX ? width / 2 + 6 : 0);
      if (x < right || x + width > strip.widthPx) continue;
      context.fillText(text, x, height - 3);
      right = x + width + 8;
    }
  }
}

const MULTIPLIERS: readonly (readonly [number, SignalToken])[] = [[6, "ovl-6"], [4, "ovl-4"], [3, "ovl-3"], [2, "ovl-2"], [1, "ovl-1"]];
const MOST_RATIO = 2;

export function drawOverload(context: Context, palette: Palette, strip: TickStrip, height: number): void {
  const budget = budgetNs();
  if (height === 0 || budget === null) return;
  const [top, bottom] = [3, height - 2];
  const yOf = (ratio: number) => bottom - (Math.min(ratio, MOST_RATIO) / MOST_RATIO) * (bottom - top);
  for (const { x, w, maxNs, multiplier } of strip.bars) {
    const ratio = maxNs / budget;
    const token = MULTIPLIERS.find(([least]) => multiplier >= least)?.[1] ?? "ovl-1";
    context.fillStyle = palette.signal[token];
    context.fillRect(x, yOf(ratio), Math.max(w - (w >= 4 ? 1 : 0), 0.75), Math.max(bottom - yOf(ratio), 0.5));
    if (ratio > MOST_RATIO) {
      context.fillStyle = palette.signal.text;
      context.fillRect(x, top - 2, Math.max(w - 1, 1), 1);
    }
  }
  for (const [ratio, dash] of [[1, []], [1.2, [1, 3]]] as const) {
    context.strokeStyle = palette.signal["text-3"];
    context.lineWidth = 1;
    context.setLineDash([...dash]);
    context.beginPath();
    context.moveTo(0, Math.round(yOf(ratio)) + 0.5);
    context.lineTo(strip.widthPx, Math.round(yOf(ratio)) + 0.5);
    context.stroke();
    context.setLineDash([]);
  }
}

/** Lanes of the minimap, a line for each list: one per thread while they are few, else one per kind of thread. */
export function minimapGroups(lanes: Lane[]): Lane[][] {
  const threads = orderThreads(lanes.filter(({ kind, spans }) => kind === "thread" && spans > 0));
  if (threads.length <= 6) return threads.map((lane) => [lane]);
  const groups = new Map<string, Lane[]>();
  for (const lane of threads) {
    const key = lane.threadKindName ?? "Other";
    groups.set(key, [...(groups.get(key) ?? []), lane]);
  }
  return [...groups.values()];
}

export function minimapAxis(widthPx: number, ratio: number): Axis {
  return makeAxis(wholeRange.value, widthPx, ratio);
}

const EDGE_PX = 4;

/** Activity of a group per pixel, 0..1, and the name that takes most of it. */
function activity(cache: TileCache, axis: Axis, level: number, group: Lane[], style: NameStyle): { share: Float32Array; slot: number } {
  const share = new Float32Array(Math.ceil(axis.widthPx));
  const bySlot = new Map<number, number>();
  const scale = bucketPx(axis, level);
  const ids = new Set(group.map(({ id }) => id));
  for (const tile of cache.values()) {
    if (tile.level !== level || !ids.has(tile.lane) || tile.spans === null || tile.filterId !== 0) continue;
    const left = tileX(axis, level, tile.tile);
    for (let at = 0; at < tile.spans.count; at += 1) {
      const { x0, x1, row, name, cover } = spanEntry(tile.spans.body, at);
      if (row !== 0 || WAITING_KINDS.has(names.value.kinds[name] ?? -1)) continue;
      const [from, to] = [left + x0 * scale, left + x1 * scale];
      const busy = cover / 65535;
      const slot = style.slots[name] ?? SLOT.other;
      bySlot.set(slot, (bySlot.get(slot) ?? 0) + (to - from) * busy);
      for (let x = Math.max(Math.floor(from), 0); x < Math.min(to, share.length); x += 1) {
        const part = Math.min(to, x + 1) - Math.max(from, x);
        share[x] = (share[x] ?? 0) + (part * busy) / group.length;
      }
    }
  }
  const [slot] = [...bySlot].sort((a, b) => b[1] - a[1])[0] ?? [SLOT.other];
  return { share, slot };
}

/** The part of the minimap that stays the same while the window moves. */
export function drawMinimapBase(context: Context, palette: Palette, cache: TileCache, axis: Axis, level: number, style: NameStyle, height: number): void {
  const { signal } = palette;
  const groups = minimapGroups(meta.value?.lanes ?? []);
  const line = Math.max((height - EDGE_PX * 2) / Math.max(groups.length, 1), 2);
  groups.forEach((group, at) => {
    const { share, slot } = activity(cache, axis, level, group, style);
    context.fillStyle = palette.bars[slot] ?? "";
    share.forEach((busy, x) => {
      if (busy < 0.002) return;
      context.globalAlpha = 0.6 + 0.4 * Math.min(busy, 1);
      context.fillRect(x, EDGE_PX + at * line, 1, Math.max(line - 1.5, 1));
    });
    context.globalAlpha = 1;
  });
  context.fillStyle = signal["gc-pause"];
  for (const { startNs, endNs, pauseNs } of collections.value) {
    if (startNs === null) continue;
    const x = xOf(axis, startNs);
    context.fillRect(x, 0, Math.max(xOf(axis, endNs ?? startNs + (pauseNs ?? 0)) - x, 1), 3);
  }
  for (const { rangeNs } of notices.value?.notices ?? []) {
    if (rangeNs === null) continue;
    context.fillStyle = hatch(context, signal["loss-hatch"], 4);
    const x = xOf(axis, rangeNs[0]);
    context.fillRect(x, 0, Math.max(xOf(axis, rangeNs[1]) - x, 3), height);
  }
  context.fillStyle = signal.loss;
  for (const { atNs } of [...(notices.value?.losses ?? []), ...(notices.value?.capped ?? [])]) context.fillRect(xOf(axis, atNs) - 1, 0, 2, height);
  context.fillStyle = signal.accent;
  for (const { fromNs } of bookmarks.value) {
    const x = Math.round(xOf(axis, fromNs));
    context.fillRect(x, 0, 1, height);
    context.beginPath();
    context.moveTo(x, 0);
    context.lineTo(x + 6, 3);
    context.lineTo(x, 6);
    context.fill();
  }
}

/** Hits of a search, yellow. */
export function drawMinimapHits(context: Context, palette: Palette, cache: TileCache, axis: Axis, level: number, filterId: number, height: number): void {
  if (filterId === 0) return;
  context.fillStyle = palette.signal["search-hit"];
  const scale = bucketPx(axis, level);
  const columns = new Set<number>();
  for (const tile of cache.values()) {
    if (tile.level !== level || tile.filterId !== filterId) continue;
    const left = tileX(axis, level, tile.tile);
    for (const entries of [tile.spans, tile.instants]) {
      for (let at = 0; entries !== null && at < entries.count; at += 1) columns.add(Math.round(left + spanEntry(entries.body, at).x0 * scale));
    }
  }
  for (const x of columns) context.fillRect(x, height - 6, 1.5, 6);
}

export const WINDOW_LEAST_PX = 8;
export const HANDLE = { width: 4, height: 18, hit: 16 } as const;

/** Where the window lies on the minimap: never narrower than 8 px. */
export function windowOnMinimap(axis: Axis): { from: number; to: number } {
  const { fromNs, toNs } = timeWindow.value;
  const [from, to] = [xOf(axis, fromNs), xOf(axis, toNs)];
  const middle = (from + to) / 2;
  const half = Math.max((to - from) / 2, WINDOW_LEAST_PX / 2);
  return { from: middle - half, to: middle + half };
}

export function drawMinimapWindow(context: Context, palette: Palette, axis: Axis, height: number): void {
  const { from, to } = windowOnMinimap(axis);
  const { signal } = palette;
  context.fillStyle = signal["bg-canvas"];
  context.globalAlpha = 0.3;
  context.fillRect(0, 0, Math.max(from, 0), height);
  context.fillRect(to, 0, Math.max(axis.widthPx - to, 0), height);
  context.globalAlpha = 1;
  if (isWholeShown()) return;
  context.fillStyle = signal["accent-wash"];
  context.fillRect(from, 0, to - from, height);
  context.strokeStyle = signal.accent;
  context.lineWidth = 1;
  context.strokeRect(Math.round(from) + 0.5, 0.5, Math.max(Math.round(to - from) - 1, 1), height - 1);
  context.fillStyle = signal.accent;
  for (const x of [from - HANDLE.width, to]) {
    context.beginPath();
    context.roundRect(x, (height - HANDLE.height) / 2, HANDLE.width, HANDLE.height, 2);
    context.fill();
  }
}
