/** The gauge tracks as a table: every gauge's scale, and its values in the window. */

import { bytes, count } from "../format";
import { type SessionApi, ask } from "../protocol/http";
import { CONTENT, WANT, counterEntry, decodeFrames, encodeRequest, tileNs } from "../protocol/tile";
import type { GaugeInfo } from "../protocol/types";
import { type Range, gauges, sessionApi } from "../state/store";
import type { Column } from "./table/Table";
import { TablePanel } from "./table/TablePanel";
import { countColumn } from "./table/columns";
import { useRequest } from "./useRequest";
import { tableRange, tableScope } from "./window";

interface InWindow {
  samples: number;
  min: number;
  max: number;
  last: number;
}

/** View of the requests of this table; the timeline has its own. */
const VIEW = 40;

/** What the gauges were in a range, from two tiles or three that cover it. */
async function valuesIn(api: SessionApi, list: readonly GaugeInfo[], { fromNs, toNs }: Range, signal: AbortSignal): Promise<Map<number, InWindow>> {
  const found = new Map<number, InWindow>();
  if (list.length === 0) return found;
  const level = Math.min(Math.max(Math.ceil(Math.log2(Math.max(toNs - fromNs, 1) / 512)), 0), 48);
  const firstTile = Math.floor(fromNs / tileNs(level));
  const tileCount = Math.min(Math.max(Math.ceil(toNs / tileNs(level)) - firstTile, 1), 64);
  const lanes = list.slice(0, 512).map(({ lane }) => ({ lane, firstRow: 0, rowCount: 1 }));
  const body = encodeRequest({ requestId: 1, generation: 0, level, content: WANT.counters, firstTile, tileCount, filterId: 0, viewId: VIEW, lanes });
  const response = await ask(`/sessions/${encodeURIComponent(api.id)}/tiles`, { method: "POST", bytes: body, signal });
  for (const { content, lane, tile, count: entries, body: at } of decodeFrames(await response.arrayBuffer())) {
    if (content !== CONTENT.counter) continue;
    for (let number = 0; number < entries; number += 1) {
      const { x, samples, min, max, last } = counterEntry(at, number);
      const ns = tile * tileNs(level) + x * 2 ** level;
      const old = found.get(lane);
      // No samples: the value from before the tile, which holds until the first of it.
      if (ns >= toNs || (samples === 0 && old !== undefined) || (samples > 0 && ns + 2 ** level <= fromNs)) {
        if (ns < fromNs) found.set(lane, { samples: 0, min: last, max: last, last });
        continue;
      }
      found.set(lane, old === undefined ? { samples, min, max, last } : { samples: old.samples + samples, min: Math.min(old.min, min), max: Math.max(old.max, max), last });
    }
  }
  return found;
}

type Row = GaugeInfo & { inWindow: InWindow | null };

function shown(kind: GaugeInfo["valueKind"], value: number): string {
  if (kind === "U64Bytes") return bytes(value);
  if (kind === "U32PercentHundredths") return `${(value / 100).toFixed(2)}\u202f%`;
  return count(value);
}

const whole = (key: "min" | "max", head: string): Column<Row> => ({
  key: `${key}All`,
  head,
  width: "104px",
  isNumber: true,
  value: (row) => Number(row[key]),
  text: (row) => shown(row.valueKind, Number(row[key])),
  hint: (row) => row[key],
});
const inWindow = (key: keyof InWindow, head: string): Column<Row> => ({
  key,
  head,
  width: "104px",
  isNumber: true,
  value: (row) => row.inWindow?.[key] ?? null,
  text: (row) => (row.inWindow === null ? "absent" : key === "samples" ? count(row.inWindow[key]) : shown(row.valueKind, row.inWindow[key])),
});

const COLUMNS: readonly Column<Row>[] = [
  { key: "name", head: "Gauge", width: "minmax(180px, 2fr)", value: (row) => row.name },
  inWindow("last", "At the end"),
  inWindow("min", "Least"),
  inWindow("max", "Most"),
  inWindow("samples", "Values"),
  whole("min", "Least in trace"),
  whole("max", "Most in trace"),
  countColumn("samplesAll", "Values in trace", "minmax(104px, 1fr)", (row) => row.samples),
];

export function Gauges() {
  const list = gauges.value?.gauges ?? [];
  const range = tableRange.value;
  const answer = useRequest((api, signal) => valuesIn(api, list, range, signal), [sessionApi.value?.id, gauges.value, range.fromNs, range.toNs]);
  const rows = list.map((gauge) => ({ ...gauge, inWindow: answer.value?.get(gauge.lane) ?? null }));
  return (
    <TablePanel
      answer={answer}
      label="Gauges"
      name="gauges"
      rows={rows}
      columns={COLUMNS}
      rowKey={(row) => String(row.lane)}
      sort={null}
      empty="No gauges in this recording. They come with the kind GaugeSnapshot, which the profiler writes once a tick."
      note={`${count(rows.length)} gauges in the ${tableScope.value}`}
    />
  );
}
