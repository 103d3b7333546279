/** What a span is inside of, and what is inside it. */

import { useState } from "preact/hooks";
import { count, duration, percent } from "../../format";
import type { EventDetail, RelatedSpan } from "../../protocol/types";
import { selectEvent } from "../../state/actions";
import { nameOf } from "../../state/store";
import { NameOf } from "../Name";
import { type Column, Table } from "../table/Table";
import { durationColumn, nameColumn } from "../table/columns";
import { useRequest } from "../useRequest";
import { Section } from "./Facts";

function ShareBar({ share }: { share: number }) {
  return (
    <span class="share-bar" aria-hidden="true">
      <i style={{ width: `${Math.min(Math.max(share, 0), 1) * 100}%` }} />
    </span>
  );
}

function Line({ of, depth, share, isSelf = false }: { of: RelatedSpan; depth: number; share: number; isSelf?: boolean }) {
  return (
    <button
      type="button"
      class={isSelf ? "relative is-self" : "relative"}
      aria-current={isSelf}
      title={`${nameOf(of.name)}, ${percent(share)}`}
      onClick={() => void selectEvent(of.event)}
    >
      <span class="relative-name" style={{ paddingLeft: `${Math.min(depth, 8) * 10}px` }}>
        <NameOf id={of.name} />
      </span>
      <span class="num">{duration(of.durationNs)}</span>
      <ShareBar share={share} />
    </button>
  );
}

/** The spans around this one, the outermost first, and this one last. */
export function Parents({ of, name }: { of: EventDetail; name: number }) {
  if (of.durationNs === null) return null;
  const chain = [...of.parents].reverse();
  const self: RelatedSpan = { event: of.event, place: of.place, name, startNs: of.startNs, durationNs: Math.max(of.durationNs, 0) };
  const whole = Math.max(chain[0]?.durationNs ?? self.durationNs, 1);
  return (
    <Section title="Parents" aside={chain.length === 0 ? "none: a root" : "share of root"}>
      {[...chain, self].map((span, depth) => (
        <Line key={span.event} of={span} depth={depth} share={span.durationNs / whole} isSelf={span === self} />
      ))}
    </Section>
  );
}

const PAGE = 10_000;
const LONGEST = 3;

const CHILD_COLUMNS: readonly Column<RelatedSpan>[] = [
  nameColumn("Child", "minmax(120px, 1fr)"),
  durationColumn("durationNs", "Duration", "76px", (span) => span.durationNs),
];

/** The longest children; all of them on demand. */
export function Children({ of }: { of: EventDetail }) {
  const [isOpen, setOpen] = useState(false);
  const answer = useRequest(of.children === 0 ? null : (api, signal) => api.children(of.event, 0, PAGE, signal), [of.event]);
  if (of.children === 0) return null;
  const spans = answer.value?.spans ?? [];
  const longest = [...spans].sort((a, b) => b.durationNs - a.durationNs).slice(0, LONGEST);
  const own = Math.max(of.durationNs ?? 0, 1);
  return (
    <Section
      title={`Children · ${count(of.children)}`}
      aside={
        of.children > LONGEST ? (
          <button type="button" class="link" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
            {isOpen ? "The longest" : "All"}
          </button>
        ) : (
          "share of this"
        )
      }
    >
      {isOpen ? (
        <div class="children-table">
          <Table
            label="Children"
            name="children"
            rows={spans}
            columns={CHILD_COLUMNS}
            rowKey={(span) => span.event}
            sort={null}
            choose={(span) => void selectEvent(span.event)}
            empty=""
            tools={of.children > PAGE ? <span class="tools-note">the first {count(PAGE)}</span> : undefined}
          />
        </div>
      ) : (
        longest.map((span) => <Line key={span.event} of={span} depth={0} share={span.durationNs / own} />)
      )}
    </Section>
  );
}
