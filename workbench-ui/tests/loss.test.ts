import { afterEach, describe, expect, it } from "vitest";
import type { Notice, Notices } from "../src/protocol/types";
import { notices } from "../src/state/store";
import { makeAxis } from "../src/timeline/axis";
import { gapsIn, missingIn } from "../src/timeline/drawLoss";
import type { Scene } from "../src/timeline/scene";

const notice = (change: Partial<Notice>): Notice => ({ code: "x", severity: "data-loss", offset: null, block: null, record: null, count: null, message: "m", hint: null, rangeNs: null, ...change });
const none: Notices = { notices: [], losses: [], missingTicks: { count: 0, places: 0 }, capped: [], damagedEvents: 0 };
const capped = (what: string, shown: number, total: number, atNs: number) => ({ what, kind: 66, shown, total, atNs, times: 1 });

/** 1 px is 1 µs. */
const scene = { axis: makeAxis({ fromNs: 0, toNs: 1e6 }, 1000, 1) } as Scene;
const shown = (all: Notices) => {
  notices.value = all;
  return gapsIn(scene).map(({ from, to, text }) => [from, to, text]);
};

describe("what is missing is drawn where it is missing (B-4, B-5)", () => {
  afterEach(() => void (notices.value = null));

  it("parts that cannot be read, as wide as they are", () => {
    expect(shown({ ...none, notices: [notice({ code: "checksum-block", rangeNs: [100_000, 300_000], count: 5900 }), notice({ rangeNs: null })] })).toEqual([[100, 300, "5,900 records not shown"]]);
    expect(shown({ ...none, notices: [notice({ rangeNs: [100_000, 300_000] })] })).toEqual([[100, 300, "part not readable"]]);
    // The count of a notice is of what its message says: of a cut it is bytes.
    expect(shown({ ...none, notices: [notice({ code: "truncated", rangeNs: [100_000, 300_000], count: 18_910 })] })).toEqual([[100, 300, "18.5\u202fKiB not readable"]]);
    expect(shown({ ...none, notices: [notice({ code: "bad-block-data", rangeNs: [100_000, 300_000], count: 1 })] })).toEqual([[100, 300, "part not readable"]]);
  });

  it("losses and rows that the engine left out, as marks that can be seen", () => {
    expect(shown({ ...none, losses: [{ atNs: 500_000, records: 312, marker: "m" }] })).toEqual([[497, 503, "312 records not shown"]]);
    expect(shown({ ...none, capped: [capped("reportedSessions", 256, 300, 500_000)] })).toEqual([[497, 503, "44 sessions not shown"]]);
  });

  it("those that touch are one, with all that is in them; those beside the window are left out", () => {
    const all = {
      ...none,
      losses: [{ atNs: 500_000, records: 12, marker: "m" }, { atNs: 503_000, records: 300, marker: "m" }, { atNs: 2_000_000, records: 1, marker: "m" }],
      capped: [capped("ratesRealms", 64, 70, 501_000)],
    };
    expect(shown(all)).toEqual([[497, 506, "312 records, 6 realms of rates not shown"]]);
    expect(shown({ ...none, capped: [capped("ratesRealms", 64, 70, 501_000), capped("reportedSessions", 1, 3, 501_000)] })).toEqual([[498, 504, "8 rows not shown"]]);
  });

  it("in order of time, and nothing while nothing is known", () => {
    expect(missingIn(null)).toEqual([]);
    const found = missingIn({ ...none, losses: [{ atNs: 9, records: 1, marker: "m" }], capped: [capped("ratesRealms", 1, 2, 5)], notices: [notice({ rangeNs: [7, 8] })] });
    expect(found.map(({ fromNs }) => fromNs)).toEqual([5, 7, 9]);
  });
});
