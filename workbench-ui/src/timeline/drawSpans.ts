/** Bars: bitmaps of tiles, labels, selection. */

import { count, duration, visible } from "../format";
import { colourMode, focused, links, nameOf, names, selection } from "../state/store";
import { xOf } from "./axis";
import { BAND_ROWS, type Entries, type TileCache } from "./cache";
import { type Context, fitText, textWidth, useFont } from "./draw";
import { WAITING_KINDS } from "./families";
import { type PlacedTile, type WholeSpan, barHeight, gatherSpans, spanKey, wideEntries } from "./geometry";
import { MARKER_MIDDLE_PX, mergedMarkers } from "./markers";
import { type PaintStyle, paintTile } from "./painter";
import { NONE, wholeLengths } from "./wholes";
import { SLOT, durationSlot, laneSlot } from "./palette";
import { type PlacedBand, type Scene, type SpanHit, isAggregate, isVisible, rowTop, scrollAreaTop, trackTop } from "./scene";
import type { Track } from "./tracks";

const LABEL_PX = 40;
const WAITING_LABEL_PX = 240;
/** Around the number of a marker, and the narrowest number. */
const COUNT_ROOM_PX = 12;
const LEAST_COUNT_PX = 6;
/** What a search did not find. */
export const DIMMED = 0.16;

/** Tiles wider than this many pixels per bucket have no bitmap. */
export const DIRECT_SCALE = 2;

/** Keeps drawing within the area of a track. */
export function clipTo(context: Context, scene: Scene, track: Track, draw: () => void): void {
  if (track.isPinned) return draw();
  context.save();
  context.beginPath();
  const top = scrollAreaTop(scene);
  context.rect(0, top, scene.axis.widthPx, scene.height - top);
  context.clip();
  draw();
  context.restore();
}

/** Draws a placed tile. */
export function drawBand(context: Context, scene: Scene, placed: PlacedBand, style: PaintStyle, isDimmed: boolean, cache: TileCache): void {
  const { tile, at, track } = placed;
  if (tile.spans === null || tile.spans.count === 0) return;
  const y = rowTop(scene, track, placed.band * BAND_ROWS);
  const rows = Math.min(track.rows - placed.band * BAND_ROWS, BAND_ROWS);
  context.save();
  context.beginPath();
  context.rect(at.clipFrom, y, at.clipTo - at.clipFrom, rows * track.pitch);
  context.clip();
  if (isDimmed) context.globalAlpha = DIMMED;
  if (at.scale > DIRECT_SCALE) {
    context.translate(at.x, y);
    const { body, count } = tile.spans;
    const wholes = colourMode.value === "duration" ? wholeLengths(cache, tile) : NONE;
    const job = { body, count, level: tile.level, scale: at.scale, ratio: at.ratio, pitchPx: track.pitch, rows, mode: colourMode.value, laneSlot: track.lane ? laneSlot(track.lane) : 0, wholes };
    paintTile(context, job, style, { from: at.clipFrom - at.x - 2, to: at.clipTo - at.x + 2 });
  } else if (tile.bitmap !== null) {
    const { image, scale, pitchPx, ratio } = tile.bitmap;
    const stretch = at.scale / scale;
    context.imageSmoothingEnabled = stretch !== 1;
    context.drawImage(image, at.x, y, (image.width / ratio) * stretch, (image.height / ratio) * (track.pitch / pitchPx));
  }
  context.restore();
}

/** Entries that are wide enough for a label at a scale: worked out once, and not at each frame of a pan. */
const wide = new WeakMap<Entries, { scale: number; numbers: number[] }>();

function labelled(spans: Entries, { scale, ratio }: PlacedTile): number[] {
  const known = wide.get(spans);
  if (known?.scale === scale) return known.numbers;
  const numbers = wideEntries(spans.body, spans.count, scale, ratio, LABEL_PX);
  wide.set(spans, { scale, numbers });
  return numbers;
}

function spansOf(bands: readonly PlacedBand[], track: Track, pick: (spans: Entries, at: PlacedTile) => number[]): Map<number, WholeSpan> {
  const found = new Map<number, WholeSpan>();
  for (const { track: of, tile, at, band } of bands) {
    if (of === track && tile.spans !== null) gatherSpans(found, tile.spans.body, pick(tile.spans, at), band * BAND_ROWS, at);
  }
  return found;
}

const everyEntry = ({ body, count }: Entries, { scale, ratio }: PlacedTile) => wideEntries(body, count, scale, ratio, 0);

/** The exact spans of a track that are wide enough for a label, whole across tiles. */
export function wideSpans(bands: readonly PlacedBand[], track: Track): WholeSpan[] {
  const spans = spansOf(bands, track, labelled);
  return [...spans.values()].filter((span) => span.row < track.rows && span.to - span.x >= LABEL_PX);
}

function slotOfSpan(scene: Scene, track: Track, span: WholeSpan, style: PaintStyle): number {
  switch (colourMode.value) {
    case "thread":
      return track.lane ? laneSlot(track.lane) : SLOT.other;
    case "duration":
      return durationSlot((span.to - span.x) * scene.axis.nsPerPx);
    case "depth":
      return SLOT.depth + (span.row & 1);
    default:
      return style.slots[span.name] ?? SLOT.other;
  }
}

/** What the label of a span says of its duration; null until it is known exactly. */
export type KnownDuration = (lane: number, row: number, index: number) => number | null;

export function drawLabels(context: Context, scene: Scene, track: Track, spans: WholeSpan[], style: PaintStyle, known: KnownDuration): void {
  const { palette, axis } = scene;
  const height = barHeight(track.pitch, axis.ratio);
  for (const span of spans) {
    const y = rowTop(scene, track, span.row);
    const from = Math.max(span.x, 0);
    const ns = track.lane === null ? null : known(track.lane.id, span.row, span.index);
    if (style.waiting[span.name]) {
      if (span.to - from < WAITING_LABEL_PX) continue;
      useFont(context, palette, 11);
      context.fillStyle = palette.signal["text-3"];
      const text = WAITING_KINDS.get(names.value.kinds[span.name] ?? -1) ?? nameOf(span.name);
      context.fillText(ns === null ? text : `${text}  ${duration(ns)}`, from + 6, y + height - 5);
      continue;
    }
    const room = span.to - from - 9;
    const text = visible(nameOf(span.name));
    useFont(context, palette, 11, 500);
    const label = fitText(context, text, room);
    if (label === "") continue;
    context.fillStyle = palette.inks[slotOfSpan(scene, track, span, style)] ?? palette.signal["ink-dark"];
    const baseline = y + height / 2 + 4;
    context.fillText(label, from + 5, baseline);
    if (label !== text || ns === null) continue;
    const nameWidth = textWidth(context, text);
    useFont(context, palette, 11);
    const length = duration(ns);
    if (nameWidth + 8 + textWidth(context, length) + 2 <= room) context.fillText(length, from + 5 + nameWidth + 8, baseline);
  }
}

/** Markers of instants; those within 6 px are one, with their number where there is room for it. */
export function drawMarkers(context: Context, scene: Scene, track: Track, style: PaintStyle, isFiltered: boolean): void {
  if (track.markersTop === null) return;
  const y = trackTop(scene, track) + track.markersTop + MARKER_MIDDLE_PX;
  const markers = mergedMarkers(scene.bands, track, isFiltered);
  // A path for each colour: one for each marker would take most of a frame.
  const paths = new Map<string, Path2D>();
  for (const { x, name } of markers) {
    const colour = style.outline ?? scene.palette.bars[style.slots[name] ?? SLOT.other] ?? "";
    let path = paths.get(colour);
    if (path === undefined) paths.set(colour, (path = new Path2D()));
    path.moveTo(x, y - 4);
    path.lineTo(x + 4, y);
    path.lineTo(x, y + 4);
    path.lineTo(x - 4, y);
    path.closePath();
  }
  for (const [colour, path] of paths) {
    context.fillStyle = colour;
    context.fill(path);
  }
  context.fillStyle = scene.palette.signal["bg-canvas"];
  for (const { x, count } of markers) if (count > 1) context.fillRect(x - 1.5, y - 0.5, 3, 1);
  useFont(context, scene.palette, 10);
  context.fillStyle = scene.palette.signal["text-3"];
  markers.forEach(({ x, count: merged }, at) => {
    const room = (markers[at + 1]?.x ?? scene.axis.widthPx) - x - COUNT_ROOM_PX;
    if (merged < 2 || room < LEAST_COUNT_PX) return;
    const text = count(merged);
    if (textWidth(context, text) <= room) context.fillText(text, x + 6, y + 3.5);
  });
}

/** Above the rows of what overlaps without nesting. */
export function drawOverflowLine(context: Context, scene: Scene, track: Track): void {
  if (track.overflowFrom === 0 || track.overflowFrom >= track.rows) return;
  context.strokeStyle = scene.palette.signal["line-strong"];
  context.globalAlpha = 0.5;
  context.lineWidth = 1;
  context.setLineDash([2, 4]);
  context.beginPath();
  const y = Math.round(rowTop(scene, track, track.overflowFrom)) - 0.5;
  context.moveTo(0, y);
  context.lineTo(scene.axis.widthPx, y);
  context.stroke();
  context.setLineDash([]);
  context.globalAlpha = 1;
}

function outline(context: Context, scene: Scene, track: Track, row: number, from: number, to: number, style: "select" | "hover" | "focus"): void {
  const { palette, axis } = scene;
  const [x, right] = [Math.max(from, -8), Math.min(to, axis.widthPx + 8)];
  if (right < 0 || x > axis.widthPx) return;
  const y = rowTop(scene, track, row);
  const [w, h] = [Math.max(right - x, 2), barHeight(track.pitch, axis.ratio)];
  if (style === "hover") {
    context.strokeStyle = palette.signal.hover;
    context.lineWidth = 1;
    context.strokeRect(x + 0.5, y + 0.5, w - 1, h - 1);
    return;
  }
  context.lineWidth = 2;
  if (style === "select") {
    context.strokeStyle = palette.signal["bg-canvas"];
    context.strokeRect(x + 1, y + 1, Math.max(w - 2, 1), h - 2);
    context.strokeStyle = palette.signal.select;
    context.strokeRect(x - 1, y - 1, w + 2, h + 2);
    return;
  }
  context.strokeStyle = palette.signal.focus;
  context.setLineDash([4, 3]);
  context.strokeRect(x - 3, y - 3, w + 6, h + 6);
  context.setLineDash([]);
}

/** Outlines of what is selected, hovered and focused. */
export function drawOutlines(context: Context, scene: Scene, hover: SpanHit | null, hasFocus: boolean, focusRange: { fromNs: number; toNs: number } | null): void {
  const tracks = [...scene.layout.pinned, ...scene.layout.scrolled];
  const draw = (lane: number, row: number | null, from: number, to: number, style: "select" | "hover" | "focus") => {
    for (const track of tracks) {
      if (track.lane?.id !== lane || !isVisible(scene, track)) continue;
      const at = row ?? track.rows;
      if (row !== null && row >= track.rows) continue;
      clipTo(context, scene, track, () => outline(context, scene, track, at, from, to, style));
    }
  };
  if (hover !== null && hover.is === "span" && hover.track.lane !== null) {
    const whole = isAggregate(hover.entry) ? undefined : spansOf(scene.bands, hover.track, everyEntry).get(spanKey(hover.row, hover.entry.index));
    draw(hover.track.lane.id, hover.row, whole?.x ?? hover.box.x, whole?.to ?? hover.box.x + hover.box.w, "hover");
  }
  // An operation and the record of its end are one selection (B-12).
  const partners = (links.value?.links ?? []).flatMap(({ reason, from, to }) => (reason === "completion" ? [from, to] : []));
  for (const { place, startNs, durationNs } of [...selection.value, ...partners]) {
    if (place === null) continue;
    const x = xOf(scene.axis, startNs);
    draw(place.lane, place.row, place.row === null ? x - 4 : x, place.row === null ? x + 4 : Math.max(xOf(scene.axis, startNs + durationNs), x + 1), "select");
  }
  const place = focused.value;
  if (hasFocus && place !== null && focusRange !== null) {
    draw(place.lane, place.row, xOf(scene.axis, focusRange.fromNs), xOf(scene.axis, focusRange.toNs), "focus");
  }
}
