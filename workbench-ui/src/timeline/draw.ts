/** Small things that several tracks draw. */

import { elide } from "../format";
import type { Palette, SignalToken } from "./palette";

export type Context = CanvasRenderingContext2D;

/** What has been worked out about texts in a font: it is the same in every frame. */
interface FontFacts {
  widths: Map<string, number>;
  /** What is left of a text in so many whole pixels. */
  cuts: Map<string, string>;
}

const MOST_TEXTS = 20_000;

const fonts = new Map<string, FontFacts>();
/** The font that was chosen last; asking the canvas for it takes longer than measuring. */
const chosen = new WeakMap<Context, FontFacts>();

/** Widths are measured anew: another font has come. */
export function forgetWidths(): void {
  for (const { widths, cuts } of fonts.values()) {
    widths.clear();
    cuts.clear();
  }
}

/** Sets the font of the design at a size and weight. Call it before {@link textWidth}, within the same save and restore. */
export function useFont(context: Context, palette: Palette, sizePx: number, weight = 400): void {
  const font = `${weight} ${sizePx}px ${palette.font}`;
  context.font = font;
  let facts = fonts.get(font);
  if (facts === undefined) fonts.set(font, (facts = { widths: new Map(), cuts: new Map() }));
  chosen.set(context, facts);
}

function remember<T>(known: Map<string, T>, key: string, value: T): T {
  if (known.size >= MOST_TEXTS) known.clear();
  known.set(key, value);
  return value;
}

/** Width of a text in the current font; measured once. */
export function textWidth(context: Context, text: string): number {
  const facts = chosen.get(context);
  return facts?.widths.get(text) ?? remember(facts?.widths ?? new Map(), text, context.measureText(text).width);
}

/** What fits of a text in the current font; worked out once for each number of pixels. */
export function fitText(context: Context, text: string, roomPx: number, least?: number): string {
  const room = Math.floor(roomPx);
  const key = `${room}/${text}`;
  const cuts = chosen.get(context)?.cuts;
  return cuts?.get(key) ?? remember(cuts ?? new Map(), key, elide(text, room, (part) => textWidth(context, part), least));
}

/** What a chip is wider than its text. */
export const CHIP_EDGES_PX = 8;

/** Text on a chip in the colour of the canvas. Returns its left edge. */
export function chip(context: Context, palette: Palette, text: string, right: number, y: number, colour: SignalToken = "text-2"): number {
  useFont(context, palette, 10);
  const width = textWidth(context, text);
  context.fillStyle = palette.signal["bg-canvas"];
  context.beginPath();
  context.roundRect(right - width - CHIP_EDGES_PX, y, width + CHIP_EDGES_PX, 13, 2);
  context.fill();
  context.fillStyle = palette.signal[colour];
  context.fillText(text, right - width - CHIP_EDGES_PX / 2, y + 10);
  return right - width - CHIP_EDGES_PX;
}

const hatches = new Map<string, CanvasPattern | null>();

/** A hatch of lines that lean right, `gap` pixels apart. */
export function hatch(context: Context, colour: string, gap: number, lineWidth = 1): CanvasPattern | string {
  const ratio = context.getTransform().a;
  const key = `${colour}/${gap}/${lineWidth}/${ratio}`;
  let pattern = hatches.get(key);
  if (pattern === undefined) {
    const size = Math.max(Math.round(gap * ratio), 2);
    const canvas = new OffscreenCanvas(size, size);
    const tile = canvas.getContext("2d");
    if (tile !== null) {
      tile.strokeStyle = colour;
      tile.lineWidth = lineWidth * ratio;
      for (const shift of [-size, 0, size]) {
        tile.beginPath();
        tile.moveTo(shift - 1, size + 1);
        tile.lineTo(shift + size + 1, -1);
        tile.stroke();
      }
    }
    pattern = context.createPattern(canvas, "repeat");
    pattern?.setTransform(new DOMMatrix().scale(1 / ratio));
    hatches.set(key, pattern);
  }
  return pattern ?? colour;
}

/** A vertical line of one device pixel. */
export function vertical(context: Context, x: number, from: number, to: number, colour: string): void {
  context.fillStyle = colour;
  context.fillRect(x, from, 1, to - from);
}
