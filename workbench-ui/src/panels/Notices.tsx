/** What is missing from the recording: where, how much, and what to do (B-4, B-5). */

import type { ComponentChildren } from "preact";
import { cappedNoun, count, instant, visible } from "../format";
import type { Notice } from "../protocol/types";
import { showRange } from "../state/actions";
import { activeSession, meta, notices } from "../state/store";
import { repairCommand, total } from "./notices";
import { Section } from "./inspector/Facts";
import { copy } from "./table/export";

function Item(props: { severity: string; title: string; place?: string; children?: ComponentChildren; rangeNs?: [number, number] | null }) {
  const range = props.rangeNs;
  return (
    <li class={`notice ${props.severity}`}>
      <b>{props.title}</b>
      {props.place && <span class="text-3">{props.place}</span>}
      {props.children}
      {range && (
        <button type="button" class="link" onClick={() => showRange({ fromNs: range[0], toNs: Math.max(range[1], range[0] + 1) }, 1)}>
          Show {instant(range[0])}
        </button>
      )}
    </li>
  );
}

function placeOf({ offset, block, record }: Notice): string {
  const parts = [
    block === null ? "" : `block ${count(block)}`,
    record === null ? "" : `record ${count(record)}`,
    offset === null ? "" : `offset ${count(offset)}`,
  ];
  return parts.filter((part) => part !== "").join(", ");
}

/** Most messages say the number themselves. */
function needsCount({ count: of, message }: Notice): boolean {
  return of !== null && of > 1 && !message.includes(String(of));
}

export function Repair() {
  const [path, all] = [activeSession.value?.path ?? "", notices.value?.notices ?? []];
  if (!all.some(({ severity }) => severity !== "info")) return null;
  const command = repairCommand(path, all);
  return (
    <div class="command">
      <code>{visible(command)}</code>
      <button type="button" class="link" onClick={() => void copy(command, "Command")}>
        Copy
      </button>
    </div>
  );
}

export function Notices() {
  const all = notices.value;
  const remarks = activeSession.value?.remarks ?? [];
  if (all === null) return <div class="panel-empty">Notices come when the file has been read.</div>;
  const { missingTicks, capped, losses, damagedEvents } = all;
  const withheld = meta.value?.totals.withheldEvents ?? 0;
  if (total(all) + remarks.length + damagedEvents + withheld === 0) {
    return (
      <div class="panel-empty">
        <p>Nothing is missing: every block of the file can be read, and the recorder lost nothing.</p>
      </div>
    );
  }
  return (
    <div class="inspector">
      <Section title={`Notices · ${count(total(all))}`}>
        <Repair />
        <ul class="notices">
          {all.notices.map((notice, at) => (
            <Item
              key={at}
              severity={notice.severity}
              title={`${visible(notice.message)}${needsCount(notice) ? ` · ${count(notice.count ?? 0)}` : ""}`}
              place={placeOf(notice)}
              rangeNs={notice.rangeNs}
            >
              {notice.hint && <span class="text-2">{visible(notice.hint)}</span>}
            </Item>
          ))}
          {losses.map(({ atNs, records, marker }, at) => (
            <Item key={`loss-${at}`} severity="data-loss" title={`${count(records)} events not shown`} rangeNs={[atNs, atNs + 1]}>
              <span class="text-2">lost by the recorder, as {visible(marker)} says</span>
            </Item>
          ))}
          {missingTicks.count > 0 && (
            <Item severity="data-loss" title={`${count(missingTicks.count)} tick numbers are missing`}>
              <span class="text-2">
                at {count(missingTicks.places)} {missingTicks.places === 1 ? "place" : "places"}; the tick overview marks them
              </span>
            </Item>
          )}
          {capped.map(({ what, kind, shown, total, atNs, times }, at) => (
            <Item key={`capped-${at}`} severity="info" title={`${count(total - shown)} ${visible(cappedNoun(what))} not shown`} rangeNs={[atNs, atNs + 1]}>
              <span class="text-2">
                kind {kind}: {count(shown)} of {count(total)} rows{times > 1 ? `, ${count(times)} times` : ""}
              </span>
            </Item>
          ))}
          {withheld > 0 && <Item severity="data-loss" title={`${count(withheld)} events withheld`}><span class="text-2">their block is damaged and they may be wrong</span></Item>}
          {damagedEvents > 0 && <Item severity="data-loss" title={`${count(damagedEvents)} damaged events`}><span class="text-2">drawn where they are, with fields missing</span></Item>}
          {remarks.map((remark) => (
            <Item key={remark} severity="info" title={visible(remark)} />
          ))}
        </ul>
      </Section>
    </div>
  );
}
