/** The longest spans of the window. */

import { useSignal } from "@preact/signals";
import { count } from "../format";
import type { TopSpan } from "../protocol/types";
import { selectEvent } from "../state/actions";
import { primary, sessionApi } from "../state/store";
import { BusyLine, Fault } from "./Answered";
import { Segments } from "./Segments";
import { Table } from "./table/Table";
import { countColumn, durationColumn, eventColumn, instantColumn, laneColumn, nameColumn } from "./table/columns";
import { useRequest } from "./useRequest";
import { PinButton, nothingIn, tableFilter, tableScope, tableWindow } from "./window";

const ORDERS = [
  ["total", "Duration"],
  ["self", "Self time"],
] as const;
const SHOWN = 200;

const NAME = nameColumn<TopSpan>("Name", "minmax(126px, 2fr)");
const LANE = laneColumn<TopSpan>("minmax(108px, 1fr)");
const TICK = countColumn<TopSpan>("tick", "Tick", "60px", (span) => span.tick);
const DURATION = durationColumn<TopSpan>("durationNs", "Duration", "76px", (span) => span.durationNs);
const SELF = durationColumn<TopSpan>("selfNs", "Self", "72px", (span) => span.selfNs);
const START = instantColumn<TopSpan>("startNs", "Start", "120px", (span) => span.startNs);
const EVENT = eventColumn<TopSpan>("76px");

const COMPACT = [{ ...NAME, head: "Top spans" }, LANE, TICK, DURATION];
const FULL = [NAME, LANE, TICK, START, DURATION, SELF, EVENT];

export function TopSpansTable({ isCompact = false }: { isCompact?: boolean }) {
  const order = useSignal<"total" | "self">("total");
  const window = tableWindow.value;
  const filter = tableFilter.value;
  const answer = useRequest(
    (api, signal) => api.top(SHOWN, window, { filter, order: order.value }, signal),
    [sessionApi.value?.id, window?.fromNs, window?.toNs, filter, order.value],
  );
  const spans = answer.value?.spans ?? [];
  return (
    <>
      <BusyLine of={answer} />
      <Fault of={answer} />
      <Table
        key={order.value}
        label="Longest spans"
        name="top-spans"
        rows={spans}
        columns={isCompact ? COMPACT : FULL}
        rowKey={(span) => span.event}
        sort={{ key: order.value === "self" && !isCompact ? "selfNs" : "durationNs", isDescending: true }}
        selected={primary.value?.event ?? null}
        choose={(span) => void selectEvent(span.event)}
        empty={answer.value === null ? "" : nothingIn("No span")}
        tools={
          isCompact ? null : (
            <>
              <Segments label="Longest by" values={ORDERS} now={order.value} set={(value) => (order.value = value)} />
              {answer.value !== null && (
                <span class="tools-note">
                  the {count(spans.length)} longest in the {tableScope.value}
                </span>
              )}
              <PinButton />
            </>
          )
        }
      />
    </>
  );
}

export function TopSpans() {
  return (
    <div class="panel-single">
      <div class="panel-part">
        <TopSpansTable />
      </div>
    </div>
  );
}
