import { describe, expect, it } from "vitest";
import * as f from "../src/format";

const plain = (text: string) => text.replaceAll("\u202f", "_");

describe("numbers", () => {
  it.each([
    [0, "0_ns"], [1, "1_ns"], [300, "300_ns"], [999, "999_ns"], [1000, "1.00_µs"], [9_870, "9.87_µs"], [99_960, "100_µs"],
    [999_600, "1.00_ms"], [21_200_000, "21.2_ms"], [1_952_000_000, "1.95_s"], [59_990_000_000, "60.0_s"],
    [251_200_000_000, "4_min 11.2_s"], [3_725e9, "1_h 2_min"], [100_000e9, "1_d 3_h"], [-21_200_000, "\u221221.2_ms"],
  ])("duration %d", (ns, text) => expect(plain(f.duration(ns))).toBe(text));

  it("never shows four digits before a unit changes", () => {
    for (let ns = 1; ns < 59e9; ns = Math.ceil(ns * 1.0037)) {
      const digits = f.duration(ns).split("\u202f")[0] ?? "";
      expect(Number(digits), f.duration(ns)).toBeLessThan(1000);
      expect(digits.replace(".", "").length, f.duration(ns)).toBeLessThanOrEqual(3);
    }
  });

  it.each([[1_341_571_000, 5000, "1,341.571_ms"], [1_341_571_123, 10, "1,341.571123_ms"], [0, 1e6, "0.000_ms"], [-1_500_000, 1e6, "\u22121.500_ms"], [999_999_999, 1e6, "1,000.000_ms"]])(
    "instant %d", (ns, nsPerPixel, text) => expect(plain(f.instant(ns, nsPerPixel))).toBe(text),
  );

  it.each([[29552, "29,552"], [0, "0"], [-1234567, "\u22121,234,567"]])("count %d", (value, text) => expect(f.count(value)).toBe(text));
  it.each([[8192, "8.00_KiB"], [101_816_729, "97.1_MiB"], [0, "0_B"], [1023, "1023_B"], [1_048_570, "1.00_MiB"]])("bytes %d", (value, text) => expect(plain(f.bytes(value))).toBe(text));
  it.each([[0.63, "63_%"], [0.007, "0.7_%"], [0, "0.0_%"], [1, "100_%"], [0.0996, "10_%"]])("percent %d", (value, text) => expect(plain(f.percent(value))).toBe(text));
  it("signs, axes, estimates, small samples", () => {
    expect(plain(f.signedPercent(-0.66))).toBe("\u221266_%");
    expect(plain(f.signedDuration(22_500))).toBe("+22.5_µs");
    expect(plain(f.axisCount(30_000))).toBe("30_k");
    expect(plain(f.estimate(f.duration(4_410_000)))).toBe("≈_4.41_ms");
    expect([f.isSmallSample(19, 95), f.isSmallSample(20, 95), f.isSmallSample(99, 99), f.isSmallSample(100, 99)]).toEqual([true, false, true, false]);
  });
});

describe("texts", () => {
  const width = (text: string) => [...text].length;
  it("cuts at a character boundary and never the middle", () => {
    expect(f.elide("PheroDecay", 10, width)).toBe("PheroDecay");
    expect(f.elide("PheroDecay", 6, width)).toBe("Phero…");
    expect(f.elide("PheroDecay", 2, width)).toBe("");
    expect(f.elide("👩‍👩‍👧x👩‍👩‍👧yzz", 12, (text) => text.length)).not.toMatch(/\u200d…/);
  });
  it("cuts paths at their left", () => expect(f.elidePath("src/Typhon.Engine/Ecs/EcsQuery.cs", 20, width)).toBe("…/Ecs/EcsQuery.cs"));
  it("escapes control and direction characters", () => {
    expect(f.visible("a\u001b[31m\u202eb\n")).toBe("a\\x1b[31m\\u202eb\\x0a");
    expect(f.visible("plain äöü 漢字")).toBe("plain äöü 漢字");
  });
});

describe("points in time", () => {
  const context: f.TimeContext = { startUnixNs: 1_791_797_464_000_000_000n, zeroTicks: 500n, ticksPerSecond: 10_000_000n, tickAt: (ns) => (ns < 100 ? null : { number: 9, startNs: 100 }) };
  it("has a mode for each", () => {
    expect(plain(f.pointInTime(22_600, "tick", context))).toBe("tick 9 +22.5_µs");
    expect(plain(f.pointInTime(50, "tick", context))).toBe("0.000_ms");
    expect(f.pointInTime(1_500_000_000, "raw", context)).toBe("15000500");
    expect(f.pointInTime(1_000_000, "clock", context)).toBe("09:31:05.001000".replace("05.001", "04.001"));
  });
});
