/** Everything about the selected event (B-23, B-24). */

import { count, duration, visible } from "../format";
import type { EventDetail, Siblings } from "../protocol/types";
import { names, primary, selection } from "../state/store";
import { BusyLine, Fault } from "./Answered";
import { Distribution } from "./inspector/Distribution";
import { Fact, Section } from "./inspector/Facts";
import { Children, Parents } from "./inspector/Family";
import { hexRows, shownField } from "./inspector/fields";
import { eventJson } from "./inspector/copies";
import { Actions, Links } from "./inspector/Links";
import { Several } from "./inspector/Several";
import { Order } from "./inspector/Order";
import { SourceOf } from "./inspector/Source";
import { Where } from "./inspector/Where";
import { Swatch, nameId } from "./Name";
import { copy } from "./table/export";
import { type Answer, useRequest } from "./useRequest";

function Figure({ value, label }: { value: string; label: string }) {
  const [number, unit] = value.split("\u202f");
  return (
    <div>
      <b>
        {number}
        {unit && <small> {unit}</small>}
      </b>
      <span>{label}</span>
    </div>
  );
}

/** Where it stands among those of its name. */
function rankOf({ count: all, shorter, equal, percentile }: Siblings): string {
  if (all > 1 && shorter + equal === all) return "slowest";
  return `P${Math.min(Math.floor(percentile), 99)}`;
}

function Head({ of, siblings }: { of: EventDetail; siblings: Siblings | null }) {
  return (
    <div class="inspector-head">
      <p class="text-2">
        <Swatch family={of.family} />
        {visible(of.family)} <span class="text-3">· kind {of.kind}</span>
      </p>
      <h2>{visible(of.name)}</h2>
      <div class="figures">
        {of.durationNs !== null && <Figure value={of.hasNoEnd ? "no end" : duration(of.durationNs)} label="duration" />}
        {of.selfNs !== null && <Figure value={duration(of.selfNs)} label="self" />}
        {siblings !== null && <Figure value={rankOf(siblings)} label={`of ${count(siblings.count)} alike`} />}
        {of.durationNs === null && <Figure value="instant" label="no duration" />}
      </div>
    </div>
  );
}

function Fields({ of }: { of: EventDetail }) {
  return (
    <Section
      title="Fields"
      aside={
        <button type="button" class="link" onClick={() => void copy(eventJson(of), "Event as JSON")}>
          Copy JSON
        </button>
      }
    >
      <dl>
        {of.fields.map((field) => {
          const { text, aside, raw, isAbsent } = shownField(field);
          return (
            <Fact key={field.name} name={field.name} aside={aside} hint={raw} note={field.note}>
              <span class={isAbsent ? "text-3" : ""}>{text}</span>
            </Fact>
          );
        })}
        <Fact name="Event" hint="block.record, as in typhon trace dump">
          <span class="mono">{of.event}</span>
        </Fact>
      </dl>
    </Section>
  );
}

function Wire({ of }: { of: EventDetail }) {
  return (
    <details class="facts">
      <summary>Wire bytes · {count(of.bytes.length / 2)}</summary>
      <pre class="wire">{hexRows(of.bytes)}</pre>
    </details>
  );
}

function Event({ answer }: { answer: Answer<EventDetail> }) {
  const of = answer.value;
  const isSpan = of !== null && of.durationNs !== null;
  const siblings = useRequest(isSpan ? (api, signal) => api.siblings(of.event, signal) : null, [of?.event]);
  const histogram = useRequest(isSpan ? (api, signal) => api.histogram("name", of.name, null, undefined, signal) : null, [of?.name]);
  if (of === null) return null;
  const known = siblings.value && isSpan ? siblings.value : null;
  const name = known?.name ?? nameId(of.name) ?? names.value.texts.length;
  const alike = known === null ? null : `All ${count(known.count)} ${visible(of.name)}`;
  return (
    <article class="inspector" aria-label={visible(of.name)} data-event={of.event}>
      <Head of={of} siblings={known} />
      <Where of={of} />
      <Order of={of} />
      <Fields of={of} />
      <Parents of={of} name={name} />
      <Children key={of.event} of={of} />
      <Distribution of={of} histogram={histogram.value} />
      <SourceOf of={of} />
      <Links of={of} alike={alike} />
      <Wire of={of} />
      <Actions of={of} />
    </article>
  );
}

export function Inspector() {
  const event = primary.value?.event ?? null;
  const answer = useRequest(event === null ? null : (api, signal) => api.event(event, signal), [event]);
  if (selection.value.length > 1) return <Several />;
  if (selection.value.length === 0) {
    return (
      <div class="panel-empty">
        <p>Nothing is selected.</p>
        <p>
          Click a bar, or press <kbd>{"}"}</kbd> for the slowest tick and <kbd>Enter</kbd> on a bar.
        </p>
      </div>
    );
  }
  return (
    <>
      <BusyLine of={answer} />
      <Fault of={answer} />
      <Event answer={answer} />
    </>
  );
}
