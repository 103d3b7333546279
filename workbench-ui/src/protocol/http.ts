/** Requests to the server, and what can go wrong with them. */

import type * as t from "./types";

const API = "/api/v1";
const TOKEN_KEY = "typhon-token";

/** An answer that is not the one asked for. */
export class ApiError extends Error {
  readonly problem: t.Problem;

  constructor(problem: t.Problem) {
    super(problem.detail);
    this.name = "ApiError";
    this.problem = problem;
  }
}

/** Nobody listens at the port: what a browser says of that is `Failed to fetch`. */
const NO_ANSWER: t.Problem = {
  status: 0,
  code: "disconnected",
  detail: "The server does not answer.",
  hint: "Is typhon ui still running? This is asked again when it answers.",
};

/** Did a request fail because nobody answered? */
export function isDisconnected(problem: t.Problem | null): boolean {
  return problem?.code === NO_ANSWER.code;
}

/** Was a request given up on purpose? */
export function isAbort(error: unknown): boolean {
  return (error instanceof DOMException && error.name === "AbortError") || (error instanceof ApiError && error.problem.code === "cancelled");
}

/**
 * Moves the token from the fragment to the session storage. Returns the fragment without it, or null when there was
 * none, so that an ordinary permalink stays untouched.
 */
export function takeToken(fragment: string): string | null {
  const parts = fragment.replace(/^#/, "").split("&");
  const at = parts.findIndex((part) => part.startsWith("token="));
  if (at < 0) return null;
  const [taken] = parts.splice(at, 1);
  keepToken((taken ?? "").slice("token=".length));
  return parts.join("&");
}

export function keepToken(text: string): void {
  sessionStorage.setItem(TOKEN_KEY, text);
}

export function token(): string {
  return sessionStorage.getItem(TOKEN_KEY) ?? "";
}

/** Is this the token of the server that runs now? */
export async function acceptsToken(text: string): Promise<boolean> {
  try {
    return (await fetch(`${API}/sessions`, { headers: { Authorization: `Bearer ${text}` } })).ok;
  } catch {
    return false; // nobody answers, so nobody accepts it
  }
}

/** Does the server want another token than this tab has? */
export function isRefusal(error: unknown): boolean {
  return error instanceof ApiError && error.problem.code === "unauthorized";
}

/** Finds another token in place of a refused one; the page begins anew when there is one. */
let findToken: (refused: string) => Promise<boolean> = () => Promise.resolve(false);

export function onRefusal(find: (refused: string) => Promise<boolean>): void {
  findToken = find;
}

export interface Ask {
  method?: "GET" | "POST" | "PUT" | "DELETE";
  /** A document; or else bytes. */
  body?: unknown;
  bytes?: ArrayBuffer;
  signal?: AbortSignal | undefined;
}

async function problemOf(response: Response): Promise<t.Problem> {
  try {
    const problem = (await response.json()) as t.Problem;
    if (typeof problem.detail === "string") return problem;
  } catch {
    // The body is no JSON: a proxy answered, or the connection broke.
  }
  return { status: response.status, code: "internal", detail: `the server answered ${response.status} ${response.statusText}` };
}

let underWay = 0;

/** Is an answer of the server still to come? */
export function isAsking(): boolean {
  return underWay > 0;
}

async function counted<T>(task: () => Promise<T>): Promise<T> {
  underWay += 1;
  try {
    return await task();
  } finally {
    underWay -= 1;
  }
}

/** Sends a request; `path` begins behind `/api/v1`. */
export function ask(path: string, options: Ask = {}): Promise<Response> {
  return counted(() => send(path, options));
}

async function send(path: string, { method = "GET", body, bytes, signal }: Ask): Promise<Response> {
  const used = token();
  const headers: Record<string, string> = { Authorization: `Bearer ${used}` };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const init: RequestInit = { method, headers, signal: signal ?? null };
  if (body !== undefined) init.body = JSON.stringify(body);
  if (bytes !== undefined) {
    headers["Content-Type"] = "application/octet-stream";
    init.body = bytes;
  }
  const response = await fetch(API + path, init).catch((error: unknown) => {
    throw isAbort(error) ? error : new ApiError(NO_ANSWER);
  });
  if (response.ok) return response;
  const refusal = new ApiError(await problemOf(response));
  // Nothing more comes of the request: the page begins anew.
  if (isRefusal(refusal) && (await findToken(used))) throw new DOMException("the server was started anew", "AbortError");
  throw refusal;
}

export function askJson<T>(path: string, options: Ask = {}): Promise<T> {
  return counted(async () => {
    const response = await send(path, options);
    return (response.status === 204 ? undefined : await response.json()) as T;
  });
}

/** A query string; what is null or undefined is left out. */
export function query(values: Record<string, string | number | boolean | null | undefined>): string {
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries(values)) if (value !== null && value !== undefined) query.set(key, String(value));
  const text = query.toString();
  return text === "" ? "" : `?${text}`;
}

/** A window in a query. Bounds are whole ns. */
export function windowQuery(window: { fromNs: number; toNs: number } | null): Record<string, number> {
  return window === null ? {} : { fromNs: Math.floor(window.fromNs), toNs: Math.ceil(window.toNs) };
}

type Window = { fromNs: number; toNs: number } | null;

/** Everything that can be asked about one session. */
export class SessionApi {
  readonly id: string;

  constructor(id: string) {
    this.id = id;
  }

  private get<T>(path: string, signal?: AbortSignal): Promise<T> {
    return askJson<T>(`/sessions/${encodeURIComponent(this.id)}${path}`, { signal });
  }

  meta = (signal?: AbortSignal) => this.get<t.Meta>("/meta", signal);
  names = (from: number, signal?: AbortSignal) => this.get<t.Names>(`/names${query({ from })}`, signal);
  ticks = (first: number, count: number, signal?: AbortSignal) => this.get<t.Ticks>(`/ticks${query({ first, count })}`, signal);
  tickByNumber = (number: number, signal?: AbortSignal) => this.get<t.Ticks>(`/ticks${query({ number })}`, signal);
  slowestTicks = (count: number, window: Window = null, signal?: AbortSignal) =>
    this.get<t.SlowestTicks>(`/ticks/slowest${query({ count, ...windowQuery(window) })}`, signal);
  gauges = (signal?: AbortSignal) => this.get<t.Gauges>("/gauges", signal);
  collections = (first: number, count: number, signal?: AbortSignal) => this.get<t.Collections>(`/gc${query({ first, count })}`, signal);
  notices = (signal?: AbortSignal) => this.get<t.Notices>("/notices", signal);
  event = (event: string, signal?: AbortSignal) => this.get<t.EventDetail>(`/event/${encodeURIComponent(event)}`, signal);
  at = (place: t.Place, signal?: AbortSignal) =>
    this.get<t.EventDetail>(`/row/${place.lane}/${place.row ?? "i"}/${place.index}`, signal);
  children = (event: string, first: number, count: number, signal?: AbortSignal) =>
    this.get<t.Children>(`/event/${encodeURIComponent(event)}/children${query({ first, count })}`, signal);
  siblings = (event: string, signal?: AbortSignal) => this.get<t.Siblings>(`/event/${encodeURIComponent(event)}/siblings`, signal);
  links = (event: string, signal?: AbortSignal) => this.get<t.Links>(`/event/${encodeURIComponent(event)}/links`, signal);
  nearest = (lane: number, row: number | null, atNs: number, signal?: AbortSignal) =>
    this.get<t.Nearest>(`/nearest${query({ lane, row: row ?? "i", atNs: Math.max(0, Math.round(atNs)) })}`, signal);
  stats = (by: t.StatsBy, window: Window, options: { filter?: number; top?: number; order?: "total" | "self"; histograms?: boolean } = {}, signal?: AbortSignal) =>
    this.get<t.Stats>(`/stats${query({ by, ...windowQuery(window), ...options })}`, signal);
  histogram = (by: t.StatsBy, key: string, window: Window, filter?: number, signal?: AbortSignal) =>
    this.get<t.Histogram>(`/histogram${query({ by, key, ...windowQuery(window), filter })}`, signal);
  top = (count: number, window: Window, options: { filter?: number; order?: "total" | "self" } = {}, signal?: AbortSignal) =>
    this.get<{ spans: t.TopSpan[] }>(`/top${query({ count, ...windowQuery(window), ...options })}`, signal);
  checkFilter = (text: string, signal?: AbortSignal) =>
    askJson<{ isValid: boolean }>(`/sessions/${encodeURIComponent(this.id)}/filters/check`, { method: "POST", body: { text }, signal });
  addFilter = (text: string, signal?: AbortSignal) =>
    askJson<t.FilterInfo>(`/sessions/${encodeURIComponent(this.id)}/filters`, { method: "POST", body: { text }, signal });
  search = (filter: number, options: { after?: string; direction?: "next" | "previous"; count?: number } = {}, signal?: AbortSignal) =>
    this.get<t.Hits>(`/search${query({ filter, ...options })}`, signal);
  source = (site: number, signal?: AbortSignal) => this.get<t.Source>(`/source${query({ site })}`, signal);
  bookmarks = (signal?: AbortSignal) => this.get<{ bookmarks: t.Bookmark[] }>("/bookmarks", signal);
  putBookmarks = (bookmarks: t.Bookmark[]) =>
    askJson<{ bookmarks: t.Bookmark[] }>(`/sessions/${encodeURIComponent(this.id)}/bookmarks`, { method: "PUT", body: { bookmarks } });
  exportPart = (window: { fromNs: number; toNs: number }) =>
    ask(`/sessions/${encodeURIComponent(this.id)}/export`, { method: "POST", body: windowQuery(window) });
}

export const api = {
  sessions: (signal?: AbortSignal) => askJson<{ sessions: t.SessionSummary[] }>("/sessions", { signal }),
  open: (path: string) => askJson<t.SessionSummary>("/sessions", { method: "POST", body: { path } }),
  close: (id: string) => askJson<void>(`/sessions/${encodeURIComponent(id)}`, { method: "DELETE" }),
  cancel: (id: string) => askJson<void>(`/sessions/${encodeURIComponent(id)}/cancel`, { method: "POST" }),
  files: (dir: string | null, signal?: AbortSignal) => askJson<t.Files>(`/files${query({ dir })}`, { signal }),
  kinds: (signal?: AbortSignal) => askJson<t.Kinds>("/kinds", { signal }),
  settings: (signal?: AbortSignal) => askJson<{ settings: Record<string, unknown>; path: string }>("/settings", { signal }),
  putSettings: (settings: Record<string, unknown>) =>
    askJson<{ settings: Record<string, unknown> }>("/settings", { method: "PUT", body: settings }),
};
