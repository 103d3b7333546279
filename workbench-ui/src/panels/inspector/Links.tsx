/** Where to go from here, and ways to take the event along. */

import { duration, visible } from "../../format";
import type { EventDetail } from "../../protocol/types";
import { announce, report, search, selectEvent, setLayout, showSelection } from "../../state/actions";
import { currentLink } from "../../state/history";
import { formatLink } from "../../state/permalink";
import { searchMode, sessionApi } from "../../state/store";
import { filterOf, slowestOf } from "../slowest";
import { copy } from "../table/export";
import { eventJson, eventText } from "./copies";
import { Section } from "./Facts";

/** Selects the span of the same name that takes just longer, or says that there is none. */
export async function selectNextSlower(of: EventDetail): Promise<void> {
  const api = sessionApi.value;
  if (api === null || of.durationNs === null) return;
  try {
    const spans = await slowestOf(api, "name", of.name, 1000, null);
    const here = spans.findIndex(({ event }) => event === of.event);
    // Beyond the 1,000 slowest the step goes to the slowest that is known to be slower.
    const next = here < 0 ? spans.length - 1 : here - 1;
    const slower = spans[next];
    if (slower === undefined || slower.event === of.event) return announce(`This is the slowest ${visible(of.name)}`);
    announce(`${visible(of.name)}, ${duration(slower.durationNs)}, tick ${slower.tick}`);
    await selectEvent(slower.event);
  } catch (error) {
    report(error);
  }
}

function showAlike(of: EventDetail): void {
  searchMode.value = "list";
  setLayout({ bottomTab: "search", isBottomOpen: true });
  void search(filterOf(of.durationNs === null ? "kind" : "name", of.durationNs === null ? of.kindName : of.name));
}

export function Links({ of, alike }: { of: EventDetail; alike: string | null }) {
  return (
    <Section title="Links">
      {of.durationNs !== null && (
        <button type="button" class="link block" onClick={() => void selectNextSlower(of)}>
          Next slower {visible(of.name)}
        </button>
      )}
      <button type="button" class="link block" onClick={() => showAlike(of)}>
        {alike ?? `All ${visible(of.kindName)}`} in search results
      </button>
    </Section>
  );
}

export function Actions({ of }: { of: EventDetail }) {
  const link = () => `${location.origin}${location.pathname}#${formatLink({ ...currentLink(), event: of.event })}`;
  return (
    <div class="inspector-actions">
      <button type="button" class="button" onClick={showSelection}>
        Zoom to {of.durationNs === null ? "event" : "span"} <kbd>Z</kbd>
      </button>
      <button type="button" class="button" onClick={() => void copy(link(), "Link")}>
        Copy link
      </button>
      <button type="button" class="button" onClick={() => void copy(eventText(of), "Event as text")}>
        Copy text
      </button>
      <button type="button" class="button" onClick={() => void copy(eventJson(of), "Event as JSON")}>
        Copy JSON
      </button>
    </div>
  );
}
