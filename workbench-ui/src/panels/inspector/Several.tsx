/** Several selected events: a table with sums. */

import { count, duration } from "../../format";
import { selectEvent } from "../../state/actions";
import { type Selected, selection } from "../../state/store";
import { type Column, Table } from "../table/Table";
import { durationColumn, instantColumn, laneColumn, nameColumn } from "../table/columns";

const COLUMNS: readonly Column<Selected>[] = [
  nameColumn("Name", "minmax(110px, 2fr)"),
  laneColumn("minmax(70px, 1fr)"),
  instantColumn("startNs", "Start", "100px", (one) => one.startNs),
  durationColumn("durationNs", "Duration", "76px", (one) => one.durationNs),
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
