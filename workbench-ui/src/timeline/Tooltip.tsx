/** What is under the mouse. It holds no controls: everything in it is in the inspector too. */

import { useEffect, useState } from "preact/hooks";
import { bytes, count, duration, pointInTime, visible } from "../format";
import { isAbort } from "../protocol/http";
import type { Collection, EventDetail } from "../protocol/types";
import * as s from "../state/store";
import { nsAt } from "./axis";
import { gaugeValue, layerValueAt } from "./drawGauges";
import { caption } from "./gc";
import { SLOT } from "./palette";
import { type SpanHit, isAggregate, placeOf, trackAtPoint } from "./scene";
import { timeContext } from "./timeContext";
import type { TimelineView } from "./view";

export interface TipAt {
  x: number;
  y: number;
  canvasX: number;
  canvasY: number;
  hit: SpanHit | null;
}

const DELAY_MS = 80;
const FIELDS = 3;

export interface Tip {
  title: string;
  figure: string;
  swatch: string | null;
  lines: string[];
}

function hitKey(hit: SpanHit | null): string {
  return hit === null ? "" : `${hit.is}/${hit.track.key}/${hit.row}/${hit.entry.flags}/${hit.entry.index}/${hit.fromNs}`;
}

export function fieldText({ name, value, valueName, ns }: EventDetail["fields"][number]): string {
  if (value === null || Array.isArray(value)) return "";
  return `${name} ${ns !== null ? duration(ns) : valueName !== null ? visible(valueName) : visible(String(value))}`;
}

function spanTip(view: TimelineView, hit: SpanHit, detail: EventDetail | null): Tip {
  const { entry, track } = hit;
  const swatch = view.palette.bars[view.style.slots[entry.name] ?? SLOT.other] ?? null;
  const lane = visible(track.label);
  if (isAggregate(entry)) {
    const what = hit.is === "instant" ? "instants" : "spans";
    return { title: `${count(entry.index)} ${what}`, figure: "", swatch, lines: [`${lane} · longest ${visible(s.nameOf(entry.name))}`] };
  }
  const title = visible(detail?.name ?? s.nameOf(entry.name));
  if (detail === null) return { title, figure: "", swatch, lines: [lane] };
  const parent = detail.parents[0];
  const time = pointInTime(detail.startNs, s.timeDisplay.value, timeContext(), view.axis().nsPerPx);
  const fields = detail.fields.map(fieldText).filter((text) => text !== "").slice(0, FIELDS);
  const self = detail.selfNs === null ? "" : `self ${duration(detail.selfNs)}`;
  const lines = [
    [parent === undefined ? lane : `${lane} · in ${visible(s.nameOf(parent.name))}`, self].filter((text) => text !== "").join(" · "),
    detail.tick > 0 ? `${time} · tick ${count(detail.tick)}` : time,
    fields.join(" · "),
    detail.hasNoEnd ? "no end in the recording: drawn until the lane's next record" : "",
  ];
  return { title, figure: detail.durationNs === null ? "" : duration(Math.max(detail.durationNs, 0)), swatch, lines: lines.filter((line) => line !== "") };
}

export function collectionLines(collection: Collection): string[] {
  const sizes = [
    ["Gen0", collection.gen0Bytes],
    ["Gen1", collection.gen1Bytes],
    ["Gen2", collection.gen2Bytes],
    ["LOH", collection.lohBytes],
    ["POH", collection.pohBytes],
  ] as const;
  const after = sizes.filter(([, size]) => size !== null).map(([name, size]) => `${name} ${bytes(size ?? 0)}`);
  return [
    [collection.gcTypeName, collection.reasonName].filter((text) => text !== null).join(" · "),
    collection.promotedBytes === null ? "" : `promoted ${bytes(collection.promotedBytes)}`,
    after.length === 0 ? "" : `after: ${after.join(", ")}`,
  ].filter((line) => line !== "");
}

/** Tracks whose content is no entry of a tile: collections, gauges. */
function trackTip(view: TimelineView, at: TipAt): Tip | null {
  const { scene } = view;
  const found = scene === null ? null : trackAtPoint(scene, at.canvasY);
  if (scene === null || found === null) return null;
  const { track } = found;
  const ns = nsAt(scene.axis, at.canvasX);
  if (track.kind === "gc") {
    const slack = scene.axis.nsPerPx * 6;
    const near = s.collections.value.find(({ startNs, endNs }) => ns >= (startNs ?? endNs ?? 0) - slack && ns <= (endNs ?? startNs ?? 0) + slack);
    return near === undefined ? null : { title: caption(near), figure: "", swatch: view.palette.signal["gc-pause"], lines: collectionLines(near) };
  }
  const { gauge } = track;
  if (gauge === null) return null;
  const lines = [...gauge.layers].reverse().concat(gauge.line === null ? [] : [gauge.line]).flatMap((layer) => {
    const value = layerValueAt(scene, gauge, layer.lane, at.canvasX);
    return value === null ? [] : [`${layer.label} ${gaugeValue(value, gauge)}`];
  });
  return lines.length === 0 ? null : { title: gauge.label, figure: "", swatch: null, lines };
}

export function Tooltip({ view, at }: { view: TimelineView; at: TipAt | null }) {
  const [detail, setDetail] = useState<{ key: string; detail: EventDetail } | null>(null);
  const [shown, setShown] = useState("");
  const key = at === null ? "" : hitKey(at.hit) || `track/${Math.round(at.canvasY / 8)}`;
  useEffect(() => {
    if (at === null) return setShown("");
    const controller = new AbortController();
    const timer = setTimeout(() => {
      setShown(key);
      const place = at.hit === null ? null : placeOf(at.hit);
      const api = s.sessionApi.peek();
      if (place === null || api === null || !s.isReady.peek()) return;
      api
        .at(place, controller.signal)
        .then((found) => setDetail({ key, detail: found }))
        .catch((error: unknown) => {
          // The tooltip shows what the tile knows; the inspector tells what is wrong with the record.
          if (!isAbort(error)) setDetail(null);
        });
    }, DELAY_MS);
    return () => {
      clearTimeout(timer);
      controller.abort();
    };
  }, [key]);
  if (at === null || shown === "") return null;
  const known = detail?.key === key ? detail.detail : null;
  const tip = at.hit !== null && at.hit.track.kind !== "gc" ? spanTip(view, at.hit, known) : trackTip(view, at);
  return tip === null ? null : <TipBox tip={tip} x={at.x} y={at.y} />;
}

/** A tooltip beside a point of the page. */
export function TipBox({ tip, x, y }: { tip: Tip; x: number; y: number }) {
  const right = window.innerWidth - x < 340;
  const below = window.innerHeight - y > 140;
  const style = {
    ...(right ? { right: `${window.innerWidth - x + 14}px` } : { left: `${x + 14}px` }),
    ...(below ? { top: `${y + 16}px` } : { bottom: `${window.innerHeight - y + 16}px` }),
  };
  return (
    <div class="tooltip" role="tooltip" style={style}>
      <div class="tooltip-head">
        {tip.swatch !== null && <i class="swatch" style={{ background: tip.swatch }} />}
        <b>{tip.title}</b>
        <span>{tip.figure}</span>
      </div>
      {tip.lines.map((line) => (
        <div class="tooltip-line" key={line}>
          {line}
        </div>
      ))}
    </div>
  );
}
