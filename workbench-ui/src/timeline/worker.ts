/** Turns tiles into bitmaps. Keeps nothing but the style; the page keeps tiles and bitmaps within its budget. */

import { type PaintJob, type PaintStyle, paintTile } from "./painter";

export type ToWorker =
  | { type: "style"; style: PaintStyle }
  | { type: "paint"; id: number; job: Omit<PaintJob, "body"> & { bytes: ArrayBuffer }; widthPx: number; heightPx: number };

export interface FromWorker {
  id: number;
  bitmap: ImageBitmap;
}

let style: PaintStyle | null = null;

self.onmessage = ({ data }: MessageEvent<ToWorker>) => {
  if (data.type === "style") {
    style = data.style;
    return;
  }
  if (style === null) return;
  const { job, widthPx, heightPx } = data;
  const canvas = new OffscreenCanvas(Math.max(1, Math.ceil(widthPx * job.ratio)), Math.max(1, Math.ceil(heightPx * job.ratio)));
  const context = canvas.getContext("2d");
  if (context === null) return;
  context.scale(job.ratio, job.ratio);
  paintTile(context, { ...job, body: new DataView(job.bytes) }, style);
  const bitmap = canvas.transferToImageBitmap();
  const answer: FromWorker = { id: data.id, bitmap };
  (self as unknown as Worker).postMessage(answer, [bitmap]);
};
