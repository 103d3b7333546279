/** Small things that several tracks draw. */

import type { Palette, SignalToken } from "./palette";

export type Context = CanvasRenderingContext2D;

const widths = new Map<string, number>();

/** Widths are measured anew: another font has come. */
export function forgetWidths(): void {
  widths.clear();
}

/** Sets the font of the design at a size and weight. */
export function useFont(context: Context, palette: Palette, sizePx: number, weight = 400): void {
  context.font = `${weight} ${sizePx}px ${palette.font}`;
}

/** Width of a text in the current font; measured once. */
export function textWidth(context: Context, text: string): number {
  const key = `${context.font}\u0000${text}`;
  const known = widths.get(key);
  if (known !== undefined) return known;
  const width = context.measureText(text).width;
  if (widths.size > 20_000) widths.clear();
  widths.set(key, width);
  return width;
}

/** Text on a chip in the colour of the canvas. Returns its left edge. */
export function chip(context: Context, palette: Palette, text: string, right: number, y: number, colour: SignalToken = "text-2"): number {
  useFont(context, palette, 10);
  const width = textWidth(context, text);
  context.fillStyle = palette.signal["bg-canvas"];
  context.beginPath();
  context.roundRect(right - width - 8, y, width + 8, 13, 2);
  context.fill();
  context.fillStyle = palette.signal[colour];
  context.fillText(text, right - width - 4, y + 10);
  return right - width - 8;
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
