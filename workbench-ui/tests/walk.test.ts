import { describe, expect, it } from "vitest";
import type { EventDetail } from "../src/protocol/types";
import { type Found, type RowOf, firstWithin, isWithin, rowsOf } from "../src/timeline/walk";
import { random } from "./support";

type Span = readonly [startNs: number, endNs: number];

/** Answers as the server does: the span that covers a moment, or else begins nearest to it. */
function askOf(rows: Record<string, readonly Span[]>, asked: RowOf[] = []) {
  return async (of: RowOf, atNs: number): Promise<Found | null> => {
    asked.push(of);
    const spans = rows[`${of.lane}/${of.row}`] ?? [];
    const distance = ([start, end]: Span) => (start <= atNs && end > atNs ? 0 : Math.abs(start - atNs));
    const index = spans.reduce((best, span, at) => (best < 0 || distance(span) < distance(spans[best] ?? [0, 0]) ? at : best), -1);
    const span = spans[index];
    if (span === undefined) return null;
    return { place: { ...of, index }, detail: { startNs: span[0], durationNs: span[1] - span[0] } as EventDetail };
  };
}

const never = new AbortController().signal;
const WINDOW = { fromNs: 1000, toNs: 2000 };

describe("the walk over rows with arrow keys", () => {
  it("passes rows and lanes that have nothing in the window", async () => {
    const ask = askOf({ "1/0": [[0, 26], [9000, 9001]], "2/0": [[0, 10]], "2/1": [[1700, 1800]] });
    const rows = [{ lane: 1, row: 0 }, { lane: 2, row: 0 }, { lane: 2, row: 1 }];
    expect((await firstWithin(rows, WINDOW, 1500, ask, never))?.place).toEqual({ lane: 2, row: 1, index: 0 });
    expect(await firstWithin(rows.slice(0, 2), WINDOW, 1500, ask, never)).toBeNull();
  });

  it("finds what is in the window although something outside is nearer", async () => {
    // About 1990; nearest to it is what begins at 2005.
    expect((await firstWithin([{ lane: 1, row: 0 }], WINDOW, 1990, askOf({ "1/0": [[1100, 1110], [2005, 2010]] }), never))?.place.index).toBe(0);
    // Reaches into the window, but begins far before it.
    expect((await firstWithin([{ lane: 1, row: 0 }], WINDOW, 1500, askOf({ "1/0": [[10, 1100], [2001, 2002]] }), never))?.place.index).toBe(0);
  });

  it("misses no row that has something, and takes none that has nothing", async () => {
    const next = random(7);
    for (let round = 0; round < 300; round += 1) {
      const spans: Span[] = [];
      for (let at = Math.floor(next() * 900); at < 3000; at += 1 + Math.floor(next() * 900)) {
        const end = at + Math.floor(next() ** 3 * 1200);
        spans.push([at, end]);
        at = end;
      }
      const found = await firstWithin([{ lane: 1, row: 0 }], WINDOW, 1000 + next() * 1000, askOf({ "1/0": spans }), never);
      const isAny = spans.some(([startNs, end]) => isWithin({ startNs, durationNs: end - startNs }, WINDOW));
      expect(found !== null, JSON.stringify(spans)).toBe(isAny);
      if (found !== null) expect(isWithin(found.detail, WINDOW)).toBe(true);
    }
  });

  it("asks about no lane that lies outside of the window, and stops when another key is pressed", async () => {
    const lanes = [
      { lane: 1, rows: 2, extentNs: [0, 999] as const },
      { lane: 2, rows: 2, extentNs: [0, 1000] as const },
      { lane: 3, rows: 1, extentNs: [2000, 3000] as const },
      { lane: 4, rows: 1, extentNs: null },
    ];
    expect(rowsOf(lanes, WINDOW)).toEqual([{ lane: 2, row: 0 }, { lane: 2, row: 1 }, { lane: 4, row: 0 }]);
    expect(rowsOf(lanes, WINDOW, "last").slice(0, 2)).toEqual([{ lane: 2, row: 1 }, { lane: 2, row: 0 }]);
    const asked: RowOf[] = [];
    expect(await firstWithin(rowsOf(lanes, WINDOW), WINDOW, 1500, askOf({}, asked), AbortSignal.abort())).toBeNull();
    expect(asked).toEqual([]);
  });
});
