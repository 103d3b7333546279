/** GC track: pauses, collections, flags; and the wash of a pause through all threads. */

import { spanEntry } from "../protocol/tile";
import { collections } from "../state/store";
import { clipTo } from "./drawSpans";
import { type Context, fitText, textWidth, useFont } from "./draw";
import { type GcMark, flagsOf, marksIn } from "./gc";
import { bucketBox } from "./geometry";
import type { SignalToken } from "./palette";
import { type Scene, scrollAreaTop, trackTop } from "./scene";
import type { Track } from "./tracks";

const GENERATIONS: readonly SignalToken[] = ["mem-gen0", "mem-gen1", "mem-gen2"];
const CAPTION_GAP_PX = 8;
const WASH_LEAST_PX = 2;
const EDGES_LEAST_PX = 6;

export interface Pause {
  x: number;
  to: number;
}

/** Extents of suspensions in view, from the tiles; parts of one pause in neighbouring tiles are one. */
export function pausesIn(scene: Scene): Pause[] {
  const pauses: Pause[] = [];
  for (const { track, tile, at, isFiltered } of scene.bands) {
    if (track.kind !== "gc" || tile.spans === null || isFiltered) continue;
    for (let entry = 0; entry < tile.spans.count; entry += 1) {
      const { x0, x1 } = spanEntry(tile.spans.body, entry);
      const box = bucketBox(x0, x1, at.scale, at.ratio);
      const [x, to] = [Math.max(at.x + box.x, at.clipFrom), Math.min(at.x + box.x + box.w, at.clipTo)];
      if (to <= x) continue;
      const last = pauses[pauses.length - 1];
      if (last !== undefined && x <= last.to && x >= last.x) last.to = Math.max(last.to, to);
      else pauses.push({ x, to });
    }
  }
  return pauses;
}

/** Under the bars: a pause is one event for everybody. */
export function drawPauseWash(context: Context, scene: Scene, pauses: Pause[]): void {
  const { palette } = scene;
  const top = scrollAreaTop(scene);
  const height = Math.min(scene.height, top + scene.layout.scrolledHeight - scene.scrollTop);
  for (const { x, to } of pauses) {
    if (to - x < WASH_LEAST_PX) continue;
    context.fillStyle = palette.signal["gc-pause"];
    context.globalAlpha = 0.06;
    context.fillRect(x, top, to - x, height - top);
    if (to - x >= EDGES_LEAST_PX) {
      context.globalAlpha = 0.4;
      context.fillRect(Math.round(x), top, 1, height - top);
      context.fillRect(Math.round(to) - 1, top, 1, height - top);
    }
    context.globalAlpha = 1;
  }
}

export function drawGc(context: Context, scene: Scene, track: Track, pauses: Pause[]): void {
  clipTo(context, scene, track, () => {
    const top = trackTop(scene, track);
    const [barTop, barHeight] = [top + track.height - 16, 13];
    const { palette } = scene;
    const marks = marksIn(scene.axis, collections.value);
    for (const mark of marks.filter(({ isBackground }) => isBackground)) {
      context.strokeStyle = palette.signal["gc-outline"];
      context.lineWidth = 1;
      context.strokeRect(Math.round(mark.from) + 0.5, barTop + 0.5, Math.max(Math.round(mark.to - mark.from) - 1, 1), barHeight - 1);
    }
    context.fillStyle = palette.signal["gc-pause"];
    for (const { x, to } of pauses) context.fillRect(x, barTop, Math.max(to - x, 2), barHeight);
    drawFlags(context, scene, top, marks);
    drawCaptions(context, scene, top, marks);
  });
}

function drawFlags(context: Context, scene: Scene, top: number, marks: GcMark[]): void {
  const { palette } = scene;
  for (const { x, isStart, text, generation, count } of flagsOf(marks)) {
    const token = GENERATIONS[generation ?? -1] ?? "text-3";
    const colour = palette.signal[token];
    useFont(context, palette, 9, 600);
    const width = Math.max(textWidth(context, text) + 4, 9);
    const left = isStart ? x : x - width;
    context.fillStyle = colour;
    context.beginPath();
    // The slanted side tells starts from ends.
    if (isStart) {
      context.moveTo(left, top + 2);
      context.lineTo(left + width, top + 2);
      context.lineTo(left + width - 3, top + 12);
      context.lineTo(left, top + 12);
    } else {
      context.moveTo(left + width, top + 2);
      context.lineTo(left, top + 2);
      context.lineTo(left + 3, top + 12);
      context.lineTo(left + width, top + 12);
    }
    context.fill();
    context.fillRect(isStart ? Math.round(x) : Math.round(x) - 1, top + 2, 1, 27);
    context.fillStyle = flagInk(scene, token);
    context.fillText(text, left + (width - textWidth(context, text)) / 2 + (isStart ? -0.5 : 0.5), top + 10.5);
    if (count > 1) context.fillRect(left + 1, top + 12, width - 2, 1);
  }
}

function flagInk({ palette }: Scene, token: SignalToken): string {
  const isDeep = token === "mem-gen2" || token === "text-3" || token === "mem-gen1";
  const isLightTheme = palette.signal["bg-canvas"].toLowerCase() === "#ffffff";
  return isDeep && isLightTheme ? palette.signal["ink-light"] : palette.signal["ink-dark"];
}

/** Captions on chips; one that would meet the next is cut, then left out. */
function drawCaptions(context: Context, scene: Scene, top: number, marks: GcMark[]): void {
  const { palette, axis } = scene;
  useFont(context, palette, 11, 500);
  const flags = flagsOf(marks);
  for (const mark of marks) {
    const left = Math.max(mark.from, 0) + 14;
    const next = flags.find((flag) => flag.isStart && flag.x > Math.max(mark.from, 0) + 1);
    const end = flags.find((flag) => !flag.isStart && flag.x >= left);
    const limit = Math.min(next?.x ?? axis.widthPx, end === undefined ? axis.widthPx : Math.max(end.x - 12, 0));
    const text = fitText(context, mark.caption, Math.min(limit, axis.widthPx) - left - CAPTION_GAP_PX, 8);
    if (text === "") continue;
    context.fillStyle = palette.signal["bg-canvas"];
    context.fillRect(left - 2, top + 1, textWidth(context, text) + 4, 13);
    context.fillStyle = mark.isBackground ? palette.signal["text-2"] : palette.signal.text;
    context.fillText(text, left, top + 11);
  }
}
