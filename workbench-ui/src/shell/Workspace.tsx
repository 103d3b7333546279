/** Timeline, inspector at its right, tables below; the two can be resized and folded. */

import type { ComponentChild } from "preact";
import { useEffect, useState } from "preact/hooks";
import { count, duration, instant } from "../format";
import { Bookmarks, Collections, Gauges, Inspector, Lanes, Notices, SearchList, Statistics, Ticks, TopSpans } from "../panels";
import { setLayout } from "../state/actions";
import { cancelOpening } from "../state/sessions";
import { type BottomTab, type InspectorTab, activeSession, layout, ticks, timeWindow } from "../state/store";
import { Timeline } from "../timeline/Timeline";
import { Divider } from "./Divider";
import { OpeningFacts } from "./Screens";
import { Tabs } from "./Tabs";

const INSPECTOR_TABS: readonly [InspectorTab, string][] = [
  ["inspector", "Inspector"],
  ["bookmarks", "Bookmarks"],
  ["notices", "Notices"],
  ["lanes", "Lanes"],
];
const BOTTOM_TABS: readonly [BottomTab, string][] = [
  ["statistics", "Statistics"],
  ["top", "Top spans"],
  ["ticks", "Ticks"],
  ["collections", "Collections"],
  ["gauges", "Gauges"],
  ["search", "Search results"],
];
const INSPECTOR_PANELS: Record<InspectorTab, () => ComponentChild> = {
  inspector: () => <Inspector />,
  bookmarks: () => <Bookmarks />,
  notices: () => <Notices />,
  lanes: () => <Lanes />,
};
const BOTTOM_PANELS: Record<BottomTab, () => ComponentChild> = {
  statistics: () => <Statistics />,
  top: () => <TopSpans />,
  ticks: () => <Ticks />,
  collections: () => <Collections />,
  gauges: () => <Gauges />,
  search: () => <SearchList />,
};

/** The range that every panel obeys. */
export function WindowText() {
  const { fromNs, toNs } = timeWindow.value;
  const table = ticks.value;
  const { first, end } = table.placesIn({ fromNs, toNs });
  const [from, to] = first < end ? [table.numbers[first], table.numbers[end - 1]] : [];
  const range = from === undefined || to === undefined ? "" : from === to ? ` · tick ${count(from)}` : ` · ticks ${count(from)}–${count(to)}`;
  const nsPerPixel = (toNs - fromNs) / 1000;
  return (
    <span class="tabs-right">
      <b>{duration(toNs - fromNs)}</b> {instant(fromNs, nsPerPixel)} – {instant(toNs, nsPerPixel)}
      {range}
    </span>
  );
}

function OpeningLine() {
  const session = activeSession.value;
  if (session?.state.is !== "opening") return null;
  return (
    <div class="opening-line">
      <OpeningFacts />
      <button type="button" class="button" onClick={() => void cancelOpening(session.id)}>
        Cancel
      </button>
    </div>
  );
}

const NARROW = matchMedia("(max-width: 959px), (max-height: 560px)");

function useIsNarrow(): boolean {
  const [isNarrow, set] = useState(NARROW.matches);
  useEffect(() => {
    const follow = () => set(NARROW.matches);
    NARROW.addEventListener("change", follow);
    return () => NARROW.removeEventListener("change", follow);
  }, []);
  return isNarrow;
}

export function Workspace() {
  const { inspectorPx, bottomPx, inspectorTab, bottomTab, isInspectorOpen, isBottomOpen } = layout.value;
  const isNarrow = useIsNarrow();
  const inspector = inspectorPx === null ? "var(--w-inspector)" : `${inspectorPx}px`;
  const bottom = bottomPx === null ? "var(--h-bottom)" : `${bottomPx}px`;
  const hasInspector = isInspectorOpen && !isNarrow;
  const hasBottom = isBottomOpen && !isNarrow;
  return (
    <div
      class="workspace"
      style={{
        gridTemplateColumns: hasInspector ? `minmax(0, 1fr) ${inspector}` : "minmax(0, 1fr)",
        gridTemplateRows: hasBottom ? `minmax(240px, 1fr) minmax(28px, ${bottom})` : "minmax(0, 1fr) 28px",
      }}
    >
      <section class="panel panel-timeline" aria-label="Timeline" data-panel="timeline">
        <div class="tabs">
          <span class="tab-title">Timeline</span>
          <WindowText />
        </div>
        <Timeline />
        <OpeningLine />
      </section>
      <section class="panel panel-bottom" aria-label="Tables" data-panel="bottom">
        <Tabs
          label="Tables"
          tabs={BOTTOM_TABS}
          active={hasBottom ? bottomTab : null}
          choose={(tab) => setLayout(tab === bottomTab && isBottomOpen ? { isBottomOpen: false } : { bottomTab: tab, isBottomOpen: true })}
        />
        {hasBottom && (
          <div class="panel-body" role="tabpanel" aria-label={BOTTOM_TABS.find(([tab]) => tab === bottomTab)?.[1]}>
            {BOTTOM_PANELS[bottomTab]()}
          </div>
        )}
      </section>
      {isInspectorOpen && (
        <section class={isNarrow ? "panel panel-over" : "panel panel-inspector"} aria-label="Details" data-panel="inspector">
          <Tabs label="Details" tabs={INSPECTOR_TABS} active={inspectorTab} choose={(tab) => setLayout({ inspectorTab: tab })} />
          <div class="panel-body" role="tabpanel" aria-label={INSPECTOR_TABS.find(([tab]) => tab === inspectorTab)?.[1]}>
            {INSPECTOR_PANELS[inspectorTab]()}
          </div>
        </section>
      )}
      {hasInspector && (
        <Divider direction="vertical" label="Width of the details" at={inspectorPx} token="--w-inspector" least={260} set={(px) => setLayout({ inspectorPx: px })} />
      )}
      {hasBottom && (
        <Divider
          direction="horizontal"
          label="Height of the tables"
          at={bottomPx}
          token="--h-bottom"
          least={120}
          beside={hasInspector ? inspector : null}
          set={(px) => setLayout({ bottomPx: px })}
        />
      )}
    </div>
  );
}
