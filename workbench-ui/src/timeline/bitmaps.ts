/** The worker that paints tiles, and what it is busy with. */

import type { ColourMode } from "../state/store";
import type { Tile, TileCache } from "./cache";
import { tileWidth } from "./geometry";
import type { PaintStyle } from "./painter";
import { durationSlot } from "./palette";
import type { FromWorker, ToWorker } from "./worker";

/** Jobs the worker has at a time: few, so that what is in view now comes next. */
const MAX_JOBS = 12;

export interface BitmapWish {
  scale: number;
  ratio: number;
  pitchPx: number;
  rows: number;
  mode: ColourMode;
  laneSlot: number;
  wholes: ReadonlyMap<number, number>;
}

export class BitmapMaker {
  private readonly worker = new Worker(new URL("./worker.ts", import.meta.url), { type: "module", name: "tiles" });
  private readonly jobs = new Map<number, { tile: Tile; wish: BitmapWish; style: string }>();
  private lastId = 0;
  private style = "";
  private readonly cache: TileCache;
  private readonly changed: () => void;

  constructor(cache: TileCache, changed: () => void) {
    this.cache = cache;
    this.changed = changed;
    this.worker.onmessage = ({ data }: MessageEvent<FromWorker>) => this.done(data);
  }

  /** Colours from here on; `version` names them. */
  setStyle(style: PaintStyle, version: string): void {
    this.style = version;
    this.post({ type: "style", style });
  }

  private post(message: ToWorker, transfer: Transferable[] = []): void {
    this.worker.postMessage(message, transfer);
  }

  private styleOf(tile: Tile, wish: BitmapWish): string {
    const wholes = [...wish.wholes.values()].map((buckets) => durationSlot(buckets * 2 ** tile.level)).join();
    return `${this.style}/${tile.generation}/${wish.mode}/${wish.laneSlot}/${wholes}`;
  }

  /** Is the bitmap what it should be? */
  isCurrent(tile: Tile, wish: BitmapWish): boolean {
    const { bitmap } = tile;
    return (
      bitmap !== null &&
      bitmap.scale === wish.scale &&
      bitmap.ratio === wish.ratio &&
      bitmap.pitchPx === wish.pitchPx &&
      bitmap.style === this.styleOf(tile, wish)
    );
  }

  /** Has a tile painted, unless that is under way or the worker has enough to do. */
  make(tile: Tile, wish: BitmapWish): void {
    const { spans } = tile;
    if (spans === null || spans.count === 0 || this.jobs.size >= MAX_JOBS) return;
    const style = this.styleOf(tile, wish);
    const pending = `${style}/${wish.scale}/${wish.pitchPx}/${wish.ratio}`;
    if (tile.pending === pending) return;
    tile.pending = pending;
    const id = ++this.lastId;
    this.jobs.set(id, { tile, wish, style });
    const { body, count } = spans;
    const bytes = body.buffer.slice(body.byteOffset, body.byteOffset + body.byteLength) as ArrayBuffer;
    const { rows, ...of } = wish;
    const job = { bytes, count, level: tile.level, rows, ...of };
    this.post({ type: "paint", id, job, widthPx: tileWidth(wish.scale) + 1, heightPx: rows * wish.pitchPx }, [bytes]);
  }

  private done({ id, bitmap }: FromWorker): void {
    const job = this.jobs.get(id);
    this.jobs.delete(id);
    if (job === undefined) return bitmap.close();
    const { tile, wish, style } = job;
    const current = this.cache.peek(tile);
    if (current !== tile) bitmap.close();
    else this.cache.setBitmap(tile, { image: bitmap, scale: wish.scale, ratio: wish.ratio, pitchPx: wish.pitchPx, style });
    this.changed();
  }

  stop(): void {
    this.worker.terminate();
  }
}
