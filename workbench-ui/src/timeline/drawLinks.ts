/** Links of the selection, as elbows from start to start (B-20, ui-design §12): what was waited for, and what waited. */

import type { Place, RelatedSpan } from "../protocol/types";
import { links } from "../state/store";
import { xOf } from "./axis";
import type { Context } from "./draw";
import { barHeight } from "./geometry";
import { MARKER_MIDDLE_PX } from "./markers";
import { type Scene, rowTop, scrollAreaTop, trackTop } from "./scene";
import type { Track } from "./tracks";

export interface Elbow {
  reason: string;
  /** Events at both ends. */
  from: string;
  to: string;
  /** Where the first begins: the middle of its row. Canvas. */
  x: number;
  y: number;
  /** Where the second begins: the top of its row. */
  toX: number;
  toY: number;
  /** Along it from the one to the other: between the rows, so that no label is crossed out. */
  alongY: number;
}

const ARROW_PX = 4;
/** From the line to the top of the row below it. */
const ABOVE_ROW_PX = 3;
const DOT_PX = 2.5;

/** Top and middle of the row of a place. Of a lane that is folded it is the first row; null when the lane is not shown. */
function rowOf(scene: Scene, tracks: readonly Track[], { lane, row }: Place): { top: number; middle: number } | null {
  const track = tracks.find((one) => one.lane?.id === lane);
  if (track === undefined) return null;
  const top = row === null && track.markersTop !== null ? trackTop(scene, track) + track.markersTop : rowTop(scene, track, Math.min(row ?? 0, Math.max(track.rows - 1, 0)));
  const middle = row === null ? MARKER_MIDDLE_PX : barHeight(track.pitch, scene.axis.ratio) / 2;
  return { top, middle: top + middle };
}

/** The links that can be drawn: both lanes are shown. An end beyond the canvas lies at its edge. */
export function elbowsIn(scene: Scene): Elbow[] {
  const tracks = [...scene.layout.pinned, ...scene.layout.scrolled];
  const within = (y: number, place: Place) => {
    const isPinned = tracks.find((one) => one.lane?.id === place.lane)?.isPinned ?? false;
    return Math.min(Math.max(y, isPinned ? scene.rulerHeight : scrollAreaTop(scene)), scene.height);
  };
  const end = ({ place, startNs }: RelatedSpan) => {
    const row = place === null ? null : rowOf(scene, tracks, place);
    return place === null || row === null ? null : { x: xOf(scene.axis, startNs), middle: within(row.middle, place), top: within(row.top, place) };
  };
  return (links.value?.links ?? []).flatMap(({ reason, from, to }) => {
    // Both begin at the same moment, and both are outlined.
    if (reason === "completion") return [];
    const [first, second] = [end(from), end(to)];
    if (first === null || second === null) return [];
    return [{ reason, from: from.event, to: to.event, x: first.x, y: first.middle, toX: second.x, toY: second.top, alongY: Math.round(second.top) - ABOVE_ROW_PX + 0.5 }];
  });
}

/** From the beginning of the first to the beginning of the second. What is taken from the tables is dashed. */
export function drawLinks(context: Context, scene: Scene): void {
  const elbows = elbowsIn(scene);
  if (elbows.length === 0) return;
  const { palette, axis } = scene;
  // On the canvas' colour first, so that a line can be told from the bars that it crosses.
  for (const [colour, width] of [[palette.signal["bg-canvas"], 3], [palette.signal.select, 1]] as const) {
    context.strokeStyle = context.fillStyle = colour;
    context.lineWidth = width;
    for (const { reason, x, y, toX, toY, alongY } of elbows) {
      const edge = (at: number) => Math.round(Math.min(Math.max(at, -2), axis.widthPx + 2)) + 0.5;
      const [from, to] = [edge(x), edge(toX)];
      context.setLineDash(reason === "schedule" && width < 2 ? [4, 3] : []);
      context.beginPath();
      context.moveTo(from, y);
      context.lineTo(from, alongY);
      context.lineTo(to, alongY);
      context.stroke();
      context.setLineDash([]);
      context.beginPath();
      context.arc(from, y, DOT_PX, 0, Math.PI * 2);
      context.fill();
      context.beginPath();
      context.moveTo(to - ARROW_PX, alongY);
      context.lineTo(to + ARROW_PX, alongY);
      context.lineTo(to, toY + ARROW_PX);
      context.fill();
    }
  }
}
