/** Paints the entries of a tile. Runs in the worker, and on the page for tiles too wide for a bitmap. */

import { ENTRY_FLAG } from "../protocol/tile";
import type { ColourMode } from "../state/store";
import { BAR_GAP_PX, barHeight, bucketBox, tileWidth } from "./geometry";
import { type NameStyle, SLOT, durationSlot } from "./palette";

type Canvas2d = CanvasRenderingContext2D | OffscreenCanvasRenderingContext2D;

const RADIUS_PX = 1.5;
const FADE_PX = 12;
const WAITING_PX = 3;
const TAIL_ALPHA = 0.55;
/** An aggregate of little cover is still a mark. */
const LEAST_COVER_PX = 3;

export interface PaintJob {
  body: DataView;
  count: number;
  level: number;
  /** CSS pixels per bucket. */
  scale: number;
  ratio: number;
  pitchPx: number;
  rows: number;
  mode: ColourMode;
  laneSlot: number;
  /** Buckets of spans that go on in other tiles, by the number of the entry; for colours by duration. */
  wholes: ReadonlyMap<number, number>;
}

export interface PaintStyle extends NameStyle {
  bars: string[];
  fault: string;
  /** Around each bar, when colours are forced; else null. */
  outline: string | null;
  /** Of the canvas, for the notch of a fault. */
  canvas: string;
}

function slotOf(job: PaintJob, style: PaintStyle, name: number, row: number, ns: number): number {
  switch (job.mode) {
    case "thread":
      return job.laneSlot;
    case "duration":
      return durationSlot(ns);
    case "depth":
      return SLOT.depth + (row & 1);
    default:
      return style.slots[name] ?? SLOT.other;
  }
}

/** Paints at (0, 0) in CSS pixels. `clip` leaves out what is not seen of very wide tiles. */
export function paintTile(context: Canvas2d, job: PaintJob, style: PaintStyle, clip?: { from: number; to: number }): void {
  const { body, scale, ratio, pitchPx } = job;
  const height = barHeight(pitchPx, ratio);
  let fill = "";
  const use = (colour: string) => {
    if (colour !== fill) context.fillStyle = fill = colour;
  };
  for (let at = 0; at < job.count; at += 1) {
    const offset = at * 16;
    const [x0, x1] = [body.getUint16(offset, true), body.getUint16(offset + 2, true)];
    let { x, w } = bucketBox(x0, x1, scale, ratio);
    let flags = body.getUint8(offset + 5);
    // The next tile begins at a pixel of its own, up to one further right than this one's last bucket.
    if (flags & ENTRY_FLAG.toRight) w = Math.max(tileWidth(scale) + 1 - x, w);
    if (clip) {
      if (x + w < clip.from || x > clip.to) continue;
      if (x < clip.from) {
        w -= clip.from - x;
        x = clip.from;
        flags |= ENTRY_FLAG.fromLeft;
      }
      if (x + w > clip.to) {
        w = clip.to - x;
        flags |= ENTRY_FLAG.toRight;
      }
    }
    const row = body.getUint8(offset + 4);
    const name = body.getUint16(offset + 6, true);
    const cover = body.getUint16(offset + 12, true) / 65535;
    const isAggregate = (flags & ENTRY_FLAG.aggregate) !== 0;
    const members = isAggregate ? body.getUint32(offset + 8, true) : 1;
    const y = Math.round(row * pitchPx * ratio) / ratio;
    if (style.waiting[name]) {
      use(style.bars[SLOT.idle] ?? "");
      context.fillRect(x, y + height - WAITING_PX, w, WAITING_PX);
      continue;
    }
    // Without fills of their own, bars that are too small for an outline are solid.
    const isSolid = style.outline !== null && (isAggregate || w <= 3);
    // What reaches over several tiles is long enough for whole buckets.
    const ns = ((job.wholes.get(at) ?? (x1 - x0) * cover) * 2 ** job.level) / Math.max(members, 1);
    use((isSolid ? style.outline : style.bars[slotOf(job, style, name, row, ns)]) ?? "");
    if (isAggregate) {
      const tall = Math.max(cover * height, Math.min(LEAST_COVER_PX, height));
      context.fillRect(x, y + height - tall, w, tall);
      continue;
    }
    if (flags & ENTRY_FLAG.tail) context.globalAlpha = TAIL_ALPHA;
    const isOpenRight = (flags & ENTRY_FLAG.toRight) !== 0;
    const isOpenLeft = (flags & ENTRY_FLAG.fromLeft) !== 0;
    const width = isOpenRight || w <= 3 ? w : w - BAR_GAP_PX;
    if (flags & ENTRY_FLAG.noEnd && !isOpenRight && w > 2) {
      paintFading(context, x, y, width, height, fill);
      fill = "";
    } else if (w >= 5) {
      const [left, right] = [isOpenLeft ? 0 : RADIUS_PX, isOpenRight ? 0 : RADIUS_PX];
      context.beginPath();
      context.roundRect(x, y, width, height, [left, right, right, left]);
      context.fill();
    } else context.fillRect(x, y, width, height);
    context.globalAlpha = 1;
    if (style.outline !== null && !isSolid) {
      use(style.outline);
      for (const edge of [y, y + height - 1]) context.fillRect(x, edge, width, 1);
      // Where a span goes on in the next tile it has no edge.
      if (!isOpenLeft) context.fillRect(x, y, 1, height);
      if (!isOpenRight) context.fillRect(x + width - 1, y, 1, height);
    }
    if (flags & ENTRY_FLAG.fault && !isOpenLeft) {
      use(style.fault);
      context.fillRect(x, y, Math.min(3, Math.max(width, 2)), height);
      if (width > 12) paintNotch(context, x + width / 2, y);
    }
  }
}

function paintFading(context: Canvas2d, x: number, y: number, width: number, height: number, colour: string): void {
  const fade = Math.min(FADE_PX, width);
  context.fillRect(x, y, width - fade, height);
  const gradient = context.createLinearGradient(x + width - fade, 0, x + width, 0);
  gradient.addColorStop(0, colour);
  gradient.addColorStop(1, `${colour.slice(0, 7)}00`);
  context.fillStyle = gradient;
  context.fillRect(x + width - fade, y, fade, height);
}

function paintNotch(context: Canvas2d, x: number, y: number): void {
  context.beginPath();
  context.moveTo(x - 4, y);
  context.lineTo(x + 4, y);
  context.lineTo(x, y + 5);
  context.fill();
}
