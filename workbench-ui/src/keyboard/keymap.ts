/**
 * The keyboard map (B-37). Keys are physical positions (`KeyboardEvent.code`), with modifiers in front; the help sheet shows
 * the letters of the user's own layout. Keys of one line do the same. Where a position has no meaning, a character has one.
 */

export interface KeyLine {
  id: string;
  group: "Move" | "Time" | "Select" | "Find" | "Show" | "Go to: G, then";
  text: string;
  /** For the status bar. */
  short?: string;
  keys: readonly string[];
}

export const KEYS: readonly KeyLine[] = [
  { id: "zoom", group: "Move", text: "zoom in, out", short: "zoom", keys: ["KeyW", "KeyS", "Equal", "Minus", "Ctrl+ArrowUp", "Ctrl+ArrowDown"] },
  { id: "pan", group: "Move", text: "pan (Shift ×4)", short: "pan", keys: ["KeyA", "KeyD", "Ctrl+ArrowLeft", "Ctrl+ArrowRight"] },
  { id: "row", group: "Move", text: "row", keys: ["ArrowUp", "ArrowDown"] },
  { id: "span", group: "Move", text: "previous, next span", keys: ["ArrowLeft", "ArrowRight"] },
  { id: "lane", group: "Move", text: "lane", keys: ["PageUp", "PageDown"] },
  { id: "tick", group: "Time", text: "previous, next tick", short: "tick", keys: ["BracketLeft", "BracketRight"] },
  { id: "slowTick", group: "Time", text: "less slow, slowest or slower tick", short: "slow tick", keys: ["Shift+BracketLeft", "Shift+BracketRight"] },
  { id: "fit", group: "Time", text: "fit the selection", keys: ["KeyZ"] },
  { id: "whole", group: "Time", text: "whole trace", keys: ["Digit0"] },
  { id: "inspect", group: "Select", text: "inspector", keys: ["Enter"] },
  { id: "out", group: "Select", text: "step out", keys: ["Escape"] },
  { id: "measure", group: "Select", text: "measure", keys: ["KeyR"] },
  { id: "bookmark", group: "Select", text: "bookmark", keys: ["KeyM"] },
  { id: "history", group: "Select", text: "back, forward", keys: ["Alt+ArrowLeft", "Alt+ArrowRight"] },
  { id: "search", group: "Find", text: "search", keys: ["Slash", "Ctrl+KeyF"] },
  { id: "hit", group: "Find", text: "next, previous hit", keys: ["KeyN", "Shift+KeyN"] },
  { id: "palette", group: "Find", text: "palette", keys: ["Ctrl+KeyK"] },
  { id: "legends", group: "Show", text: "legends", keys: ["KeyL"] },
  { id: "nextPanel", group: "Show", text: "next panel", keys: ["F6"] },
  { id: "help", group: "Show", text: "this sheet", short: "all keys", keys: ["Shift+Slash"] },
  { id: "goTimeline", group: "Go to: G, then", text: "timeline", keys: ["KeyT"] },
  { id: "goStatistics", group: "Go to: G, then", text: "statistics", keys: ["KeyS"] },
  { id: "goTop", group: "Go to: G, then", text: "longest spans", keys: ["KeyL"] },
  { id: "goTicks", group: "Go to: G, then", text: "ticks", keys: ["KeyI"] },
  { id: "goCollections", group: "Go to: G, then", text: "collections", keys: ["KeyC"] },
  { id: "goBookmarks", group: "Go to: G, then", text: "bookmarks", keys: ["KeyB"] },
];

/** What is printed on keys that have no letter, and those of a US keyboard. */
const PRINTED: Record<string, string> = {
  ArrowUp: "↑",
  ArrowDown: "↓",
  ArrowLeft: "←",
  ArrowRight: "→",
  PageUp: "PgUp",
  PageDown: "PgDn",
  Escape: "Esc",
  Equal: "+",
  Minus: "−",
  BracketLeft: "[",
  BracketRight: "]",
  Slash: "/",
};

const SHIFTED: Record<string, string> = { BracketLeft: "{", BracketRight: "}", Slash: "?" };

let layoutMap: ReadonlyMap<string, string> = new Map();

interface LayoutKeyboard {
  getLayoutMap?(): Promise<ReadonlyMap<string, string>>;
}

/** Asks the browser for the user's own letters, where it tells them. */
export async function learnLayout(): Promise<void> {
  const { keyboard } = navigator as Navigator & { keyboard?: LayoutKeyboard };
  try {
    layoutMap = (await keyboard?.getLayoutMap?.()) ?? new Map();
  } catch {
    // The browser does not tell: the letters of a US keyboard have to do.
    layoutMap = new Map();
  }
}

/** How a combination is shown: `Ctrl K`. */
export function letter(combination: string): string {
  const parts = combination.split("+");
  const code = parts.pop() ?? "";
  const isShift = parts.includes("Shift");
  const own = layoutMap.get(code);
  const isLetter = code.startsWith("Key");
  if (isShift && SHIFTED[code] !== undefined && (own === undefined || own === PRINTED[code])) return SHIFTED[code];
  const key = (isLetter || code in SHIFTED) && own !== undefined ? own.toUpperCase() : (PRINTED[code] ?? code.replace(/^(Key|Digit)/, ""));
  return [...parts, key].join(" ");
}

type Press = Pick<KeyboardEvent, "code" | "ctrlKey" | "metaKey" | "altKey" | "shiftKey"> & Partial<Pick<KeyboardEvent, "key" | "getModifierState">>;

/** Where AltGr writes characters, systems report Ctrl and Alt with it, or neither. */
const isAltGr = (event: Press) => event.getModifierState?.("AltGraph") === true;

/** The combination that an event stands for, by the position of its key. */
export function combination(event: Press): string {
  const own = isAltGr(event) ? ["AltGr+"] : [event.ctrlKey || event.metaKey ? "Ctrl+" : "", event.altKey ? "Alt+" : ""];
  return [...own, event.shiftKey ? "Shift+" : ""].join("") + event.code;
}

/** Characters that layouts have at other places, and what they stand for. */
const BY_CHARACTER: Record<string, string> = {
  "[": "BracketLeft",
  "]": "BracketRight",
  "{": "Shift+BracketLeft",
  "}": "Shift+BracketRight",
  "/": "Slash",
  "?": "Shift+Slash",
  "+": "Equal",
  "-": "Minus",
  "0": "Digit0",
};

/** What is written with Option on a Mac, which reports it as Alt. */
const WITH_OPTION = "[]{}";

/** The combination of the character that an event writes, for keys that do nothing at their position. Null: none. */
export function writtenCombination(event: Press): string | null {
  const key = event.key ?? "";
  const isCommand = !isAltGr(event) && (event.ctrlKey || event.metaKey || (event.altKey && !WITH_OPTION.includes(key)));
  return isCommand ? null : (BY_CHARACTER[key] ?? null);
}
