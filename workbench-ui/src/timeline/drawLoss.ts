/** Where something is missing: losses, unreadable parts, what has not been read yet (B-3, B-4, B-5). */

import { computed } from "@preact/signals";
import { bytes, cappedNoun, count } from "../format";
import type { Notices } from "../protocol/types";
import { expectedEndNs, meta, notices } from "../state/store";
import { toNs, xOf } from "./axis";
import { type Context, chip, hatch } from "./draw";
import type { Palette } from "./palette";
import type { Scene } from "./scene";

const LEAST_PX = 6;

interface Gap {
  from: number;
  to: number;
  text: string;
}

/** Parts of x in which data is missing, with what is to be said of them; neighbours that touch are one. */
export function gapsIn(scene: Scene): Gap[] {
  const { axis } = scene;
  const gaps: (Gap & Missing)[] = [];
  for (const { fromNs, toNs: end, ...part } of missing.value) {
    if (end < axis.fromNs || fromNs > toNs(axis)) continue;
    let [from, to] = [xOf(axis, fromNs), xOf(axis, end)];
    if (to - from < LEAST_PX) [from, to] = [(from + to - LEAST_PX) / 2, (from + to + LEAST_PX) / 2];
    const last = gaps[gaps.length - 1];
    if (last !== undefined && from <= last.to) {
      last.to = Math.max(last.to, to);
      last.records += part.records;
      last.bytes += part.bytes;
      last.rows += part.rows;
      // Different sets of rows: only their number can be said.
      if (last.what !== part.what) last.what = last.what === "" ? part.what : part.what === "" ? last.what : "rows";
    } else gaps.push({ from, to, text: "", ...part });
  }
  for (const gap of gaps) gap.text = textOf(gap);
  return gaps;
}

/** What is missing somewhere: records that were lost, bytes that cannot be read, or rows that the engine left out of a record. */
interface Missing {
  records: number;
  bytes: number;
  rows: number;
  /** What the rows are. */
  what: string;
}

/** What the count of a notice is about; of others it is no amount. */
const COUNTS_RECORDS = new Set(["checksum-block", "short-span"]);
const COUNTS_BYTES = new Set(["truncated", "bad-record", "skipped"]);

/** Everything that is missing, in order of time. */
export function missingIn(all: Notices | null): (Missing & { fromNs: number; toNs: number })[] {
  const none = { records: 0, bytes: 0, rows: 0, what: "" };
  const found = (all?.notices ?? []).flatMap(({ code, rangeNs, count: of }) => {
    if (rangeNs === null) return [];
    const amount = { records: COUNTS_RECORDS.has(code) ? (of ?? 0) : 0, bytes: COUNTS_BYTES.has(code) ? (of ?? 0) : 0 };
    return [{ ...none, ...amount, fromNs: rangeNs[0], toNs: rangeNs[1] }];
  });
  for (const { atNs, records } of all?.losses ?? []) found.push({ ...none, fromNs: atNs, toNs: atNs, records });
  for (const { atNs, shown, total, what } of all?.capped ?? []) found.push({ ...none, fromNs: atNs, toNs: atNs, rows: total - shown, what: cappedNoun(what) });
  return found.sort((a, b) => a.fromNs - b.fromNs);
}

const missing = computed(() => missingIn(notices.value));

function textOf({ records, bytes: unread, rows, what }: Missing): string {
  const amounts = [records > 0 ? `${count(records)} records` : "", unread > 0 ? bytes(unread) : "", rows > 0 ? `${count(rows)} ${what}` : ""];
  const parts = amounts.filter((part) => part !== "");
  if (parts.length === 0) return "part not readable";
  return `${parts.join(", ")} ${unread > 0 && parts.length === 1 ? "not readable" : "not shown"}`;
}

export function drawLoss(context: Context, scene: Scene): void {
  const { palette, height, axis } = scene;
  // Over every track, those that are pinned too.
  const top = scene.rulerHeight;
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
  if (expectedEndNs.value === null) return;
  const from = Math.max(xOf(axis, meta.value?.time.endNs ?? 0), 0);
  drawUnread(context, palette, from, axis.widthPx, top, height);
}

const UNREAD_TEXT_PX = 90;

/** "Not read yet": the hatch of a loss, fainter and without edges (B-3). */
export function drawUnread(context: Context, palette: Palette, from: number, to: number, top: number, bottom: number, hasText = true): void {
  if (to <= from || bottom <= top) return;
  context.fillStyle = palette.signal["bg-canvas"];
  context.fillRect(from, top, to - from, bottom - top);
  context.fillStyle = hatch(context, palette.signal["loss-hatch"], 6);
  context.globalAlpha = 0.5;
  context.fillRect(from, top, to - from, bottom - top);
  context.globalAlpha = 1;
  if (hasText && to - from > UNREAD_TEXT_PX) chip(context, palette, "not read yet", (from + to) / 2 + 34, (top + bottom) / 2 - 6);
}
