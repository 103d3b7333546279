/** Statistics over the numeric fields of some events (brief 11 §2.4): sums, ends, and how long one of what a field counts takes. Pure. */

import type { EventDetail, FieldView } from "../../protocol/types";

export interface FieldSum {
  name: string;
  unit: string;
  /** Is it a time? Then all values are ns. */
  isTime: boolean;
  /** Events that have the field. */
  count: number;
  sum: number;
  min: number;
  max: number;
  /** Duration of these events divided by the sum, ns; null for times, for instants, and when the sum is 0. */
  nsPerOne: number | null;
}

/** The value of a field that counts or measures something; null for names, ids, texts and what is absent. */
function measured(field: FieldView): number | null {
  const { value, valueName, isTableId, name, ns, type } = field;
  if (ns !== null) return ns;
  if (valueName !== null || isTableId || type === "bool8" || /(Id|Idx|Index|PK|Key|Hash)$/.test(name)) return null;
  if (typeof value === "number") return value;
  return typeof value === "string" && /^-?\d+$/.test(value) ? Number(value) : null;
}

/** In the order in which the fields are met. */
export function fieldSums(events: readonly EventDetail[]): FieldSum[] {
  const sums = new Map<string, FieldSum & { ns: number; hasDurations: boolean }>();
  for (const { fields, durationNs } of events) {
    for (const field of fields) {
      const value = measured(field);
      if (value === null || !Number.isFinite(value)) continue;
      const known = sums.get(field.name) ?? {
        name: field.name, unit: field.unit, isTime: field.ns !== null, count: 0, sum: 0, min: value, max: value, nsPerOne: null, ns: 0, hasDurations: true,
      };
      known.count += 1;
      known.sum += value;
      known.min = Math.min(known.min, value);
      known.max = Math.max(known.max, value);
      known.ns += Math.max(durationNs ?? 0, 0);
      known.hasDurations &&= durationNs !== null;
      sums.set(field.name, known);
    }
  }
  return [...sums.values()].map(({ ns, hasDurations, ...sum }) => ({ ...sum, nsPerOne: hasDurations && !sum.isTime && sum.sum > 0 ? ns / sum.sum : null }));
}
