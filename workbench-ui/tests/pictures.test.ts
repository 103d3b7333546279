import { describe, expect, it } from "vitest";
import { type Tile, TileCache } from "../src/timeline/cache";
import type { Picture } from "../src/timeline/pictures";

/** Images that remember whether they were closed. */
function images() {
  const open = new Set<ImageBitmap>();
  const image = (width = 100, height = 100): ImageBitmap => {
    const made = { width, height, close: () => void open.delete(made) } as ImageBitmap;
    open.add(made);
    return made;
  };
  const bytes = () => [...open].reduce((sum, { width, height }) => sum + width * height * 4, 0);
  return { open, image, bytes };
}

const PICTURE = 4 * 100 * 100;
const tileKey = (tile: number) => ({ filterId: 0, level: 3, lane: 1, band: 0, tile });
const emptyTile = (tile: number): Tile => ({ ...tileKey(tile), generation: 1, flags: 0, spans: null, instants: null, counters: null, bitmap: null, pending: null });
const range = (from: number, to: number) => Array.from({ length: to - from }, (_, at) => from + at);

describe("pictures of gauges", () => {
  /** Draws a gauge over tiles in a frame of its own, with what is there already. */
  function draw(cache: TileCache, image: () => ImageBitmap, key: string, from: number, to: number, look = "a"): void {
    cache.pictures.beginFrame();
    const find = (tile: number): [number, Picture] => [tile, cache.pictures.find(key, look, tile, "") ?? { entries: "", image: image() }];
    cache.pictures.keep(key, look, new Map(range(from, to).map(find)), from, to);
  }

  it("count with the bitmaps of tiles, and together they keep to the limit", () => {
    const { open, image, bytes } = images();
    const cache = new TileCache(1 << 20, PICTURE * 10);
    for (let tile = 0; tile < 8; tile += 1) {
      cache.put(emptyTile(tile));
      cache.setBitmap(tileKey(tile), { image: image(), scale: 1, ratio: 1, pitchPx: 18, style: "" });
    }
    draw(cache, image, "memory", 0, 4);
    expect(cache.size).toMatchObject({ bitmapBytes: PICTURE * 10, pictureBytes: PICTURE * 4 });
    expect(bytes()).toBe(PICTURE * 10);
    // Nothing that is shown went: the oldest tiles did.
    expect(range(0, 8).map((tile) => cache.peek(tileKey(tile))?.bitmap === null)).toEqual([true, true, ...Array(6).fill(false)]);
    for (let pan = 1; pan < 40; pan += 1) {
      draw(cache, image, "memory", pan, pan + 4);
      cache.setBitmap(tileKey(pan % 8), { image: image(), scale: 1, ratio: 1, pitchPx: 18, style: "" });
      expect(cache.size.bitmapBytes).toBe(bytes());
      expect(bytes()).toBeLessThanOrEqual(PICTURE * 10);
    }
    cache.clear();
    expect([open.size, cache.size.bitmapBytes, cache.size.pictureBytes]).toEqual([0, 0, 0]);
  });

  it("go before tiles when they are not in view, those of the gauge first that was drawn longest ago", () => {
    const { image } = images();
    const cache = new TileCache(1 << 20, PICTURE * 8);
    for (const key of ["memory", "wal"]) draw(cache, image, key, 0, 3);
    cache.pictures.beginFrame();
    cache.put(emptyTile(0));
    for (let more = 0; more < 2; more += 1) draw(cache, image, "wal", 0, 3);
    cache.put(emptyTile(1));
    for (const tile of [0, 1]) cache.setBitmap(tileKey(tile), { image: image(), scale: 1, ratio: 1, pitchPx: 18, style: "" });
    expect(cache.size.bitmapBytes).toBe(PICTURE * 8);
    cache.put(emptyTile(2));
    cache.setBitmap(tileKey(2), { image: image(), scale: 1, ratio: 1, pitchPx: 18, style: "" });
    expect([cache.pictures.find("memory", "a", 0, ""), cache.pictures.find("memory", "a", 1, "")?.entries]).toEqual([null, ""]);
    expect(range(0, 3).map((tile) => cache.pictures.find("wal", "a", tile, "")?.entries)).toEqual(["", "", ""]);
    expect(range(0, 3).map((tile) => cache.peek(tileKey(tile))?.bitmap === null)).toEqual([false, false, false]);
  });

  it("stay near the window, are painted anew for another look, and are closed when they go", () => {
    const { open, image, bytes } = images();
    const cache = new TileCache();
    draw(cache, image, "memory", 10, 13);
    draw(cache, image, "memory", 12, 15);
    expect(range(9, 16).map((tile) => cache.pictures.find("memory", "a", tile, "") !== null)).toEqual([false, true, true, true, true, true, false]);
    draw(cache, image, "memory", 13, 16);
    expect(cache.pictures.find("memory", "a", 10, "")).toBeNull();
    draw(cache, image, "memory", 13, 16, "b");
    expect([open.size, cache.size.pictureBytes]).toEqual([3, bytes()]);
  });

  it("leave half of the room to bars: a gauge that does not fit is drawn without", () => {
    const { image } = images();
    const cache = new TileCache(1 << 20, PICTURE * 10);
    draw(cache, image, "memory", 0, 3);
    expect([cache.pictures.hasRoomFor("wal", PICTURE * 2), cache.pictures.hasRoomFor("wal", PICTURE * 3), cache.pictures.hasRoomFor("memory", PICTURE * 5)]).toEqual([true, false, true]);
    // What is no longer in view needs none.
    for (let frame = 0; frame < 2; frame += 1) cache.pictures.beginFrame();
    expect(cache.pictures.hasRoomFor("wal", PICTURE * 5)).toBe(true);
  });
});
