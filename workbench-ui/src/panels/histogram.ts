/** Bins on a logarithmic axis. Pure. */

import type { Bucket } from "../protocol/types";

export interface Scale {
  leastNs: number;
  mostNs: number;
}

/** Sums buckets into `bins` of equal width on a logarithmic axis; each counts where its middle is. */
export function logBins(buckets: readonly Bucket[], { leastNs, mostNs }: Scale, bins: number): number[] {
  const sums = new Array<number>(bins).fill(0);
  const [least, most] = [Math.log(Math.max(leastNs, 1)), Math.log(Math.max(mostNs, 2))];
  for (const { fromNs, toNs, count } of buckets) {
    const middle = Math.log(Math.max((fromNs + Math.max(toNs - 1, fromNs)) / 2, 1));
    const share = most > least ? (middle - least) / (most - least) : 0;
    const at = Math.min(Math.max(Math.floor(share * bins), 0), bins - 1);
    sums[at] = (sums[at] ?? 0) + count;
  }
  return sums;
}

/** Where a duration is on the axis, 0..1. */
export function logShare(ns: number, { leastNs, mostNs }: Scale): number {
  const [least, most] = [Math.log(Math.max(leastNs, 1)), Math.log(Math.max(mostNs, 2))];
  return most > least ? Math.min(Math.max((Math.log(Math.max(ns, 1)) - least) / (most - least), 0), 1) : 0;
}

/** Round ends of an axis: a power of ten, or three times one, below and above. */
export function roundScale(leastNs: number, mostNs: number): Scale {
  const steps = [1, 3, 10];
  const below = (ns: number) => {
    const power = 10 ** Math.floor(Math.log10(Math.max(ns, 1)));
    return power * (ns >= 3 * power ? 3 : 1);
  };
  const above = (ns: number) => {
    const power = 10 ** Math.floor(Math.log10(Math.max(ns, 1)));
    return power * (steps.find((step) => step * power >= ns) ?? 10);
  };
  return { leastNs: below(leastNs), mostNs: above(mostNs) };
}
