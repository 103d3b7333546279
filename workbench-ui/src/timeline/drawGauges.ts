/** Tracks of gauges: stacked areas on a fixed scale. */

import { NARROW_SPACE, axisCount, bytes, count, percent } from "../format";
import { laneView } from "../state/store";
import { clipTo } from "./drawSpans";
import { type Context, chip } from "./draw";
import { type GaugePoint, gaugePoints, rates, valueAt } from "./gaugePath";
import { type GaugeSpec, type GaugeUnit, niceTop } from "./gauges";
import { type Scene, trackTop } from "./scene";
import type { Track } from "./tracks";

const FILL_ALPHA = 0.46;
const PAD_PX = 3;

export function gaugeValue(value: number, spec: { unit: GaugeUnit; noun: string }): string {
  if (spec.unit === "bytes") return bytes(value);
  if (spec.unit === "percent") return percent(value / 10_000);
  return spec.noun === "" ? count(value) : `${count(value)} ${spec.noun}`;
}

function axisValue(value: number, spec: GaugeSpec): string {
  if (spec.unit === "count") return spec.noun === "" ? axisCount(value) : `${axisCount(value)} ${spec.noun}`;
  return gaugeValue(value, spec).replace(/\.0+(?=\u202f)/, "");
}

/** Points of a layer; of rates the differences. */
export function layerPoints(scene: Scene, spec: GaugeSpec, lane: number): GaugePoint[] {
  const points = gaugePoints(scene.bands, lane);
  return spec.isRate ? rates(points) : points;
}

/** Sums of layers at every x where one of them changes. */
function stackUp(below: { x: number; y: number }[] | null, points: GaugePoint[]): { x: number; y: number; min: number; max: number }[] {
  if (below === null) return points.map(({ x, last, min, max }) => ({ x, y: last, min, max }));
  const xs = [...new Set([...below.map(({ x }) => x), ...points.map(({ x }) => x)])].sort((a, b) => a - b);
  const base = below.map(({ x, y }) => ({ x, last: y, min: y, max: y, isCarried: false }));
  return xs.map((x) => {
    const y = (valueAt(base, x) ?? 0) + (valueAt(points, x) ?? 0);
    return { x, y, min: y, max: y };
  });
}

/** The scale of a track: fixed, unless the user asked to fit the window. */
export function scaleOf(track: Track, spec: GaugeSpec, most: number): { from: number; to: number; isFitted: boolean } {
  const isFitted = laneView.value.fitted.includes(track.key) || spec.isRate;
  return isFitted ? { from: 0, to: niceTop(most, spec.unit), isFitted: laneView.value.fitted.includes(track.key) } : { ...spec.scale, isFitted: false };
}

export function drawGauge(context: Context, scene: Scene, track: Track, spec: GaugeSpec): void {
  const layers = spec.layers.map((layer) => layerPoints(scene, spec, layer.lane));
  const stacks: { x: number; y: number; min: number; max: number }[][] = [];
  for (const points of layers) stacks.push(stackUp(stacks[stacks.length - 1] ?? null, points));
  const line = spec.line === null ? [] : layerPoints(scene, spec, spec.line.lane);
  const most = Math.max(0, ...stacks.flat().map(({ max }) => max), ...line.map(({ max }) => max));
  const scale = scaleOf(track, spec, most);
  const top = trackTop(scene, track) + PAD_PX;
  const bottom = trackTop(scene, track) + track.height - PAD_PX;
  const yOf = (value: number) => bottom - ((Math.min(value, scale.to) - scale.from) / (scale.to - scale.from)) * (bottom - top);
  clipTo(context, scene, track, () => {
    // From the top layer down, so that each covers what the one above filled below itself.
    for (let at = stacks.length - 1; at >= 0; at -= 1) {
      const [stack, under, layer] = [stacks[at] ?? [], stacks[at - 1] ?? null, spec.layers[at]];
      if (stack.length === 0 || layer === undefined) continue;
      const colour = scene.palette.signal[layer.colour];
      fillBetween(context, scene, stack, under, yOf, yOf(Math.max(scale.from, 0)), colour);
      if (spec.layers.length === 1) envelope(context, stack, yOf, colour);
    }
    if (spec.line !== null) dashed(context, scene, line, yOf, scene.palette.signal[spec.line.colour]);
    if (track.height >= 22) {
      chip(context, scene.palette, `${axisValue(scale.to, spec)}${scale.isFitted ? " fit" : ""}`, scene.axis.widthPx - 4, top - 1);
    }
    if (track.height >= 48) {
      const half = scale.from + (scale.to - scale.from) / 2;
      const text = axisValue(half, spec);
      // The unit once.
      chip(context, scene.palette, text.split(NARROW_SPACE)[0] ?? text, scene.axis.widthPx - 4, yOf(half) - 6);
    }
  });
}

function steps(context: Context, widthPx: number, points: { x: number; y: number }[], yOf: (value: number) => number, isReverse = false): void {
  const right = (at: number) => points[at + 1]?.x ?? widthPx;
  if (isReverse) {
    for (let at = points.length - 1; at >= 0; at -= 1) {
      const point = points[at];
      if (point === undefined) continue;
      context.lineTo(right(at), yOf(point.y));
      context.lineTo(point.x, yOf(point.y));
    }
    return;
  }
  points.forEach(({ x, y }, at) => {
    if (at === 0) context.moveTo(x, yOf(y));
    else context.lineTo(x, yOf(y));
    context.lineTo(right(at), yOf(y));
  });
}

function fillBetween(
  context: Context,
  scene: Scene,
  over: { x: number; y: number }[],
  under: { x: number; y: number }[] | null,
  yOf: (value: number) => number,
  base: number,
  colour: string,
): void {
  const width = scene.axis.widthPx;
  context.beginPath();
  steps(context, width, over, yOf);
  if (under === null || under.length === 0) {
    context.lineTo(width, base);
    context.lineTo(over[0]?.x ?? 0, base);
  } else steps(context, width, under, yOf, true);
  context.closePath();
  context.fillStyle = colour;
  context.globalAlpha = FILL_ALPHA;
  context.fill();
  context.globalAlpha = 1;
  context.beginPath();
  steps(context, width, over, yOf);
  context.strokeStyle = colour;
  context.lineWidth = 1.25;
  context.stroke();
}

/** From the least to the most value of a pixel. */
function envelope(context: Context, points: { x: number; min: number; max: number }[], yOf: (value: number) => number, colour: string): void {
  context.fillStyle = colour;
  for (const { x, min, max } of points) {
    if (max > min) context.fillRect(x, yOf(max), 1, Math.max(yOf(min) - yOf(max), 1));
  }
}

function dashed(context: Context, scene: Scene, points: GaugePoint[], yOf: (value: number) => number, colour: string): void {
  if (points.length === 0) return;
  context.beginPath();
  steps(context, scene.axis.widthPx, points.map(({ x, last }) => ({ x, y: last })), yOf);
  context.strokeStyle = colour;
  context.lineWidth = 1;
  context.setLineDash([4, 3]);
  context.stroke();
  context.setLineDash([]);
}
