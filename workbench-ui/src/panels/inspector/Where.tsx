/** Lane, times, tick, and the collections that run meanwhile. */

import { count, duration, pointInTime, signedDuration, visible } from "../../format";
import type { Collection, EventDetail } from "../../protocol/types";
import { showRange, showTick } from "../../state/actions";
import { collections, meta, ticks, timeDisplay } from "../../state/store";
import { timeContext } from "../../timeline/timeContext";
import { Fact, Section } from "./Facts";

/** Collections that touch a range of time. */
export function collectionsDuring(fromNs: number, toNs: number, all: readonly Collection[]): Collection[] {
  return all.filter(({ startNs, endNs }) => {
    const [from, to] = [startNs ?? endNs, endNs ?? startNs];
    return from !== null && to !== null && from < toNs && to > fromNs;
  });
}

function CollectionLine({ of }: { of: Collection }) {
  const from = of.startNs ?? of.endNs ?? 0;
  const pause = of.pauseNs === null ? "" : `, paused ${duration(of.pauseNs)}`;
  return (
    <button type="button" class="link" onClick={() => showRange({ fromNs: from, toNs: Math.max(of.endNs ?? from, from + 1) }, 0.5)}>
      #{of.count} gen {of.generation ?? "?"}
      {pause}
    </button>
  );
}

export function Where({ of }: { of: EventDetail }) {
  const context = timeContext();
  const at = (ns: number) => pointInTime(ns, timeDisplay.value, context, 1);
  const lane = meta.value?.lanes.find(({ id }) => id === of.place?.lane);
  const endNs = of.startNs + Math.max(of.durationNs ?? 0, 0);
  const place = ticks.value.placeAt(of.startNs);
  const tickNs = ticks.value.durationNs[place] ?? null;
  const meanwhile = collectionsDuring(of.startNs, Math.max(endNs, of.startNs + 1), collections.value);
  return (
    <Section title="Where">
      <dl>
        <Fact name="Lane" aside={`${lane?.threadNumber != null ? `tid ${lane.threadNumber}, ` : ""}slot ${of.slot}`}>
          {visible(of.thread ?? lane?.label ?? "not drawn in a lane")}
        </Fact>
        <Fact name="Start" hint={`${count(of.startNs)} ns on the axis, ${of.startTicks} clock ticks`}>
          {at(of.startNs)}
        </Fact>
        {of.durationNs !== null && (
          <Fact name="End" hint={`${count(endNs)} ns on the axis`}>
            {of.hasNoEnd ? "no end in the recording" : at(endNs)}
          </Fact>
        )}
        <Fact name="Tick" aside={`${tickNs === null ? "" : `${duration(tickNs)}, `}${of.tickOffsetNs === null ? "" : signedDuration(of.tickOffsetNs)}`}>
          {place >= 0 && of.tickOffsetNs !== null ? (
            <button type="button" class="link" onClick={() => showTick(place)}>
              {count(of.tick)}
            </button>
          ) : (
            count(of.tick)
          )}
        </Fact>
        {of.depth !== null && <Fact name="Depth">{of.depth}</Fact>}
        {of.systemName !== null && (
          <Fact name="System" aside={of.system ?? ""}>
            {visible(of.systemName)}
          </Fact>
        )}
        {meanwhile.length === 0 && <Fact name="Collections">{collections.value.length === 0 ? "none recorded" : "none meanwhile"}</Fact>}
        {meanwhile.length > 0 && (
          <Fact name="Collections">
            {meanwhile.slice(0, 3).map((one) => (
              <div key={one.count}>
                <CollectionLine of={one} />
              </div>
            ))}
            {meanwhile.length > 3 && <span class="text-3">and {count(meanwhile.length - 3)} more</span>}
          </Fact>
        )}
        {of.spanId !== null && of.spanId !== "0x0000000000000000" && (
          <Fact name="Span id">
            <span class="mono">{of.spanId}</span>
          </Fact>
        )}
        {of.parentSpanId !== null && (
          <Fact name="Parent id">
            <span class="mono">{of.parentSpanId}</span>
          </Fact>
        )}
        {of.traceId !== null && (
          <Fact name="Trace id">
            <span class="mono">{of.traceId}</span>
          </Fact>
        )}
      </dl>
    </Section>
  );
}
