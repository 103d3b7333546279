/** Share of the window in which a lane works, from the tiles on the screen. */

import { spanEntry } from "../protocol/tile";
import type { NameStyle } from "./palette";
import type { Scene } from "./scene";

/** By track: time covered by spans of row 0 that are not waiting, and of the GC lane by suspensions. */
export function spansUtilisation(scene: Scene, style: NameStyle): Map<string, number> {
  const busy = new Map<string, number>();
  for (const { track, band, tile, at, isFiltered } of scene.bands) {
    if (isFiltered || band !== 0 || track.gauge !== null) continue;
    let sum = busy.get(track.key) ?? 0;
    for (let entry = 0; tile.spans !== null && entry < tile.spans.count; entry += 1) {
      const { x0, x1, row, name, cover } = spanEntry(tile.spans.body, entry);
      if (row !== 0 || style.waiting[name]) continue;
      const from = Math.max(at.x + x0 * at.scale, at.clipFrom);
      const to = Math.min(at.x + x1 * at.scale, at.clipTo);
      // Buckets are rounded outwards; the cover says how much of them is really busy.
      if (to > from) sum += ((to - from) * cover) / 65535;
    }
    busy.set(track.key, sum);
  }
  for (const [key, px] of busy) busy.set(key, Math.min(px / scene.axis.widthPx, 1));
  return busy;
}
