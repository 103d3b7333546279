/** The range that the tables are about: the global window, or the one they were pinned to (B-10). */

import { computed, signal } from "@preact/signals";
import { duration, instant } from "../format";
import { type Range, activeFilterId, activeId, searchMode, settledWindow, wholeRange } from "../state/store";

const pinned = signal<{ session: string | null; range: Range } | null>(null);

export const tableRange = computed<Range>(() =>
  pinned.value !== null && pinned.value.session === activeId.value ? pinned.value.range : settledWindow.value,
);

/** For requests: null when it is the whole trace, which then is measured as the command line does. */
export const tableWindow = computed<Range | null>(() => {
  const { fromNs, toNs } = tableRange.value;
  const whole = wholeRange.value;
  return fromNs <= whole.fromNs && toNs >= whole.toNs ? null : { fromNs, toNs };
});

/** Tables narrow to the hits while the rest is hidden. */
export const tableFilter = computed(() => (searchMode.value === "isolate" ? activeFilterId.value : 0));

export function PinButton() {
  const isPinned = pinned.value !== null && pinned.value.session === activeId.value;
  const { fromNs, toNs } = tableRange.value;
  return (
    <button
      type="button"
      class="link"
      aria-pressed={isPinned}
      title={isPinned ? "Follow the window again" : "Keep the tables at this range while the window moves"}
      onClick={() => (pinned.value = isPinned ? null : { session: activeId.value, range: { ...settledWindow.value } })}
    >
      {isPinned ? `Pinned to ${duration(toNs - fromNs)} from ${instant(fromNs)}` : "Pin"}
    </button>
  );
}
