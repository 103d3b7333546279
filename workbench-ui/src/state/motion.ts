/** Motion of the window for keys and buttons, and the moment when it rests. */

import { effect } from "@preact/signals";
import { replaceHistory } from "./history";
import { type Range, settledWindow, timeWindow } from "./store";

/** Panels ask the server for a window only when it has been still for this long. */
const SETTLE_MS = 120;

let frame: number | undefined;
/** Where a motion ends; null while there is none. */
let goal: Range | null = null;

export function stopGlide(): void {
  if (frame !== undefined) cancelAnimationFrame(frame);
  frame = undefined;
  goal = null;
}

/** The window at the end of a motion, else as it is: what a key means that comes while the one before still moves it. */
export function windowAhead(): Range {
  return goal ?? timeWindow.peek();
}

/** Does the window move by itself? */
export function isGliding(): boolean {
  return frame !== undefined;
}

function durationMs(): number {
  const token = getComputedStyle(document.documentElement).getPropertyValue("--m-move");
  return Number.parseFloat(token) || 0;
}

/** The easing of `--m-ease`, near enough: fast at first, slow at the end. */
function ease(share: number): number {
  return 1 - (1 - share) ** 3;
}

/** Moves to a range; at once when motion is to be reduced. */
export function glideTo(target: Range): void {
  stopGlide();
  const length = durationMs();
  if (length === 0) {
    timeWindow.value = target;
    return;
  }
  const from = timeWindow.value;
  const start = performance.now();
  goal = target;
  const step = (now: number) => {
    const share = Math.min(Math.max((now - start) / length, 0), 1);
    const eased = ease(share);
    const between = (a: number, b: number) => (share === 1 ? b : a + (b - a) * eased);
    timeWindow.value = { fromNs: between(from.fromNs, target.fromNs), toNs: between(from.toNs, target.toNs) };
    if (share === 1) goal = null;
    frame = share < 1 ? requestAnimationFrame(step) : undefined;
  };
  frame = requestAnimationFrame(step);
}

/** Keeps {@link settledWindow} and the address bar up to date. */
export function watchWindow(): () => void {
  let timer: number | undefined;
  return effect(() => {
    const window = timeWindow.value;
    clearTimeout(timer);
    timer = setTimeout(() => {
      settledWindow.value = window;
      replaceHistory();
    }, SETTLE_MS) as unknown as number;
  });
}
