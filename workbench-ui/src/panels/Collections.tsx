/** The GC track as a table. */

import { useMemo } from "preact/hooks";
import { count, duration } from "../format";
import type { Collection } from "../protocol/types";
import { showRange } from "../state/actions";
import { collections, gcSummary } from "../state/store";
import type { Column } from "./table/Table";
import { TablePanel } from "./table/TablePanel";
import { bytesColumn, countColumn, durationColumn, instantColumn } from "./table/columns";
import { nothingIn, tableRange, tableScope } from "./window";

type Sizes = "promotedBytes" | "gen0Bytes" | "gen1Bytes" | "gen2Bytes" | "lohBytes" | "pohBytes" | "committedBytes";

const sized = (key: Sizes, head: string) => bytesColumn<Collection>(key, head, "84px", (row) => row[key]);
const moment = (key: "startNs" | "endNs", head: string) => instantColumn<Collection>(key, head, "116px", (row) => row[key]);
const named = (key: "reason" | "gcType", name: "reasonName" | "gcTypeName", head: string): Column<Collection> => ({
  key,
  head,
  width: "minmax(168px, 1fr)",
  value: (row) => row[name] ?? row[key],
  text: (row) => String(row[name] ?? row[key] ?? "absent"),
});

const COLUMNS: readonly Column<Collection>[] = [
  countColumn("count", "#", "48px", (row) => row.count),
  countColumn("generation", "Generation", "84px", (row) => row.generation),
  durationColumn("pauseNs", "Pause", "84px", (row) => row.pauseNs),
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
    <TablePanel
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
          : nothingIn("No collection")
      }
      note={
        <>
          {count(rows.length)} of {count(all.length)} collections in the {tableScope.value}
          {pauses ? ` · paused ${duration(pauses.totalNs)} in all, ${duration(pauses.maxNs)} at most` : ""}
        </>
      }
    />
  );
}
