/** What the recording says of overload at a tick (B-9): the records of the detector and of the metronome between its start and the next. */

import { count, duration } from "../format";
import { ApiError, type SessionApi } from "../protocol/http";
import type { EventDetail } from "../protocol/types";
import * as s from "../state/store";
import { orderThreads } from "./tracks";

const DETECTOR = 242;
const METRONOME = 241;
/** Hits that are looked at: the anchor may lie a little before the tick. */
const MOST_HITS = 8;

/** Filters by kind that the server keeps for us. */
const filters = new Map<string, Promise<number>>();

function filterOf(api: SessionApi, kind: number): Promise<number> {
  const key = `${api.id}/${s.generation.peek()}/${kind}`;
  let known = filters.get(key);
  if (known === undefined) {
    known = api.addFilter(`kind=${kind}`).then(({ filterId }) => filterId);
    filters.set(key, known);
    known.catch(() => filters.delete(key));
  }
  return known;
}

/** The first event of a kind between two moments, which comes after an event of that time. */
async function firstOf(api: SessionApi, kind: number, anchor: string, range: s.Range, signal: AbortSignal): Promise<EventDetail | null> {
  if (!s.meta.peek()?.kinds.some(({ id, count: events }) => id === kind && events > 0)) return null;
  try {
    const { hits } = await api.search(await filterOf(api, kind), { after: anchor, count: MOST_HITS }, signal);
    const hit = hits.find(({ startNs }) => startNs >= range.fromNs && startNs < range.toNs);
    return hit === undefined ? null : await api.event(hit.event, signal);
  } catch (error) {
    // The server keeps few filters, and ours has given way to others: it is made again next time.
    if (error instanceof ApiError && error.problem.code === "unknown") filters.clear();
    throw error;
  }
}

function field(detail: EventDetail, name: string): string {
  const found = detail.fields.find((one) => one.name === name);
  return found === undefined || found.value === null ? "absent" : (found.valueName ?? String(found.value));
}

export function detectorLines(detail: EventDetail): string[] {
  return [
    `${Number(field(detail, "overrunRatio")).toFixed(2)} × budget · level ${field(detail, "level")} · rate ÷ ${field(detail, "multiplier")}`,
    `in a row: over ${field(detail, "consecutiveOverrun")}, under ${field(detail, "consecutiveUnderrun")}, queues grew ${field(detail, "consecutiveQueueGrowth")}`,
    `queue depth ${count(Number(field(detail, "queueDepth")))}`,
  ];
}

export function metronomeLine(detail: EventDetail): string {
  return `then the metronome waited ${duration(Math.max(detail.durationNs ?? 0, 0))}, ${field(detail, "intentClass")}`;
}

/** Lines about the tick at a place of the table; none where nothing was recorded. */
export async function overloadLines(api: SessionApi, place: number, signal: AbortSignal): Promise<string[]> {
  const { startNs } = s.ticks.peek();
  const range = { fromNs: startNs[place] ?? 0, toNs: startNs[place + 1] ?? Number.POSITIVE_INFINITY };
  const lane = orderThreads((s.meta.peek()?.lanes ?? []).filter(({ kind, spans }) => kind === "thread" && spans > 0))[0];
  if (lane === undefined) return [];
  const { event } = await api.nearest(lane.id, 0, range.fromNs, signal);
  if (event === null) return [];
  const [detector, metronome] = await Promise.all([firstOf(api, DETECTOR, event, range, signal), firstOf(api, METRONOME, event, range, signal)]);
  return [...(detector === null ? [] : detectorLines(detector)), ...(metronome === null ? [] : [metronomeLine(metronome)])];
}
