/** Where something is missing: losses, unreadable parts, what has not been read yet (B-3, B-4, B-5). */

import { count } from "../format";
import { activeSession, meta, notices } from "../state/store";
import { toNs, xOf } from "./axis";
import { type Context, chip, hatch, useFont } from "./draw";
import { type Scene, scrollAreaTop } from "./scene";

const LEAST_PX = 6;

interface Gap {
  from: number;
  to: number;
  text: string;
}

/** Parts of x in which data is missing, with what is to be said of them; neighbours that touch are one. */
export function gapsIn(scene: Scene): Gap[] {
  const { axis } = scene;
  const found: { fromNs: number; toNs: number; records: number }[] = [];
  for (const { rangeNs, count: records } of notices.value?.notices ?? []) {
    if (rangeNs !== null) found.push({ fromNs: rangeNs[0], toNs: rangeNs[1], records: records ?? 0 });
  }
  for (const { atNs, records } of notices.value?.losses ?? []) found.push({ fromNs: atNs, toNs: atNs, records });
  const gaps: (Gap & { records: number })[] = [];
  for (const { fromNs, toNs: end, records } of found.sort((a, b) => a.fromNs - b.fromNs)) {
    if (end < axis.fromNs || fromNs > toNs(axis)) continue;
    let [from, to] = [xOf(axis, fromNs), xOf(axis, end)];
    if (to - from < LEAST_PX) [from, to] = [(from + to - LEAST_PX) / 2, (from + to + LEAST_PX) / 2];
    const last = gaps[gaps.length - 1];
    if (last !== undefined && from <= last.to) {
      last.to = Math.max(last.to, to);
      last.records += records;
    } else gaps.push({ from, to, records, text: "" });
  }
  for (const gap of gaps) gap.text = gap.records > 0 ? `${count(gap.records)} records not shown` : "part not readable";
  return gaps;
}

export function drawLoss(context: Context, scene: Scene): void {
  const { palette, height, axis } = scene;
  const top = scrollAreaTop(scene);
  for (const { from, to, text } of gapsIn(scene)) {
    context.fillStyle = hatch(context, palette.signal["loss-hatch"], 6);
    context.globalAlpha = 0.7;
    context.fillRect(from, top, to - from, height - top);
    context.globalAlpha = 1;
    context.strokeStyle = palette.signal.loss;
    context.lineWidth = 1;
    context.setLineDash([3, 3]);
    context.beginPath();
    for (const x of [Math.round(from) + 0.5, Math.round(to) - 0.5]) {
      context.moveTo(x, top);
      context.lineTo(x, height);
    }
    context.stroke();
    context.setLineDash([]);
    const left = chip(context, palette, text, Math.min(Math.max(to, 130), axis.widthPx - 2), height - 18, "loss");
    context.strokeStyle = palette.signal.loss;
    context.strokeRect(left + 0.5, height - 17.5, Math.min(Math.max(to, 130), axis.widthPx - 2) - left - 1, 12);
  }
  drawUnread(context, scene);
}

/** Behind what has been read so far. */
function drawUnread(context: Context, scene: Scene): void {
  if (activeSession.value?.state.is !== "opening" || meta.value === null) return;
  const { axis, palette, height, rulerHeight } = scene;
  const from = Math.max(xOf(axis, meta.value.time.endNs), 0);
  if (from >= axis.widthPx) return;
  context.fillStyle = hatch(context, palette.signal["loss-hatch"], 6);
  context.globalAlpha = 0.35;
  context.fillRect(from, rulerHeight, axis.widthPx - from, height - rulerHeight);
  context.globalAlpha = 1;
  useFont(context, palette, 11);
  if (axis.widthPx - from > 90) chip(context, palette, "not read yet", (from + axis.widthPx) / 2 + 40, height / 2);
}
