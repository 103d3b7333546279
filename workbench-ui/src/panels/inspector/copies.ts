/** An event as JSON and as text. Pure. */

import { duration, instant, visible } from "../../format";
import type { EventDetail } from "../../protocol/types";
import { shownField } from "./fields";

export function eventJson(event: EventDetail): string {
  return JSON.stringify(event, null, 2);
}

export function eventText(event: EventDetail): string {
  const lines: [string, string][] = [
    ["kind", `${event.kindName} (${event.kind})`],
    ["event", event.event],
    ["lane", visible(event.thread ?? `slot ${event.slot}`)],
    ["tick", String(event.tick)],
    ["start", instant(event.startNs, 1)],
  ];
  if (event.durationNs !== null) lines.push(["duration", duration(event.durationNs)]);
  if (event.selfNs !== null) lines.push(["self", duration(event.selfNs)]);
  for (const field of event.fields) {
    const { text, aside } = shownField(field);
    lines.push([field.name, aside === "" ? text : `${text} ${aside}`]);
  }
  if (event.site?.file) lines.push(["source", `${visible(event.site.file)}:${event.site.line ?? "?"} ${visible(event.site.method ?? "")}`.trimEnd()]);
  const width = Math.max(...lines.map(([name]) => name.length));
  return `${visible(event.name)}\n${lines.map(([name, text]) => `  ${name.padEnd(width)}  ${text}`).join("\n")}\n`;
}
