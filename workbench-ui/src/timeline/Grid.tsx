/**
 * The tracks for keyboard and screen readers (B-38): a grid of the same size as the canvas, one tab stop. In the DOM are only
 * the focused row and twenty cells at each side of the focus.
 */

import { ENTRY_FLAG, spanEntry } from "../protocol/tile";
import { visible } from "../format";
import { stepOut } from "../state/actions";
import { focused, nameOf } from "../state/store";
import { BAND_ROWS } from "./cache";
import { focusedDetail, moveLane, moveRow, moveSpan, selectFocused, spoken } from "./focus";
import type { Track } from "./tracks";
import type { TimelineView } from "./view";

const CELLS = 20;

interface Cell {
  index: number;
  name: number;
  flags: number;
}

/** Exact entries of a row on the screen, in the order of the row. */
function cellsOf(view: TimelineView, lane: number, row: number): Cell[] {
  const cells = new Map<number, Cell>();
  for (const { track, band, tile, isFiltered } of view.scene?.bands ?? []) {
    if (isFiltered || track.lane?.id !== lane || band !== Math.floor(row / BAND_ROWS) || tile.spans === null) continue;
    for (let at = 0; at < tile.spans.count; at += 1) {
      const { row: of, flags, index, name } = spanEntry(tile.spans.body, at);
      if (of === row % BAND_ROWS && !(flags & ENTRY_FLAG.aggregate)) cells.set(index, { index, name, flags });
    }
  }
  return [...cells.values()].sort((a, b) => a.index - b.index);
}

export function cellId(lane: number, row: number | null, index: number): string {
  return `cell-${lane}-${row ?? "i"}-${index}`;
}

function rowsBefore(tracks: Track[], track: Track): number {
  let rows = 0;
  for (const one of tracks) {
    if (one === track) return rows;
    rows += one.rows;
  }
  return rows;
}

const KEYS: Record<string, (event: KeyboardEvent) => void> = {
  ArrowUp: () => moveRow(-1),
  ArrowDown: () => moveRow(1),
  ArrowLeft: () => moveSpan(-1),
  ArrowRight: () => moveSpan(1),
  PageUp: () => moveLane(-1),
  PageDown: () => moveLane(1),
  Enter: (event) => selectFocused(event.shiftKey),
  Escape: stepOut,
};

export function Grid({ view }: { view: TimelineView }) {
  const place = focused.value;
  void [view.sceneVersion.value, view.focusRange.value];
  const { pinned, scrolled } = view.layout.value;
  const tracks = [...pinned, ...scrolled].filter((track) => track.lane !== null);
  const rows = tracks.reduce((sum, track) => sum + track.rows, 0);
  const track = tracks.find((one) => one.lane?.id === place?.lane) ?? tracks[0] ?? null;
  const lane = track?.lane?.id ?? 0;
  const row = place?.lane === lane ? (place.row ?? 0) : 0;
  const all = track === null ? [] : cellsOf(view, lane, row);
  const at = all.findIndex(({ index }) => index === place?.index);
  const cells = at < 0 ? all.slice(0, CELLS) : all.slice(Math.max(at - CELLS, 0), at + CELLS + 1);
  const detail = focusedDetail();
  const active = place !== null && place.lane === lane ? cellId(lane, row, place.index) : undefined;
  const onKeyDown = (event: KeyboardEvent) => {
    const act = KEYS[event.key];
    if (act === undefined || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    event.stopPropagation();
    act(event);
  };
  const focusedName = detail === null ? null : spoken(detail);
  return (
    <div
      class="tl-grid"
      role="grid"
      tabIndex={0}
      aria-label="Tracks"
      aria-rowcount={Math.max(rows, 1)}
      aria-colcount={-1}
      {...(active === undefined ? {} : { "aria-activedescendant": active })}
      onKeyDown={onKeyDown}
      onFocus={() => (view.hasFocus.value = true)}
      onBlur={() => (view.hasFocus.value = false)}
      data-panel-focus="timeline"
    >
      <div role="row" aria-rowindex={track === null ? 1 : rowsBefore(tracks, track) + row + 1}>
        <span role="rowheader">{track === null ? "No lanes" : `${visible(track.label)}, row ${row + 1} of ${Math.max(track.rows, 1)}`}</span>
        {at < 0 && active !== undefined && (
          <span role="gridcell" id={active} aria-selected="true">
            {focusedName ?? "span"}
          </span>
        )}
        {cells.map(({ index, name, flags }) => {
          const isActive = active !== undefined && index === place?.index;
          const text = [visible(nameOf(name)), flags & ENTRY_FLAG.fault ? "fault" : "", flags & ENTRY_FLAG.noEnd ? "no end" : ""].filter((part) => part !== "").join(", ");
          return (
            <span role="gridcell" key={index} id={cellId(lane, row, index)} aria-selected={isActive} aria-colindex={index + 1}>
              {isActive && focusedName !== null ? focusedName : text}
            </span>
          );
        })}
      </div>
    </div>
  );
}
