/**
 * Gauges drawn over a tile: while the window moves they only have to be put elsewhere. They count with the bitmaps of the tiles
 * ({@link TileCache}), which asks for room here first.
 */

export interface Picture {
  /** The entries that it shows. */
  entries: string;
  image: ImageBitmap;
}

/** The pictures of a gauge by tile, all of one look. */
interface Gauge {
  look: string;
  byTile: Map<number, Picture>;
  /** Tiles that were in view when it was drawn last. */
  first: number;
  end: number;
  frame: number;
}

/** Tiles on either side of the window whose pictures are kept. */
const NEAR_TILES = 2;

export function imageBytes(image: { width: number; height: number }): number {
  return image.width * image.height * 4;
}

export class PictureCache {
  /** By the key of the track; the one that was drawn longest ago first. */
  private readonly gauges = new Map<string, Gauge>();
  private total = 0;
  private frame = 0;
  private readonly maxShownBytes: number;
  private readonly grew: () => void;

  constructor(maxShownBytes: number, grew: () => void) {
    this.maxShownBytes = maxShownBytes;
    this.grew = grew;
  }

  get bytes(): number {
    return this.total;
  }

  /** A frame begins: what neither it nor the one before draws is not in view. */
  beginFrame(): void {
    this.frame += 1;
  }

  private isInView(gauge: Gauge): boolean {
    return gauge.frame >= this.frame - 1;
  }

  /** May a gauge show this much? When not, it is drawn without pictures: bars need room as well. */
  hasRoomFor(key: string, bytes: number): boolean {
    let shown = bytes;
    for (const [other, gauge] of this.gauges) {
      if (other === key || !this.isInView(gauge)) continue;
      for (const [tile, { image }] of gauge.byTile) if (tile >= gauge.first && tile < gauge.end) shown += imageBytes(image);
    }
    return shown <= this.maxShownBytes;
  }

  find(key: string, look: string, tile: number, entries: string): Picture | null {
    const gauge = this.gauges.get(key);
    const picture = gauge?.look === look ? gauge.byTile.get(tile) : undefined;
    return picture?.entries === entries ? picture : null;
  }

  /** Keeps what a gauge shows now, and what it showed near by before. */
  keep(key: string, look: string, shown: ReadonlyMap<number, Picture>, first: number, end: number): void {
    const before = this.gauges.get(key);
    const byTile = new Map(shown);
    for (const [tile, picture] of before?.byTile ?? []) {
      if (shown.get(tile) === picture) continue;
      const isNear = before?.look === look && tile >= first - NEAR_TILES && tile < end + NEAR_TILES;
      if (isNear && !byTile.has(tile)) byTile.set(tile, picture);
      else this.close(picture);
    }
    const known = new Set(before?.byTile.values());
    for (const picture of shown.values()) if (!known.has(picture)) this.total += imageBytes(picture.image);
    this.gauges.delete(key);
    this.gauges.set(key, { look, byTile, first, end, frame: this.frame });
    this.grew();
  }

  private close({ image }: Picture): void {
    this.total -= imageBytes(image);
    image.close();
  }

  /** Gives up a picture that is not in view, of the gauge that was drawn longest ago. False when all are. */
  drop(): boolean {
    for (const gauge of this.gauges.values()) {
      const isInView = this.isInView(gauge);
      for (const [tile, picture] of gauge.byTile) {
        if (isInView && tile >= gauge.first && tile < gauge.end) continue;
        gauge.byTile.delete(tile);
        this.close(picture);
        return true;
      }
    }
    return false;
  }

  clear(): void {
    for (const { byTile } of this.gauges.values()) for (const picture of byTile.values()) this.close(picture);
    this.gauges.clear();
  }
}
