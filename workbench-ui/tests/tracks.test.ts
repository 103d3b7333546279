import { describe, expect, it } from "vitest";
import kinds from "../../crates/typhon-trace/registry/kinds.json?raw";
import type { Lane } from "../src/protocol/types";
import { EMPTY_LANE_VIEW } from "../src/state/store";
import { TileCache, choose, type Tile } from "../src/timeline/cache";
import { isKnownFamily } from "../src/timeline/families";
import { layOut, reorder, rowAt, trackAt, type TrackLayout } from "../src/timeline/tracks";

const measures = { row: 18, strip: 22, gc: 32, gauge: 28, memory: 64 };
let ids = 0;
const lane = (over: Partial<Lane>): Lane => ({
  id: ids++, kind: "thread", label: "", gauge: null, system: null, strip: null, slot: 0, incarnation: 0, threadNumber: 1, threadKind: null,
  threadKindName: null, nestedRows: 2, rows: 2, spans: 10, instants: 0, samples: 0, valueRange: null, extentNs: null, ...over,
});
const lanes = [
  lane({ kind: "strip", strip: "phases", label: "Phases", rows: 1, nestedRows: 1 }),
  lane({ kind: "system", label: "Move", system: 3, rows: 1 }),
  lane({ label: "Worker-10", threadKindName: "Worker" }),
  lane({ label: "pool-1", threadKindName: "Pool", instants: 3 }),
  lane({ label: "Worker-2", threadKindName: "Worker", rows: 5, nestedRows: 4 }),
  lane({ label: "Main", threadKindName: "Main" }),
  lane({ kind: "gc", label: "GC", rows: 1 }),
];
const keys = (tracks: TrackLayout["pinned"]) => tracks.map(({ label }) => label);

describe("tracks", () => {
  it("come in the order of B-7, the phases pinned", () => {
    const { pinned, scrolled } = layOut(lanes, null, EMPTY_LANE_VIEW, measures);
    expect(keys(pinned)).toEqual(["Phases"]);
    expect(keys(scrolled)).toEqual(["GC", "Main", "Worker-2", "Worker-10", "pool-1", "Systems"]);
  });

  it("neither overlap nor leave room, and a height leads back to its track and row", () => {
    const { scrolled, scrolledHeight } = layOut(lanes, null, EMPTY_LANE_VIEW, measures);
    let top = 0;
    for (const track of scrolled) {
      expect(track.top).toBe(top);
      top += track.height;
      expect(track.rowsTop + track.rows * track.pitch).toBeLessThanOrEqual(track.height);
      for (let y = track.top; y < track.top + track.height; y += 1) expect(trackAt(scrolled, y)).toBe(track);
      for (let row = 0; row < track.rows; row += 1) expect(rowAt(track, track.rowsTop + row * track.pitch)).toBe(row);
    }
    expect(scrolledHeight).toBe(top);
    expect(trackAt(scrolled, top)).toBeNull();
  });

  it("are put in another order among their like only", () => {
    const list = ["thread:a", "thread:b", "system:x", "system:y", "thread:c"].map((key) => ({ key, kind: key.split(":")[0] ?? "" }));
    const keys = (order: string[]) => reorder(list, order).map(({ key }) => key);
    expect(keys([])).toEqual(list.map(({ key }) => key));
    expect(keys(["system:y", "system:x", "thread:c", "thread:a"])).toEqual(["thread:c", "thread:b", "system:y", "system:x", "thread:a"]);
    expect(keys(["thread:gone", "thread:b", "thread:a"])).toEqual(["thread:b", "thread:a", "system:x", "system:y", "thread:c"]);
  });

  it("can be folded, hidden, pinned and put in another order", () => {
    const view = { ...EMPTY_LANE_VIEW, collapsed: ["thread:Worker-2:0", "group:systems"], hidden: ["gc"], pinned: ["thread:Main:0", "strip:phases"], order: ["thread:pool-1:0", "thread:Worker-2:0"] };
    const { pinned, scrolled } = layOut(lanes, null, view, measures);
    expect(keys(pinned)).toEqual(["Main"]);
    expect(keys(scrolled)).toEqual(["pool-1", "Worker-10", "Worker-2", "Systems", "Move", "Phases"]);
    expect(scrolled.find(({ label }) => label === "Worker-2")).toMatchObject({ rows: 1, isFolded: true });
  });

  it("every family of the registry has a colour", () => {
    const registry = JSON.parse(kinds) as { kinds: { family: string }[] };
    const unknown = [...new Set(registry.kinds.map(({ family }) => family))].filter((family) => !isKnownFamily(family));
    expect(unknown).toEqual([]);
  });
});

function tile(over: Partial<Tile>): Tile {
  return { filterId: 0, level: 5, lane: 1, band: 0, tile: 0, generation: 1, flags: 0, spans: null, instants: null, counters: null, bitmap: null, pending: null, ...over };
}

describe("tile cache", () => {
  it("stays within its bytes, the oldest out first", () => {
    const cache = new TileCache(100_000, 0);
    const body = new DataView(new ArrayBuffer(16_000));
    for (let at = 0; at < 50; at += 1) {
      cache.put(tile({ tile: at, spans: { body, count: 1000 } }));
      expect(cache.size.dataBytes).toBeLessThanOrEqual(100_000);
      if (at >= 3) cache.get({ filterId: 0, level: 5, lane: 1, band: 0, tile: 0 });
    }
    expect(cache.peek(tile({ tile: 49 }))).toBeDefined();
    expect(cache.peek(tile({ tile: 0 })), "used all the time").toBeDefined();
    expect(cache.peek(tile({ tile: 30 }))).toBeUndefined();
  });

  it("counts bitmaps and closes them", () => {
    const cache = new TileCache(1 << 20, 4 * 100 * 100 * 3);
    let closed = 0;
    const bitmap = () => ({ image: { width: 100, height: 100, close: () => (closed += 1) } as unknown as ImageBitmap, scale: 1, ratio: 1, pitchPx: 18, style: "" });
    for (let at = 0; at < 10; at += 1) {
      cache.put(tile({ tile: at }));
      cache.setBitmap(tile({ tile: at }), bitmap());
      expect(cache.size.bitmapBytes).toBeLessThanOrEqual(120_000);
    }
    expect(closed).toBe(7);
    cache.setBitmap(tile({ tile: 99 }), bitmap());
    expect(closed, "of a tile that is gone").toBe(8);
    cache.clear();
    expect([closed, cache.size.bitmapBytes]).toEqual([11, 0]);
  });

  it("is never blank when something is known: the tile, else a coarser one, else finer ones", () => {
    const cache = new TileCache();
    const key = { filterId: 0, level: 5, lane: 1, band: 0, tile: 6 };
    expect(choose(cache, key, () => true)).toEqual([]);
    cache.put(tile({ level: 4, tile: 13 }));
    expect(choose(cache, key, () => true).map((choice) => [choice.tile.level, choice.from, choice.to])).toEqual([[4, 256, 512]]);
    cache.put(tile({ level: 9, tile: 0 }));
    expect(choose(cache, key, () => true)[0]?.tile.level).toBe(9);
    cache.put(tile({ level: 6, tile: 3 }));
    expect(choose(cache, key, () => true)[0]?.tile.level).toBe(6);
    cache.put(tile({ level: 5, tile: 6 }));
    expect(choose(cache, key, () => true)[0]?.tile.level).toBe(5);
    expect(choose(cache, key, ({ level }) => level !== 5)[0]?.tile.level).toBe(6);
  });
});
