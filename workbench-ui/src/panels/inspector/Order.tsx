/** What the event waited for, and what waited for it (B-20): the links that the timeline draws, in words. */

import { duration, visible } from "../../format";
import type { EventDetail, Link } from "../../protocol/types";
import { selectEvent } from "../../state/actions";
import { links, nameOf } from "../../state/store";
import { Section } from "./Facts";

export interface LinkText {
  text: string;
  aside: string;
  /** The event at the other end. */
  event: string;
}

/** What a link says, seen from one of its ends. All chunks of a system in a tick share its links. */
export function describeLink({ reason, from, to }: Link, of: { event: string; name: string }): LinkText {
  const waited = to.event === of.event || (from.event !== of.event && nameOf(to.name) === of.name);
  const { event, name: id, durationNs } = waited ? from : to;
  const name = visible(nameOf(id));
  const gap = duration(Math.max(to.startNs - from.startNs - from.durationNs, 0));
  switch (reason) {
    case "ready":
      return waited ? { text: "Could run", aside: `${gap} before a worker took it`, event } : { text: `Ran as ${name}`, aside: `${gap} later`, event };
    case "dependency":
      return waited ? { text: `After ${name}`, aside: `ended ${gap} before it`, event } : { text: `Then ${name}`, aside: `${gap} after it`, event };
    case "schedule":
      return { text: `After ${name}`, aside: `the last to end of those before it, ${gap} earlier`, event };
    case "durability":
      return { text: waited ? `Waited for ${name}` : `${name} waited for it`, aside: duration(durationNs), event };
    case "completion":
      return waited ? { text: `Started by ${name}`, aside: duration(durationNs), event } : { text: "Complete", aside: `${duration(durationNs)} after its start`, event };
  }
}

export function Order({ of }: { of: EventDetail }) {
  const found = links.value;
  if (found === null || found.event !== of.event || found.links.length === 0) return null;
  return (
    <Section title="Before and after">
      {found.links.map((link) => {
        const { text, aside, event } = describeLink(link, of);
        return (
          <div class="linked" key={`${link.reason}/${link.from.event}/${link.to.event}`}>
            <button type="button" class="link" onClick={() => void selectEvent(event)}>
              {text}
            </button>
            <span class="text-3">{aside}</span>
          </div>
        );
      })}
      {found.isCut && <p class="text-3">There is more in this tick than is looked at: links may be missing.</p>}
    </Section>
  );
}
