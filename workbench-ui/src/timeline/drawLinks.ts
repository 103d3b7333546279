/** Links of the selection, as elbows from start to start (B-20, ui-design §12): what was waited for, and what waited. */

import type { Place, RelatedSpan } from "../protocol/types";
import { links } from "../state/store";
import { xOf } from "./axis";
import type { Context } from "./draw";
import { barHeight } from "./geometry";
import { type Scene, rowTop, scrollAreaTop, trackTop } from "./scene";
import type { Track } from "./tracks";

export interface Elbow {
  reason: string;
  /** Events at both ends. */
  from: string;
  to: string;
  /** Where the first begins, and where the second does; canvas. */
  x: number;
  y: number;
  toX: number;
  toY: number;
}

const ARROW_PX = 5;

/** Middle of the row of a place. Of a lane that is folded it is the first row; null when the lane is not shown. */
function middleOf(scene: Scene, tracks: readonly Track[], { lane, row }: Place): number | null {
  const track = tracks.find((one) => one.lane?.id === lane);
  if (track === undefined) return null;
  if (row === null) return track.markersTop === null ? rowTop(scene, track, 0) : trackTop(scene, track) + track.markersTop + 6;
  return rowTop(scene, track, Math.min(row, Math.max(track.rows - 1, 0))) + barHeight(track.pitch, scene.axis.ratio) / 2;
}

/** The links that can be drawn: both lanes are shown. An end beyond the canvas lies at its edge. */
export function elbowsIn(scene: Scene): Elbow[] {
  const tracks = [...scene.layout.pinned, ...scene.layout.scrolled];
  const within = (y: number, place: Place) => {
    const isPinned = tracks.find((one) => one.lane?.id === place.lane)?.isPinned ?? false;
    return Math.min(Math.max(y, isPinned ? scene.rulerHeight : scrollAreaTop(scene)), scene.height);
  };
  const end = ({ place, startNs }: RelatedSpan) => {
    const y = place === null ? null : middleOf(scene, tracks, place);
    return place === null || y === null ? null : { x: xOf(scene.axis, startNs), y: within(y, place) };
  };
  return (links.value?.links ?? []).flatMap(({ reason, from, to }) => {
    // Both begin at the same moment, and both are outlined.
    if (reason === "completion") return [];
    const [first, second] = [end(from), end(to)];
    return first === null || second === null ? [] : [{ reason, from: from.event, to: to.event, x: first.x, y: first.y, toX: second.x, toY: second.y }];
  });
}

/** Down from the beginning of the first, along to the beginning of the second. What is taken from the tables is dashed. */
export function drawLinks(context: Context, scene: Scene): void {
  const elbows = elbowsIn(scene);
  if (elbows.length === 0) return;
  const { palette, axis } = scene;
  // On the canvas' colour first, so that a line can be told from the bars that it crosses.
  for (const [colour, width] of [[palette.signal["bg-canvas"], 3.5], [palette.signal.select, 1.5]] as const) {
    context.strokeStyle = context.fillStyle = colour;
    context.lineWidth = width;
    for (const { reason, x, y, toX, toY } of elbows) {
      const [from, to] = [Math.min(Math.max(x, -2), axis.widthPx + 2), Math.min(Math.max(toX, -2), axis.widthPx + 2)];
      context.setLineDash(reason === "schedule" && width < 2 ? [4, 3] : []);
      context.beginPath();
      context.moveTo(from, y);
      context.lineTo(from, toY);
      context.lineTo(to, toY);
      context.stroke();
      context.setLineDash([]);
      const back = to >= from ? -ARROW_PX : ARROW_PX;
      context.beginPath();
      context.moveTo(to, toY);
      context.lineTo(to + back, toY - 3.5);
      context.lineTo(to + back, toY + 3.5);
      context.fill();
    }
  }
}
