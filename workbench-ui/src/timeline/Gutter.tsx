/** Heads of the tracks. */

import { percent, visible } from "../format";
import { cycleHeight, toggleLane } from "../state/actions";
import * as s from "../state/store";
import { xOf } from "./axis";
import { gaugeValue, layerValueAt } from "./drawGauges";
import { suspendedText } from "./gc";
import { makeRuler } from "./ruler";
import { type Track, gaugeHeight } from "./tracks";
import type { TimelineView } from "./view";

const MARGIN_PX = 400;

function Chevron({ track }: { track: Track }) {
  if (!track.canFold) return <i class="tl-chevron" />;
  return (
    <button
      type="button"
      class="tl-chevron"
      aria-expanded={!track.isFolded}
      aria-label={`${track.isFolded ? "Unfold" : "Fold"} ${visible(track.label)}`}
      onClick={() => toggleLane("collapsed", track.key)}
    >
      <svg width="8" height="8" viewBox="0 0 8 8" aria-hidden="true">
        <path d={track.isFolded ? "M2.5 1 6 4 2.5 7" : "M1 2.5 4 6 7 2.5"} fill="none" stroke="currentColor" stroke-width="1.2" />
      </svg>
    </button>
  );
}

function Pin({ track }: { track: Track }) {
  return (
    <button
      type="button"
      class={track.isPinned ? "tl-pin pinned" : "tl-pin"}
      aria-pressed={track.isPinned}
      aria-label={`Pin ${visible(track.label)}`}
      title={track.isPinned ? "Unpin" : "Pin under the ruler"}
      onClick={() => toggleLane("pinned", track.key)}
    >
      <svg width="10" height="10" viewBox="0 0 10 10" aria-hidden="true">
        <path d="M3.5 1h3v3.2L8 6H2l1.5-1.8zM5 6v3" fill={track.isPinned ? "currentColor" : "none"} stroke="currentColor" />
      </svg>
    </button>
  );
}

function Actions({ track }: { track: Track }) {
  const key = track.key;
  return (
    <span class="tl-actions">
      {track.gauge !== null && (
        <>
          <button type="button" class="tl-small" title="Fit the scale to the window" aria-pressed={s.laneView.value.fitted.includes(key)} onClick={() => toggleLane("fitted", key)}>
            fit
          </button>
          <button type="button" class="tl-small" title="Height: summary, normal, double" onClick={() => track.gauge !== null && cycleHeight(key, gaugeHeight(s.laneView.value, key, track.gauge))}>
            ↕
          </button>
        </>
      )}
      {track.kind !== "group" && (
        <button type="button" class="tl-small" title="Hide; the palette shows it again" aria-label={`Hide ${visible(track.label)}`} onClick={() => toggleLane("hidden", key)}>
          ×
        </button>
      )}
      {track.kind !== "group" && <Pin track={track} />}
    </span>
  );
}

/** The number at the right of a head. */
function figure(view: TimelineView, track: Track): string {
  if (track.kind === "group") return `${track.members}`;
  const { scene } = view;
  if (track.gauge !== null) {
    if (scene === null) return "";
    const cursor = s.cursorNs.value;
    const x = cursor === null ? scene.axis.widthPx / 2 : xOf(scene.axis, cursor);
    const layers = track.key === "gauges:page-cache" ? track.gauge.layers.filter(({ label }) => label === "dirty") : track.gauge.layers;
    const values = layers.map((layer) => layerValueAt(scene, track.gauge!, layer.lane, x)).filter((value) => value !== null);
    if (values.length === 0) return "";
    const sum = values.reduce((total, value) => total + value, 0);
    return layers.length === 1 && track.gauge.layers.length > 1 ? `${gaugeValue(sum, { unit: "count", noun: "" })} ${layers[0]?.label}` : gaugeValue(sum, track.gauge);
  }
  const share = view.utilisation.value.get(track.key);
  if (track.kind === "gc") {
    const { fromNs, toNs } = s.settledWindow.value;
    return share === undefined ? "" : suspendedText(share * (toNs - fromNs));
  }
  return track.kind === "thread" ? percent(share ?? 0) : "";
}

function Legend({ track }: { track: Track }) {
  const { gauge } = track;
  if (gauge === null || gauge.layers.length < 2 || track.height < 44 || !s.showLegends.value) return null;
  return (
    <div class="tl-sub tl-legend">
      {[...gauge.layers].reverse().map(({ label, colour }) => (
        <span key={label}>
          <b style={{ background: `var(--${colour})` }} />
          {label}
        </span>
      ))}
    </div>
  );
}

function Head({ view, track, top }: { view: TimelineView; track: Track; top: number }) {
  const isSlim = track.height < 32;
  return (
    <div class={isSlim ? "tl-head slim" : track.height < 38 ? "tl-head tight" : "tl-head"} data-track={track.key} style={{ top: `${top}px`, height: `${track.height}px` }}>
      <div class="tl-name">
        {track.isPinned ? <Pin track={track} /> : <Chevron track={track} />}
        <span title={visible(track.label)}>{visible(track.label)}</span>
        <em>{figure(view, track)}</em>
        <Actions track={track} />
      </div>
      {!isSlim && track.sub !== "" && <div class="tl-sub">{visible(track.sub)}</div>}
      <Legend track={track} />
      {track.gauge?.isMemory && track.height >= 60 && <div class="tl-sub">scale fixed · committed dashed</div>}
    </div>
  );
}

/** Ruler and pinned tracks. */
export function PinnedGutter({ view }: { view: TimelineView }) {
  const { pinned, pinnedHeight } = view.layout.value;
  void [view.sceneVersion.value, s.timeWindow.value];
  const ruler = view.measures.ruler;
  const base = view.widthPx > 0 ? makeRuler(view.axis()).base : "ms";
  const display = { start: "since start", clock: "clock, UTC", tick: "since start", raw: "clock ticks" }[s.timeDisplay.value];
  return (
    <div class="tl-gutter tl-gutter-pinned" style={{ height: `${ruler + pinnedHeight}px` }}>
      <div class="tl-head slim" style={{ top: "0", height: `${ruler}px` }}>
        <div class="tl-name quiet">
          <span>{display}</span>
          <em>{s.timeDisplay.value === "start" || s.timeDisplay.value === "tick" ? base : ""}</em>
        </div>
      </div>
      {pinned.map((track) => (
        <Head key={track.key} view={view} track={track} top={ruler + track.top} />
      ))}
    </div>
  );
}

/** Heads of the tracks that can be seen, or nearly. */
export function ScrolledGutter({ view }: { view: TimelineView }) {
  const { scrolled } = view.layout.value;
  void view.sceneVersion.value;
  const from = view.scrollTop.value - MARGIN_PX;
  const to = view.scrollTop.value + window.innerHeight + MARGIN_PX;
  return (
    <div class="tl-gutter tl-gutter-scrolled">
      {scrolled
        .filter((track) => track.top + track.height > from && track.top < to)
        .map((track) => (
          <Head key={track.key} view={view} track={track} top={track.top} />
        ))}
    </div>
  );
}
