/** Tracks of gauges: stacked areas on a fixed scale. */

import { NARROW_SPACE, axisCount, bytes, count, percent } from "../format";
import { TILE_BUCKETS, tileNs } from "../protocol/tile";
import { laneView } from "../state/store";
import { bucketPx, snap, tileX } from "./axis";
import type { Entries } from "./cache";
import { clipTo } from "./drawSpans";
import { type Context, chip } from "./draw";
import { type GaugePoint, gaugePoints, laneValueAt, rates, valueAt } from "./gaugePath";
import { type GaugeSpec, type GaugeUnit, niceTop } from "./gauges";
import { placeTile } from "./geometry";
import { type Picture, type PictureCache, imageBytes } from "./pictures";
import { type PlacedBand, type Scene, trackTop } from "./scene";
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
function layerPoints(scene: Scene, spec: GaugeSpec, lane: number): GaugePoint[] {
  const points = gaugePoints(scene.bands, lane);
  return spec.isRate ? rates(points) : points;
}

/** The value of a layer that holds at x. */
export function layerValueAt(scene: Scene, spec: GaugeSpec, lane: number, x: number): number | null {
  return spec.isRate ? valueAt(layerPoints(scene, spec, lane), x) : laneValueAt(scene.bands, lane, x);
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

/** The layers of a gauge, from the bottom, as sums; its line; and the most of all. */
interface Content {
  stacks: { x: number; y: number; min: number; max: number }[][];
  line: GaugePoint[];
  most: number;
}

function contentOf(scene: Scene, spec: GaugeSpec): Content {
  const stacks: Content["stacks"] = [];
  for (const { lane } of spec.layers) stacks.push(stackUp(stacks[stacks.length - 1] ?? null, layerPoints(scene, spec, lane)));
  const line = spec.line === null ? [] : layerPoints(scene, spec, spec.line.lane);
  let most = 0;
  for (const list of [...stacks, line]) for (const { max } of list) most = Math.max(most, max);
  return { stacks, line, most };
}

/** Values to heights in a track. */
function heights(scene: Scene, track: Track, scale: { from: number; to: number }): (value: number) => number {
  const top = trackTop(scene, track) + PAD_PX;
  const bottom = trackTop(scene, track) + track.height - PAD_PX;
  return (value) => bottom - ((Math.min(value, scale.to) - scale.from) / (scale.to - scale.from)) * (bottom - top);
}

export function drawGauge(context: Context, scene: Scene, track: Track, spec: GaugeSpec, cache: PictureCache): void {
  clipTo(context, scene, track, () => {
    const shown = picturesOf(scene, track, spec, cache);
    if (shown !== null) {
      const { axis, level } = scene;
      const y = snap(trackTop(scene, track), axis.ratio);
      for (const [tile, { image }] of shown) {
        // Up to where the next one begins: what lies twice under a see-through colour would be a line.
        const x = tileX(axis, level, tile);
        const width = Math.min(Math.round((tileX(axis, level, tile + 1) - x) * axis.ratio), image.width);
        if (width > 0) context.drawImage(image, 0, 0, width, image.height, x, y, width / axis.ratio, image.height / axis.ratio);
      }
      return drawScale(context, scene, track, spec, scaleOf(track, spec, 0));
    }
    const content = contentOf(scene, spec);
    const scale = scaleOf(track, spec, content.most);
    drawContent(context, scene, track, spec, content, scale);
    drawScale(context, scene, track, spec, scale);
  });
}

function drawContent(context: Context, scene: Scene, track: Track, spec: GaugeSpec, { stacks, line }: Content, scale: { from: number; to: number }): void {
  const yOf = heights(scene, track, scale);
  // From the top layer down, so that each covers what the one above filled below itself.
  for (let at = stacks.length - 1; at >= 0; at -= 1) {
    const [stack, under, layer] = [stacks[at] ?? [], stacks[at - 1] ?? null, spec.layers[at]];
    if (stack.length === 0 || layer === undefined) continue;
    const colour = scene.palette.signal[layer.colour];
    fillBetween(context, scene, stack, under, yOf, yOf(Math.max(scale.from, 0)), colour);
    if (spec.layers.length === 1) envelope(context, stack, yOf, colour);
  }
  if (spec.line !== null) dashed(context, scene, line, yOf, scene.palette.signal[spec.line.colour]);
}

/** The top of the scale and half of it, at the right. */
function drawScale(context: Context, scene: Scene, track: Track, spec: GaugeSpec, scale: { from: number; to: number; isFitted: boolean }): void {
  const right = scene.axis.widthPx - 4;
  if (track.height >= 22) chip(context, scene.palette, `${axisValue(scale.to, spec)}${scale.isFitted ? " fit" : ""}`, right, trackTop(scene, track) + PAD_PX - 1);
  if (track.height < 48) return;
  const half = scale.from + (scale.to - scale.from) / 2;
  const text = axisValue(half, spec);
  // The unit once.
  chip(context, scene.palette, text.split(NARROW_SPACE)[0] ?? text, right, heights(scene, track, scale)(half) - 6);
}

const MOST_PICTURE_PX = 8192;

const numbers = new WeakMap<Entries | GaugeSpec, number>();
let lastNumber = 0;

function numberOf(one: Entries | GaugeSpec | null): number {
  if (one === null) return 0;
  const known = numbers.get(one) ?? ++lastNumber;
  numbers.set(one, known);
  return known;
}

/** The pictures of a gauge on its fixed scale, by tile; null while tiles are missing, when the scale depends on the window, or without room. */
function picturesOf(scene: Scene, track: Track, spec: GaugeSpec, cache: PictureCache): Map<number, Picture> | null {
  const { axis, level, palette } = scene;
  if (spec.isRate || laneView.value.fitted.includes(track.key)) return null;
  const own = scene.bands.filter((band) => band.track === track && !band.isFiltered);
  const first = Math.min(...own.map(({ tile }) => tile.tile));
  const end = Math.max(...own.map(({ tile }) => tile.tile)) + 1;
  const lanes = spec.layers.length + (spec.line === null ? 0 : 1);
  // One pixel more: the next tile may begin at one further right than this one's last bucket.
  const width = Math.ceil(TILE_BUCKETS * bucketPx(axis, level) * axis.ratio) + 1;
  const height = Math.max(Math.ceil(track.height * axis.ratio), 1);
  if (own.some(({ tile }) => tile.level !== level) || own.length !== (end - first) * lanes || !(width <= MOST_PICTURE_PX)) return null;
  if (!cache.hasRoomFor(track.key, imageBytes({ width, height }) * (end - first))) return null;
  const look = [numberOf(spec), palette.epoch, level, axis.nsPerPx, axis.ratio, track.height].join("/");
  const shown = new Map<number, Picture>();
  for (let tile = first; tile < end; tile += 1) {
    const bands = own.filter((band) => band.tile.tile === tile);
    const entries = bands.map((band) => numberOf(band.tile.counters)).join("/");
    const picture = cache.find(track.key, look, tile, entries) ?? paintPicture(scene, track, spec, bands, tile, { width, height }, entries);
    if (picture === null) return null;
    shown.set(tile, picture);
  }
  cache.keep(track.key, look, shown, first, end);
  return shown;
}

/** Paints a tile alone. Its counters begin with the value from before it, so that it needs no other. */
function paintPicture(scene: Scene, track: Track, spec: GaugeSpec, bands: readonly PlacedBand[], tile: number, size: { width: number; height: number }, entries: string): Picture | null {
  const { axis, level } = scene;
  const canvas = new OffscreenCanvas(size.width, size.height);
  const context = canvas.getContext("2d") as unknown as Context | null;
  if (context === null) return null;
  const whole = { ...axis, fromNs: tile * tileNs(level), widthPx: size.width / axis.ratio };
  // The same track at the top of a scene of its own, as wide as the tile.
  const alone: Track = { ...track, isPinned: true, top: 0 };
  const own = bands.map((band) => ({ ...band, track: alone, at: placeTile(whole, level, tile) }));
  const inside: Scene = { ...scene, axis: whole, bands: own, rulerHeight: 0, scrollTop: 0 };
  context.scale(axis.ratio, axis.ratio);
  drawContent(context, inside, alone, spec, contentOf(inside, spec), spec.scale);
  return { entries, image: canvas.transferToImageBitmap() };
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
