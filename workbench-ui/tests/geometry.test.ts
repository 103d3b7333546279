import { describe, expect, it } from "vitest";
import { ENTRY_FLAG, TILE_BUCKETS, spanEntry } from "../src/protocol/tile";
import { bucketPx, levelOf, makeAxis, tileX, tilesIn } from "../src/timeline/axis";
import { bucketBox, entryAt, gatherSpans, placeTile, wideEntries, type WholeSpan } from "../src/timeline/geometry";
import { TileCache } from "../src/timeline/cache";
import { wholeLengths } from "../src/timeline/wholes";
import { random, tileOf, type Bar } from "./support";

describe("axis", () => {
  it("has buckets of half a device pixel to one", () => {
    const next = random(1);
    for (let round = 0; round < 1000; round += 1) {
      const ratio = [1, 1.5, 2][round % 3] ?? 1;
      const axis = makeAxis({ fromNs: 0, toNs: 10 ** (4 + next() * 12) }, 100 + next() * 3000, ratio);
      const devicePx = bucketPx(axis, levelOf(axis)) * ratio;
      if (levelOf(axis) > 0) expect(devicePx).toBeGreaterThan(0.5 - 1e-9);
      if (levelOf(axis) > 0) expect(devicePx).toBeLessThanOrEqual(1 + 1e-9);
    }
  });

  it("covers a view with tiles that meet", () => {
    const next = random(2);
    for (let round = 0; round < 500; round += 1) {
      const fromNs = next() * 1e9;
      const axis = makeAxis({ fromNs, toNs: fromNs + 10 ** (3 + next() * 7) }, 1500, 2);
      const level = levelOf(axis);
      const [first, end] = tilesIn(axis, level, 0, axis.widthPx);
      expect(tileX(axis, level, first)).toBeLessThanOrEqual(0.5);
      expect(tileX(axis, level, end)).toBeGreaterThanOrEqual(axis.widthPx - 0.5);
      expect(end - first).toBeLessThan(16);
    }
  });
});

describe("hit test = draw", () => {
  it("random clicks return the entry whose rectangle contains them", () => {
    const next = random(3);
    let hits = 0;
    for (let round = 0; round < 120; round += 1) {
      const bars: Bar[] = [];
      for (let row = 0; row < 3; row += 1) {
        let x = Math.floor(next() * 20);
        while (x < TILE_BUCKETS - 1) {
          const w = 1 + Math.floor(next() ** 3 * 60);
          bars.push({ x0: x, x1: Math.min(x + w, TILE_BUCKETS), row, index: bars.length });
          x += w + Math.floor(next() * 30);
        }
      }
      const body = tileOf(bars);
      const fromNs = next() * 1e6;
      const axis = makeAxis({ fromNs, toNs: fromNs + 10 ** (4 + next() * 3) }, 1200, round % 2 === 0 ? 1 : 2);
      const level = levelOf(axis);
      const [first] = tilesIn(axis, level, 0, axis.widthPx);
      const placed = placeTile(axis, level, first + 1);
      for (let click = 0; click < 30; click += 1) {
        const [x, row] = [placed.x + next() * 512 * placed.scale, Math.floor(next() * 3)];
        if (x < 0 || x >= axis.widthPx) continue;
        const inside = bars.filter((bar) => {
          const box = bucketBox(bar.x0, bar.x1, placed.scale, placed.ratio);
          return bar.row === row && x - placed.x >= box.x && x - placed.x < box.x + box.w;
        });
        const met = entryAt(body, bars.length, row, placed, x);
        if (inside.length > 0) {
          hits += 1;
          expect(met?.distance).toBe(0);
          expect(inside.map(({ index }) => index)).toContain(spanEntry(body, met?.at ?? -1).index);
        } else if (met !== null) expect(met.distance).toBeLessThanOrEqual(3);
      }
    }
    expect(hits).toBeGreaterThan(1000);
  });

  it("meets nothing outside of what a tile is drawn for", () => {
    const body = tileOf([{ x0: 0, x1: 512, row: 0, index: 1 }]);
    const placed = { x: 0, scale: 1, ratio: 1, clipFrom: 100, clipTo: 200 };
    expect(entryAt(body, 1, 0, placed, 99)).toBeNull();
    expect(entryAt(body, 1, 0, placed, 150)).not.toBeNull();
    expect(entryAt(body, 1, 0, placed, 200)).toBeNull();
  });

  it("a span is at least a pixel wide", () => expect(bucketBox(7, 8, 0.5, 1).w).toBe(1));
});

describe("spans over several tiles", () => {
  it("are one, however the tiles cut them", () => {
    const spans = new Map<number, WholeSpan>();
    const { fromLeft, toRight } = ENTRY_FLAG;
    const parts: Bar[][] = [
      [{ x0: 500, x1: 512, row: 0, index: 9, flags: toRight }],
      [{ x0: 0, x1: 512, row: 0, index: 9, flags: fromLeft | toRight }],
      [{ x0: 0, x1: 3, row: 0, index: 9, flags: fromLeft }],
    ];
    parts.forEach((bars, at) => gatherSpans(spans, tileOf(bars), wideEntries(tileOf(bars), bars.length, 1, 1, 40), 0, { x: at * 512, scale: 1, ratio: 1, clipFrom: 0, clipTo: 1500 }));
    expect([...spans.values()]).toEqual([{ row: 0, index: 9, name: 0, flags: expect.any(Number), x: 500, to: 1027, isCutLeft: false, isCutRight: false }]);
  });

  it("aggregates have no label", () => {
    const spans = new Map<number, WholeSpan>();
    const bars: Bar[] = [{ x0: 0, x1: 400, row: 0, index: 300, flags: ENTRY_FLAG.aggregate }];
    gatherSpans(spans, tileOf(bars), wideEntries(tileOf(bars), 1, 1, 1, 40), 0, { x: 0, scale: 1, ratio: 1, clipFrom: 0, clipTo: 1000 });
    expect(spans.size).toBe(0);
  });
});

describe("lengths over several tiles", () => {
  it("are the same in every tile of a span", () => {
    const { fromLeft, toRight } = ENTRY_FLAG;
    const cache = new TileCache();
    const parts: Bar[][] = [
      [{ x0: 500, x1: 512, row: 2, index: 9, flags: toRight }],
      [{ x0: 0, x1: 512, row: 2, index: 9, flags: fromLeft | toRight }, { x0: 4, x1: 9, row: 0, index: 1 }],
      [{ x0: 0, x1: 3, row: 2, index: 9, flags: fromLeft }],
    ];
    parts.forEach((bars, tile) => {
      const spans = { body: tileOf(bars), count: bars.length };
      cache.put({ filterId: 0, level: 3, lane: 1, band: 0, tile, generation: 1, flags: 0, spans, instants: null, counters: null, bitmap: null, pending: null });
    });
    for (const tile of cache.values()) expect([...wholeLengths(cache, tile)]).toEqual([[0, 527]]);
  });
});
