import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Socket, TileAnswer } from "../src/protocol/socket";
import { CONTENT, FRAME_FLAG, type Frame, type TileRequest } from "../src/protocol/tile";
import { TileCache } from "../src/timeline/cache";
import { type Needs, TileLoader } from "../src/timeline/loader";

/** Remembers what is asked; the test answers. */
class Recorder {
  asked: { request: Omit<TileRequest, "requestId">; answer: TileAnswer }[] = [];
  isOpen = true;
  bind(): void {}
  requestTiles(request: Omit<TileRequest, "requestId">, answer: TileAnswer): boolean {
    if (this.isOpen) this.asked.push({ request, answer });
    return this.isOpen;
  }
}

const needs = (over: Partial<Needs> = {}): Needs => ({
  session: "1", generation: 1, filterId: 0, level: 4, firstTile: 10, endTile: 13, bands: [{ lane: 1, band: 0, rows: 4 }, { lane: 2, band: 0, rows: 1 }], ...over,
});

function make() {
  const [cache, socket] = [new TileCache(), new Recorder()];
  const loader = new TileLoader(cache, socket as unknown as Socket, 0, () => {});
  return { cache, socket, loader };
}

describe("tile loader", () => {
  beforeEach(() => void vi.stubGlobal("window", globalThis));
  afterEach(() => void vi.unstubAllGlobals());

  it("asks once for what is missing, and never again for what has nothing to show", () => {
    const { cache, socket, loader } = make();
    loader.want(needs());
    loader.want(needs());
    expect(socket.asked).toHaveLength(1);
    expect(socket.asked[0]?.request).toMatchObject({ firstTile: 10, tileCount: 3, lanes: [{ lane: 1, rowCount: 4 }, { lane: 2, rowCount: 1 }] });
    socket.asked[0]?.answer.end(0, 1);
    expect(cache.size.tiles).toBe(6);
    loader.want(needs());
    expect(socket.asked).toHaveLength(1);
    loader.want(needs({ endTile: 14 }));
    expect(socket.asked[1]?.request).toMatchObject({ firstTile: 13, tileCount: 1 });
  });

  it("asks anew for another generation, keeping what is there until it comes", () => {
    const { cache, socket, loader } = make();
    loader.want(needs());
    socket.asked[0]?.answer.end(0, 1);
    loader.want(needs({ generation: 2 }));
    expect(socket.asked).toHaveLength(2);
    expect(cache.size.tiles).toBe(6);
  });

  it("a newer level takes the place of a request at once", () => {
    const { socket, loader } = make();
    loader.want(needs());
    loader.want(needs({ level: 5 }));
    expect(socket.asked.map(({ request }) => request.level)).toEqual([4, 5]);
  });

  it("does not ask again by itself after a failure, nor before a session is ready", () => {
    const { socket, loader } = make();
    loader.want(needs());
    socket.asked[0]?.answer.failed({ status: 500, code: "internal", detail: "no" });
    for (let frame = 0; frame < 100; frame += 1) loader.want(needs());
    expect(socket.asked).toHaveLength(1);
    loader.retry();
    expect(socket.asked).toHaveLength(2);
    socket.asked[1]?.answer.failed({ status: 409, code: "not-ready", detail: "soon" });
    for (let frame = 0; frame < 100; frame += 1) loader.want(needs());
    expect(socket.asked).toHaveLength(2);
    loader.want(needs({ generation: 2 }));
    expect(socket.asked).toHaveLength(3);
  });

  it("waits for the connection and goes on when it is back", () => {
    const { socket, loader } = make();
    socket.isOpen = false;
    loader.want(needs());
    socket.isOpen = true;
    loader.want(needs());
    expect(socket.asked).toHaveLength(1);
  });

  const frameOf = (over: Partial<Frame>): Frame => ({
    content: CONTENT.spans, flags: 0, requestId: 1, lane: 1, tile: 11, level: 4, rowCount: 2, firstRow: 32, count: 1, body: new DataView(new ArrayBuffer(16)), ...over,
  });
  const oneBand = needs({ bands: [{ lane: 1, band: 1, rows: 2 }] });

  it("puts frames in their bands, each counted once", () => {
    const { cache, socket, loader } = make();
    loader.want(oneBand);
    socket.asked[0]?.answer.frame(frameOf({}));
    expect(cache.peek({ filterId: 0, level: 4, lane: 1, band: 1, tile: 11 })?.spans?.count).toBe(1);
    const before = cache.size.dataBytes;
    socket.asked[0]?.answer.frame(frameOf({ content: CONTENT.instants, count: 2 }));
    expect(cache.size.dataBytes).toBe(before + 2 * 16);
    cache.clear();
    expect(cache.size.dataBytes).toBe(0);
  });

  it("what an answer left out for want of time is asked for again and is not empty", () => {
    const { cache, socket, loader } = make();
    loader.want(oneBand);
    const { answer } = socket.asked[0] ?? {};
    answer?.frame(frameOf({ tile: 10 }));
    answer?.frame(frameOf({ tile: 11 }));
    // The time was over in the middle of a tile: its instants are missing, and the whole next tile.
    answer?.frame(frameOf({ tile: 11, content: CONTENT.instants, count: 0, flags: FRAME_FLAG.capped }));
    answer?.frame(frameOf({ tile: 12, count: 0, flags: FRAME_FLAG.capped }));
    answer?.end(1, 250_000);
    expect(cache.peek({ filterId: 0, level: 4, lane: 1, band: 1, tile: 12 })).toBeUndefined();
    expect(loader.isSatisfied).toBe(false);
    loader.want(oneBand);
    expect(socket.asked[1]?.request).toMatchObject({ level: 4, firstTile: 11, tileCount: 2 });
    socket.asked[1]?.answer.frame(frameOf({ tile: 11 }));
    socket.asked[1]?.answer.frame(frameOf({ tile: 12 }));
    socket.asked[1]?.answer.end(2, 10);
    expect(loader.isSatisfied).toBe(true);
    loader.want(oneBand);
    expect(socket.asked).toHaveLength(2);
  });

  it("answers that never bring anything end in a problem, not in a storm of requests", () => {
    const { socket, loader } = make();
    for (let frame = 0; frame < 50; frame += 1) {
      loader.want(oneBand);
      const last = socket.asked[frame];
      if (last === undefined) break;
      for (const tile of [10, 11, 12]) last.answer.frame(frameOf({ tile, count: 0, flags: FRAME_FLAG.capped }));
      last.answer.end(0, 250_000);
    }
    expect(socket.asked).toHaveLength(8);
    expect(loader.failure?.code).toBe("timeout");
    loader.retry();
    expect(socket.asked).toHaveLength(9);
  });
});
