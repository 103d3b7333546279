/** What one frame shows: made once per frame, used by drawing, hit test, labels and the test hook. */

import { ENTRY_FLAG, type SpanEntry, spanEntry } from "../protocol/tile";
import type { Place } from "../protocol/types";
import { type Axis, nsAt, snap } from "./axis";
import { BAND_ROWS, type Tile } from "./cache";
import { HIT_SLACK_PX, type PlacedTile, bucketBox, entryAt } from "./geometry";
import { MERGE_PX, markerAt, mergedMarkers } from "./markers";
import type { Palette } from "./palette";
import { type Track, type TrackLayout, rowAt, trackAt } from "./tracks";

/** A tile of a band, at its place. */
export interface PlacedBand {
  track: Track;
  band: number;
  tile: Tile;
  at: PlacedTile;
  /** Matches of a filter, over what they are taken from. */
  isFiltered: boolean;
}

export interface Scene {
  axis: Axis;
  level: number;
  layout: TrackLayout;
  palette: Palette;
  height: number;
  rulerHeight: number;
  scrollTop: number;
  bands: PlacedBand[];
  /** Is every tile that can be seen its own, and painted at this scale? */
  isPainted: boolean;
}

/** Where the scrolled tracks begin. */
export function scrollAreaTop(scene: Scene): number {
  return scene.rulerHeight + scene.layout.pinnedHeight;
}

/** Top of a track on the canvas. */
export function trackTop(scene: Scene, track: Track): number {
  return track.isPinned ? scene.rulerHeight + track.top : scrollAreaTop(scene) + track.top - scene.scrollTop;
}

export function isVisible(scene: Scene, track: Track): boolean {
  const top = trackTop(scene, track);
  return top < scene.height && top + track.height > (track.isPinned ? 0 : scrollAreaTop(scene));
}

export function visibleTracks(scene: Scene): Track[] {
  return [...scene.layout.pinned, ...scene.layout.scrolled].filter((track) => isVisible(scene, track));
}

/** Top of a row on the canvas, at a device pixel. */
export function rowTop(scene: Scene, track: Track, row: number): number {
  return trackTop(scene, track) + track.rowsTop + snap(row * track.pitch, scene.axis.ratio);
}

/** The track at a point, and the height within it. */
export function trackAtPoint(scene: Scene, y: number): { track: Track; y: number } | null {
  if (y < scene.rulerHeight) return null;
  const isPinned = y < scrollAreaTop(scene);
  const local = isPinned ? y - scene.rulerHeight : y - scrollAreaTop(scene) + scene.scrollTop;
  const track = trackAt(isPinned ? scene.layout.pinned : scene.layout.scrolled, local);
  return track === null ? null : { track, y: local - track.top };
}

export interface SpanHit {
  is: "span" | "instant";
  track: Track;
  row: number;
  entry: SpanEntry;
  level: number;
  /** Left edge of the entry's first bucket, ns. */
  fromNs: number;
  toNs: number;
  /** What is drawn, on the canvas. */
  box: { x: number; y: number; w: number; h: number };
}

const MARKER_SLACK_PX = 4;

/** What lies under a point of the canvas. */
export function hitTest(scene: Scene, x: number, y: number): SpanHit | null {
  const found = trackAtPoint(scene, y);
  if (found === null || found.track.lane === null) return null;
  const { track } = found;
  const row = rowAt(track, found.y);
  if (row !== null) return hitRow(scene, track, row, x);
  const markers = track.kind === "gc" ? 0 : track.markersTop;
  if (markers !== null && found.y >= markers && found.y < markers + 14) return hitMarker(scene, track, x);
  return null;
}

function makeHit(scene: Scene, is: "span" | "instant", { track, tile, at }: PlacedBand, entry: SpanEntry): SpanHit {
  const bucketNs = 2 ** tile.level;
  const start = tile.tile * 512 * bucketNs;
  const box = bucketBox(entry.x0, entry.x1, at.scale, at.ratio);
  const row = tile.band * BAND_ROWS + entry.row;
  const y = is === "span" ? rowTop(scene, track, row) : trackTop(scene, track) + (track.markersTop ?? 0);
  return {
    is, track, row, entry, level: tile.level,
    fromNs: start + entry.x0 * bucketNs,
    toNs: start + entry.x1 * bucketNs,
    box: { x: at.x + box.x, y, w: box.w, h: track.pitch },
  };
}

function hitRow(scene: Scene, track: Track, row: number, x: number): SpanHit | null {
  const band = Math.floor(row / BAND_ROWS);
  let best: { placed: PlacedBand; at: number; distance: number } | null = null;
  for (const placed of scene.bands) {
    if (placed.track !== track || placed.band !== band || placed.tile.spans === null) continue;
    const { body, count } = placed.tile.spans;
    const met = entryAt(body, count, row % BAND_ROWS, placed.at, x);
    if (met !== null && (best === null || met.distance <= best.distance)) best = { placed, at: met.at, distance: met.distance };
  }
  if (best === null || best.placed.tile.spans === null) return null;
  return makeHit(scene, "span", best.placed, spanEntry(best.placed.tile.spans.body, best.at));
}

function hitMarker(scene: Scene, track: Track, x: number): SpanHit | null {
  let best: { placed: PlacedBand; entry: SpanEntry; distance: number } | null = null;
  for (const placed of scene.bands) {
    if (placed.track !== track || placed.band !== 0 || placed.tile.instants === null) continue;
    const { body, count } = placed.tile.instants;
    for (let at = 0; at < count; at += 1) {
      const entry = spanEntry(body, at);
      const distance = Math.abs(placed.at.x + snap(entry.x0 * placed.at.scale, placed.at.ratio) - x);
      if (distance <= MARKER_SLACK_PX + HIT_SLACK_PX && (best === null || distance < best.distance)) best = { placed, entry, distance };
    }
  }
  if (best === null) return null;
  const hit = makeHit(scene, "instant", best.placed, best.entry);
  const marker = markerAt(mergedMarkers(scene.bands, track, false), x, MARKER_SLACK_PX + HIT_SLACK_PX);
  if (marker === null || marker.count < 2) return hit;
  // What is drawn as one is hit as one.
  const [fromNs, toNs] = [nsAt(scene.axis, marker.x), nsAt(scene.axis, marker.x + MERGE_PX)];
  const entry = { ...best.entry, flags: best.entry.flags | ENTRY_FLAG.aggregate, index: marker.count, name: marker.name };
  return { ...hit, entry, fromNs, toNs, box: { ...hit.box, x: marker.x, w: MERGE_PX } };
}

export function isAggregate(entry: SpanEntry): boolean {
  return (entry.flags & ENTRY_FLAG.aggregate) !== 0;
}

/** The place of an entry, as the server names it; aggregates have none. */
export function placeOf(hit: SpanHit): Place | null {
  if (isAggregate(hit.entry) || hit.track.lane === null) return null;
  return { lane: hit.track.lane.id, row: hit.is === "instant" ? null : hit.row, index: hit.entry.index };
}
