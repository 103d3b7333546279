/** Recordings that were opened before, for the screen without one. Kept in the user's settings. */

import { api } from "../protocol/http";
import * as s from "./store";

const MOST = 8;

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}

/** Recordings from settings that may hold anything. */
export function readRecent(value: unknown): s.Recent[] {
  if (!Array.isArray(value)) return [];
  const known = value.flatMap((one) => {
    if (!isObject(one)) return [];
    const { path, durationNs, ticks } = one;
    const isKnown = typeof path === "string" && path !== "" && typeof durationNs === "number" && typeof ticks === "number";
    return isKnown && durationNs >= 0 && ticks >= 0 ? [{ path, durationNs, ticks }] : [];
  });
  return known.slice(0, MOST);
}

/** The list with one in front, where it stands once. */
export function withRecent(list: readonly s.Recent[], one: s.Recent): s.Recent[] {
  return [one, ...list.filter(({ path }) => path !== one.path)].slice(0, MOST);
}

/** Remembers the recording on the screen. Nothing is lost if that fails but the line on the screen without one. */
export function noteRecent(): void {
  const [facts, session] = [s.meta.peek(), s.activeSession.peek()];
  if (facts === null || session === null) return;
  s.recent.value = withRecent(s.recent.peek(), { path: session.path, durationNs: facts.time.endNs, ticks: facts.ticks.count });
  api.putSettings({ recent: s.recent.peek() }).catch((error: unknown) => {
    const detail = error instanceof Error ? error.message : String(error);
    s.lastProblem.value = { status: 0, code: "settings", detail: `the settings cannot be kept: ${detail}` };
  });
}
