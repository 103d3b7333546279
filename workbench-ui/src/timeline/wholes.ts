/** Lengths of spans that go over several tiles, as far as the tiles beside are known. Pure. */

import { ENTRY_FLAG, TILE_BUCKETS } from "../protocol/tile";
import type { Tile, TileCache } from "./cache";

export const NONE: ReadonlyMap<number, number> = new Map();

/** Tiles that are looked at to each side. */
const REACH = 16;

/** The entry of a row at an edge of a tile that goes on there: its number, or -1. */
function atEdge(tile: Tile, row: number, edge: number): number {
  const { spans } = tile;
  for (let at = 0; spans !== null && at < spans.count; at += 1) {
    if (spans.body.getUint8(at * 16 + 4) === row && spans.body.getUint8(at * 16 + 5) & edge) return at;
  }
  return -1;
}

function beside(cache: TileCache, tile: Tile, row: number, step: -1 | 1): number {
  const [near, far] = step > 0 ? [ENTRY_FLAG.fromLeft, ENTRY_FLAG.toRight] : [ENTRY_FLAG.toRight, ENTRY_FLAG.fromLeft];
  let buckets = 0;
  for (let by = 1; by <= REACH; by += 1) {
    const next = cache.peek({ ...tile, tile: tile.tile + by * step });
    const at = next === undefined ? -1 : atEdge(next, row, near);
    if (next?.spans == null || at < 0) return buckets;
    buckets += next.spans.body.getUint16(at * 16 + 2, true) - next.spans.body.getUint16(at * 16, true);
    if (!(next.spans.body.getUint8(at * 16 + 5) & far)) return buckets;
  }
  return buckets;
}

/** By the number of the entry: buckets of the whole span, of those that go on beyond the tile. */
export function wholeLengths(cache: TileCache, tile: Tile): ReadonlyMap<number, number> {
  const wholes = new Map<number, number>();
  const { spans } = tile;
  for (let at = 0; spans !== null && at < spans.count; at += 1) {
    const flags = spans.body.getUint8(at * 16 + 5);
    const row = spans.body.getUint8(at * 16 + 4);
    let buckets = spans.body.getUint16(at * 16 + 2, true) - spans.body.getUint16(at * 16, true);
    if (!(flags & (ENTRY_FLAG.fromLeft | ENTRY_FLAG.toRight)) || buckets > TILE_BUCKETS) continue;
    if (flags & ENTRY_FLAG.fromLeft) buckets += beside(cache, tile, row, -1);
    if (flags & ENTRY_FLAG.toRight) buckets += beside(cache, tile, row, 1);
    wholes.set(at, buckets);
  }
  return wholes;
}
