/** The WebSocket: tiles, progress of sessions and filters. */

import { ApiError, token } from "./http";
import { type Frame, type TileRequest, CONTENT, decodeFrames, encodeRequest } from "./tile";
import type { FilterInfo, Hit, Problem, SessionSummary } from "./types";

type Incoming =
  | { type: "welcome"; version: string; assets: string; sessions: SessionSummary[] }
  | { type: "session"; session: SessionSummary }
  | { type: "closed"; session: string }
  | { type: "tileFailed"; requestId: number; viewId: number; problem: Problem }
  | { type: "filterProgress"; requestId: number; bytesDone: number; bytesTotal: number }
  | { type: "filterHits"; requestId: number; hits: Hit[] }
  | { type: "filterReady"; requestId: number; session: string; filterId: number; matches: number }
  | { type: "filterFailed"; requestId: number; problem: Problem }
  | { type: "error"; problem: Problem };

export type Connection =
  | { is: "connecting" }
  | { is: "open"; version: string }
  | { is: "lost"; retryMs: number }
  /** The token is of another run of `typhon ui`. */
  | { is: "refused" };

export interface SocketEvents {
  connection(state: Connection): void;
  sessions(list: SessionSummary[], assets: string): void;
  session(summary: SessionSummary): void;
  closed(session: string): void;
  problem(problem: Problem): void;
}

export interface TileAnswer {
  frame(frame: Frame): void;
  /** The answer is complete. */
  end(tiles: number, tookUs: number): void;
  failed(problem: Problem): void;
}

/** What is said of a filter while it is evaluated. */
export interface FilterNews {
  progress(done: number, total: number): void;
  /** The first hits of the trace, before the others are known. */
  hits(first: Hit[]): void;
}

interface PendingFilter {
  text: string;
  resolve(info: FilterInfo): void;
  reject(error: unknown): void;
  news: FilterNews;
}

const REFUSED = 4401;
const DISCONNECTED: Problem = { status: 503, code: "disconnected", detail: "the connection to typhon ui is gone" };
const RETRY_MS = [500, 1000, 2000, 5000];

/** One connection for the whole page; it is opened again when it breaks. */
export class Socket {
  private socket: WebSocket | null = null;
  private isOpen = false;
  private attempts = 0;
  private lastId = 0;
  private readonly bound = new Map<number, string>();
  private readonly tiles = new Map<number, { viewId: number; answer: TileAnswer }>();
  private readonly filters = new Map<number, PendingFilter>();
  private readonly events: SocketEvents;

  constructor(events: SocketEvents) {
    this.events = events;
  }

  connect(): void {
    this.events.connection({ is: "connecting" });
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    const socket = new WebSocket(`${scheme}://${location.host}/api/v1/ws`);
    socket.binaryType = "arraybuffer";
    socket.onopen = () => socket.send(JSON.stringify({ type: "hello", token: token() }));
    socket.onmessage = ({ data }: MessageEvent<string | ArrayBuffer>) =>
      typeof data === "string" ? this.text(JSON.parse(data) as Incoming) : this.frames(data);
    socket.onclose = ({ code }) => this.lost(code);
    this.socket = socket;
  }

  private lost(code: number): void {
    this.isOpen = false;
    this.socket = null;
    for (const { answer } of this.tiles.values()) answer.failed(DISCONNECTED);
    for (const filter of this.filters.values()) filter.reject(new ApiError(DISCONNECTED));
    this.tiles.clear();
    this.filters.clear();
    if (code === REFUSED) return this.events.connection({ is: "refused" });
    const retryMs = RETRY_MS[Math.min(this.attempts, RETRY_MS.length - 1)] ?? 5000;
    this.attempts += 1;
    this.events.connection({ is: "lost", retryMs });
    setTimeout(() => this.connect(), retryMs);
  }

  private send(message: object): void {
    if (this.isOpen) this.socket?.send(JSON.stringify(message));
  }

  /** Says which session the requests of a view go to. Remembered for the next connection. */
  bind(viewId: number, session: string): void {
    if (this.bound.get(viewId) === session) return;
    this.bound.set(viewId, session);
    this.send({ type: "bind", viewId, session });
  }

  /** Asks for tiles; an older request of the view is given up. False while there is no connection. */
  requestTiles(request: Omit<TileRequest, "requestId">, answer: TileAnswer): boolean {
    if (!this.isOpen || this.socket === null) return false;
    for (const [id, { viewId }] of this.tiles) if (viewId === request.viewId) this.tiles.delete(id);
    const requestId = ++this.lastId;
    this.tiles.set(requestId, { viewId: request.viewId, answer });
    this.socket.send(encodeRequest({ ...request, requestId }));
    return true;
  }

  /** Evaluates a filter over the whole trace. */
  setFilter(session: string, text: string, signal: AbortSignal, news: FilterNews): Promise<FilterInfo> {
    // Nobody would answer what is not sent.
    if (!this.isOpen) return Promise.reject(new ApiError(DISCONNECTED));
    const requestId = ++this.lastId;
    return new Promise((resolve, reject) => {
      this.filters.set(requestId, { text, resolve, reject, news });
      signal.addEventListener("abort", () => {
        if (!this.filters.delete(requestId)) return;
        this.send({ type: "cancelFilter", requestId });
        reject(new DOMException("the filter was given up", "AbortError"));
      });
      this.send({ type: "filter", requestId, session, text });
    });
  }

  private frames(bytes: ArrayBuffer): void {
    for (const frame of decodeFrames(bytes)) {
      const asked = this.tiles.get(frame.requestId);
      if (asked === undefined) continue; // what was on its way when a newer request went out
      if (frame.content === CONTENT.end) {
        this.tiles.delete(frame.requestId);
        asked.answer.end(frame.lane, frame.tile);
      } else asked.answer.frame(frame);
    }
  }

  private text(message: Incoming): void {
    switch (message.type) {
      case "welcome":
        this.isOpen = true;
        this.attempts = 0;
        for (const [viewId, session] of this.bound) this.send({ type: "bind", viewId, session });
        this.events.sessions(message.sessions, message.assets);
        return this.events.connection({ is: "open", version: message.version });
      case "session":
        return this.events.session(message.session);
      case "closed":
        return this.events.closed(message.session);
      case "tileFailed": {
        const asked = this.tiles.get(message.requestId);
        this.tiles.delete(message.requestId);
        return asked?.answer.failed(message.problem);
      }
      case "filterProgress":
        return this.filters.get(message.requestId)?.news.progress(message.bytesDone, message.bytesTotal);
      case "filterHits":
        return this.filters.get(message.requestId)?.news.hits(message.hits);
      case "filterReady": {
        const filter = this.filters.get(message.requestId);
        this.filters.delete(message.requestId);
        return filter?.resolve({ filterId: message.filterId, matches: message.matches, text: filter.text });
      }
      case "filterFailed": {
        const filter = this.filters.get(message.requestId);
        this.filters.delete(message.requestId);
        return filter?.reject(new ApiError(message.problem));
      }
      case "error":
        return this.events.problem(message.problem);
    }
  }
}
