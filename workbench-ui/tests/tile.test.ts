import { describe, expect, it } from "vitest";
import { CONTENT, counterEntry, decodeFrames, encodeRequest, spanEntry, tileNs } from "../src/protocol/tile";

/** A frame as crates/typhon-analysis/src/tile/frame.rs writes it. */
function frame(content: number, entries: number[][], { lane = 7, tile = 5, level = 12, requestId = 3, flags = 0 } = {}): number[] {
  const u16 = (value: number) => [value & 255, value >> 8];
  const u32 = (value: number) => [...u16(value & 0xffff), ...u16(value >>> 16)];
  return [
    ...[0x54, 0x59, 0x54, 0x4c], ...u16(1), content, flags, ...u32(requestId), ...u32(lane), ...u32(tile % 2 ** 32), ...u32(Math.floor(tile / 2 ** 32)),
    level, 4, ...u16(32), ...u32(entries.length), ...entries.flat(),
  ];
}

const span = [0x01, 0x00, 0x00, 0x02, 0x03, 0x41, 0x0a, 0x01, 0x78, 0x56, 0x34, 0x12, 0xff, 0xff, 0x04, 0x80];

describe("tile protocol", () => {
  it("encodes a request byte by byte", () => {
    const bytes = new Uint8Array(
      encodeRequest({
        requestId: 0x01020304, generation: 5, level: 12, content: 11, firstTile: 2 ** 40 + 7, tileCount: 9, filterId: 3, viewId: 2,
        lanes: [{ lane: 258, firstRow: 32, rowCount: 16 }],
      }),
    );
    const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
    expect(hex).toBe("54595251" + "04030201" + "05000000" + "0c" + "0b" + "0100" + "0700000000010000" + "0900" + "0300" + "0200" + "0000" + "02010000" + "2000" + "10" + "00");
  });

  it("refuses what the server would refuse", () => {
    const request = { requestId: 1, generation: 1, level: 0, content: 1, firstTile: 0, tileCount: 1, filterId: 0, viewId: 0, lanes: [] };
    expect(() => encodeRequest({ ...request, level: 49 })).toThrow(RangeError);
    expect(() => encodeRequest({ ...request, tileCount: 65 })).toThrow(RangeError);
    expect(() => encodeRequest({ ...request, tileCount: 0 })).toThrow(RangeError);
  });

  it("decodes frames that stand back to back", () => {
    const message = [...frame(CONTENT.spans, [span, span], { tile: 2 ** 33 + 1 }), ...frame(CONTENT.end, [], { lane: 1, tile: 250 })];
    const frames = decodeFrames(new Uint8Array(message).buffer);
    expect(frames.map(({ content, count, lane, tile }) => [content, count, lane, tile])).toEqual([[0, 2, 7, 2 ** 33 + 1], [255, 0, 1, 250]]);
    expect(frames[0]).toMatchObject({ level: 12, rowCount: 4, firstRow: 32, requestId: 3 });
    const second = spanEntry(frames[0]!.body, 1);
    expect(second).toEqual({ x0: 1, x1: 512, row: 3, flags: 0x41, name: 266, index: 0x12345678, cover: 65535, group: 0x8004 });
  });

  it("reads counters", () => {
    const bytes = new ArrayBuffer(16);
    const view = new DataView(bytes);
    view.setUint16(0, 4, true);
    view.setUint16(2, 2, true);
    [1.5, 3.25, 2].forEach((value, at) => view.setFloat32(4 + at * 4, value, true));
    const [found] = decodeFrames(new Uint8Array(frame(CONTENT.counter, [[...new Uint8Array(bytes)]])).buffer);
    expect(counterEntry(found!.body, 0)).toEqual({ x: 4, samples: 2, min: 1.5, max: 3.25, last: 2 });
  });

  it("throws at every cut and at a wrong magic", () => {
    const message = frame(CONTENT.spans, [span]);
    for (let cut = 1; cut < message.length; cut += 1) {
      expect(() => decodeFrames(new Uint8Array(message.slice(0, cut)).buffer), `${cut} bytes`).toThrow(RangeError);
    }
    expect(() => decodeFrames(new Uint8Array([0x58, ...message.slice(1)]).buffer)).toThrow(RangeError);
  });

  it("knows how long a tile is at the highest level", () => {
    expect(tileNs(0)).toBe(512);
    expect(tileNs(48)).toBe(2 ** 57);
  });
});
