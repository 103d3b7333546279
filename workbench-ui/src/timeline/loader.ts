/** Asks for the tiles that a view lacks: one request at a time, the newest need wins. */

import type { Socket } from "../protocol/socket";
import { CONTENT, FRAME_FLAG, type Frame, MAX_LANES, WANT } from "../protocol/tile";
import type { Problem } from "../protocol/types";
import { BAND_ROWS, type Entries, type Tile, TileCache } from "./cache";

export interface Band {
  lane: number;
  band: number;
  /** Rows of the lane in the band; 0 asks for instants or a gauge only. */
  rows: number;
}

export interface Needs {
  session: string;
  generation: number;
  filterId: number;
  level: number;
  firstTile: number;
  endTile: number;
  bands: Band[];
}

interface InFlight {
  needs: Needs;
  bands: Set<string>;
  startedMs: number;
  token: object;
}

/** Answers in a row without one whole tile, until it is a problem. */
const MOST_FRUITLESS = 8;

/** A request that is under way is left alone for this long, so that a motion does not cancel all of them. */
const PATIENCE_MS = 120;

/** What an answer has brought so far, by the key of the tile. */
interface Received {
  tiles: Map<string, Tile>;
  /** Left out, whole or in part, because the answer was too long or took too long. */
  capped: Set<string>;
}

const bandKey = ({ lane, band }: { lane: number; band: number }) => `${lane}/${band}`;

export class TileLoader {
  private inFlight: InFlight | null = null;
  private timer: number | undefined;
  private wanted: Needs | null = null;
  /** What the last request failed with; nothing is asked again by itself. */
  failure: Problem | null = null;
  /** The generation that was not ready: asked again when there is another one. */
  private notReady: number | null = null;
  /** Answers in a row that brought nothing whole: the server gives up an answer that takes too long. */
  private fruitless = 0;
  private readonly cache: TileCache;
  private readonly socket: Socket;
  private readonly viewId: number;
  private readonly changed: () => void;

  constructor(cache: TileCache, socket: Socket, viewId: number, changed: () => void) {
    this.cache = cache;
    this.socket = socket;
    this.viewId = viewId;
    this.changed = changed;
  }

  get isLoading(): boolean {
    return this.inFlight !== null;
  }

  /** Is everything there that was wanted last? */
  get isSatisfied(): boolean {
    return this.inFlight === null && this.failure === null && this.wanted !== null && this.missing(this.wanted) === null;
  }

  /** Asks again after a failure. */
  retry(): void {
    this.failure = null;
    this.fruitless = 0;
    if (this.wanted !== null) this.want(this.wanted);
  }

  /** Asks for what is missing. Call it at each frame. */
  want(needs: Needs): void {
    this.wanted = needs;
    if (this.failure !== null || this.notReady === needs.generation || needs.endTile <= needs.firstTile) return;
    const missing = this.missing(needs);
    if (missing === null) return;
    const running = this.inFlight;
    if (running !== null && this.isSame(running.needs, needs)) {
      if (this.covers(running, missing)) return;
      const left = PATIENCE_MS - (performance.now() - running.startedMs);
      if (left > 0) return this.later(left);
    }
    this.send(missing);
  }

  private later(ms: number): void {
    if (this.timer !== undefined) return;
    this.timer = window.setTimeout(() => {
      this.timer = undefined;
      if (this.wanted !== null) this.want(this.wanted);
    }, ms);
  }

  private isSame(a: Needs, b: Needs): boolean {
    return a.session === b.session && a.generation === b.generation && a.filterId === b.filterId && a.level === b.level;
  }

  private covers(running: InFlight, needs: Needs): boolean {
    return (
      running.needs.firstTile <= needs.firstTile &&
      running.needs.endTile >= needs.endTile &&
      needs.bands.every((band) => running.bands.has(bandKey(band)))
    );
  }

  /** The part of the needs that the cache does not have; null when it has everything. */
  private missing(needs: Needs): Needs | null {
    const { filterId, level, generation } = needs;
    let [first, end] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
    const bands: Band[] = [];
    for (const band of needs.bands) {
      let isMissing = false;
      for (let tile = needs.firstTile; tile < needs.endTile; tile += 1) {
        const known = this.cache.peek({ filterId, level, lane: band.lane, band: band.band, tile });
        if (known !== undefined && known.generation === generation && !(known.flags & FRAME_FLAG.capped)) continue;
        isMissing = true;
        first = Math.min(first, tile);
        end = Math.max(end, tile + 1);
      }
      if (isMissing && bands.length < MAX_LANES) bands.push(band);
    }
    return bands.length === 0 ? null : { ...needs, firstTile: first, endTile: end, bands };
  }

  private send(needs: Needs): void {
    const { generation, filterId, level, firstTile, endTile, bands } = needs;
    this.socket.bind(this.viewId, needs.session);
    const token = {};
    const received: Received = { tiles: new Map(), capped: new Set() };
    const answer = {
      frame: (frame: Frame) => this.take(frame, needs, received),
      end: () => {
        this.fillIn(needs, received);
        this.judge(received);
        this.finish(token);
      },
      failed: (problem: Problem) => {
        if (this.inFlight?.token !== token) return;
        // A lost connection is told elsewhere; once it is back the tiles are asked for again.
        if (problem.code === "not-ready") this.notReady = needs.generation;
        else if (problem.code !== "disconnected") this.failure = problem;
        this.finish(token);
      },
    };
    const lanes = bands.map(({ lane, band, rows }) => ({ lane, firstRow: band * BAND_ROWS, rowCount: rows }));
    const content = WANT.spans | WANT.instants | WANT.counters;
    const request = { generation, filterId, level, content, firstTile, tileCount: endTile - firstTile, viewId: this.viewId, lanes };
    if (!this.socket.requestTiles(request, answer)) return;
    this.inFlight = { needs, bands: new Set(bands.map(bandKey)), startedMs: performance.now(), token };
  }

  private finish(token: object): void {
    if (this.inFlight?.token === token) this.inFlight = null;
    this.changed();
  }

  private take(frame: Frame, needs: Needs, { tiles, capped }: Received): void {
    const band = Math.floor(frame.firstRow / BAND_ROWS);
    const key = { filterId: needs.filterId, level: frame.level, lane: frame.lane, band, tile: frame.tile };
    const name = TileCache.key(key);
    let tile = tiles.get(name);
    if (frame.flags & FRAME_FLAG.capped) {
      // Not empty but left out: it is asked for again, and until then what is known of it stays.
      capped.add(name);
      if (tile !== undefined) tile.flags |= FRAME_FLAG.capped;
      return;
    }
    if (tile === undefined) {
      tile = { ...key, generation: needs.generation, flags: 0, spans: null, instants: null, counters: null, bitmap: null, pending: null };
      tiles.set(name, tile);
    }
    tile.flags |= frame.flags;
    const entries: Entries = { body: frame.body, count: frame.count };
    if (frame.content === CONTENT.spans) tile.spans = entries;
    else if (frame.content === CONTENT.instants) tile.instants = entries;
    else if (frame.content === CONTENT.counter) tile.counters = entries;
    this.cache.put(tile);
    this.changed();
  }

  /** Every answer has to bring something, or the same question would be asked for ever. */
  private judge({ tiles, capped }: Received): void {
    const isFruitful = capped.size === 0 || [...tiles.keys()].some((name) => !capped.has(name));
    this.fruitless = isFruitful ? 0 : this.fruitless + 1;
    if (this.fruitless < MOST_FRUITLESS) return;
    this.failure = { status: 503, code: "timeout", detail: "the server did not get this view ready in time; it may be busy" };
  }

  /** What is not in the answer has nothing to show. */
  private fillIn(needs: Needs, { tiles, capped }: Received): void {
    const { filterId, level, generation } = needs;
    for (const { lane, band } of needs.bands) {
      for (let tile = needs.firstTile; tile < needs.endTile; tile += 1) {
        const key = { filterId, level, lane, band, tile };
        if (tiles.has(TileCache.key(key)) || capped.has(TileCache.key(key))) continue;
        this.cache.put({ ...key, generation, flags: 0, spans: null, instants: null, counters: null, bitmap: null, pending: null });
      }
    }
  }
}
