/** The ways in which the store changes. */

import { batch } from "@preact/signals";
import { isAbort } from "../protocol/http";
import { Latest } from "../protocol/latest";
import type * as t from "../protocol/types";
import { pushHistory, replaceHistory } from "./history";
import { glideTo, stopGlide, windowAhead } from "./motion";
import { problemOf, report } from "./problems";
import { endSearch, searching } from "./searching";
import { saveSettings } from "./settings";
import { socket } from "./sessions";
import * as s from "./store";

export { report };

const MIN_WINDOW_NS = 1;

/** Rounds to steps in which moments of a trace can be added and subtracted without an error, far below a nanosecond. */
function exact(ns: number, wholeNs: number): number {
  const step = 2 ** (Math.ceil(Math.log2(Math.max(wholeNs, 1))) - 50);
  return Math.round(ns / step) * step;
}

/**
 * The window nearest to a wish: within the trace, at least 1 ns long, of the same length where possible. The same to the last
 * bit, or the scale would change while the window is only moved, and all that was painted for it be painted anew.
 */
export function clampWindow({ fromNs, toNs }: s.Range, whole: s.Range): s.Range {
  const length = exact(Math.min(Math.max(toNs - fromNs, MIN_WINDOW_NS), whole.toNs - whole.fromNs), whole.toNs);
  const from = exact(Math.min(Math.max(fromNs, whole.fromNs), whole.toNs - length), whole.toNs);
  return { fromNs: from, toNs: from + length };
}

export interface Move {
  /** Motion of 120 ms, for keys and buttons. */
  glide?: boolean;
  /** Back returns to where it was before. */
  remember?: boolean;
}

/** Shows a range of time. */
export function setWindow(range: s.Range, { glide = false, remember = false }: Move = {}): void {
  const target = clampWindow(range, s.wholeRange.value);
  if (remember) pushHistory();
  if (glide) return glideTo(target);
  stopGlide();
  s.timeWindow.value = target;
}

/** Zooms about a moment, by default the middle; a factor above 1 shows less time. */
export function zoom(factor: number, aboutNs?: number, move: Move = {}): void {
  const { fromNs, toNs } = s.timeWindow.value;
  const about = aboutNs ?? (fromNs + toNs) / 2;
  const length = Math.min(Math.max((toNs - fromNs) / factor, MIN_WINDOW_NS), s.wholeRange.value.toNs);
  const share = (about - fromNs) / (toNs - fromNs);
  const from = about - share * length;
  setWindow({ fromNs: from, toNs: from + length }, move);
}

/** Moves the window by a share of its length. */
export function pan(share: number, move: Move = {}): void {
  const { fromNs, toNs } = s.timeWindow.value;
  const by = (toNs - fromNs) * share;
  setWindow({ fromNs: fromNs + by, toNs: toNs + by }, move);
}

export function showWhole(): void {
  setWindow(s.wholeRange.value, { glide: true, remember: true });
}

/** Shows a range with some room at both sides. */
export function showRange({ fromNs, toNs }: s.Range, room = 0.1): void {
  const margin = Math.max((toNs - fromNs) * room, 1);
  setWindow({ fromNs: fromNs - margin, toNs: toNs + margin }, { glide: true, remember: true });
}

/** Fits what is selected. */
export function showSelection(): void {
  const all = s.selection.value;
  if (all.length === 0) return;
  const fromNs = Math.min(...all.map((one) => one.startNs));
  const toNs = Math.max(...all.map((one) => one.startNs + one.durationNs));
  showRange({ fromNs, toNs });
}

/** Moves the window so that a range can be seen, without zooming unless it does not fit. */
export function reveal({ fromNs, toNs }: s.Range): void {
  const window = windowAhead();
  if (fromNs >= window.fromNs && toNs <= window.toNs) return;
  const length = window.toNs - window.fromNs;
  if (toNs - fromNs > length) return showRange({ fromNs, toNs });
  const middle = (fromNs + toNs) / 2;
  setWindow({ fromNs: middle - length / 2, toNs: middle + length / 2 }, { glide: true, remember: true });
}

/** Shows a tick by its place in the table. */
export function showTick(place: number): void {
  const { startNs, durationNs, numbers } = s.ticks.value;
  const start = startNs[place];
  if (start === undefined) return;
  showRange({ fromNs: start, toNs: start + Math.max(durationNs[place] ?? 0, 1) });
  announce(`Tick ${numbers[place]}`);
}

/** Previous (-1) or next (1) tick. */
export function stepTick(by: -1 | 1): void {
  const { placeAt, startNs } = s.ticks.value;
  const { fromNs, toNs } = windowAhead();
  const here = placeAt((fromNs + toNs) / 2);
  showTick(Math.min(Math.max(here + by, 0), startNs.length - 1));
}

/** The next slower (1) or less slow (-1) tick than the one in the middle of the window; while all are shown, the slowest. */
export function stepSlowTick(by: -1 | 1): void {
  const { placeAt, durationNs } = s.ticks.value;
  const { fromNs, toNs } = windowAhead();
  const whole = s.wholeRange.value;
  const isWhole = fromNs <= whole.fromNs && toNs >= whole.toNs;
  const order = durationNs.map((_, place) => place).sort((a, b) => (durationNs[b] ?? 0) - (durationNs[a] ?? 0) || a - b);
  const rank = isWhole ? -1 : order.indexOf(placeAt((fromNs + toNs) / 2));
  const next = order[rank < 0 ? 0 : rank - by];
  if (next !== undefined) showTick(next);
}

const looking = new Latest();

/** Selects entries; asks the server for the event behind the last one. Back undoes it. */
export function select(entries: s.Selected[], { add = false, remember = true }: { add?: boolean; remember?: boolean } = {}): void {
  if (remember) pushHistory();
  const isSame = (a: s.Selected, b: s.Selected) =>
    a.place !== null && b.place !== null
      ? a.place.lane === b.place.lane && a.place.row === b.place.row && a.place.index === b.place.index
      : a.event === b.event;
  const kept = add ? s.selection.value.filter((one) => !entries.some((other) => isSame(one, other))) : [];
  batch(() => {
    s.selection.value = [...kept, ...entries];
    const last = entries[entries.length - 1];
    if (last?.place) s.focused.value = last.place;
  });
  replaceHistory();
  void looking.run(nameSelection).catch(report);
}

/** Fills in the events of entries that tiles know by their place only. */
async function nameSelection(signal: AbortSignal): Promise<void> {
  const api = s.sessionApi.value;
  if (api === null) return;
  for (const one of s.selection.value) {
    if (one.event !== null || one.place === null) continue;
    const detail = await api.at(one.place, signal);
    if (signal.aborted) return;
    const named = { ...one, event: detail.event, startNs: detail.startNs, durationNs: Math.max(detail.durationNs ?? 0, 0) };
    s.selection.value = s.selection.value.map((other) => (other === one ? named : other));
  }
  replaceHistory();
}

/** Selects an event by its id, wherever it is, and shows it. */
export async function selectEvent(event: string, { show = true, remember = true } = {}): Promise<void> {
  const api = s.sessionApi.value;
  if (api === null) return;
  try {
    const detail = await api.event(event);
    const durationNs = Math.max(detail.durationNs ?? 0, 0);
    const name = s.names.value.texts.indexOf(detail.name);
    select([{ event, place: detail.place, startNs: detail.startNs, durationNs, name }], { remember });
    if (show) reveal({ fromNs: detail.startNs, toNs: detail.startNs + durationNs });
  } catch (error) {
    report(error);
  }
}

/** Selects a range of time, which the tables are about then, or takes it back. Back undoes both. */
export function selectRange(range: s.Range | null): void {
  if (range === null && s.selectedRange.value === null) return;
  pushHistory();
  const whole = s.wholeRange.value;
  // Whole ns, as links and requests have them.
  s.selectedRange.value =
    range === null ? null : { fromNs: Math.max(Math.floor(range.fromNs), whole.fromNs), toNs: Math.min(Math.ceil(range.toNs), whole.toNs) };
  replaceHistory();
}

/** Escape: takes back what was begun or chosen last. */
export function stepOut(): void {
  if (s.isMeasuring.value) s.isMeasuring.value = false;
  else if (s.selectedRange.value !== null) selectRange(null);
  else if (s.selection.value.length > 0) clearSelection();
  else s.focused.value = null;
}

export function clearSelection({ remember = true } = {}): void {
  if (s.selection.value.length === 0) return;
  if (remember) pushHistory();
  s.selection.value = [];
  replaceHistory();
}

/** Evaluates a filter over the whole trace; an empty text ends the search. */
export async function search(text: string): Promise<void> {
  const trimmed = text.trim();
  const session = s.activeId.value;
  if (trimmed === "" || session === null) {
    endSearch();
    return replaceHistory();
  }
  let running: s.FilterState & { is: "running" } = { is: "running", text: trimmed, done: 0, total: 1, first: [] };
  const tell = (news: Partial<typeof running>) => (s.filter.value = running = { ...running, ...news });
  tell({});
  s.hitAt.value = null;
  try {
    const info = await searching.run((signal) =>
      socket.setFilter(session, trimmed, signal, { progress: (done, total) => tell({ done, total }), hits: (first) => tell({ first }) }),
    );
    if (info === undefined) return;
    s.filter.value = { is: "ready", text: trimmed, filterId: info.filterId, matches: info.matches, first: running.first };
    replaceHistory();
  } catch (error) {
    if (isAbort(error)) return;
    s.filter.value = { is: "failed", text: trimmed, problem: problemOf(error) };
  }
}

/** A text that is no filter: what the one before found is not its answer. */
export function refuseSearch(text: string, problem: t.Problem): void {
  searching.abort();
  s.filter.value = { is: "failed", text: text.trim(), problem };
  s.hitAt.value = null;
}

export function setTheme(theme: s.Theme): void {
  s.theme.value = theme;
  saveSettings();
}

export function setColourMode(mode: s.ColourMode): void {
  s.colourMode.value = mode;
  replaceHistory();
  saveSettings();
}

export function setTimeDisplay(display: typeof s.timeDisplay.value): void {
  s.timeDisplay.value = display;
  saveSettings();
}

export function setLayout(change: Partial<s.Layout>): void {
  s.layout.value = { ...s.layout.value, ...change };
  replaceHistory();
  saveSettings();
}

export function setLaneView(change: Partial<s.LaneView>): void {
  s.laneView.value = { ...s.laneView.value, ...change };
  saveSettings();
}

/** Adds a lane to one of the lists of the lane view, or takes it out. */
export function toggleLane(list: "pinned" | "hidden" | "collapsed" | "fitted", key: string): void {
  const now = s.laneView.value[list];
  setLaneView({ [list]: now.includes(key) ? now.filter((other) => other !== key) : [...now, key] });
}

/** Moves a lane among its like; `keys` are theirs, in the order in which they stand. */
export function moveLane(keys: readonly string[], key: string, by: -1 | 1): void {
  const from = keys.indexOf(key);
  const to = from + by;
  if (from < 0 || to < 0 || to >= keys.length) return;
  const moved = keys.filter((other) => other !== key);
  moved.splice(to, 0, key);
  setLaneView({ order: [...s.laneView.value.order.filter((other) => !keys.includes(other)), ...moved] });
  announce(`${key.split(":").slice(1).join(" ")}, ${to + 1} of ${keys.length}`);
}

/** The next of three heights; `now` is the present one. */
export function cycleHeight(key: string, now: s.TrackHeight): void {
  const next = { summary: "normal", normal: "double", double: "summary" } as const;
  setLaneView({ heights: { ...s.laneView.value.heights, [key]: next[now] } });
}

/** Replaces all bookmarks of the trace. */
export async function putBookmarks(bookmarks: t.Bookmark[]): Promise<void> {
  const api = s.sessionApi.value;
  if (api === null) return;
  try {
    s.bookmarks.value = (await api.putBookmarks(bookmarks)).bookmarks;
  } catch (error) {
    report(error);
  }
}

/** Says something to screen readers. */
export function announce(text: string): void {
  s.announcement.value = text;
}
