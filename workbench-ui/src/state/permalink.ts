/** The part of the view that a link holds (B-27): `#t=a..b&r=a..b&e=EventId&v=panels&f=filter&c=colour`. Pure. */

import type { BottomTab, ColourMode, InspectorTab, Range } from "./store";

export interface Link {
  window?: Range;
  /** The selected range. */
  range?: Range;
  event?: string;
  panels?: { inspector: InspectorTab | null; bottom: BottomTab | null };
  filter?: string;
  colour?: ColourMode;
  session?: string;
}

const COLOURS: readonly ColourMode[] = ["family", "kind", "system", "thread", "duration", "depth"];
const BOTTOM: readonly BottomTab[] = ["statistics", "top", "search", "ticks", "collections", "gauges"];
const INSPECTOR: readonly InspectorTab[] = ["inspector", "bookmarks", "notices", "lanes"];

export function formatLink(link: Link): string {
  const parts: string[] = [];
  if (link.window) parts.push(`t=${formatRange(link.window)}`);
  if (link.range) parts.push(`r=${formatRange(link.range)}`);
  if (link.event) parts.push(`e=${encodeURIComponent(link.event)}`);
  if (link.panels) parts.push(`v=${[link.panels.inspector, link.panels.bottom].map((panel) => panel ?? "").join(",")}`);
  if (link.filter) parts.push(`f=${encodeURIComponent(link.filter)}`);
  if (link.colour && link.colour !== "family") parts.push(`c=${link.colour}`);
  if (link.session) parts.push(`s=${encodeURIComponent(link.session)}`);
  return parts.join("&");
}

/** Reads a fragment; what is malformed is left out. */
export function parseLink(fragment: string): Link {
  const link: Link = {};
  for (const part of fragment.replace(/^#/, "").split("&")) {
    const at = part.indexOf("=");
    if (at < 0) continue;
    const [key, raw] = [part.slice(0, at), part.slice(at + 1)];
    const value = decode(raw);
    if (value === null) continue;
    if (key === "t" || key === "r") {
      const range = parseRange(value);
      if (range !== null) link[key === "t" ? "window" : "range"] = range;
    } else if (key === "e" && /^\d{1,10}\.\d{1,10}$/.test(value)) link.event = value;
    else if (key === "v") {
      const [inspector, bottom] = value.split(",");
      link.panels = {
        inspector: INSPECTOR.find((panel) => panel === inspector) ?? null,
        bottom: BOTTOM.find((panel) => panel === bottom) ?? null,
      };
    } else if (key === "f" && value !== "") link.filter = value;
    else if (key === "c") {
      const colour = COLOURS.find((mode) => mode === value);
      if (colour) link.colour = colour;
    } else if (key === "s" && value !== "") link.session = value;
  }
  return link;
}

function formatRange({ fromNs, toNs }: Range): string {
  return `${Math.floor(fromNs)}..${Math.ceil(toNs)}`;
}

function parseRange(text: string): Range | null {
  const times = /^(\d{1,18})\.\.(\d{1,18})$/.exec(text);
  const [fromNs, toNs] = [Number(times?.[1]), Number(times?.[2])];
  return toNs > fromNs ? { fromNs, toNs } : null;
}

function decode(text: string): string | null {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}
