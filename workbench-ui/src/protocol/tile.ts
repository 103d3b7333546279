/**
 * Tile protocol, version 1, little-endian (crates/typhon-workbench/API.md). Entries are read in place from the bytes of
 * a frame; nothing is copied into objects.
 */

export const TILE_BUCKETS = 512;
export const MAX_LEVEL = 48;
export const MAX_TILES = 64;
export const MAX_LANES = 512;
export const NO_LANE = 0xffff_ffff;

export const WANT = { spans: 1, instants: 2, offCpu: 4, counters: 8, ticks: 16 } as const;
export const CONTENT = { spans: 0, instants: 1, offCpu: 2, counter: 3, ticks: 4, end: 255 } as const;
export const FRAME_FLAG = { incomplete: 1, capped: 2, notice: 4, stale: 8 } as const;
export const ENTRY_FLAG = {
  aggregate: 1,
  fromLeft: 2,
  toRight: 4,
  noEnd: 8,
  overflow: 16,
  site: 32,
  fault: 64,
  tail: 128,
} as const;

const HEAD_BYTES = 32;
const LANE_BYTES = 8;
const REQUEST_MAGIC = 0x5152_5954; // TYRQ
const FRAME_MAGIC = 0x4c54_5954; // TYTL

export interface LaneRows {
  lane: number;
  firstRow: number;
  rowCount: number;
}

export interface TileRequest {
  requestId: number;
  generation: number;
  level: number;
  content: number;
  firstTile: number;
  tileCount: number;
  filterId: number;
  viewId: number;
  lanes: LaneRows[];
}

/** The bytes of a request. */
export function encodeRequest(request: TileRequest): ArrayBuffer {
  const { level, tileCount, lanes } = request;
  if (level < 0 || level > MAX_LEVEL || tileCount < 1 || tileCount > MAX_TILES || lanes.length > MAX_LANES) {
    throw new RangeError(`no such tile request: level ${level}, ${tileCount} tiles, ${lanes.length} lanes`);
  }
  const bytes = new ArrayBuffer(HEAD_BYTES + lanes.length * LANE_BYTES);
  const view = new DataView(bytes);
  view.setUint32(0, REQUEST_MAGIC, true);
  view.setUint32(4, request.requestId, true);
  view.setUint32(8, request.generation, true);
  view.setUint8(12, level);
  view.setUint8(13, request.content);
  view.setUint16(14, lanes.length, true);
  view.setBigUint64(16, BigInt(request.firstTile), true);
  view.setUint16(24, tileCount, true);
  view.setUint16(26, request.filterId, true);
  view.setUint16(28, request.viewId, true);
  lanes.forEach(({ lane, firstRow, rowCount }, at) => {
    const offset = HEAD_BYTES + at * LANE_BYTES;
    view.setUint32(offset, lane, true);
    view.setUint16(offset + 4, firstRow, true);
    view.setUint8(offset + 6, rowCount);
  });
  return bytes;
}

/** A frame; `body` are its entries as they came. */
export interface Frame {
  content: number;
  flags: number;
  requestId: number;
  /** END: number of tiles sent. */
  lane: number;
  /** END: microseconds it took. */
  tile: number;
  level: number;
  rowCount: number;
  firstRow: number;
  count: number;
  body: DataView;
}

/** Bytes of an entry. */
export function entryBytes(content: number): number {
  return content === CONTENT.ticks ? 32 : 16;
}

/** The frames of a message. Throws when it is not made of whole frames. */
export function decodeFrames(bytes: ArrayBuffer): Frame[] {
  const frames: Frame[] = [];
  let at = 0;
  while (at < bytes.byteLength) {
    if (bytes.byteLength - at < HEAD_BYTES) throw new RangeError(`a tile frame is cut at byte ${at}`);
    const view = new DataView(bytes, at);
    if (view.getUint32(0, true) !== FRAME_MAGIC || view.getUint16(4, true) !== 1) {
      throw new RangeError(`no tile frame of protocol version 1 at byte ${at}`);
    }
    const content = view.getUint8(6);
    const count = view.getUint32(28, true);
    const size = content === CONTENT.end ? 0 : count * entryBytes(content);
    if (bytes.byteLength - at < HEAD_BYTES + size) throw new RangeError(`the entries of a tile frame are cut at byte ${at}`);
    frames.push({
      content,
      flags: view.getUint8(7),
      requestId: view.getUint32(8, true),
      lane: view.getUint32(12, true),
      tile: Number(view.getBigUint64(16, true)),
      level: view.getUint8(24),
      rowCount: view.getUint8(25),
      firstRow: view.getUint16(26, true),
      count: content === CONTENT.end ? 0 : count,
      body: new DataView(bytes, at + HEAD_BYTES, size),
    });
    at += HEAD_BYTES + size;
  }
  return frames;
}

/** A span, an instant or several of them. */
export interface SpanEntry {
  x0: number;
  x1: number;
  row: number;
  flags: number;
  name: number;
  /** Place in the row; of an aggregate the number of members. */
  index: number;
  cover: number;
  group: number;
}

export function spanEntry(body: DataView, at: number): SpanEntry {
  const offset = at * 16;
  return {
    x0: body.getUint16(offset, true),
    x1: body.getUint16(offset + 2, true),
    row: body.getUint8(offset + 4),
    flags: body.getUint8(offset + 5),
    name: body.getUint16(offset + 6, true),
    index: body.getUint32(offset + 8, true),
    cover: body.getUint16(offset + 12, true),
    group: body.getUint16(offset + 14, true),
  };
}

export interface CounterEntry {
  x: number;
  samples: number;
  min: number;
  max: number;
  last: number;
}

export function counterEntry(body: DataView, at: number): CounterEntry {
  const offset = at * 16;
  return {
    x: body.getUint16(offset, true),
    samples: body.getUint16(offset + 2, true),
    min: body.getFloat32(offset + 4, true),
    max: body.getFloat32(offset + 8, true),
    last: body.getFloat32(offset + 12, true),
  };
}

/** Nanoseconds of a tile. */
export function tileNs(level: number): number {
  return 2 ** (level + 9);
}
