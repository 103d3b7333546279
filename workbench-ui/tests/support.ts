/** Numbers that look random and are the same in every run. */
export function random(seed: number): () => number {
  let state = seed * 0x9e3779b9;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

export interface Bar {
  x0: number;
  x1: number;
  row: number;
  index: number;
  flags?: number;
  name?: number;
  cover?: number;
}

/** Entries of a tile as they come. */
export function tileOf(bars: Bar[]): DataView {
  const view = new DataView(new ArrayBuffer(bars.length * 16));
  bars.forEach(({ x0, x1, row, index, flags = 0, name = 0, cover = 65535 }, at) => {
    view.setUint16(at * 16, x0, true);
    view.setUint16(at * 16 + 2, x1, true);
    view.setUint8(at * 16 + 4, row);
    view.setUint8(at * 16 + 5, flags);
    view.setUint16(at * 16 + 6, name, true);
    view.setUint32(at * 16 + 8, index, true);
    view.setUint16(at * 16 + 12, cover, true);
  });
  return view;
}
