/** The slowest instances of a row of the statistics. */

import { type SessionApi, ask } from "../protocol/http";
import type { FilterInfo, StatsBy, TopSpan } from "../protocol/types";
import { names } from "../state/store";

const MANY = 1000;

/** A text as a value of the filter language. */
export function quoted(text: string): string {
  return `"${text.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`;
}

/** The filter that lets through what a row of the statistics is about; exact, because quoted texts have no wildcards. */
export function filterOf(by: StatsBy, key: string): string {
  // Rows of systems are about their chunks; the spans of a system as a whole would count their time again.
  return `${by}=${quoted(key)}${by === "system" ? " kind=SchedulerChunk" : ""}`;
}

/**
 * Spans of a row by falling duration, at most 1,000. The longest spans of the window are asked for first; only when too
 * few of them belong to the row, a filter is set, which reads the whole file.
 */
export async function slowestOf(
  api: SessionApi,
  by: StatsBy,
  key: string,
  wanted: number,
  window: { fromNs: number; toNs: number } | null,
  signal?: AbortSignal,
): Promise<TopSpan[]> {
  if (by === "name") {
    const { spans } = await api.top(MANY, window, {}, signal);
    const own = spans.filter(({ name }) => names.value.texts[name] === key);
    if (own.length >= wanted || spans.length < MANY) return own;
  }
  const path = `/sessions/${encodeURIComponent(api.id)}/filters`;
  const response = await ask(path, { method: "POST", body: { text: filterOf(by, key) }, signal });
  const { filterId } = (await response.json()) as FilterInfo;
  try {
    return (await api.top(MANY, window, { filter: filterId }, signal)).spans;
  } finally {
    await ask(`${path}/${filterId}`, { method: "DELETE" });
  }
}
