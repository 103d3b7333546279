/** The tick overview and the overload strip as a table. */

import { useMemo } from "preact/hooks";
import { count, duration } from "../format";
import { showTick } from "../state/actions";
import { meta, ticks } from "../state/store";
import type { Column } from "./table/Table";
import { TablePanel } from "./table/TablePanel";
import { countColumn, durationColumn, instantColumn } from "./table/columns";
import { nothingIn, tableRange, tableScope } from "./window";

interface TickRow {
  place: number;
  number: number;
  startNs: number;
  durationNs: number | null;
  level: number;
  multiplier: number;
  collections: number;
  missingBefore: number;
}

function columnsOf(p95Ns: number | null): Column<TickRow>[] {
  const isSlow = (row: TickRow) => p95Ns !== null && (row.durationNs ?? 0) > p95Ns;
  const length = (row: TickRow) => (row.durationNs === null ? "no end" : duration(row.durationNs));
  return [
    countColumn("number", "Tick", "72px", (row) => row.number),
    instantColumn("startNs", "Start", "120px", (row) => row.startNs),
    durationColumn("durationNs", "Duration", "92px", (row) => row.durationNs, {
      text: length,
      cell: (row) => <span class={isSlow(row) ? "hot" : ""}>{length(row)}</span>,
      hint: (row) => (isSlow(row) ? `above P95, ${duration(p95Ns ?? 0)}` : row.durationNs === null ? undefined : `${count(row.durationNs)} ns`),
    }),
    countColumn("collections", "Collections", "92px", (row) => row.collections, { title: "Garbage collections that touch the tick" }),
    countColumn("level", "Overload level", "108px", (row) => row.level),
    countColumn("multiplier", "Rate ÷", "72px", (row) => row.multiplier, { title: "The tick rate is divided by this" }),
    countColumn("missingBefore", "Missing before", "108px", (row) => row.missingBefore, { title: "Tick numbers that are not in the recording" }),
  ];
}

export function Ticks() {
  const table = ticks.value;
  const { fromNs, toNs } = tableRange.value;
  const rows = useMemo(() => {
    const { first, end } = table.placesIn({ fromNs, toNs });
    return Array.from({ length: end - first }, (_, at): TickRow => {
      const place = first + at;
      return {
        place,
        number: table.numbers[place] ?? 0,
        startNs: table.startNs[place] ?? 0,
        durationNs: table.durationNs[place] ?? null,
        level: table.levels[place] ?? 0,
        multiplier: table.multipliers[place] ?? 1,
        collections: table.collections[place] ?? 0,
        missingBefore: table.missingBefore[place] ?? 0,
      };
    });
  }, [table, fromNs, toNs]);
  const columns = useMemo(() => columnsOf(meta.value?.ticks.p95Ns ?? null), [meta.value]);
  return (
    <TablePanel
      label="Ticks"
      name="ticks"
      rows={rows}
      columns={columns}
      rowKey={(row) => String(row.place)}
      sort={{ key: "durationNs", isDescending: true }}
      choose={(row) => showTick(row.place)}
      empty={table.startNs.length === 0 ? "This recording has no ticks: nothing in it runs a tick loop." : nothingIn("No tick")}
      note={
        <>
          {count(rows.length)} of {count(table.startNs.length)} ticks in the {tableScope.value}
        </>
      }
    />
  );
}
