/** Marks of the time axis (ui-design §6, "Ruler"). Pure. */

import { NARROW_SPACE, count, duration, milliseconds } from "../format";
import type { Axis } from "./axis";

export interface Mark {
  ns: number;
  text: string;
  isWhole: boolean;
}

export interface Ruler {
  stepNs: number;
  minorNs: number;
  marks: Mark[];
  /** What the gutter says: the base of the offsets, or the unit. */
  base: string;
}

const APART_PX = 92;

/** The smallest of 1, 2, 5 times a power of ten that keeps labels apart. */
export function rulerStep(nsPerPx: number, apartPx = APART_PX): number {
  const least = nsPerPx * apartPx;
  const power = 10 ** Math.floor(Math.log10(Math.max(least, 1e-9)));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((candidate) => candidate >= least) ?? 10 * power;
  return Math.max(step, 1);
}

export function makeRuler(axis: Axis): Ruler {
  const stepNs = rulerStep(axis.nsPerPx);
  const first = Math.ceil(axis.fromNs / stepNs);
  const last = Math.floor((axis.fromNs + axis.widthPx * axis.nsPerPx) / stepNs);
  const marks: Mark[] = [];
  const unit = stepNs >= 1e6 ? 1 : stepNs >= 1e3 ? 1e6 : 1e3;
  for (let at = first; at <= last && marks.length < 200; at += 1) {
    const ns = at * stepNs;
    if (unit === 1) {
      marks.push({ ns, text: count(ns / 1e6), isWhole: true });
      continue;
    }
    const isWhole = Math.round(ns) % unit === 0;
    const text = isWhole ? (unit === 1e6 ? `${count(ns / 1e6)}${NARROW_SPACE}ms` : `${milliseconds(ns, 3)}${NARROW_SPACE}ms`) : `+${duration(ns % unit)}`;
    marks.push({ ns, text, isWhole });
  }
  const whole = Math.floor(axis.fromNs / unit) * unit;
  const base = unit === 1 ? "ms" : unit === 1e6 ? `${count(whole / 1e6)}${NARROW_SPACE}ms +` : `${milliseconds(whole, 3)}${NARROW_SPACE}ms +`;
  return { stepNs, minorNs: stepNs / 5, marks, base };
}

interface Label {
  x: number;
  width: number;
}

/** Least room between labels. */
const GAP_PX = 4;

/** Labels of an axis from left to right, without those that the edge would cut, or that lie over another or over the cursor's. */
export function fitting<T extends Label>(labels: readonly T[], widthPx: number, cursor: Label | null): T[] {
  let right = Number.NEGATIVE_INFINITY;
  return labels.filter(({ x, width }) => {
    const isUnderCursor = cursor !== null && x < cursor.x + cursor.width + GAP_PX && cursor.x < x + width + GAP_PX;
    if (x < right + GAP_PX || x + width > widthPx || isUnderCursor) return false;
    right = x + width;
    return true;
  });
}
