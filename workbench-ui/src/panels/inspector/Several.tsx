/** Several selected events: a table with sums. */

import { bytes, count, duration, significant } from "../../format";
import type { SessionApi } from "../../protocol/http";
import type { EventDetail } from "../../protocol/types";
import { selectEvent } from "../../state/actions";
import { type Selected, selection } from "../../state/store";
import { Fault } from "../Answered";
import { type Column, Table } from "../table/Table";
import { durationColumn, instantColumn, laneColumn, nameColumn } from "../table/columns";
import { useRequest } from "../useRequest";
import { Section } from "./Facts";
import { type FieldSum, fieldSums } from "./fieldSums";

const COLUMNS: readonly Column<Selected>[] = [
  nameColumn("Name", "minmax(110px, 2fr)"),
  laneColumn("minmax(70px, 1fr)"),
  instantColumn("startNs", "Start", "100px", (one) => one.startNs),
  durationColumn("durationNs", "Duration", "76px", (one) => one.durationNs),
];

/** Events of which the fields are read: one request each. */
const MOST_READ = 200;
const AT_ONCE = 8;

async function details(api: SessionApi, events: readonly string[], signal: AbortSignal): Promise<EventDetail[]> {
  const found: EventDetail[] = [];
  for (let at = 0; at < events.length; at += AT_ONCE) {
    found.push(...(await Promise.all(events.slice(at, at + AT_ONCE).map((event) => api.event(event, signal)))));
  }
  return found;
}

/** What the fields of the selected events come to, and the time for one of what they count. */
function FieldSums({ of }: { of: readonly Selected[] }) {
  const events = of.flatMap(({ event }) => (event === null ? [] : [event])).slice(0, MOST_READ);
  const answer = useRequest(events.length === 0 ? null : (api, signal) => details(api, events, signal), [events.join()]);
  const sums = fieldSums(answer.value ?? []);
  if (sums.length === 0) return <Fault of={answer} />;
  const number = (value: number, { isTime, unit }: FieldSum) => (isTime ? duration(value) : unit === "bytes" ? bytes(value) : Number.isInteger(value) ? count(value) : significant(value));
  return (
    <Section title="Fields" aside={of.length > events.length ? `of the first ${count(events.length)}` : `of ${count(events.length)}`}>
      <table class="field-sums">
        <thead>
          <tr>
            {["Field", "Sum", "Mean", "Least", "Most", "Time for one"].map((head) => (
              <th key={head} scope="col">
                {head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {sums.map((sum) => (
            <tr key={sum.name}>
              <th scope="row" title={sum.name}>
                {sum.name}
              </th>
              <td>{number(sum.sum, sum)}</td>
              <td>{number(sum.sum / sum.count, sum)}</td>
              <td>{number(sum.min, sum)}</td>
              <td>{number(sum.max, sum)}</td>
              <td>{sum.nsPerOne === null ? "" : duration(sum.nsPerOne)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Section>
  );
}

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
      <FieldSums of={all} />
    </div>
  );
}
