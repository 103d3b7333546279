import { describe, expect, it } from "vitest";
import { type Box, meets, placeLabels, stripLabels } from "../src/timeline/labels";
import { fitting } from "../src/timeline/ruler";
import { tickScaleNs } from "../src/timeline/overview";
import { random } from "./support";

describe("labels of the tick strip", () => {
  const [WIDTH, TOP, BOTTOM] = [880, 15, 59];

  it("never lie over another, nor outside of the strip, whatever the ticks are", () => {
    const next = random(3);
    for (let round = 0; round < 500; round += 1) {
      const worstMs = 0.5 + next() ** 3 * 200;
      const [budgetMs, p95Ms] = [next() < 0.2 ? null : 16.7, worstMs * (0.05 + 0.9 * next())];
      const scale = tickScaleNs(budgetMs, p95Ms, worstMs);
      const yOf = (ms: number) => BOTTOM - Math.min(ms / scale, 1) * (BOTTOM - TOP);
      const worst = [worstMs, worstMs * 0.8, worstMs * 0.7].map((ms) => ({ x: next() * WIDTH, y: yOf(ms), width: 38 }));
      const lines = [p95Ms, ...(budgetMs === null ? [] : [budgetMs])].map((ms) => ({ y: yOf(ms), width: 70 }));
      const placed = stripLabels(worst, lines, WIDTH, BOTTOM);
      placed.forEach(({ box }, at) => {
        expect(box.x >= 0 && box.x + box.w <= WIDTH && box.y >= 0 && box.y + box.h <= BOTTOM, JSON.stringify(box)).toBe(true);
        for (const other of placed.slice(at + 1)) expect(meets(box, other.box), JSON.stringify([box, other.box])).toBe(false);
      });
      expect(placed[0]?.of).toEqual({ is: "worst", at: 0 });
    }
  });

  it("have room for budget and P95 beside the worst ticks of the recording that had them over each other", () => {
    const scale = tickScaleNs(16.7, 5.83, 22);
    const yOf = (ms: number) => BOTTOM - Math.min(ms / scale, 1) * (BOTTOM - TOP);
    expect(yOf(22)).toBe(TOP);
    const worst = [[744, 22], [821, 14.1]].map(([x = 0, ms = 0]) => ({ x, y: yOf(ms), width: 38 }));
    const placed = stripLabels(worst, [5.83, 16.7].map((ms) => ({ y: yOf(ms), width: 70 })), WIDTH, BOTTOM);
    expect(placed.map(({ of }) => `${of.is} ${of.at}`)).toEqual(["worst 0", "worst 1", "line 0", "line 1"]);
  });

  it("take their next place when the best one is taken, and none when all are", () => {
    const box = (x: number): Box => ({ x, y: 0, w: 10, h: 10 });
    const places = [box(0), box(20), box(95)];
    const placed = placeLabels([0, 1, 2].map((of) => ({ of, places })), { x: 0, y: 0, w: 100, h: 10 });
    expect(placed).toEqual([{ of: 0, box: box(0) }, { of: 1, box: box(20) }]);
  });
});

describe("labels of the time axis", () => {
  const labels = [4, 96, 188, 280].map((x) => ({ x, width: 40 }));
  it("are left out where the edge would cut them", () => {
    expect(fitting(labels, 320, null)).toEqual(labels);
    expect(fitting(labels, 319, null)).toEqual(labels.slice(0, 3));
  });
  it("are left out under the cursor's time", () => {
    expect(fitting(labels, 400, { x: 130, width: 60 }).map(({ x }) => x)).toEqual([4, 280]);
  });
  it("are left out where they would lie over the one before, as times of day do", () => {
    expect(fitting(labels.map(({ x }) => ({ x, width: 100 })), 400, null).map(({ x }) => x)).toEqual([4, 188]);
  });
});
