/** `window.__typhon`: what tests see of the canvas. */

import { ENTRY_FLAG, spanEntry } from "../protocol/tile";
import { isAddressDue } from "../state/history";
import { nameOf } from "../state/store";
import { toNs } from "./axis";
import { BAND_ROWS, type TileCache } from "./cache";
import { type Elbow, elbowsIn } from "./drawLinks";
import { bucketBox } from "./geometry";
import { MARKER_MIDDLE_PX, mergedMarkers } from "./markers";
import { type SpanHit, rowTop, trackTop } from "./scene";
import type { TimelineView } from "./view";

export interface VisibleEntry {
  track: string;
  lane: number;
  row: number;
  /** Place in the row; of an aggregate the number of members. */
  index: number;
  name: string;
  flags: number;
  isAggregate: boolean;
  /** On the page, CSS pixels. */
  x: number;
  y: number;
  w: number;
  h: number;
}

export interface TestHook {
  /** What lies under a point of the page. */
  hit(x: number, y: number): { track: string; lane: number | null; row: number; index: number; name: string; isAggregate: boolean } | null;
  visibleEntries(): VisibleEntry[];
  tracks(): { key: string; label: string; x: number; y: number; width: number; height: number; rows: number }[];
  /** Markers of instants of a track, on the page. */
  markers(track: string): { x: number; y: number; count: number }[];
  /** Links of the selection as they are drawn, on the page. */
  links(): Elbow[];
  /** ms between frames, and ms of drawing, of the last 600 frames. */
  frameTimes(): number[];
  drawTimes(): number[];
  clearTimes(): void;
  /** Is what the window asks for all there and drawn, at rest, and no answer of the server still to come? */
  isComplete(): boolean;
  /** Does the address bar have all that was done, too? */
  isInAddress(): boolean;
  /** What is drawn. */
  window(): { fromNs: number; toNs: number } | null;
  cache(): TileCache["size"];
}

declare global {
  interface Window {
    __typhon?: TestHook;
  }
}

function described(hit: SpanHit) {
  const isAggregate = (hit.entry.flags & ENTRY_FLAG.aggregate) !== 0;
  return { track: hit.track.key, lane: hit.track.lane?.id ?? null, row: hit.row, index: hit.entry.index, name: nameOf(hit.entry.name), isAggregate };
}

export function installHook(view: TimelineView, canvas: HTMLCanvasElement): () => void {
  const origin = () => canvas.getBoundingClientRect();
  const hook: TestHook = {
    hit: (x, y) => {
      const rect = origin();
      const hit = view.hit(x - rect.left, y - rect.top);
      return hit === null ? null : described(hit);
    },
    visibleEntries: () => {
      const rect = origin();
      const entries: VisibleEntry[] = [];
      const { scene } = view;
      for (const { track, tile, at, isFiltered } of scene?.bands ?? []) {
        if (scene === null || isFiltered || tile.spans === null || track.lane === null) continue;
        for (let number = 0; number < tile.spans.count; number += 1) {
          const { x0, x1, row, flags, index, name } = spanEntry(tile.spans.body, number);
          const box = bucketBox(x0, x1, at.scale, at.ratio);
          const whole = tile.band * BAND_ROWS + row;
          const [from, to] = [Math.max(at.x + box.x, at.clipFrom), Math.min(at.x + box.x + box.w, at.clipTo)];
          if (to <= from || whole >= track.rows) continue;
          entries.push({
            track: track.key, lane: track.lane.id, row: whole, index, name: nameOf(name), flags,
            isAggregate: (flags & ENTRY_FLAG.aggregate) !== 0,
            x: rect.left + from, y: rect.top + rowTop(scene, track, whole), w: to - from, h: track.pitch,
          });
        }
      }
      return entries;
    },
    tracks: () => {
      const rect = origin();
      const { scene } = view;
      if (scene === null) return [];
      return [...scene.layout.pinned, ...scene.layout.scrolled].map((track) => ({
        key: track.key, label: track.label, x: rect.left, y: rect.top + rowTop(scene, track, 0) - track.rowsTop, width: rect.width, height: track.height, rows: track.rows,
      }));
    },
    markers: (key) => {
      const rect = origin();
      const { scene } = view;
      const track = scene === null ? undefined : [...scene.layout.pinned, ...scene.layout.scrolled].find((one) => one.key === key);
      if (scene === null || track === undefined || track.markersTop === null) return [];
      const y = rect.top + trackTop(scene, track) + track.markersTop + MARKER_MIDDLE_PX;
      return mergedMarkers(scene.bands, track, false).map(({ x, count }) => ({ x: rect.left + x, y, count }));
    },
    links: () => {
      const rect = origin();
      const onPage = (elbow: Elbow) => ({ ...elbow, x: elbow.x + rect.left, toX: elbow.toX + rect.left, y: elbow.y + rect.top, toY: elbow.toY + rect.top, alongY: elbow.alongY + rect.top });
      return view.scene === null ? [] : elbowsIn(view.scene).map(onPage);
    },
    frameTimes: () => [...view.frameTimes],
    drawTimes: () => [...view.drawTimes],
    clearTimes: () => {
      view.frameTimes.length = 0;
      view.drawTimes.length = 0;
    },
    isComplete: () => view.isComplete(),
    isInAddress: () => !isAddressDue(),
    window: () => (view.scene === null ? null : { fromNs: view.scene.axis.fromNs, toNs: toNs(view.scene.axis) }),
    cache: () => view.cache.size,
  };
  window.__typhon = hook;
  return () => {
    if (window.__typhon === hook) delete window.__typhon;
  };
}
