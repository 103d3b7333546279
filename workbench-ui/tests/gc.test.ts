import { describe, expect, it } from "vitest";
import type { Collection } from "../src/protocol/types";
import { makeAxis } from "../src/timeline/axis";
import { caption, flagsOf, marksIn } from "../src/timeline/gc";

const collection = (over: Partial<Collection>): Collection => ({
  count: 1, generation: 0, reason: 0, reasonName: null, gcType: 0, gcTypeName: null, startNs: 0, endNs: 1e6, pauseNs: 1e6, promotedBytes: null,
  gen0Bytes: null, gen1Bytes: null, gen2Bytes: null, lohBytes: null, pohBytes: null, committedBytes: null, ...over,
});
const axis = makeAxis({ fromNs: 0, toNs: 100e6 }, 1000, 1);

describe("GC track", () => {
  it("says number, generation and pause", () => {
    expect(caption(collection({ count: 3, generation: 1, pauseNs: 12_400_000 }))).toBe("#3 gen 1 · paused 12.4\u202fms");
    expect(caption(collection({ count: 2, generation: 2, gcType: 1, endNs: 27e6 }))).toBe("#2 background gen 2 · 27.0\u202fms");
    expect(caption(collection({ generation: null, pauseNs: null }))).toBe("#1");
  });

  it("has a flag for each start and end; those nearer than 13 px are one with their number", () => {
    const apart = flagsOf(marksIn(axis, [collection({ startNs: 10e6, endNs: 20e6, generation: 1 }), collection({ count: 2, startNs: 60e6, endNs: 90e6 })]));
    expect(apart.map(({ x, isStart, text }) => [x, isStart, text])).toEqual([[100, true, "1"], [200, false, "1"], [600, true, "0"], [900, false, "0"]]);
    const near = flagsOf(marksIn(axis, Array.from({ length: 40 }, (_, at) => collection({ count: at, startNs: 50e6 + at * 1e4, endNs: 50e6 + at * 1e4 + 5e3 }))));
    expect(near.map(({ count }) => count)).toEqual([80]);
  });

  it("keeps collections of which half was recorded, and leaves out those beside the window", () => {
    const marks = marksIn(axis, [collection({ startNs: null, endNs: 30e6 }), collection({ startNs: 200e6, endNs: 300e6 }), collection({ startNs: -5e6, endNs: 5e6 })]);
    expect(marks.map(({ from, to }) => [from, to])).toEqual([[300, 300], [-50, 50]]);
    expect(flagsOf([marks[0]!])).toHaveLength(1);
  });
});
