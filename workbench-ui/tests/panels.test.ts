import { describe, expect, it } from "vitest";
import { logBins, logShare, roundScale } from "../src/panels/histogram";
import { fieldSums } from "../src/panels/inspector/fieldSums";
import { hexRows, shownField } from "../src/panels/inspector/fields";
import { editDistance, nameInFilter, nearestName } from "../src/panels/nearest";
import { headline, isLossy, notShown, repairCommand } from "../src/panels/notices";
import { quoted } from "../src/panels/slowest";
import type { EventDetail, FieldView, Notice, Notices } from "../src/protocol/types";

const field = (change: Partial<FieldView>): FieldView => ({ name: "n", type: "u32", unit: "", value: 1, valueName: null, isTableId: false, ns: null, note: null, ...change });

describe("fields of several events", () => {
  const event = (durationNs: number | null, ...fields: FieldView[]) => ({ durationNs, fields }) as EventDetail;
  it("adds up what counts or measures, and divides the time by it", () => {
    const sums = fieldSums([
      event(300, field({ name: "entities", value: 10 }), field({ name: "scanMode", value: 1, valueName: "Broad" }), field({ name: "waitUs", value: 2, ns: 2000 })),
      event(700, field({ name: "entities", value: 40 }), field({ name: "archetypeId", value: 3, isTableId: true }), field({ name: "waitUs", value: null })),
    ]);
    expect(sums).toEqual([
      { name: "entities", unit: "", isTime: false, count: 2, sum: 50, min: 10, max: 40, nsPerOne: 20 },
      { name: "waitUs", unit: "", isTime: true, count: 1, sum: 2000, min: 2000, max: 2000, nsPerOne: null },
    ]);
  });
  it("divides no time where an event has none, nor by nothing", () => {
    expect(fieldSums([event(null, field({ value: 5 }))])[0]?.nsPerOne).toBeNull();
    expect(fieldSums([event(100, field({ value: 0 }))])[0]?.nsPerOne).toBeNull();
  });
});

describe("fields of an event", () => {
  it("marks ids that the tables do not have (B-24)", () => {
    expect(shownField(field({ name: "archetypeTypeId", value: 0, isTableId: true }))).toMatchObject({ text: "0", aside: "not in the tables" });
    expect(shownField(field({ name: "archetypeTypeId", value: 0, isTableId: true, valueName: "Ant" }))).toMatchObject({ text: "Ant", aside: "0" });
  });
  it("shows an absent field as absent, never as 0", () => {
    const shown = shownField(field({ value: null }));
    expect(shown).toMatchObject({ text: "absent", isAbsent: true });
    expect(shownField(field({ value: 0 }))).toMatchObject({ text: "0", isAbsent: false });
  });
  it("names the values of enumerations and keeps the number", () => {
    expect(shownField(field({ value: 1, valueName: "Broad" }))).toMatchObject({ text: "Broad", aside: "1" });
  });
  it("formats by unit, with the raw value behind it", () => {
    expect(shownField(field({ value: 1536, unit: "bytes" }))).toMatchObject({ text: "1.50\u202fKiB", raw: "n = 1536 bytes (u32)" });
    expect(shownField(field({ value: 12, unit: "µs", ns: 12_000 })).text).toBe("12.0\u202fµs");
    expect(shownField(field({ value: 12345, unit: "0.01 %" })).text).toBe("123.45\u202f%");
    expect(shownField(field({ value: 12345, unit: "level" }))).toMatchObject({ text: "12,345", aside: "level" });
  });
  it("keeps all digits of 64-bit values and does not group ids", () => {
    expect(shownField(field({ type: "u64", value: "18446744073709551615" })).text).toBe("18,446,744,073,709,551,615");
    expect(shownField(field({ name: "entityId", type: "u64", value: "18446744073709551615" })).text).toBe("18446744073709551615");
  });
  it("makes control and direction characters visible", () => {
    expect(shownField(field({ type: "text", value: "\u001b[31m\u202e<b>" })).text).toBe("\\x1b[31m\\u202e<b>");
  });
  it("writes wire bytes in rows of sixteen", () => {
    expect(hexRows("00".repeat(17))).toBe(`0000  ${Array(16).fill("00").join(" ")}\n0010  00`);
  });
});

describe("histograms", () => {
  it("keep every count", () => {
    const buckets = [1, 10, 100, 5000, 1e9].map((fromNs) => ({ fromNs, toNs: fromNs * 1.1, count: fromNs % 7 }));
    const bins = logBins(buckets, { leastNs: 10, mostNs: 10_000 }, 18);
    expect(bins.reduce((a, b) => a + b)).toBe(buckets.reduce((sum, { count }) => sum + count, 0));
    expect(bins).toHaveLength(18);
  });
  it("put equal steps of a factor at equal distances", () => {
    const scale = { leastNs: 1, mostNs: 10_000 };
    expect([1, 10, 100, 10_000].map((ns) => logShare(ns, scale))).toEqual([0, 0.25, 0.5, 1]);
  });
  it("end at round durations", () => {
    expect(roundScale(1234, 45_600)).toEqual({ leastNs: 1000, mostNs: 100_000 });
    expect(roundScale(3500, 29_000)).toEqual({ leastNs: 3000, mostNs: 30_000 });
  });
});

describe("names that were mistyped", () => {
  it("are found when they are near", () => {
    expect(nearestName("AntUpdat", ["AntUpdate", "SpiderUpdate"])).toBe("AntUpdate");
    expect(nearestName("antupdaet", ["AntUpdate"])).toBe("AntUpdate");
    expect(nearestName("Zebra", ["AntUpdate"])).toBeNull();
    expect(editDistance("abcd", "abdc", 3)).toBe(1);
  });
  it("are found in a filter", () => {
    expect(nameInFilter("dur>1ms name=AntUpdat")).toEqual({ value: "AntUpdat", from: 13, to: 21 });
    expect(nameInFilter('name="Ant Update" tick=3')?.value).toBe("Ant Update");
    expect(nameInFilter("AntUpdat dur>100us")?.value).toBe("AntUpdat");
    expect(nameInFilter("dur>1ms")).toBeNull();
  });
  it("are quoted so that nothing in them means anything", () => {
    expect(quoted('a"b\\c*')).toBe('"a\\"b\\\\c*"');
  });
});

const notice = (change: Partial<Notice>): Notice => ({ code: "x", severity: "data-loss", offset: null, block: null, record: null, count: null, message: "m", hint: null, rangeNs: null, ...change });
const none: Notices = { notices: [], losses: [], missingTicks: { count: 0, places: 0 }, capped: [], damagedEvents: 0 };

describe("notices in words", () => {
  it("say where a cut recording stops", () => {
    expect(headline({ ...none, notices: [notice({ code: "truncated" })] }, 251_200_000_000)).toBe("The recording stops at 4\u202fmin 11.2\u202fs");
  });
  it("stand in a bar only when something is missing", () => {
    expect(isLossy({ ...none, notices: [notice({ severity: "info", code: "no-checksums" })] })).toBe(false);
    expect(isLossy({ ...none, notices: [notice({})] })).toBe(true);
    expect(isLossy({ ...none, missingTicks: { count: 3, places: 1 } })).toBe(true);
  });
  it("count what is not shown", () => {
    const losses = [{ atNs: 1, records: 12, marker: "typhon.dropped_records" }, { atNs: 2, records: 300, marker: "typhon.dropped_records" }];
    expect(headline({ ...none, losses }, 1)).toBe("The recorder lost 312 events");
    expect(notShown({ ...none, losses, damagedEvents: 1 }, 5)).toBe(318);
  });
  it("give a repair command that a shell takes as it is", () => {
    expect(repairCommand("/a b/it's.typhon-trace", [notice({})])).toBe(
      "typhon trace repair '/a b/it'\\''s.typhon-trace' -o '/a b/it'\\''s-repaired.typhon-trace'",
    );
    expect(repairCommand("a.typhon-trace", [notice({ hint: "`typhon trace repair --salvage` searches" })])).toBe(
      "typhon trace repair a.typhon-trace -o a-repaired.typhon-trace --salvage",
    );
  });
});
