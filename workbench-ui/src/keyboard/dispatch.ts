/** Keys to actions (B-37), by physical position. */

import { pan, setLayout, showSelection, showWhole, stepOut, stepSlowTick, stepTick, zoom } from "../state/actions";
import { type BottomTab, focused, isMeasuring, meta, openFloat, primary, showLegends } from "../state/store";
import { moveLane, moveRow, moveSpan, selectFocused } from "../timeline/focus";
import { addBookmark } from "../panels/Bookmarks";
import { stepHit } from "../panels/hits";
import { focusWhenRendered } from "./focus";
import { combination, learnLayout, writtenCombination } from "./keymap";

const ZOOM = 1.6;
const PAN = 0.15;

/** The parts of the page in the order of F6. */
const PANELS = ["timeline", "inspector", "bottom"] as const;

/** Puts the keyboard into a panel: its rows or its tabs. */
export function focusPanel(name: (typeof PANELS)[number]): void {
  if (name === "inspector") setLayout({ isInspectorOpen: true });
  if (name === "bottom") setLayout({ isBottomOpen: true });
  focusWhenRendered(() => {
    const panel = document.querySelector<HTMLElement>(`[data-panel="${name}"]`);
    return panel?.querySelector<HTMLElement>('[data-panel-focus], [role="tab"][aria-selected="true"]') ?? panel;
  });
}

function nextPanel(by: 1 | -1): void {
  const at = PANELS.findIndex((name) => document.activeElement?.closest(`[data-panel="${name}"]`));
  const next = PANELS[at < 0 ? 0 : (at + by + PANELS.length) % PANELS.length];
  if (next) focusPanel(next);
}

export function showTable(tab: BottomTab): void {
  setLayout({ bottomTab: tab, isBottomOpen: true });
  focusPanel("bottom");
}

export function focusSearch(): void {
  const field = document.querySelector<HTMLInputElement>("#search");
  field?.focus();
  field?.select();
}

export function toggleMeasuring(): void {
  isMeasuring.value = !isMeasuring.value;
  if (isMeasuring.value) setLayout({ inspectorTab: "bookmarks", isInspectorOpen: true });
}

/** Arrow keys have gone on from what is selected. */
function isFocusElsewhere(): boolean {
  const [of, at] = [primary.value, focused.value];
  if (at === null || of === null) return at !== null;
  return of.place !== null && (of.place.lane !== at.lane || of.place.row !== at.row || of.place.index !== at.index);
}

function inspect(): void {
  if (isFocusElsewhere()) selectFocused();
  setLayout({ inspectorTab: "inspector", isInspectorOpen: true });
}

const glide = { glide: true } as const;

/** What keys do while a trace is shown. */
const ACTIONS: Record<string, () => void> = {
  KeyW: () => zoom(ZOOM, undefined, glide),
  Equal: () => zoom(ZOOM, undefined, glide),
  "Shift+Equal": () => zoom(ZOOM, undefined, glide),
  NumpadAdd: () => zoom(ZOOM, undefined, glide),
  "Ctrl+ArrowUp": () => zoom(ZOOM, undefined, glide),
  KeyS: () => zoom(1 / ZOOM, undefined, glide),
  Minus: () => zoom(1 / ZOOM, undefined, glide),
  NumpadSubtract: () => zoom(1 / ZOOM, undefined, glide),
  "Ctrl+ArrowDown": () => zoom(1 / ZOOM, undefined, glide),
  "Shift+KeyW": () => zoom(ZOOM ** 4, undefined, glide),
  "Shift+KeyS": () => zoom(1 / ZOOM ** 4, undefined, glide),
  KeyA: () => pan(-PAN, glide),
  "Ctrl+ArrowLeft": () => pan(-PAN, glide),
  KeyD: () => pan(PAN, glide),
  "Ctrl+ArrowRight": () => pan(PAN, glide),
  "Shift+KeyA": () => pan(-4 * PAN, glide),
  "Ctrl+Shift+ArrowLeft": () => pan(-4 * PAN, glide),
  "Shift+KeyD": () => pan(4 * PAN, glide),
  "Ctrl+Shift+ArrowRight": () => pan(4 * PAN, glide),
  ArrowUp: () => moveRow(-1),
  ArrowDown: () => moveRow(1),
  ArrowLeft: () => moveSpan(-1),
  ArrowRight: () => moveSpan(1),
  PageUp: () => moveLane(-1),
  PageDown: () => moveLane(1),
  BracketLeft: () => stepTick(-1),
  BracketRight: () => stepTick(1),
  "Shift+BracketLeft": () => stepSlowTick(-1),
  "Shift+BracketRight": () => stepSlowTick(1),
  KeyZ: showSelection,
  Digit0: showWhole,
  Numpad0: showWhole,
  Enter: inspect,
  Escape: stepOut,
  KeyR: toggleMeasuring,
  KeyM: addBookmark,
  KeyN: () => void stepHit(1),
  "Shift+KeyN": () => void stepHit(-1),
  KeyL: () => {
    showLegends.value = !showLegends.value;
  },
};

/** What they do whatever is shown. */
const ALWAYS: Record<string, () => void> = {
  F6: () => nextPanel(1),
  "Shift+F6": () => nextPanel(-1),
  Slash: focusSearch,
  "Ctrl+KeyF": focusSearch,
  "Shift+Slash": () => {
    openFloat.value = "help";
  },
  "Ctrl+KeyK": () => {
    openFloat.value = openFloat.value === "palette" ? "none" : "palette";
  },
};

/** After G. */
const GO: Record<string, () => void> = {
  KeyT: () => focusPanel("timeline"),
  KeyS: () => showTable("statistics"),
  KeyL: () => showTable("top"),
  KeyI: () => showTable("ticks"),
  KeyC: () => showTable("collections"),
  KeyB: () => {
    setLayout({ inspectorTab: "bookmarks", isInspectorOpen: true });
    focusPanel("inspector");
  },
};

const GO_MS = 1500;

/** What is ours in a field too. */
const WHILE_TYPING: ReadonlySet<string> = new Set(["Ctrl+KeyK", "Ctrl+KeyF", "F6", "Shift+F6"]);

/** Fields, and what reacts to keys by itself: there plain keys are not ours. */
function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.closest('input, textarea, select, [contenteditable="true"]') !== null;
}

function isOnButton(event: KeyboardEvent): boolean {
  return event.key === "Enter" && event.target instanceof HTMLElement && event.target.closest("button, a, summary, [role='row']") !== null;
}

/** What a key does: by its position, and where that has no meaning by its character. */
function actionOf(isGo: boolean, event: KeyboardEvent): (() => void) | undefined {
  const pressed = combination(event);
  if (isGo && GO[pressed]) return GO[pressed];
  const isTrace = meta.value !== null && !isOnButton(event);
  const known = pressed in ALWAYS || pressed in ACTIONS ? pressed : (writtenCombination(event) ?? pressed);
  return ALWAYS[known] ?? (isTrace ? ACTIONS[known] : undefined);
}

export function startKeyboard(): void {
  let goUntil = 0;
  void learnLayout();
  window.addEventListener("keydown", (event) => {
    const pressed = combination(event);
    const isPalette = pressed === "Ctrl+KeyK";
    if (event.defaultPrevented || (isTyping(event.target) && !WHILE_TYPING.has(pressed))) return;
    if (openFloat.value !== "none" && !isPalette) return;
    const isGo = performance.now() < goUntil;
    goUntil = 0;
    const act = actionOf(isGo, event);
    if (!isGo && pressed === "KeyG" && meta.value !== null) {
      goUntil = performance.now() + GO_MS;
      event.preventDefault();
      return;
    }
    if (act === undefined) return;
    event.preventDefault();
    act();
  });
}

/** For the test that every line of the help sheet does something. */
export function handledKeys(): { plain: string[]; go: string[] } {
  return { plain: [...Object.keys(ACTIONS), ...Object.keys(ALWAYS)], go: Object.keys(GO) };
}

