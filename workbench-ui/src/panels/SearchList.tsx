/** The hits of a search as a table; more are fetched as the end comes into view. */

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { count, duration, visible } from "../format";
import type { Hit } from "../protocol/types";
import { report } from "../state/actions";
import { filter, primary, sessionApi } from "../state/store";
import { showHit } from "./hits";
import { NothingFound } from "./NothingFound";
import type { Column } from "./table/Table";
import { TablePanel } from "./table/TablePanel";
import { countColumn, durationColumn, eventColumn, instantColumn, laneColumn, nameColumn } from "./table/columns";
import { useRequest } from "./useRequest";

const PAGE = 1000;

interface Numbered extends Hit {
  at: number;
}

const COLUMNS: readonly Column<Numbered>[] = [
  countColumn("at", "#", "64px", (hit) => hit.at + 1),
  nameColumn("Name", "minmax(140px, 2fr)"),
  laneColumn("minmax(90px, 1fr)"),
  countColumn("tick", "Tick", "72px", (hit) => hit.tick),
  instantColumn("startNs", "Start", "120px", (hit) => hit.startNs),
  durationColumn("durationNs", "Duration", "84px", (hit) => hit.durationNs, { text: (hit) => (hit.place?.row === null ? "instant" : duration(hit.durationNs)) }),
  eventColumn("92px"),
];

export function SearchList() {
  const state = filter.value;
  const filterId = state.is === "ready" ? state.filterId : 0;
  const answer = useRequest(filterId === 0 ? null : async (api, signal) => ({ of: filterId, ...(await api.search(filterId, { count: PAGE }, signal)) }), [filterId]);
  const listed = filterId !== 0 && answer.value?.of === filterId ? answer.value.hits : null;
  const more = useSignal<{ filterId: number; hits: Hit[]; isAsking: boolean }>({ filterId: 0, hits: [], isAsking: false });
  useEffect(() => {
    more.value = { filterId, hits: [], isAsking: false };
  }, [filterId]);
  const first = listed ?? (state.is === "running" || state.is === "ready" ? state.first : []);
  const all = [...first, ...(more.value.filterId === filterId ? more.value.hits : [])];
  const rows = all.map((hit, at) => ({ ...hit, at }));
  const fetchMore = async () => {
    const [api, end] = [sessionApi.value, all[all.length - 1]];
    if (api === null || end === undefined || state.is !== "ready" || listed === null || all.length >= state.matches || more.value.isAsking) return;
    more.value = { ...more.value, isAsking: true };
    try {
      const { hits } = await api.search(filterId, { count: PAGE, after: end.event });
      if (more.value.filterId === filterId) more.value = { filterId, hits: [...more.value.hits, ...hits], isAsking: false };
    } catch (error) {
      more.value = { ...more.value, isAsking: false };
      report(error);
    }
  };
  if (state.is === "none") {
    return (
      <div class="panel-empty">
        Nothing is searched. <kbd>/</kbd> takes a filter such as <code>name=AntUpdate dur&gt;100us</code>.
      </div>
    );
  }
  if (state.is === "failed") return <div class="panel-empty">{visible(state.problem.detail)}</div>;
  return (
    <TablePanel
      answer={answer}
      label="Hits"
      name="hits"
      rows={rows}
      columns={COLUMNS}
      rowKey={(hit) => hit.event}
      sort={null}
      selected={primary.value?.event ?? null}
      choose={(hit) => showHit(hit, hit.at)}
      empty={state.is === "ready" && state.matches === 0 ? <NothingFound text={state.text} /> : ""}
      atEnd={() => void fetchMore()}
      followsWindow={false}
      note={state.is === "ready" ? `${count(state.matches)} hits in the trace${listed !== null && rows.length < state.matches ? `, ${count(rows.length)} listed` : ""}` : rows.length === 0 ? "searching" : `searching; the first ${count(rows.length)}`}
    />
  );
}
