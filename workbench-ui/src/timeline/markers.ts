/** Markers of instants: those within 6 px are one, with their number (B-12). Drawing and the hit test take them from here. */

import { ENTRY_FLAG, spanEntry } from "../protocol/tile";
import type { Entries } from "./cache";
import type { PlacedBand } from "./scene";
import type { Track } from "./tracks";

export interface Marker {
  /** Where the first of them lies. */
  x: number;
  count: number;
  name: number;
}

/** Of the row of markers. */
export const MARKER_MIDDLE_PX = 6;
export const MERGE_PX = 6;

/** Adds a marker; one that is too near the last is counted there. */
function merge(markers: Marker[], marker: Marker): void {
  const last = markers[markers.length - 1];
  if (last !== undefined && marker.x - last.x < MERGE_PX) last.count += marker.count;
  else markers.push({ ...marker });
}

/** Markers of a tile at a scale, from its left edge. They are merged there, so that they are the same at each frame of a pan. */
const ofTiles = new WeakMap<Entries, { scale: number; markers: Marker[] }>();

function tileMarkers(instants: Entries, scale: number): Marker[] {
  const known = ofTiles.get(instants);
  if (known?.scale === scale) return known.markers;
  const markers: Marker[] = [];
  for (let entry = 0; entry < instants.count; entry += 1) {
    const { x0, flags, index, name } = spanEntry(instants.body, entry);
    merge(markers, { x: x0 * scale, count: flags & ENTRY_FLAG.aggregate ? index : 1, name });
  }
  ofTiles.set(instants, { scale, markers });
  return markers;
}

/** Instants of a track in view, merged. */
export function mergedMarkers(bands: readonly PlacedBand[], track: Track, ofFilter: boolean): Marker[] {
  const markers: Marker[] = [];
  for (const { track: of, band, tile, at, isFiltered } of bands) {
    if (of !== track || band !== 0 || tile.instants === null || isFiltered !== ofFilter) continue;
    for (const marker of tileMarkers(tile.instants, at.scale)) {
      const x = at.x + marker.x;
      if (x >= at.clipFrom && x < at.clipTo) merge(markers, { ...marker, x });
    }
  }
  return markers;
}

/** The marker nearest to x, if it is near enough. */
export function markerAt(markers: readonly Marker[], x: number, slackPx: number): Marker | null {
  let best: Marker | null = null;
  for (const marker of markers) {
    const distance = Math.abs(marker.x - x);
    if (distance <= slackPx && (best === null || distance < Math.abs(best.x - x))) best = marker;
  }
  return best;
}
