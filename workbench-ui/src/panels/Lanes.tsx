/** All lanes: which are shown, pinned, how tall; and what is in them (B-18). */

import { useSignal } from "@preact/signals";
import { count, visible } from "../format";
import type { LaneKind } from "../protocol/types";
import { cycleHeight, moveLane, setLaneView, toggleLane } from "../state/actions";
import { EMPTY_LANE_VIEW, type TrackHeight, gauges, laneKey, laneView, meta } from "../state/store";
import { gaugeTracks } from "../timeline/gauges";
import { gaugeHeight, orderThreads, reorder } from "../timeline/tracks";
import { Section } from "./inspector/Facts";

const KINDS: readonly (readonly [LaneKind, string])[] = [
  ["gc", "Collector"],
  ["gauge", "Gauges"],
  ["thread", "Threads"],
  ["system", "Systems"],
  ["strip", "Strips"],
];

/** A track of the timeline: lanes, but gauges as they share tracks. */
interface Item {
  key: string;
  kind: LaneKind;
  label: string;
  contents: string;
  canFold: boolean;
  /** Of gauges. */
  height: TrackHeight;
}

/** All tracks in the order in which they stand. */
export function laneItems(): Item[] {
  const lanes = meta.value?.lanes ?? [];
  const tracks = gaugeTracks(lanes, gauges.value).map((gauge): Item => {
    const { key, label, layers, line } = gauge;
    const ids = new Set([...layers, ...(line === null ? [] : [line])].map(({ lane }) => lane));
    const values = lanes.filter(({ id }) => ids.has(id)).reduce((sum, { samples }) => sum + samples, 0);
    const name = `gauges:${key}`;
    return { key: name, kind: "gauge", label, contents: `${count(values)} values`, canFold: false, height: gaugeHeight(laneView.value, name, gauge) };
  });
  const rest = [...lanes.filter(({ kind }) => kind !== "thread"), ...orderThreads(lanes.filter(({ kind }) => kind === "thread"))]
    .filter(({ kind }) => kind !== "gauge")
    .map((lane): Item => {
      const { spans, instants, rows } = lane;
      const parts = [spans > 0 ? `${count(spans)} spans` : "", instants > 0 ? `${count(instants)} instants` : "", rows > 1 ? `${count(rows)} rows` : ""];
      const contents = parts.filter((part) => part !== "").join(", ") || "empty";
      return { key: laneKey(lane), kind: lane.kind, label: lane.label, contents, canFold: rows > 1, height: "normal" };
    });
  return reorder([...tracks, ...rest], laneView.value.order);
}

function Move({ of, label, among, by }: { of: string; label: string; among: readonly string[]; by: -1 | 1 }) {
  const at = among.indexOf(of);
  const way = by < 0 ? "up" : "down";
  return (
    <button type="button" disabled={by < 0 ? at === 0 : at === among.length - 1} aria-label={`Move ${label} ${way}`} title={`Move ${way}`} onClick={() => moveLane(among, of, by)}>
      {by < 0 ? "↑" : "↓"}
    </button>
  );
}

function Line({ of, among }: { of: Item; among: readonly string[] }) {
  const { key, kind, canFold, contents, height } = of;
  const { hidden, pinned, collapsed, fitted } = laneView.value;
  const label = visible(of.label);
  return (
    <li class="lane-line">
      <label title={label}>
        <input type="checkbox" checked={!hidden.includes(key)} onChange={() => toggleLane("hidden", key)} />
        <span>{label}</span>
      </label>
      <span class="text-3">{contents}</span>
      <span class="lane-switches">
        {among.length > 1 && (
          <>
            <Move of={key} label={label} among={among} by={-1} />
            <Move of={key} label={label} among={among} by={1} />
          </>
        )}
        <button type="button" aria-pressed={pinned.includes(key)} aria-label={`Pin ${label}`} title="Keep under the ruler" onClick={() => toggleLane("pinned", key)}>
          pin
        </button>
        {kind === "gauge" && (
          <>
            <button type="button" aria-label={`Height of ${label}: ${height}`} title="Height" onClick={() => cycleHeight(key, height)}>
              {height}
            </button>
            <button type="button" aria-pressed={fitted.includes(key)} aria-label={`Fit ${label} to the window`} title="Scale to the window" onClick={() => toggleLane("fitted", key)}>
              fit
            </button>
          </>
        )}
        {kind !== "gauge" && canFold && (
          <button type="button" aria-pressed={collapsed.includes(key)} aria-label={`Fold ${label}`} title="First row only" onClick={() => toggleLane("collapsed", key)}>
            fold
          </button>
        )}
      </span>
    </li>
  );
}

export function Lanes() {
  const query = useSignal("");
  const all = laneItems();
  const wanted = query.value.trim().toLowerCase();
  const list = all.filter(({ label }) => label.toLowerCase().includes(wanted));
  return (
    <div class="inspector">
      <div class="lanes-head">
        <input
          type="text"
          class="note"
          aria-label="Lanes with these letters"
          placeholder="Lanes with these letters"
          spellcheck={false}
          value={query.value}
          onInput={({ currentTarget }) => (query.value = currentTarget.value)}
        />
        <button type="button" class="link" onClick={() => setLaneView(EMPTY_LANE_VIEW)}>
          As they were
        </button>
      </div>
      {KINDS.map(([kind, title]) => {
        const own = list.filter((lane) => lane.kind === kind);
        const among = all.filter((lane) => lane.kind === kind).map(({ key }) => key);
        return own.length === 0 ? null : (
          <Section key={kind} title={`${title} · ${count(own.length)}`}>
            <ul class="lanes">
              {own.map((lane) => (
                <Line key={lane.key} of={lane} among={among} />
              ))}
            </ul>
          </Section>
        );
      })}
      {list.length === 0 && <p class="panel-hint">No lane has these letters.</p>}
    </div>
  );
}
