/** Settings in the user's `workbench.json`, kept by the server (B-39), and lane views per application. */

import { batch } from "@preact/signals";
import { api } from "../protocol/http";
import { readRecent } from "./recent";
import * as s from "./store";

const SAVE_MS = 500;
let timer: number | undefined;
let laneViews: Record<string, s.LaneView> = {};
let isLoaded = false;

const THEMES: readonly s.Theme[] = ["dark", "light", "system"];
const COLOURS: readonly s.ColourMode[] = ["family", "kind", "system", "thread", "duration", "depth"];
const TIMES = ["start", "clock", "tick", "raw"] as const;

function oneOf<T>(values: readonly T[], value: unknown): T | undefined {
  return values.find((known) => known === value);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A number of pixels that makes sense, else null: the width of the design. */
function pixels(value: unknown): number | null {
  return typeof value === "number" && value >= 80 && value <= 4000 ? value : null;
}

const texts = (value: unknown): string[] => (Array.isArray(value) ? value.filter((one) => typeof one === "string") : []);

/** A lane view from settings that may hold anything. */
export function readLaneView(value: unknown): s.LaneView {
  if (!isObject(value)) return s.EMPTY_LANE_VIEW;
  const heights: Record<string, s.TrackHeight> = {};
  if (isObject(value["heights"])) {
    for (const [key, height] of Object.entries(value["heights"])) {
      const known = oneOf(["summary", "normal", "double"] as const, height);
      if (known) heights[key] = known;
    }
  }
  const { pinned, hidden, collapsed, order, fitted } = value;
  return { pinned: texts(pinned), hidden: texts(hidden), collapsed: texts(collapsed), order: texts(order), fitted: texts(fitted), heights };
}

function apply(settings: Record<string, unknown>): void {
  batch(() => {
    s.theme.value = oneOf(THEMES, settings["theme"]) ?? s.theme.value;
    s.colourMode.value = oneOf(COLOURS, settings["colourMode"]) ?? s.colourMode.value;
    s.timeDisplay.value = oneOf(TIMES, settings["timeDisplay"]) ?? s.timeDisplay.value;
    s.recent.value = readRecent(settings["recent"]);
    const layout = settings["layout"];
    if (isObject(layout)) {
      s.layout.value = {
        ...s.layout.value,
        gutterPx: pixels(layout["gutterPx"]),
        inspectorPx: pixels(layout["inspectorPx"]),
        bottomPx: pixels(layout["bottomPx"]),
      };
    }
  });
  const views = settings["laneViews"];
  laneViews = isObject(views) ? Object.fromEntries(Object.entries(views).map(([key, view]) => [key, readLaneView(view)])) : {};
}

export async function loadSettings(): Promise<void> {
  apply((await api.settings()).settings);
  isLoaded = true;
}

/** What lane views are kept under: the application that recorded. */
function application(): string {
  return s.meta.value?.world.databaseName || s.meta.value?.file.name || "";
}

/** Brings back what the user made of the lanes of this application. */
export function restoreLaneView(): void {
  s.laneView.value = laneViews[application()] ?? s.EMPTY_LANE_VIEW;
}

/** Writes the settings, soon. Until they have been read nothing is written, so that nothing is lost. */
export function saveSettings(): void {
  if (!isLoaded) return;
  if (s.meta.value !== null) laneViews = { ...laneViews, [application()]: s.laneView.value };
  window.clearTimeout(timer);
  timer = window.setTimeout(() => {
    const { gutterPx, inspectorPx, bottomPx } = s.layout.value;
    const settings = {
      theme: s.theme.value,
      colourMode: s.colourMode.value,
      timeDisplay: s.timeDisplay.value,
      layout: { gutterPx, inspectorPx, bottomPx },
      laneViews,
    };
    api.putSettings(settings).catch((error: unknown) => {
      const detail = error instanceof Error ? error.message : String(error);
      s.lastProblem.value = { status: 0, code: "settings", detail: `the settings cannot be kept: ${detail}` };
    });
  }, SAVE_MS);
}
