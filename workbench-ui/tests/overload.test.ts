import { describe, expect, it } from "vitest";
import type { EventDetail, FieldView } from "../src/protocol/types";
import { detectorLines, metronomeLine } from "../src/timeline/overload";

const field = (name: string, value: FieldView["value"], valueName: string | null = null): FieldView => ({ name, type: "", unit: "", value, valueName, isTableId: false, ns: null, note: null });
const detail = (fields: FieldView[], durationNs: number | null = null) => ({ fields, durationNs }) as EventDetail;

describe("overload at a tick (B-9)", () => {
  it("has the ratio, the level, the rate and the streaks of the detector", () => {
    const lines = detectorLines(
      detail([
        field("overrunRatio", 1.2540611), field("consecutiveOverrun", 2), field("consecutiveUnderrun", 0), field("consecutiveQueueGrowth", 1),
        field("queueDepth", 12_000), field("level", 1, "SystemThrottling"), field("multiplier", 2),
      ]),
    );
    expect(lines).toEqual(["1.25 × budget · level SystemThrottling · rate ÷ 2", "in a row: over 2, under 0, queues grew 1", "queue depth 12,000"]);
  });

  it("has the wait of the metronome and what it was for", () => {
    expect(metronomeLine(detail([field("intentClass", 0, "CatchUp")], 346))).toBe("then the metronome waited 346\u202fns, CatchUp");
    expect(metronomeLine(detail([field("intentClass", null)], null))).toBe("then the metronome waited 0\u202fns, absent");
  });
});
