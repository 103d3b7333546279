/** Columns that several tables have: the same value looks the same everywhere. */

import { bytes, count, duration, instant } from "../../format";
import type { Place } from "../../protocol/types";
import { nameOf } from "../../state/store";
import { NameOf, laneLabel } from "../Name";
import type { Column } from "./Table";

type Get<R> = (row: R) => number | null;
type More<R> = Partial<Column<R>>;

/** Numbers with a text of their own; what is not there is absent. */
export function numberColumn<R>(key: string, head: string, width: string, value: Get<R>, text: (value: number) => string, more: More<R> = {}): Column<R> {
  const shown = (row: R) => {
    const number = value(row);
    return number === null ? "absent" : text(number);
  };
  return { key, head, width, isNumber: true, value, text: shown, ...more };
}

export function countColumn<R>(key: string, head: string, width: string, value: Get<R>, more: More<R> = {}): Column<R> {
  return numberColumn(key, head, width, value, count, more);
}

/** Nanoseconds and bytes are shown in the unit that fits; the whole number is in the tooltip. */
function exact<R>(value: Get<R>, unit: string): (row: R) => string | undefined {
  return (row) => {
    const number = value(row);
    return number === null ? undefined : `${count(number)} ${unit}`;
  };
}

export function durationColumn<R>(key: string, head: string, width: string, value: Get<R>, more: More<R> = {}): Column<R> {
  return numberColumn(key, head, width, value, duration, { hint: exact(value, "ns"), ...more });
}

export function instantColumn<R>(key: string, head: string, width: string, value: Get<R>, more: More<R> = {}): Column<R> {
  return numberColumn(key, head, width, value, (ns) => instant(ns), { hint: exact(value, "ns"), ...more });
}

export function bytesColumn<R>(key: string, head: string, width: string, value: Get<R>, more: More<R> = {}): Column<R> {
  return numberColumn(key, head, width, value, bytes, { hint: exact(value, "bytes"), ...more });
}

/** Name of a span, with its colour. */
export function nameColumn<R extends { name: number }>(head: string, width: string): Column<R> {
  return { key: "name", head, width, value: ({ name }) => nameOf(name), cell: ({ name }) => <NameOf id={name} /> };
}

export function laneColumn<R extends { place: Place | null }>(width: string): Column<R> {
  return { key: "lane", head: "Lane", width, value: ({ place }) => laneLabel(place?.lane) };
}

export function eventColumn<R extends { event: string }>(width: string): Column<R> {
  return { key: "event", head: "Event", width, value: ({ event }) => event, cell: ({ event }) => <span class="mono">{event}</span> };
}
