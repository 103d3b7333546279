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
