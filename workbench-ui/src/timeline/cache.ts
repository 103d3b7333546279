/** Tiles and their bitmaps, least recently used out first, bounded in bytes. */

import { TILE_BUCKETS } from "../protocol/tile";
import { PictureCache, imageBytes } from "./pictures";

/** Rows of a request and of a bitmap. */
export const BAND_ROWS = 32;

export interface Entries {
  body: DataView;
  count: number;
}

export interface Bitmap {
  image: ImageBitmap;
  scale: number;
  ratio: number;
  pitchPx: number;
  /** What it was painted with. */
  style: string;
}

export interface TileKey {
  filterId: number;
  level: number;
  lane: number;
  band: number;
  tile: number;
}

export interface Tile extends TileKey {
  generation: number;
  flags: number;
  spans: Entries | null;
  instants: Entries | null;
  counters: Entries | null;
  bitmap: Bitmap | null;
  /** Style and scale of the bitmap that the worker is making. */
  pending: string | null;
}

const ENTRY_BYTES = 16;
const TILE_OVERHEAD_BYTES = 400;

function dataBytes(tile: Tile): number {
  const of = (entries: Entries | null) => (entries === null ? 0 : entries.count * ENTRY_BYTES);
  return TILE_OVERHEAD_BYTES + of(tile.spans) + of(tile.instants) + of(tile.counters);
}

export class TileCache {
  /** Pictures of gauges, which count with the bitmaps. */
  readonly pictures: PictureCache;
  private readonly tiles = new Map<string, Tile>();
  /** What a tile counts for: it grows with the frames that arrive for it. */
  private readonly counted = new WeakMap<Tile, number>();
  private dataTotal = 0;
  private bitmapTotal = 0;
  private readonly maxDataBytes: number;
  private readonly maxBitmapBytes: number;

  constructor(maxDataBytes = 48 << 20, maxBitmapBytes = 96 << 20) {
    this.maxDataBytes = maxDataBytes;
    this.maxBitmapBytes = maxBitmapBytes;
    this.pictures = new PictureCache(maxBitmapBytes / 2, () => this.evict());
  }

  static key({ filterId, level, lane, band, tile }: TileKey): string {
    return `${filterId}/${level}/${lane}/${band}/${tile}`;
  }

  /** `bitmapBytes` has the `pictureBytes` in it. */
  get size(): { tiles: number; dataBytes: number; bitmapBytes: number; pictureBytes: number } {
    return { tiles: this.tiles.size, dataBytes: this.dataTotal, bitmapBytes: this.bitmapTotal + this.pictures.bytes, pictureBytes: this.pictures.bytes };
  }

  /** Looks without making it younger. */
  peek(key: TileKey): Tile | undefined {
    return this.tiles.get(TileCache.key(key));
  }

  get(key: TileKey): Tile | undefined {
    const name = TileCache.key(key);
    const tile = this.tiles.get(name);
    if (tile !== undefined) {
      this.tiles.delete(name);
      this.tiles.set(name, tile);
    }
    return tile;
  }

  /** Keeps a tile in place of an older one; the older one's bitmap stays until there is a new one. */
  put(tile: Tile): void {
    const name = TileCache.key(tile);
    const old = this.tiles.get(name);
    if (old !== undefined) {
      this.dataTotal -= this.counted.get(old) ?? 0;
      if (old !== tile && tile.bitmap === null && old.bitmap !== null) tile.bitmap = { ...old.bitmap, style: "" };
      this.tiles.delete(name);
    }
    const bytes = dataBytes(tile);
    this.counted.set(tile, bytes);
    this.dataTotal += bytes;
    this.tiles.set(name, tile);
    this.evict();
  }

  /** Gives a tile its bitmap. False when the tile is gone; then the bitmap is closed. */
  setBitmap(key: TileKey, bitmap: Bitmap): boolean {
    const tile = this.tiles.get(TileCache.key(key));
    if (tile === undefined) {
      bitmap.image.close();
      return false;
    }
    this.dropBitmap(tile);
    tile.bitmap = bitmap;
    tile.pending = null;
    this.bitmapTotal += imageBytes(bitmap.image);
    this.evict();
    return true;
  }

  private dropBitmap(tile: Tile): void {
    if (tile.bitmap === null) return;
    this.bitmapTotal -= imageBytes(tile.bitmap.image);
    tile.bitmap.image.close();
    tile.bitmap = null;
  }

  private hasTooManyBitmaps(): boolean {
    return this.bitmapTotal + this.pictures.bytes > this.maxBitmapBytes;
  }

  private evict(): void {
    // What no gauge shows is not seen to go; of the tiles the oldest may be in view.
    while (this.hasTooManyBitmaps() && this.pictures.drop()) continue;
    if (!this.hasTooManyBitmaps() && this.dataTotal <= this.maxDataBytes) return;
    for (const [name, tile] of this.tiles) {
      const tooMuchData = this.dataTotal > this.maxDataBytes;
      if (!tooMuchData && !this.hasTooManyBitmaps()) return;
      this.dropBitmap(tile);
      if (tooMuchData && this.tiles.size > 1) {
        this.dataTotal -= this.counted.get(tile) ?? 0;
        this.tiles.delete(name);
      }
    }
  }

  clear(): void {
    for (const tile of this.tiles.values()) this.dropBitmap(tile);
    this.tiles.clear();
    this.pictures.clear();
    this.dataTotal = 0;
    this.bitmapTotal = 0;
  }

  values(): IterableIterator<Tile> {
    return this.tiles.values();
  }
}

/** A part of x, in buckets of the wanted tile, and the tile to draw there. */
export interface Choice {
  tile: Tile;
  /** Of the wanted tile, 0..512. */
  from: number;
  to: number;
}

const COARSER = 16;

/**
 * What to draw for a tile: itself, else the nearest coarser one, else the two finer ones. Never blank when anything is
 * known.
 */
export function choose(cache: TileCache, key: TileKey, isDrawable: (tile: Tile) => boolean): Choice[] {
  const own = cache.get(key);
  if (own !== undefined && isDrawable(own)) return [{ tile: own, from: 0, to: TILE_BUCKETS }];
  for (let up = 1; up <= COARSER; up += 1) {
    const coarse = cache.peek({ ...key, level: key.level + up, tile: Math.floor(key.tile / 2 ** up) });
    if (coarse !== undefined && isDrawable(coarse)) return [{ tile: coarse, from: 0, to: TILE_BUCKETS }];
  }
  const choices: Choice[] = [];
  for (const half of [0, 1]) {
    const fine = key.level === 0 ? undefined : cache.peek({ ...key, level: key.level - 1, tile: key.tile * 2 + half });
    if (fine !== undefined && isDrawable(fine)) {
      choices.push({ tile: fine, from: (half * TILE_BUCKETS) / 2, to: ((half + 1) * TILE_BUCKETS) / 2 });
    }
  }
  return choices;
}
