/** The longest spans of the window. */

import { useSignal } from "@preact/signals";
import { count, duration, instant } from "../format";
import type { TopSpan } from "../protocol/types";
import { selectEvent } from "../state/actions";
import { nameOf, primary, sessionApi } from "../state/store";
import { BusyLine, Fault } from "./Answered";
import { NameOf, laneLabel } from "./Name";
import { Segments } from "./Segments";
import { type Column, Table } from "./table/Table";
import { useRequest } from "./useRequest";
import { PinButton, tableFilter, tableWindow } from "./window";

const ORDERS = [
  ["total", "Duration"],
  ["self", "Self time"],
] as const;
const SHOWN = 200;

const NAME: Column<TopSpan> = {
  key: "name",
  head: "Name",
  width: "minmax(130px, 2fr)",
  value: (span) => nameOf(span.name),
  cell: (span) => <NameOf id={span.name} />,
};
const LANE: Column<TopSpan> = { key: "lane", head: "Lane", width: "minmax(80px, 1fr)", value: (span) => laneLabel(span.place?.lane) };
const TICK: Column<TopSpan> = { key: "tick", head: "Tick", width: "64px", isNumber: true, value: (span) => span.tick, text: (span) => count(span.tick) };
const DURATION: Column<TopSpan> = {
  key: "durationNs",
  head: "Duration",
  width: "80px",
  isNumber: true,
  value: (span) => span.durationNs,
  text: (span) => duration(span.durationNs),
  hint: (span) => `${count(span.durationNs)} ns`,
};
const SELF: Column<TopSpan> = {
  key: "selfNs",
  head: "Self",
  width: "80px",
  isNumber: true,
  value: (span) => span.selfNs,
  text: (span) => duration(span.selfNs),
  hint: (span) => `${count(span.selfNs)} ns`,
};
const START: Column<TopSpan> = {
  key: "startNs",
  head: "Start",
  width: "120px",
  isNumber: true,
  value: (span) => span.startNs,
  text: (span) => instant(span.startNs),
  hint: (span) => `${count(span.startNs)} ns`,
};
const EVENT: Column<TopSpan> = { key: "event", head: "Event", width: "84px", value: (span) => span.event, cell: (span) => <span class="mono">{span.event}</span> };

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
        empty={answer.value === null ? "" : "No span is in the window. Press 0 for the whole trace."}
        tools={
          isCompact ? null : (
            <>
              <Segments label="Longest by" values={ORDERS} now={order.value} set={(value) => (order.value = value)} />
              <span class="tools-note">
                the {count(spans.length)} longest in {window === null ? "the trace" : "the window"}
              </span>
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
