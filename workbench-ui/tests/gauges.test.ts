import { describe, expect, it } from "vitest";
import type { GaugeInfo, Gauges, Lane, Meta } from "../src/protocol/types";
import { setWindow } from "../src/state/actions";
import * as store from "../src/state/store";
import { scaleOf } from "../src/timeline/drawGauges";
import { gaugeTracks, niceTop, spokenName } from "../src/timeline/gauges";
import { layOut } from "../src/timeline/tracks";
import { random } from "./support";

const info = (lane: number, gauge: number, name: string, max: string, stack: string | null = null): GaugeInfo => ({
  lane, gauge, name, valueKind: "U64Bytes", isOnce: false, samples: 10, min: "0", max, stack,
});
const lane = (id: number, gauge: number): Lane => ({
  id, kind: "gauge", label: "", gauge, system: null, strip: null, slot: null, incarnation: null, threadNumber: null, threadKind: null,
  threadKindName: null, nestedRows: 0, rows: 0, spans: 0, instants: 0, samples: 10, valueRange: [0, 1], extentNs: null,
});
const gauges: Gauges = {
  gauges: [info(0, 0x0110, "GcHeapGen0Bytes", "8000000", "gcHeap"), info(1, 0x0112, "GcHeapGen2Bytes", "61000000", "gcHeap"), info(2, 0x0115, "GcHeapCommittedBytes", "97000000"), info(3, 0x0410, "TxChainCommitTotal", "9000")],
  stacks: [{ stack: "gcHeap", max: 68000000, gauges: [0x0110, 0x0112] }],
};
const lanes = [lane(0, 0x0110), lane(1, 0x0112), lane(2, 0x0115), lane(3, 0x0410)];
const measures = { row: 18, strip: 22, gc: 32, gauge: 28, memory: 64 };

describe("gauges", () => {
  it("keep their scale over 1,000 random pans", () => {
    store.meta.value = { time: { endNs: 1e10 } } as Meta;
    const next = random(4);
    const scales = new Set<string>();
    for (let pan = 0; pan < 1000; pan += 1) {
      const fromNs = next() * 9e9;
      setWindow({ fromNs, toNs: fromNs + next() * 1e9 });
      const { scrolled } = layOut(lanes, gauges, store.laneView.value, measures);
      const memory = scrolled.find(({ key }) => key === "gauges:memory")!;
      scales.add(JSON.stringify(scaleOf(memory, memory.gauge!, next() * 1e9)));
    }
    expect([...scales]).toEqual(['{"from":0,"to":100663296,"isFitted":false}']);
  });

  it("stack the heap from the layer that rarely moves, under the committed line", () => {
    const [memory, commits] = gaugeTracks(lanes, gauges);
    expect(memory?.layers.map(({ label }) => label)).toEqual(["2", "0"]);
    expect(memory?.line?.lane).toBe(2);
    // The largest sum and the committed line both fit.
    expect(memory?.scale.to).toBeGreaterThanOrEqual(97_000_000);
    expect(commits).toMatchObject({ isRate: true, unit: "count" });
  });

  it("fit the window only when asked to", () => {
    store.laneView.value = { ...store.EMPTY_LANE_VIEW, fitted: ["gauges:memory"] };
    const { scrolled } = layOut(lanes, gauges, store.laneView.value, measures);
    const memory = scrolled.find(({ key }) => key === "gauges:memory")!;
    expect(scaleOf(memory, memory.gauge!, 3000)).toEqual({ from: 0, to: 3072, isFitted: true });
    store.laneView.value = store.EMPTY_LANE_VIEW;
  });

  it("have round tops", () => {
    expect([niceTop(97, "count"), niceTop(200, "count"), niceTop(0, "count"), niceTop(3, "count")]).toEqual([100, 200, 1, 5]);
    for (let value = 1; value < 1e15; value *= 1.7) {
      expect(niceTop(value, "bytes")).toBeGreaterThanOrEqual(value);
      expect(niceTop(value, "count")).toBeGreaterThanOrEqual(value);
      expect(niceTop(value, "count")).toBeLessThanOrEqual(value * 2.5 + 1);
    }
    expect(spokenName("PageCacheLRUAgeTicks")).toBe("Page cache LRU age ticks");
  });
});
