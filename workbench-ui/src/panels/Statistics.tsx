/** Counts and durations per name, kind, system, thread or family in the window (B-28). */

import { useSignal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { count, duration, estimate, isSmallSample, percent, visible } from "../format";
import type { StatsBy, StatsRow, TopSpan } from "../protocol/types";
import { announce, report, selectEvent } from "../state/actions";
import { sessionApi } from "../state/store";
import { BusyLine, Fault } from "./Answered";
import { Bars } from "./Bars";
import { logBins, roundScale } from "./histogram";
import { Swatch, familyOfKey } from "./Name";
import { slowestOf } from "./slowest";
import { Segments } from "./Segments";
import { type Column, Table } from "./table/Table";
import { TopSpansTable } from "./TopSpans";
import { useRequest } from "./useRequest";
import { useMedia } from "./useMedia";
import { PinButton, nothingIn, tableFilter, tableScope, tableWindow } from "./window";

const GROUPS: readonly (readonly [StatsBy, string])[] = [
  ["name", "Name"],
  ["kind", "Kind"],
  ["system", "System"],
  ["thread", "Thread"],
  ["family", "Family"],
];
const BINS = 18;
/** Why a total can be longer than the window. */
const TOUCHING = "Spans that touch the window count whole, with what of them lies outside of it";
const NO_ROWS: StatsRow[] = [];

/** Ends of a scale are round: `30 ms`. */
const roundDuration = (ns: number) => duration(ns).replace(/\.0+(?=\u202f)/, "");
const time = (ns: number | null) => (ns === null ? "no spans" : duration(ns));

/** A percentile; of too few values it is the maximum, which is said. */
function percentileColumn(key: "p50Ns" | "p95Ns" | "p99Ns", head: string, of: 95 | 99 | null): Column<StatsRow> {
  const shown = (row: StatsRow) => (row[key] === null ? "no spans" : row.approx ? estimate(duration(row[key])) : duration(row[key]));
  const isSmall = (row: StatsRow) => of !== null && row[key] !== null && isSmallSample(row.spans, of);
  return {
    key,
    head,
    width: "68px",
    isNumber: true,
    value: (row) => row[key],
    text: shown,
    cell: (row) => (isSmall(row) ? <i class="small-sample">{shown(row)}</i> : shown(row)),
    hint: (row) => (isSmall(row) ? `${count(row.spans)} values: ${head} is the maximum` : row[key] === null ? undefined : `${count(row[key])} ns`),
  };
}

function timeColumn(key: "totalNs" | "selfNs" | "meanNs" | "minNs" | "maxNs", head: string, title?: string): Column<StatsRow> {
  return {
    key,
    head,
    ...(title === undefined ? {} : { title }),
    width: "68px",
    isNumber: true,
    value: (row) => row[key],
    text: (row) => time(row[key]),
    hint: (row) => (row[key] === null ? undefined : `${row[key]} ns`),
  };
}

function columnsOf(by: StatsBy, selfTotal: number, histogram: Column<StatsRow>): Column<StatsRow>[] {
  const share = (row: StatsRow) => (row.selfNs === null || selfTotal === 0 ? null : row.selfNs / selfTotal);
  return [
    {
      key: "key",
      head: GROUPS.find(([group]) => group === by)?.[1] ?? "Name",
      width: "minmax(150px, 2fr)",
      value: (row) => row.key,
      text: (row) => visible(row.key),
      cell: (row) => (
        <>
          <Swatch family={familyOfKey(by, row.key)} />
          {visible(row.key)}
        </>
      ),
    },
    { key: "count", head: "Count", width: "60px", isNumber: true, value: (row) => row.count, text: (row) => count(row.count) },
    timeColumn("totalNs", "Total", TOUCHING),
    timeColumn("selfNs", "Self", TOUCHING),
    timeColumn("meanNs", "Mean"),
    percentileColumn("p50Ns", "P50", null),
    percentileColumn("p95Ns", "P95", 95),
    percentileColumn("p99Ns", "P99", 99),
    timeColumn("maxNs", "Max"),
    histogram,
    {
      key: "selfShare",
      head: "Self share",
      title: "Self time of all rows is 100 %",
      width: "88px",
      isNumber: true,
      value: share,
      text: (row) => {
        const value = share(row);
        return value === null ? "" : percent(value);
      },
      cell: (row) => {
        const value = share(row);
        if (value === null) return "";
        return (
          <span class="share">
            <i style={{ width: `${Math.round(value * 40)}px` }} />
            {percent(value)}
          </span>
        );
      },
    },
    timeColumn("minNs", "Min"),
  ];
}

/** A first click on a row selects its slowest span, further clicks the next slower ones. */
function useStepping(by: StatsBy, identity: string) {
  const state = useRef<{ key: string; at: number; spans: TopSpan[] } | null>(null);
  useEffect(() => {
    state.current = null;
  }, [identity]);
  return async (row: StatsRow) => {
    const api = sessionApi.value;
    if (api === null || row.spans === 0) return;
    try {
      if (state.current?.key !== row.key) {
        const spans = await slowestOf(api, by, row.key, Math.min(row.spans, 50), tableWindow.value);
        state.current = { key: row.key, at: -1, spans };
      }
      const { spans } = state.current;
      state.current.at = (state.current.at + 1) % Math.max(spans.length, 1);
      const span = spans[state.current.at];
      if (span === undefined) return;
      announce(`${visible(row.key)}, number ${state.current.at + 1} by duration, ${duration(span.durationNs)}, tick ${span.tick}`);
      await selectEvent(span.event);
    } catch (error) {
      report(error);
    }
  };
}

export function Statistics() {
  const by = useSignal<StatsBy>("name");
  const chosen = useSignal<string | null>(null);
  const isWide = useMedia("(min-width: 1800px)");
  const window = tableWindow.value;
  const filter = tableFilter.value;
  const identity = `${sessionApi.value?.id}/${by.value}/${window?.fromNs}/${window?.toNs}/${filter}`;
  const answer = useRequest((api, signal) => api.stats(by.value, window, { filter, top: 0, histograms: true }, signal), [identity]);
  const step = useStepping(by.value, identity);
  // The last answer stays while the window moves, but not under the head of another grouping.
  const current = answer.value?.by === by.value ? answer.value : null;
  const rows = current?.rows ?? NO_ROWS;
  const columns = useMemo(() => {
    const withSpans = rows.filter(({ spans }) => spans > 0);
    const least = Math.min(...withSpans.map(({ minNs }) => minNs ?? Number.POSITIVE_INFINITY));
    const scale = roundScale(Number.isFinite(least) ? least : 1, Math.max(1, ...withSpans.map(({ maxNs }) => maxNs ?? 0)));
    const histogram: Column<StatsRow> = {
      key: "histogram",
      head: `${roundDuration(scale.leastNs)}–${roundDuration(scale.mostNs)}`,
      title: "Durations on one logarithmic scale; heights are square roots of counts",
      width: "84px",
      value: () => null,
      text: () => "",
      cell: (row) =>
        row.spans > 0 ? <Bars bins={logBins(row.buckets ?? [], scale, BINS)} width={72} height={16} label={`${count(row.spans)} durations from ${time(row.minNs)} to ${time(row.maxNs)}`} /> : "",
    };
    return columnsOf(by.value, rows.reduce((sum, { selfNs }) => sum + (selfNs ?? 0), current?.left.selfNs ?? 0), histogram);
  }, [rows, by.value]);
  const choose = (row: StatsRow) => {
    chosen.value = row.key;
    void step(row);
  };
  return (
    <div class={isWide ? "panel-split" : "panel-single"}>
      <div class="panel-part">
        <BusyLine of={answer} />
        <Fault of={answer} />
        <Table
          key={by.value}
          label={`Statistics by ${by.value}`}
          name={`statistics-by-${by.value}`}
          rows={rows}
          columns={columns}
          rowKey={(row) => row.key}
          sort={{ key: "totalNs", isDescending: true }}
          selected={chosen.value}
          choose={choose}
          empty={current === null ? "" : nothingIn(filter ? "None of the hits" : "No event")}
          tools={
            <>
              <Segments label="Group by" values={GROUPS} now={by.value} set={(group) => (by.value = group)} />
              {current !== null && (
                <span class="tools-note" title={TOUCHING}>
                  {count(rows.length)} {rows.length === 1 ? by.value : by.value === "family" ? "families" : `${by.value}s`} in the {tableScope.value}
                  {filter ? ", hits only" : ""}
                </span>
              )}
              {current !== null && current.left.rows > 0 && (
                <span class="tools-note" title={`Those with the largest totals are listed. The others took ${duration(current.left.totalNs)} in all: a filter or a smaller window shows them.`}>
                  {count(current.left.rows)} more
                </span>
              )}
              <PinButton />
            </>
          }
        />
      </div>
      {isWide && (
        <div class="panel-part panel-part-right">
          <TopSpansTable isCompact />
        </div>
      )}
    </div>
  );
}
