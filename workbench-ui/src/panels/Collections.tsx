/** The GC track as a table. */

import { useMemo } from "preact/hooks";
import { bytes, count, duration, instant } from "../format";
import type { Collection } from "../protocol/types";
import { showRange } from "../state/actions";
import { collections, gcSummary } from "../state/store";
import { type Column, Table } from "./table/Table";
import { PinButton, tableRange } from "./window";

type Key = keyof Collection;

const sized = (key: Key, head: string): Column<Collection> => ({
  key,
  head,
  width: "84px",
  isNumber: true,
  value: (row) => row[key],
  text: (row) => (row[key] === null ? "absent" : bytes(Number(row[key]))),
  hint: (row) => (row[key] === null ? undefined : `${count(Number(row[key]))} bytes`),
});
const moment = (key: Key, head: string): Column<Collection> => ({
  key,
  head,
  width: "116px",
  isNumber: true,
  value: (row) => row[key],
  text: (row) => (row[key] === null ? "absent" : instant(Number(row[key]))),
});
const named = (key: Key, name: Key, head: string): Column<Collection> => ({
  key,
  head,
  width: "minmax(110px, 1fr)",
  value: (row) => (row[name] ?? row[key]) as string | number | null,
  text: (row) => String(row[name] ?? row[key] ?? "absent"),
});

const COLUMNS: readonly Column<Collection>[] = [
  { key: "count", head: "#", width: "48px", isNumber: true, value: (row) => row.count },
  {
    key: "generation",
    head: "Generation",
    width: "84px",
    isNumber: true,
    value: (row) => row.generation,
    text: (row) => String(row.generation ?? "absent"),
  },
  {
    key: "pauseNs",
    head: "Pause",
    width: "84px",
    isNumber: true,
    value: (row) => row.pauseNs,
    text: (row) => (row.pauseNs === null ? "absent" : duration(row.pauseNs)),
    hint: (row) => (row.pauseNs === null ? undefined : `${count(row.pauseNs)} ns`),
  },
  named("reason", "reasonName", "Reason"),
  named("gcType", "gcTypeName", "Type"),
  moment("startNs", "Start"),
  moment("endNs", "End"),
  sized("promotedBytes", "Promoted"),
  sized("gen0Bytes", "Gen 0 after"),
  sized("gen1Bytes", "Gen 1 after"),
  sized("gen2Bytes", "Gen 2 after"),
  sized("lohBytes", "LOH after"),
  sized("pohBytes", "POH after"),
  sized("committedBytes", "Committed"),
];

export function Collections() {
  const { fromNs, toNs } = tableRange.value;
  const all = collections.value;
  const rows = useMemo(
    () => all.filter(({ startNs, endNs }) => (startNs ?? endNs ?? 0) < toNs && (endNs ?? startNs ?? Number.POSITIVE_INFINITY) >= fromNs),
    [all, fromNs, toNs],
  );
  const pauses = gcSummary.value?.pauses;
  return (
    <div class="panel-single">
      <div class="panel-part">
        <Table
          label="Collections"
          name="collections"
          rows={rows}
          columns={COLUMNS}
          rowKey={(row) => `${row.count}/${row.startNs}/${row.endNs}`}
          sort={{ key: "startNs", isDescending: false }}
          choose={({ startNs, endNs }) => {
            const from = startNs ?? endNs;
            if (from !== null) showRange({ fromNs: from, toNs: Math.max(endNs ?? from, from + 1) }, 0.5);
          }}
          empty={
            all.length === 0
              ? "No collections in this recording. GC tracing was off, or nothing managed ran; typhon gc records them, and Typhon:Profiler:GcTracing:Enabled in a program."
              : "No collection is in the window. Press 0 for the whole trace."
          }
          tools={
            <>
              <span class="tools-note">
                {count(rows.length)} of {count(all.length)} collections
                {pauses ? ` · paused ${duration(pauses.totalNs)} in all, ${duration(pauses.maxNs)} at most` : ""}
              </span>
              <PinButton />
            </>
          }
        />
      </div>
    </div>
  );
}
