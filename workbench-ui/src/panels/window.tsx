/** The range that the tables are about: the one that is selected, the one they were pinned to, or the global window (B-10, B-22). */

import { computed, signal } from "@preact/signals";
import { duration, instant } from "../format";
import { selectRange } from "../state/actions";
import { type Range, activeFilterId, activeId, searchMode, selectedRange, settledWindow, wholeRange } from "../state/store";

const pinned = signal<{ session: string | null; range: Range } | null>(null);
const pinnedRange = computed(() => (pinned.value !== null && pinned.value.session === activeId.value ? pinned.value.range : null));

export const tableRange = computed<Range>(() => selectedRange.value ?? pinnedRange.value ?? settledWindow.value);

/** For requests: null when it is the whole trace, which then is measured as the command line does. */
export const tableWindow = computed<Range | null>(() => {
  const { fromNs, toNs } = tableRange.value;
  const whole = wholeRange.value;
  return fromNs <= whole.fromNs && toNs >= whole.toNs ? null : { fromNs, toNs };
});

/** What the heads of tables call their range. */
export const tableScope = computed(() => (selectedRange.value !== null ? "selection" : tableWindow.value === null ? "trace" : "window"));

/** Why a table has no rows, and what to do: `nothingIn("No span")`. */
export function nothingIn(what: string): string {
  return selectedRange.value !== null ? `${what} is in the selected range. Press Esc for the window.` : `${what} is in the window. Press 0 for the whole trace.`;
}

/** Tables narrow to the hits while the rest is hidden. */
export const tableFilter = computed(() => (searchMode.value === "isolate" ? activeFilterId.value : 0));

/** Keeps the tables at their range, or takes back the selected one, which they keep to by themselves. */
export function PinButton() {
  const { fromNs, toNs } = tableRange.value;
  const range = `${duration(toNs - fromNs)} from ${instant(fromNs)}`;
  if (selectedRange.value !== null) {
    return (
      <button type="button" class="link" title={`${range}. Take it back: the tables follow the window again`} onClick={() => selectRange(null)}>
        Clear selection
      </button>
    );
  }
  const isPinned = pinnedRange.value !== null;
  return (
    <button
      type="button"
      class="link"
      aria-pressed={isPinned}
      title={isPinned ? "Follow the window again" : "Keep the tables at this range while the window moves"}
      onClick={() => (pinned.value = isPinned ? null : { session: activeId.value, range: { ...settledWindow.value } })}
    >
      {isPinned ? `Pinned to ${range}` : "Pin"}
    </button>
  );
}
