/** Colours of the canvas, read from the tokens once per theme. */

import type { Lane } from "../protocol/types";
import type { ColourMode, NameTable } from "../state/store";
import { FAMILY_TOKENS, WAITING_KINDS, familyToken } from "./families";

const SIGNALS = [
  "bg-canvas", "bg-panel", "bg-raised", "line", "line-strong", "grid", "text", "text-2", "text-3", "ink-dark", "ink-light",
  "accent", "accent-ink", "accent-wash", "select", "hover", "focus", "tick-current", "search-hit", "gc-pause", "gc-outline",
  "hot", "loss", "loss-hatch", "ovl-1", "ovl-2", "ovl-3", "ovl-4", "ovl-6",
  "mem-gen0", "mem-gen1", "mem-gen2", "mem-loh", "mem-poh", "mem-committed",
  "fam-page", "fam-idle", "fam-other", "fam-sched", "fam-wal", "fam-txn", "fam-runtime",
] as const;
export type SignalToken = (typeof SIGNALS)[number];

/** Places in {@link Palette.bars}: the families, other, idle, then the ramp of durations and two greys of depth. */
export const SLOT = { other: 16, idle: 17, ramp: 18, depth: 26 } as const;
const RAMP_STEPS = 8;

export interface Palette {
  signal: Record<SignalToken, string>;
  bars: string[];
  /** Ink on a bar, by the same places. */
  inks: string[];
  /** Around each bar, when the user's own colours are forced on the page; else null. */
  outline: string | null;
  font: string;
  /** Grows with each theme: what was painted with an older one is painted anew. */
  epoch: number;
}

type Rgb = [number, number, number];

export function parseHex(colour: string): Rgb {
  const hex = colour.trim().replace("#", "");
  const full = hex.length < 6 ? [...hex].map((digit) => digit + digit).join("") : hex;
  const part = (at: number) => Number.parseInt(full.slice(at, at + 2), 16);
  return [part(0), part(2), part(4)];
}

/** Relative luminance of WCAG 2.2. */
export function luminance([r, g, b]: Rgb): number {
  const linear = (channel: number) => {
    const share = channel / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  };
  return 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
}

export function contrast(a: string, b: string): number {
  const [la, lb] = [luminance(parseHex(a)), luminance(parseHex(b))];
  return (Math.max(la, lb) + 0.05) / (Math.min(la, lb) + 0.05);
}

function mix(a: string, b: string, share: number): string {
  const [from, to] = [parseHex(a), parseHex(b)];
  const part = (at: 0 | 1 | 2) => Math.round(from[at] + (to[at] - from[at]) * share).toString(16).padStart(2, "0");
  return `#${part(0)}${part(1)}${part(2)}`;
}

/** Colours along some stops. */
function ramp(stops: string[], steps: number): string[] {
  return Array.from({ length: steps }, (_, step) => {
    const at = (step / (steps - 1)) * (stops.length - 1);
    const left = Math.min(Math.floor(at), stops.length - 2);
    return mix(stops[left] ?? "#000000", stops[left + 1] ?? "#000000", at - left);
  });
}

/** What the user's own colours stand in for; all other signals are text. */
const FORCED: Partial<Record<SignalToken, string>> = {
  "bg-canvas": "Canvas", "bg-panel": "Canvas", "bg-raised": "Canvas", "ink-dark": "CanvasText", "ink-light": "CanvasText",
  line: "GrayText", "line-strong": "GrayText", grid: "GrayText", "loss-hatch": "GrayText", "fam-idle": "GrayText",
  accent: "Highlight", "accent-ink": "HighlightText", select: "Highlight", focus: "Highlight", "search-hit": "Highlight",
};

/** A system colour as the browser resolves it. */
function resolved(probe: HTMLElement, keyword: string): string {
  probe.style.color = keyword;
  const parts = (getComputedStyle(probe).color.match(/[\d.]+/g) ?? []).slice(0, 3).map(Number);
  return `#${parts.map((part) => Math.round(part).toString(16).padStart(2, "0")).join("")}`;
}

/** Forced colours: every bar is the canvas with an outline, and what colours say is said by text and place alone. */
function forcedPalette(font: string): Palette {
  const probe = document.createElement("span");
  document.body.append(probe);
  const signal = Object.fromEntries(SIGNALS.map((name) => [name, resolved(probe, FORCED[name] ?? "CanvasText")])) as Record<SignalToken, string>;
  probe.remove();
  // A wash in a full colour would cover what it lies on.
  signal["accent-wash"] = `${signal.accent}33`;
  const bars = Array.from({ length: SLOT.depth + 2 }, (_, slot) => (slot === SLOT.idle ? signal["fam-idle"] : signal["bg-canvas"]));
  return { signal, bars, inks: bars.map(() => signal.text), outline: signal.text, font, epoch: ++epoch };
}

let epoch = 0;

export const FORCED_COLOURS = "(forced-colors: active)";

export function readPalette(): Palette {
  const style = getComputedStyle(document.documentElement);
  const token = (name: string) => style.getPropertyValue(`--${name}`).trim();
  const font = token("font-ui") || "sans-serif";
  if (window.matchMedia(FORCED_COLOURS).matches) return forcedPalette(font);
  const signal = Object.fromEntries(SIGNALS.map((name) => [name, token(name)])) as Record<SignalToken, string>;
  const isLight = luminance(parseHex(signal["bg-canvas"])) > 0.5;
  const heap = [signal["mem-gen0"], signal["mem-gen1"], signal["mem-gen2"], signal["mem-loh"]];
  // What takes longer stands out more from the canvas.
  const durations = ramp(isLight ? heap : [...heap].reverse(), RAMP_STEPS);
  const depths = [signal["fam-other"], mix(signal["fam-other"], signal["bg-canvas"], 0.3)];
  const families = FAMILY_TOKENS.map((name) => token(`fam-${name}`));
  const bars = [...families, signal["fam-other"], signal["fam-idle"], ...durations, ...depths];
  const [dark, light] = [signal["ink-dark"], signal["ink-light"]];
  const inks = bars.map((bar) => (contrast(bar, dark) >= contrast(bar, light) ? dark : light));
  return { signal, bars, inks, outline: null, font, epoch: ++epoch };
}

/** FNV-1a: the same text has the same colour in every session. */
export function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let at = 0; at < text.length; at += 1) value = Math.imul(value ^ text.charCodeAt(at), 0x01000193) >>> 0;
  return value;
}

const hashSlot = (text: string) => hash(text) % FAMILY_TOKENS.length;

/** What the painter needs to know about names: their colour, and whether they are waiting. */
export interface NameStyle {
  slots: Uint8Array;
  waiting: Uint8Array;
}

function tokenSlot(family: string): number {
  const token = familyToken(family);
  const at = (FAMILY_TOKENS as readonly string[]).indexOf(token);
  return at >= 0 ? at : token === "idle" ? SLOT.idle : SLOT.other;
}

export function nameStyle(names: NameTable, families: string[], mode: ColourMode): NameStyle {
  const slots = new Uint8Array(65536).fill(SLOT.other);
  const waiting = new Uint8Array(65536);
  const systems = new Map<number, string>();
  names.texts.forEach((text, id) => {
    const system = names.systems[id];
    if (names.kinds[id] === 10 && system !== null && system !== undefined) systems.set(system, text);
  });
  const slotOf = (id: number): number => {
    const kind = names.kinds[id] ?? 0;
    const system = names.systems[id] ?? null;
    switch (mode) {
      case "kind":
        return hashSlot(names.texts[kind] ?? "");
      case "system":
        return system === null ? SLOT.other : hashSlot(systems.get(system) ?? `system ${system}`);
      default: {
        // The group of a system's name is the system; its family is that of its kind.
        const family = families[names.groups[kind] ?? -1];
        return family === undefined ? SLOT.other : tokenSlot(family);
      }
    }
  };
  names.texts.forEach((_, id) => {
    slots[id] = slotOf(id);
    if (WAITING_KINDS.has(names.kinds[id] ?? -1)) waiting[id] = 1;
  });
  return { slots, waiting };
}

/** Colour of a lane when threads are what colours tell. */
export function laneSlot(lane: Lane): number {
  return hashSlot(lane.label);
}

/** Place in the ramp of a duration: a step per factor of five from 100 ns. */
export function durationSlot(ns: number): number {
  const step = Math.floor(Math.log(Math.max(ns, 1) / 100) / Math.log(5));
  return SLOT.ramp + Math.min(Math.max(step, 0), RAMP_STEPS - 1);
}
