/** Labels that lie over nothing else: each takes the first of its places that is free, or is left out. Pure. */

export interface Box {
  x: number;
  y: number;
  w: number;
  h: number;
}

export interface Wish<T> {
  of: T;
  /** Where it may stand, the best place first. */
  places: readonly Box[];
}

export function meets(a: Box, b: Box): boolean {
  return a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h;
}

function isInside(box: Box, room: Box): boolean {
  return box.x >= room.x && box.y >= room.y && box.x + box.w <= room.x + room.w && box.y + box.h <= room.y + room.h;
}

/** Gives out places in the order of the wishes; `taken` is what stands there already. */
export function placeLabels<T>(wishes: readonly Wish<T>[], room: Box, taken: readonly Box[] = []): { of: T; box: Box }[] {
  const placed: { of: T; box: Box }[] = [];
  for (const { of, places } of wishes) {
    const box = places.find((place) => isInside(place, room) && ![...taken, ...placed.map((one) => one.box)].some((other) => meets(place, other)));
    if (box !== undefined) placed.push({ of, box });
  }
  return placed;
}

/** A line across a strip, with its label. */
export interface StripLine {
  y: number;
  width: number;
}

const CHIP_PX = 13;
const WORST_PX = 11;
const WORST_APART_PX = 6;

/** The label of a line: at the right, else at the left; above the line or below it. */
function besideLine({ y, width }: StripLine, isUpper: boolean, widthPx: number): Box[] {
  const heights = isUpper ? [y - CHIP_PX - 1, y + 2] : [y + 2, y - CHIP_PX - 1];
  return [widthPx - width, 0].flatMap((x) => heights.map((top) => ({ x, y: top, w: width, h: CHIP_PX })));
}

/** The value of a bar, above it; a line that would strike it through is kept clear of. */
function aboveBar({ x, y, width }: { x: number; y: number; width: number }, lines: readonly StripLine[], widthPx: number): Box[] {
  const w = width + WORST_APART_PX;
  const left = Math.min(Math.max(x - w / 2, 0), Math.max(widthPx - w, 0));
  const tops = [y - WORST_PX - 2, ...lines.map((line) => line.y - WORST_PX - 1)].map((top) => Math.max(top, 0));
  const free = tops.filter((top) => top <= Math.max(y - WORST_PX - 2, 0) && lines.every((line) => line.y < top || line.y >= top + WORST_PX));
  return [...free.sort((a, b) => b - a), ...tops.slice(0, 1)].map((top) => ({ x: left, y: top, w, h: WORST_PX }));
}

export type StripLabel = { is: "line" | "worst"; at: number };

/** Labels of the tick strip above its numbers: first those of the worst ticks, then those of the lines. */
export function stripLabels(worst: readonly { x: number; y: number; width: number }[], lines: readonly StripLine[], widthPx: number, bottom: number): { of: StripLabel; box: Box }[] {
  const topLine = Math.min(...lines.map(({ y }) => y));
  const ofWorst = worst.map((bar, at): Wish<StripLabel> => ({ of: { is: "worst", at }, places: aboveBar(bar, lines, widthPx) }));
  const ofLines = lines.map((line, at): Wish<StripLabel> => ({ of: { is: "line", at }, places: besideLine(line, line.y === topLine, widthPx) }));
  return placeLabels([...ofWorst, ...ofLines], { x: 0, y: 0, w: widthPx, h: bottom });
}
