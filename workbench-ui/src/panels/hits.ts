/** Steps through the hits of a search (B-25). */

import { count, visible } from "../format";
import type { Hit } from "../protocol/types";
import { announce, report, select, reveal } from "../state/actions";
import { filter, hitAt, nameOf, sessionApi } from "../state/store";

/** The hit that was stepped to last; it belongs to the present search as long as that has a number of one. */
let last = "";

/** Shows a hit and remembers that it is number `at`, from 0. */
export function showHit(hit: Hit, at: number): void {
  last = hit.event;
  hitAt.value = at;
  select([{ event: hit.event, place: hit.place, startNs: hit.startNs, durationNs: Math.max(hit.durationNs, 0), name: hit.name }]);
  reveal({ fromNs: hit.startNs, toNs: hit.startNs + Math.max(hit.durationNs, 1) });
  announce(`Hit ${count(at + 1)}, ${visible(nameOf(hit.name))}, tick ${hit.tick}`);
}

/** Steps that are under way or wait for it: each goes on from where the one before arrived. */
let steps: Promise<void> = Promise.resolve();

/** Among the first hits, while the others are not known. */
function stepFirst(by: 1 | -1, first: readonly Hit[]): void {
  const next = hitAt.value === null ? (by > 0 ? 0 : -1) : hitAt.value + by;
  const hit = first[next];
  if (hit) showHit(hit, next);
  else announce("Still searching");
}

/** The next (1) or previous (-1) hit; behind the last comes the first. Quick presses of the key each count. */
export function stepHit(by: 1 | -1): Promise<void> {
  steps = steps.catch(() => undefined).then(() => step(by));
  return steps;
}

async function step(by: 1 | -1): Promise<void> {
  const [api, state] = [sessionApi.value, filter.value];
  if (api === null) return;
  if (state.is === "running") return stepFirst(by, state.first);
  if (state.is !== "ready") return;
  if (state.matches === 0) return announce("No hits");
  const direction = by > 0 ? "next" : "previous";
  const at = hitAt.value;
  const next = at === null ? (by > 0 ? 0 : state.matches - 1) : (at + by + state.matches) % state.matches;
  const wraps = at !== null && (by > 0 ? next === 0 : next === state.matches - 1);
  try {
    const ask = { direction, count: 1, ...(at === null || wraps ? {} : { after: last }) } as const;
    const [hit] = (await api.search(state.filterId, ask)).hits;
    // Meanwhile another search may have begun, or another session be shown.
    if (hit && filter.value === state) showHit(hit, next);
  } catch (error) {
    if (filter.value === state) report(error);
  }
}
