/** Ruler, grid, borders of ticks, cursor and measure. */

import { count, duration, pointInTime } from "../format";
import { type Range, cursorNs, draggedRange, measure, meta, selectedRange, ticks, timeDisplay } from "../state/store";
import { nsAt, toNs, xOf } from "./axis";
import { type Context, textWidth, useFont, vertical } from "./draw";
import { fitting, makeRuler } from "./ruler";
import { type Scene, scrollAreaTop } from "./scene";
import { timeContext } from "./timeContext";

const BORDER_PX = 16;
/** Ticks whose marks would be nearer than this are seen as one. */
const TICKS_APART_PX = 0.5;
/** Below this there is not even room for a number of one digit. */
const LEAST_CAPTION_PX = 8;

/** Lines under everything: the time grid, and the ticks. */
export function drawGrid(context: Context, scene: Scene): void {
  const { axis, palette, height, rulerHeight } = scene;
  for (const { ns } of makeRuler(axis).marks) vertical(context, Math.round(xOf(axis, ns)), rulerHeight, height, palette.signal.grid);
  const { startNs, placeAt, durationNs } = ticks.value;
  const first = Math.max(placeAt(axis.fromNs), 0);
  const end = placeAt(toNs(axis)) + 1;
  // Where they are too near for all of them, some would look like all.
  if ((end - first) * BORDER_PX <= axis.widthPx) {
    for (const start of startNs.slice(first, end)) vertical(context, Math.round(xOf(axis, start)), rulerHeight, height, palette.signal.line);
  }
  const here = cursorNs.value === null ? -1 : placeAt(cursorNs.value);
  const start = startNs[here];
  const length = durationNs[here];
  if (start === undefined || length === undefined || length === null) return;
  const [from, to] = [Math.max(xOf(axis, start), 0), Math.min(xOf(axis, start + length), axis.widthPx)];
  if (to <= from) return;
  context.fillStyle = palette.signal["tick-current"];
  context.fillRect(from, rulerHeight, to - from, height - rulerHeight);
}

/** The ruler: ticks above, time below. */
export function drawRuler(context: Context, scene: Scene): void {
  const { axis, palette, rulerHeight } = scene;
  context.fillStyle = palette.signal["bg-canvas"];
  context.fillRect(0, 0, axis.widthPx, rulerHeight);
  drawTicks(context, scene);
  const ruler = makeRuler(axis);
  const bottom = rulerHeight - 1;
  const minorFrom = Math.ceil(axis.fromNs / ruler.minorNs);
  const minorTo = Math.floor(toNs(axis) / ruler.minorNs);
  context.fillStyle = palette.signal["line-strong"];
  for (let at = minorFrom; at <= minorTo && at - minorFrom < 2000; at += 1) {
    context.fillRect(Math.round(xOf(axis, at * ruler.minorNs)), bottom - 3, 1, 3);
  }
  const labels = ruler.marks.map(({ ns, text, isWhole }) => {
    const x = Math.round(xOf(axis, ns));
    const weight = isWhole && ruler.stepNs < 1e6 ? 600 : 400;
    const label = timeDisplay.value === "start" || timeDisplay.value === "tick" ? text : pointInTime(ns, timeDisplay.value, timeContext(), axis.nsPerPx);
    useFont(context, palette, 10, weight);
    return { x: x + 4, width: textWidth(context, label), label, weight };
  });
  context.fillStyle = palette.signal["text-3"];
  for (const { x } of labels) context.fillRect(x - 4, bottom - 11, 1, 11);
  context.fillStyle = palette.signal["text-2"];
  for (const { x, label, weight } of fitting(labels, axis.widthPx, cursorChip(context, scene))) {
    useFont(context, palette, 10, weight);
    context.fillText(label, x, bottom - 4);
  }
  context.fillStyle = palette.signal.line;
  context.fillRect(0, bottom, axis.widthPx, 1);
}

function drawTicks(context: Context, scene: Scene): void {
  const { axis, palette } = scene;
  const { startNs, durationNs, placeAt } = ticks.value;
  const p95 = meta.value?.ticks.p95Ns ?? Number.POSITIVE_INFINITY;
  const endNs = toNs(axis);
  useFont(context, palette, 10);
  let lastRight = -1;
  // Of those that begin within half a pixel behind the last one only the last can be wide enough to be seen.
  const after = (place: number) => Math.max(place + 1, placeAt(nsAt(axis, lastRight + TICKS_APART_PX)));
  for (let place = Math.max(placeAt(axis.fromNs), 0); place < startNs.length; place = after(place)) {
    const start = startNs[place] ?? 0;
    if (start > endNs) return;
    const ns = durationNs[place] ?? null;
    const to = xOf(axis, start + (ns ?? 0));
    if (to < 0) continue;
    const left = Math.max(xOf(axis, start), 0);
    const width = Math.min(to, axis.widthPx) - left;
    if (left < lastRight + TICKS_APART_PX && width < 2) continue;
    lastRight = left + width;
    context.fillStyle = (ns ?? 0) > p95 ? palette.signal.hot : palette.signal["line-strong"];
    context.fillRect(left, 0, Math.max(width - 1, 1), 2);
    if (width < LEAST_CAPTION_PX) continue;
    const caption = tickCaption(context, place, ns, width - 4);
    if (caption === "") continue;
    context.fillStyle = palette.signal["text-2"];
    context.fillText(caption, left + 2, 12);
  }
}

/** As much as there is room for of "tick", its number and its duration. */
function tickCaption(context: Context, place: number, ns: number | null, room: number): string {
  const number = count(ticks.value.numbers[place] ?? 0);
  if (textWidth(context, number) > room) return "";
  const named = `tick ${number}`;
  if (textWidth(context, named) > room) return number;
  if (ns === null) return named;
  const whole = `${named}  ${duration(ns)}`;
  return textWidth(context, whole) > room ? named : whole;
}

/** Above everything: the moment under the mouse, the ruler of R, a chosen range. */
export function drawCursor(context: Context, scene: Scene): void {
  const { axis, palette, height, rulerHeight } = scene;
  let chips = 0;
  for (const range of [draggedRange.value ?? selectedRange.value, measure.value]) {
    if (range === null) continue;
    const [from, to] = [xOf(axis, range.fromNs), xOf(axis, range.toNs)];
    context.fillStyle = palette.signal["accent-wash"];
    context.fillRect(from, rulerHeight, to - from, height - rulerHeight);
    vertical(context, Math.round(from), rulerHeight, height, palette.signal.accent);
    vertical(context, Math.round(to) - 1, rulerHeight, height, palette.signal.accent);
    drawLength(context, scene, range, from, to, chips);
    chips += 1;
  }
  const at = cursorChip(context, scene);
  if (at === null) return;
  vertical(context, at.cursorX, rulerHeight, height, palette.signal.accent);
  context.fillStyle = palette.signal.accent;
  context.beginPath();
  context.roundRect(at.x, rulerHeight - 14, at.width, 14, 2);
  context.fill();
  useFont(context, palette, 10, 500);
  context.fillStyle = palette.signal["accent-ink"];
  context.fillText(at.text, at.x + 5, rulerHeight - 4);
}

/** The cursor's time on the ruler; null while the cursor is not in the window. */
function cursorChip(context: Context, { axis, palette }: Scene): { cursorX: number; x: number; width: number; text: string } | null {
  const ns = cursorNs.value;
  if (ns === null) return null;
  const cursorX = Math.round(xOf(axis, ns));
  if (cursorX < 0 || cursorX > axis.widthPx) return null;
  useFont(context, palette, 10, 500);
  const text = pointInTime(ns, timeDisplay.value, timeContext(), axis.nsPerPx);
  const width = textWidth(context, text) + 10;
  return { cursorX, x: Math.min(Math.max(cursorX - width / 2, 0), axis.widthPx - width), width, text };
}

/** How long a range is, and how many ticks begin in it; chips of several ranges stand below each other. */
function drawLength(context: Context, scene: Scene, range: Range, from: number, to: number, line: number): void {
  const { palette } = scene;
  const { placeAt } = ticks.value;
  const across = Math.max(placeAt(range.toNs) - placeAt(range.fromNs), 0);
  const text = `${duration(range.toNs - range.fromNs)} · ${count(across)} tick starts`;
  useFont(context, palette, 11, 500);
  const width = textWidth(context, text) + 12;
  const left = Math.min(Math.max((from + to) / 2 - width / 2, 0), scene.axis.widthPx - width);
  const y = scrollAreaTop(scene) + 4 + line * 22;
  context.fillStyle = palette.signal.accent;
  context.beginPath();
  context.roundRect(left, y, width, 18, 3);
  context.fill();
  context.fillStyle = palette.signal["accent-ink"];
  context.fillText(text, left + 6, y + 13);
}
