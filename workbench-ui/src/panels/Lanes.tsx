/** All lanes: which are shown, pinned, how tall; and what is in them (B-18). */

import { useSignal } from "@preact/signals";
import { count, visible } from "../format";
import type { Lane, LaneKind } from "../protocol/types";
import { cycleHeight, setLaneView, toggleLane } from "../state/actions";
import { EMPTY_LANE_VIEW, laneKey, laneView, meta } from "../state/store";
import { Section } from "./inspector/Facts";

const KINDS: readonly (readonly [LaneKind, string])[] = [
  ["gc", "Collector"],
  ["gauge", "Gauges"],
  ["thread", "Threads"],
  ["system", "Systems"],
  ["strip", "Strips"],
];

function contents({ kind, spans, instants, samples, rows }: Lane): string {
  if (kind === "gauge") return `${count(samples)} values`;
  const parts = [spans > 0 ? `${count(spans)} spans` : "", instants > 0 ? `${count(instants)} instants` : "", rows > 1 ? `${count(rows)} rows` : ""];
  return parts.filter((part) => part !== "").join(", ") || "empty";
}

function Line({ of }: { of: Lane }) {
  const key = laneKey(of);
  const { hidden, pinned, collapsed, heights, fitted } = laneView.value;
  const label = visible(of.label);
  const isGauge = of.kind === "gauge";
  return (
    <li class="lane-line">
      <label title={label}>
        <input type="checkbox" checked={!hidden.includes(key)} onChange={() => toggleLane("hidden", key)} />
        <span>{label}</span>
      </label>
      <span class="text-3">{contents(of)}</span>
      <span class="lane-switches">
        <button type="button" aria-pressed={pinned.includes(key)} aria-label={`Pin ${label}`} title="Keep under the ruler" onClick={() => toggleLane("pinned", key)}>
          pin
        </button>
        {isGauge ? (
          <>
            <button type="button" aria-label={`Height of ${label}: ${heights[key] ?? "normal"}`} title="Height" onClick={() => cycleHeight(key)}>
              {heights[key] ?? "normal"}
            </button>
            <button type="button" aria-pressed={fitted.includes(key)} aria-label={`Fit ${label} to the window`} title="Scale to the window" onClick={() => toggleLane("fitted", key)}>
              fit
            </button>
          </>
        ) : (
          of.rows > 1 && (
            <button type="button" aria-pressed={collapsed.includes(key)} aria-label={`Fold ${label}`} title="First row only" onClick={() => toggleLane("collapsed", key)}>
              fold
            </button>
          )
        )}
      </span>
    </li>
  );
}

export function Lanes() {
  const query = useSignal("");
  const all = meta.value?.lanes ?? [];
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
        return own.length === 0 ? null : (
          <Section key={kind} title={`${title} · ${count(own.length)}`}>
            <ul class="lanes">
              {own.map((lane) => (
                <Line key={lane.id} of={lane} />
              ))}
            </ul>
          </Section>
        );
      })}
      {list.length === 0 && <p class="panel-hint">No lane has these letters.</p>}
    </div>
  );
}
