/** Brings what the server knows about the sessions into the store. */

import { batch, computed, effect, untracked } from "@preact/signals";
import { SessionApi, api, isDisconnected, token } from "../protocol/http";
import { Latest } from "../protocol/latest";
import { Socket } from "../protocol/socket";
import type * as t from "../protocol/types";
import { renewToken } from "./entry";
import type { Link } from "./permalink";
import { report } from "./problems";
import { endSearch } from "./searching";
import { restoreLaneView } from "./settings";
import * as s from "./store";

const PAGE = 10_000;

export const socket = new Socket({
  connection: (state) => {
    if (state.is === "refused") return void renewToken(token());
    s.connection.value = state;
    if (state.is === "open" && isDisconnected(s.lastProblem.value)) s.lastProblem.value = null;
  },
  sessions: (list, assets) => {
    reloadOnce(assets);
    s.sessions.value = list;
    const isOpen = list.some(({ id }) => id === s.activeId.value);
    if (!isOpen) s.activeId.value = list[0]?.id ?? null;
  },
  session: (summary) => {
    const known = s.sessions.value.some(({ id }) => id === summary.id);
    s.sessions.value = known
      ? s.sessions.value.map((one) => (one.id === summary.id ? summary : one))
      : [...s.sessions.value, summary];
    if (s.activeId.value === null) s.activeId.value = summary.id;
  },
  closed: (id) => {
    s.sessions.value = s.sessions.value.filter((one) => one.id !== id);
    if (s.activeId.value === id) s.activeId.value = s.sessions.value[0]?.id ?? null;
  },
  problem: (problem) => (s.lastProblem.value = problem),
});

/** A page of an older build than the server's loads itself again, once. */
function reloadOnce(assets: string): void {
  const own = document.querySelector<HTMLMetaElement>('meta[name="typhon-assets"]')?.content ?? "";
  if (own === "" || assets === "" || own === assets) return;
  if (sessionStorage.getItem("typhon-reloaded-for") === assets) return;
  sessionStorage.setItem("typhon-reloaded-for", assets);
  location.reload();
}

/** All pages of a list that the server gives in parts. */
async function allTicks(of: SessionApi, signal: AbortSignal): Promise<s.TickTable> {
  const whole: t.TickColumns = { numbers: [], startNs: [], durationNs: [], levels: [], multipliers: [], collections: [], missingBefore: [] };
  for (let first = 0; ; first += PAGE) {
    const page = await of.ticks(first, PAGE, signal);
    for (const column of Object.keys(whole) as (keyof t.TickColumns)[]) {
      const target = whole[column] as unknown[];
      for (const value of page[column]) target.push(value);
    }
    if (page.startNs.length === 0 || whole.startNs.length >= page.total) return s.tickTable(whole);
  }
}

async function allCollections(of: SessionApi, signal: AbortSignal): Promise<t.Collections> {
  const page = await of.collections(0, PAGE, signal);
  while (page.collections.length < page.total) {
    const next = await of.collections(page.collections.length, PAGE, signal);
    if (next.collections.length === 0) break;
    page.collections.push(...next.collections);
  }
  return page;
}

async function allNames(of: SessionApi, signal: AbortSignal): Promise<s.NameTable> {
  const { texts, kinds, systems, groups } = await of.names(0, signal);
  return { texts, kinds, systems, groups };
}

const loading = new Latest();

/** Fetches what the timeline needs, again at each new generation. */
async function load(of: SessionApi, isFirst: boolean, isReady: boolean, start: Link | null, signal: AbortSignal): Promise<void> {
  const [meta, names, ticks, gauges, gc] = await Promise.all([
    of.meta(signal),
    allNames(of, signal),
    allTicks(of, signal),
    of.gauges(signal),
    allCollections(of, signal),
  ]);
  const [notices, bookmarks] = isReady ? await Promise.all([of.notices(signal), of.bookmarks(signal)]) : [null, null];
  if (signal.aborted) return;
  const state = s.activeSession.peek()?.state;
  const isPart = state?.is === "opening" && !isReady && state.bytesDone > 0 && state.bytesDone < state.bytesTotal;
  batch(() => {
    const showedAll = s.timeWindow.value.toNs >= s.wholeRange.value.toNs && s.timeWindow.value.fromNs <= 0;
    s.meta.value = meta;
    s.expectedEndNs.value = isPart ? Math.max(meta.time.endNs, 1) * (state.bytesTotal / state.bytesDone) : null;
    s.names.value = names;
    s.ticks.value = ticks;
    s.gauges.value = gauges;
    s.collections.value = gc.collections;
    s.gcSummary.value = gc.summary;
    s.notices.value = notices;
    s.bookmarks.value = bookmarks?.bookmarks ?? [];
    if (isFirst) restoreLaneView();
    if (isFirst && start?.range) s.selectedRange.value = start.range;
    if (isFirst && start?.window) s.timeWindow.value = start.window;
    else if (isFirst || showedAll) s.timeWindow.value = { ...s.wholeRange.value };
  });
}

function forget(): void {
  batch(() => {
    s.meta.value = null;
    s.expectedEndNs.value = null;
    s.ticks.value = s.emptyTicks();
    s.gauges.value = null;
    s.collections.value = [];
    s.gcSummary.value = null;
    s.notices.value = null;
    s.bookmarks.value = [];
    s.selection.value = [];
    s.links.value = null;
    s.focused.value = null;
    endSearch();
    s.measure.value = null;
    s.selectedRange.value = null;
    s.timeWindow.value = { fromNs: 0, toNs: 1 };
  });
}

/**
 * Follows the active session and its generations. `opened` is called when a session can be worked with, for the first one
 * with the link to start with.
 */
export function followSessions(start: Link, opened: (link: Link | null) => void): void {
  let shown: string | null = null;
  let wasReady = false;
  let link: Link | null = start;
  // The session of the link, if it is still there when the server lists them.
  if (start.session) s.activeId.value = start.session;
  // Progress changes ten times a second; only a new state or generation is worth asking again.
  const version = computed(() => {
    const session = s.activeSession.value;
    return session === null ? null : `${session.id}/${session.generation}/${session.state.is}`;
  });
  effect(() => {
    const isNone = version.value === null;
    untracked(() => {
      const session = s.activeSession.value;
      if (isNone || session === null) {
        if (shown !== null) forget();
        shown = null;
        return;
      }
      if (session.state.is === "failed" || session.state.is === "cancelled") return forget();
      const isFirst = shown !== session.id;
      if (isFirst) {
        forget();
        wasReady = false;
      }
      shown = session.id;
      const isReady = session.state.is === "ready";
      const isLoaded = s.meta.value !== null;
      void loading
        .run((signal) => load(new SessionApi(session.id), !isLoaded, isReady, link, signal))
        .then(() => {
          if (!isReady || wasReady || s.meta.value === null) return;
          wasReady = true;
          const toApply = link;
          link = null;
          opened(toApply);
        })
        .catch((error: unknown) => {
          // While nothing has been read yet there is nothing to show either; the next generation asks again.
          if (isReady) report(error);
        });
    });
  });
}

/** Opens a file, for who says himself why it cannot be. */
export async function tryOpen(path: string): Promise<void> {
  s.activeId.value = (await api.open(path)).id;
}

export async function openFile(path: string): Promise<void> {
  try {
    await tryOpen(path);
  } catch (error) {
    report(error);
  }
}

/** Opens the file of a session anew, in place of the session. */
export async function reopen({ id, path }: t.SessionSummary): Promise<void> {
  await openFile(path);
  if (s.activeId.value !== id) await closeSession(id);
}

export async function closeSession(id: string): Promise<void> {
  try {
    await api.close(id);
  } catch (error) {
    report(error);
  }
}

export async function cancelOpening(id: string): Promise<void> {
  try {
    await api.cancel(id);
  } catch (error) {
    report(error);
  }
}
