/** Several selected events: a table with sums. */

import { count, duration, instant } from "../../format";
import { selectEvent } from "../../state/actions";
import { type Selected, nameOf, selection } from "../../state/store";
import { NameOf, laneLabel } from "../Name";
import { type Column, Table } from "../table/Table";

const COLUMNS: readonly Column<Selected>[] = [
  { key: "name", head: "Name", width: "minmax(110px, 2fr)", value: (one) => nameOf(one.name), cell: (one) => <NameOf id={one.name} /> },
  { key: "lane", head: "Lane", width: "minmax(70px, 1fr)", value: (one) => laneLabel(one.place?.lane) },
  { key: "startNs", head: "Start", width: "100px", isNumber: true, value: (one) => one.startNs, text: (one) => instant(one.startNs) },
  { key: "durationNs", head: "Duration", width: "76px", isNumber: true, value: (one) => one.durationNs, text: (one) => duration(one.durationNs) },
];

export function Several() {
  const all = selection.value;
  const total = all.reduce((sum, { durationNs }) => sum + durationNs, 0);
  return (
    <div class="several">
      <div class="inspector-head">
        <h2>{count(all.length)} selected</h2>
        <div class="figures">
          <div>
            <b>{duration(total)}</b>
            <span>in all</span>
          </div>
          <div>
            <b>{duration(total / all.length)}</b>
            <span>mean</span>
          </div>
        </div>
      </div>
      <Table
        label="Selected events"
        name="selection"
        rows={all}
        columns={COLUMNS}
        rowKey={(one) => one.event ?? `${one.place?.lane}/${one.place?.row}/${one.place?.index}`}
        sort={null}
        choose={(one) => one.event !== null && void selectEvent(one.event)}
        empty=""
      />
    </div>
  );
}
