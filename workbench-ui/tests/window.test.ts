import { describe, expect, it } from "vitest";
import { clampWindow } from "../src/state/actions";
import { makeAxis } from "../src/timeline/axis";
import { random } from "./support";

describe("the window", () => {
  it("keeps its scale to the last bit while it is moved", () => {
    const next = random(7);
    for (const whole of [{ fromNs: 0, toNs: 60e9 }, { fromNs: 0, toNs: 3 * 3600e9 + 1 }]) {
      for (const length of [8e9 / 3, 1e6 / 3, 1e3 / 3, 1]) {
        // Around a power of two, where floating-point numbers to the left are finer than those to the right.
        const start = clampWindow({ fromNs: 2 ** 35 - length * 0.37, toNs: 2 ** 35 + length * 0.63 }, whole);
        const { nsPerPx } = makeAxis(start, 1630, 1);
        for (let move = 0; move < 100; move += 1) {
          const by = (next() - 0.5) * length;
          const moved = clampWindow({ fromNs: start.fromNs + by, toNs: start.toNs + by }, whole);
          expect(makeAxis(moved, 1630, 1).nsPerPx).toBe(nsPerPx);
          expect(Math.abs(moved.fromNs - start.fromNs - by)).toBeLessThan(0.02);
        }
      }
    }
  });

  it("stays within the trace", () => {
    const whole = { fromNs: 0, toNs: 5_030_000_001 };
    expect(clampWindow({ fromNs: -7.3, toNs: 2.7 }, whole)).toEqual({ fromNs: 0, toNs: 10 });
    expect(clampWindow({ fromNs: -1, toNs: 1e12 }, whole)).toEqual(whole);
    expect(clampWindow({ fromNs: whole.toNs, toNs: whole.toNs + 64 }, whole)).toEqual({ fromNs: whole.toNs - 64, toNs: whole.toNs });
    expect(clampWindow({ fromNs: 5, toNs: 5 }, whole)).toEqual({ fromNs: 5, toNs: 6 });
  });
});
