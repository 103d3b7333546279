/** How the value of a payload field is shown (B-23). Pure. */

import { NARROW_SPACE, bytes, count, duration, visible } from "../../format";
import type { FieldView } from "../../protocol/types";

export interface Shown {
  /** The value as a reader wants it. */
  text: string;
  /** What stands behind it, greyed: the number of an enumeration's value, an id. */
  aside: string;
  /** The value as it is in the record. */
  raw: string;
  isAbsent: boolean;
}

function plain(value: unknown): string {
  if (typeof value === "string") return visible(value);
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  return visible(JSON.stringify(value) ?? "");
}

interface GaugeValue {
  gaugeName?: string;
  gauge: number;
  value: string;
}

/** Lists: gauges by name, operators by name, numbers one after the other. */
function listed(items: unknown[]): string {
  const one = (item: unknown) => {
    if (typeof item !== "object" || item === null) return plain(item);
    if ("gauge" in item) {
      const { gaugeName, gauge, value } = item as GaugeValue;
      return `${visible(gaugeName ?? `gauge ${gauge}`)} ${value}`;
    }
    if ("fieldIdx" in item) {
      const { fieldIdx, op, opName } = item as { fieldIdx: number; op: number; opName?: string };
      return `field ${fieldIdx} ${visible(opName ?? String(op))}`;
    }
    return plain(item);
  };
  return items.length === 0 ? "none" : items.map(one).join(", ");
}

/** Digits in groups, for whole numbers that may need all 64 bits. */
function grouped(value: string): string {
  return value.replace(/^-/, "\u2212").replace(/\B(?=(\d{3})+$)/g, ",");
}

function numeric({ value, unit, ns, type }: FieldView): string {
  if (ns !== null) return duration(ns);
  const number = Number(value);
  if (unit === "bytes") return bytes(number);
  if (unit === "bytes/s") return `${bytes(number)}/s`;
  if (type === "f32" || type === "f64") return plain(value);
  if (unit === "0.01 %") return `${(number / 100).toFixed(2)}${NARROW_SPACE}%`;
  return typeof value === "string" ? grouped(value) : count(number);
}

export function shownField(field: FieldView): Shown {
  const { value, valueName, unit } = field;
  if (value === null) return { text: "absent", aside: "", raw: "the record does not have this field", isAbsent: true };
  const raw = `${field.name} = ${plain(value)}${unit === "" ? "" : ` ${unit}`} (${field.type})`;
  const isAbsent = false;
  if (valueName !== null) return { text: visible(valueName), aside: plain(value), raw, isAbsent };
  if (Array.isArray(value)) return { text: listed(value), aside: "", raw, isAbsent };
  const isNumber = field.type !== "bool8" && (typeof value === "number" || /^-?\d+$/.test(String(value)));
  if (!isNumber) return { text: plain(value), aside: unit, raw, isAbsent };
  const saysUnit = field.ns !== null || unit === "bytes" || unit === "bytes/s" || unit === "0.01 %";
  // Ids stay numbers; one of a table that does not have it says so (B-24).
  if (field.isTableId) return { text: plain(value), aside: "not in the tables", raw, isAbsent };
  const isId = /(Id|Idx|Index|PK)$/.test(field.name);
  return { text: isId ? plain(value) : numeric(field), aside: saysUnit ? "" : unit, raw, isAbsent };
}

/** Bytes in rows of 16, each with its offset. */
export function hexRows(hex: string): string {
  const bytes = hex.match(/../g) ?? [];
  const rows: string[] = [];
  for (let at = 0; at < bytes.length; at += 16) {
    rows.push(`${at.toString(16).padStart(4, "0")}  ${bytes.slice(at, at + 16).join(" ")}`);
  }
  return rows.join("\n");
}
