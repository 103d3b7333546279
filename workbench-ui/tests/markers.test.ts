import { describe, expect, it } from "vitest";
import { ENTRY_FLAG } from "../src/protocol/tile";
import type { Tile } from "../src/timeline/cache";
import { mergedMarkers } from "../src/timeline/markers";
import { laneValueAt } from "../src/timeline/gaugePath";
import type { PlacedBand } from "../src/timeline/scene";
import type { Track } from "../src/timeline/tracks";
import { tileOf } from "./support";

const track = {} as Track;
const tile = (change: Partial<Tile>): Tile => ({ filterId: 0, level: 0, lane: 7, band: 0, tile: 0, generation: 1, flags: 0, spans: null, instants: null, counters: null, bitmap: null, pending: null, ...change });
const instantsAt = (buckets: number[], members = 1) => {
  const bars = buckets.map((x0, index) => ({ x0, x1: x0, row: 0, index: members > 1 ? members : index, name: x0, flags: members > 1 ? ENTRY_FLAG.aggregate : 0 }));
  return tile({ instants: { body: tileOf(bars), count: bars.length } });
};
const placed = (of: Tile, x: number, clip = { from: 0, to: 1000 }): PlacedBand => ({ track, band: 0, tile: of, isFiltered: false, at: { x, scale: 1, ratio: 1, clipFrom: clip.from, clipTo: clip.to } });
const shown = (bands: PlacedBand[]) => mergedMarkers(bands, track, false).map(({ x, count }) => [x, count]);

describe("markers of instants (B-12)", () => {
  it("are one when they are nearer than 6 px, and counted", () => {
    expect(shown([placed(instantsAt([10, 15, 16, 30, 36]), 0)])).toEqual([[10, 2], [16, 1], [30, 1], [36, 1]]);
    expect(shown([placed(instantsAt([10, 15], 40), 0)])).toEqual([[10, 80]]);
  });

  it("merge across the edge of two tiles", () => {
    expect(shown([placed(instantsAt([500, 510]), 0), placed(instantsAt([1, 40]), 512)])).toEqual([[500, 1], [510, 2], [552, 1]]);
  });

  it("are the same in every frame of a pan, wherever the window begins", () => {
    const dense = instantsAt(Array.from({ length: 100 }, (_, at) => at * 4));
    const still = shown([placed(dense, 0)]);
    for (let by = 1; by < 300; by += 7) {
      const moved = shown([placed(dense, -by)]).map(([x = 0, count]) => [x + by, count]);
      expect(moved).toEqual(still.filter(([x = 0]) => x >= by));
    }
  });
});

describe("the value of a gauge at the cursor", () => {
  it("is that of the last sample at or before it, in whatever tile", () => {
    const counters = (values: [number, number][]) => {
      const body = new DataView(new ArrayBuffer(values.length * 16));
      values.forEach(([x, last], at) => {
        body.setUint16(at * 16, x, true);
        body.setFloat32(at * 16 + 12, last, true);
      });
      return tile({ counters: { body, count: values.length } });
    };
    const bands = [placed(counters([[0, 1], [100, 2]]), 0, { from: 0, to: 512 }), placed(counters([[0, 2], [8, 5]]), 512, { from: 512, to: 1000 })];
    expect([0, 99, 100, 511, 519, 520, 900].map((x) => laneValueAt(bands, 7, x))).toEqual([1, 1, 2, 2, 2, 5, 5]);
    expect(laneValueAt(bands, 8, 100)).toBeNull();
  });
});
