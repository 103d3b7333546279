import { describe, expect, it } from "vitest";
import { tickTable } from "../src/state/store";
import { barAt, hasOverload, tickScaleNs, tickStrip, xOfMoment } from "../src/timeline/overview";
import { random } from "./support";

function table(total: number, seed: number, gaps: Record<number, number> = {}) {
  const next = random(seed);
  const places = Array.from({ length: total }, (_, place) => place);
  return tickTable({
    numbers: places.map((place) => place + 1),
    startNs: places.map((place) => place * 1000),
    durationNs: places.map((place) => (place === total - 1 ? null : Math.floor(next() ** 4 * 1e6))),
    levels: places.map(() => 0),
    multipliers: places.map((place) => (place === 17 ? 4 : 1)),
    collections: places.map((place) => (place % 50 === 3 ? 1 : 0)),
    missingBefore: places.map((place) => gaps[place] ?? 0),
  });
}

describe("tick overview", () => {
  it.each([1, 7, 67, 1500, 1501, 40_000, 1_000_000])("bars of %d ticks show maxima and cover all of them", (total) => {
    const ticks = table(total, total);
    const strip = tickStrip(ticks, 1500);
    expect(strip.bars.length).toBeLessThanOrEqual(1500);
    expect(Math.log2(strip.perBar) % 1).toBe(0);
    if (total <= 1500) expect(strip.perBar).toBe(1);
    let next = 0;
    for (const bar of strip.bars) {
      expect(bar.first).toBe(next);
      next = bar.end;
      let max = 0;
      for (let place = bar.first; place < bar.end; place += 1) max = Math.max(max, ticks.durationNs[place] ?? 0);
      expect(bar.maxNs).toBe(max);
      if (max > 0) expect(ticks.durationNs[bar.worst]).toBe(max);
    }
    expect(next).toBe(total);
    const last = strip.bars[strip.bars.length - 1];
    expect((last?.x ?? 0) + (last?.w ?? 0)).toBeCloseTo(1500, 3);
  });

  it("a jump in tick numbers is a band with their count", () => {
    const strip = tickStrip(table(60, 1, { 20: 5, 40: 1234 }), 600);
    expect(strip.gaps.map(({ missing }) => missing)).toEqual([5, 1234]);
    const [first] = strip.gaps;
    expect(first?.x).toBeCloseTo((strip.bars[19]?.x ?? 0) + (strip.bars[19]?.w ?? 0));
    expect(strip.bars[20]?.x).toBeCloseTo((first?.x ?? 0) + (first?.w ?? 0));
  });

  it("finds bars and moments", () => {
    const ticks = table(100, 2);
    const strip = tickStrip(ticks, 1000);
    expect(barAt(strip, 555)?.first).toBe(55);
    expect(xOfMoment(strip, ticks, ticks.placeAt, 50_500)).toBeCloseTo(505);
    expect(xOfMoment(strip, ticks, ticks.placeAt, -5)).toBe(0);
  });

  it("says which ticks overlap a range, as all panels do", () => {
    const ticks = tickTable({ numbers: [506, 507, 508, 509], startNs: [100, 200, 300, 400], durationNs: [50, 90, 20, null], levels: [], multipliers: [], collections: [], missingBefore: [] });
    const numbersIn = (fromNs: number, toNs: number) => {
      const { first, end } = ticks.placesIn({ fromNs, toNs });
      return ticks.numbers.slice(first, end);
    };
    // Tick 506 began before this range, and ended before it.
    expect(numbersIn(190, 310)).toEqual([507, 508]);
    expect(numbersIn(149, 200)).toEqual([506]);
    expect(numbersIn(150, 200)).toEqual([]);
    expect(numbersIn(0, 100)).toEqual([]);
    expect(numbersIn(0, 101)).toEqual([506]);
    expect(numbersIn(250, 260)).toEqual([507]);
    // Without an end it goes on.
    expect(numbersIn(5000, 5001)).toEqual([509]);
    expect(tickTable({ ...ticks, numbers: [], startNs: [], durationNs: [] }).placesIn({ fromNs: 0, toNs: 9 })).toEqual({ first: 0, end: 0 });
  });

  it("takes the share of the width that is read (B-3)", () => {
    const ticks = table(100, 2);
    const strip = tickStrip(ticks, 1000, 0.5);
    const last = strip.bars[strip.bars.length - 1];
    expect((last?.x ?? 0) + (last?.w ?? 0)).toBeCloseTo(500);
    expect(barAt(strip, 501)).toBeNull();
    expect(xOfMoment(strip, ticks, ticks.placeAt, 50_500)).toBeCloseTo(252.5);
    expect(xOfMoment(strip, ticks, ticks.placeAt, 9e9)).toBe(1000);
  });

  it("has a scale that the window does not change", () => {
    expect(tickScaleNs(16e6, 22e6, 386e6)).toBe(48e6);
    expect(tickScaleNs(null, 22e6, 386e6)).toBeCloseTo(26.4e6);
    expect(tickScaleNs(null, null, 5)).toBe(5);
    // Not higher than what is shown needs: the longest tick, and the budget.
    expect(tickScaleNs(16.7e6, 5.83e6, 22e6)).toBe(22e6);
    expect(tickScaleNs(16.7e6, 2e6, 3e6)).toBe(16.7e6);
    expect(tickScaleNs(null, 22e6, 23e6)).toBe(23e6);
  });

  it("shows overload only where there is some", () => {
    expect(hasOverload(table(10, 3), 1e9)).toBe(false);
    expect(hasOverload(table(18, 3), 1e9)).toBe(true);
    expect(hasOverload(table(10, 3), 1)).toBe(true);
  });
});
