/** A table of which only the rows in view are in the document: sorting, keys, copying. */

import type { ComponentChildren } from "preact";
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { focusWhenRendered } from "../../keyboard/focus";
import { announce } from "../../state/actions";
import { FORMATS, type TextTable, copy, downloadTable, formatTable } from "./export";
import { Menu } from "./Menu";
import { type Sort, nextSort, sorted } from "./sort";

export interface Column<R> {
  key: string;
  head: string;
  /** What the head means, where its word does not say. */
  title?: string;
  /** A track of `grid-template-columns`. */
  width: string;
  isNumber?: boolean;
  /** What is sorted by, and what programs get. */
  value(row: R): string | number | null;
  /** What is shown and copied; by default the value. */
  text?(row: R): string;
  /** What is shown where text is not enough. */
  cell?(row: R): ComponentChildren;
  /** Tooltip of a cell. */
  hint?(row: R): string | undefined;
}

export interface TableProps<R> {
  label: string;
  rows: readonly R[];
  columns: readonly Column<R>[];
  rowKey(row: R): string;
  /** Order at first; null keeps that of the rows. */
  sort: Sort | null;
  /** Key of the row that is marked as selected. */
  selected?: string | null;
  choose?(row: R): void;
  /** Said in place of rows. */
  empty: ComponentChildren;
  /** Called when the end comes into view. */
  atEnd?(): void;
  /** What stands before the export menu; null leaves out both. */
  tools?: ComponentChildren;
  /** Of exported files. */
  name: string;
}

const ROW_PX = 24;
const MARGIN_ROWS = 8;

const GAP_PX = 8;
const EDGE_PX = 12;

/** The width below which a table scrolls sideways; the same for all rows, or their columns would not line up. */
function leastWidth(columns: readonly { width: string }[]): string {
  const own = columns.reduce((sum, { width }) => sum + Number(/(\d+)px/.exec(width)?.[1] ?? 0), 0);
  return `${own + (columns.length - 1) * GAP_PX + 2 * EDGE_PX}px`;
}

/** The columns' text of a row. */
function textOf<R>(column: Column<R>, row: R): string {
  return column.text?.(row) ?? String(column.value(row) ?? "");
}

/** A table as text, in the order in which it is shown. */
export function textTable<R>(rows: readonly R[], columns: readonly Column<R>[], sort: Sort | null): TextTable {
  const ordered = order(rows, columns, sort);
  return {
    heads: columns.map(({ head }) => head),
    rows: ordered.map((row) => columns.map((column) => textOf(column, row))),
    raw: ordered.map((row) => Object.fromEntries(columns.map((column) => [column.key, column.value(row)]))),
  };
}

function order<R>(rows: readonly R[], columns: readonly Column<R>[], sort: Sort | null): readonly R[] {
  const column = columns.find(({ key }) => key === sort?.key);
  return column && sort ? sorted(rows, column.value, sort.isDescending) : rows;
}

/** The ways out of a table: clipboard and files. */
export function ExportMenu({ name, table }: { name: string; table(): TextTable }) {
  const items = FORMATS.flatMap((format) => [
    { text: `Copy ${format}`, run: () => void copy(formatTable(table(), format), `Table as ${format}`) },
    { text: `Download ${format}`, run: () => downloadTable(table(), format, name) },
  ]);
  return <Menu label="Export" items={items} />;
}

export function Table<R>(props: TableProps<R>) {
  const { columns, rows, rowKey } = props;
  const [sort, setSort] = useState(props.sort);
  // Columns are made anew with each value that arrives late, and order nothing differently.
  const ordered = useMemo(() => order(rows, columns, sort), [rows, sort]);
  const view = useRef<HTMLDivElement>(null);
  const [{ top, height }, setView] = useState({ top: 0, height: 400 });
  const [active, setActive] = useState(0);

  const measure = () => {
    const at = view.current;
    if (at) setView((old) => (old.top === at.scrollTop && old.height === at.clientHeight ? old : { top: at.scrollTop, height: at.clientHeight }));
  };
  useLayoutEffect(() => {
    const observer = new ResizeObserver(measure);
    if (view.current) observer.observe(view.current);
    return () => observer.disconnect();
  }, []);

  const first = Math.max(0, Math.floor(top / ROW_PX) - MARGIN_ROWS);
  const end = Math.min(ordered.length, Math.ceil((top + height) / ROW_PX) + MARGIN_ROWS);
  useLayoutEffect(() => {
    if (end >= ordered.length) props.atEnd?.();
  }, [end, ordered]);

  const current = Math.min(active, Math.max(0, ordered.length - 1));
  const template = columns.map(({ width }) => width).join(" ");
  const minWidth = leastWidth(columns);
  const focusRow = (to: number) => {
    const next = Math.max(0, Math.min(to, ordered.length - 1));
    setActive(next);
    const at = view.current;
    if (!at) return;
    const bottom = (next + 2) * ROW_PX;
    if (next * ROW_PX < at.scrollTop) at.scrollTop = next * ROW_PX;
    else if (bottom > at.scrollTop + at.clientHeight) at.scrollTop = bottom - at.clientHeight;
    measure();
    focusWhenRendered(() => at.querySelector<HTMLElement>(`[aria-rowindex="${next + 2}"]`));
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const page = Math.max(1, Math.floor(height / ROW_PX) - 2);
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -ordered.length, End: ordered.length }[event.key];
    if (event.ctrlKey || event.altKey || event.metaKey || !(event.target as HTMLElement).matches('[role="row"]')) return;
    const row = ordered[current];
    if (step !== undefined) focusRow(current + step);
    else if ((event.key === "Enter" || event.key === " ") && row !== undefined) props.choose?.(row);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const sortBy = (column: Column<R>) => {
    const next = nextSort(sort ?? { key: "", isDescending: false }, column.key, column.isNumber ?? false);
    setSort(next);
    announce(`Sorted by ${column.head}, ${next.isDescending ? "largest first" : "smallest first"}`);
  };

  return (
    <>
      {props.tools !== null && (
        <div class="panel-tools">
          {props.tools}
          <ExportMenu name={props.name} table={() => textTable(rows, columns, sort)} />
        </div>
      )}
      <div class={ordered.length === 0 ? "table is-empty" : "table"} role="grid" aria-label={props.label} aria-rowcount={ordered.length + 1} ref={view} onScroll={measure} onKeyDown={onKeyDown}>
        <div role="rowgroup" class="table-head">
          <div role="row" aria-rowindex={1} style={{ gridTemplateColumns: template, minWidth }}>
            {columns.map((column) => {
              const isSorted = sort?.key === column.key;
              const direction = !isSorted ? "none" : sort.isDescending ? "descending" : "ascending";
              return (
                <div role="columnheader" key={column.key} aria-sort={direction} class={column.isNumber ? "num" : ""} title={column.title}>
                  <button type="button" onClick={() => sortBy(column)}>
                    {column.head}
                    {isSorted && <span aria-hidden="true">{sort.isDescending ? " ▾" : " ▴"}</span>}
                  </button>
                </div>
              );
            })}
          </div>
        </div>
        <div role="rowgroup" class="table-body" style={{ height: `${ordered.length * ROW_PX}px`, minWidth }}>
          {ordered.slice(first, end).map((row, offset) => {
            const at = first + offset;
            const key = rowKey(row);
            return (
              <div
                role="row"
                key={key}
                aria-rowindex={at + 2}
                aria-selected={key === props.selected}
                tabIndex={at === current ? 0 : -1}
                style={{ gridTemplateColumns: template, transform: `translateY(${at * ROW_PX}px)` }}
                onClick={() => {
                  setActive(at);
                  props.choose?.(row);
                }}
              >
                {columns.map((column) => (
                  <div role="gridcell" key={column.key} class={column.isNumber ? "num" : ""} title={column.hint?.(row) ?? textOf(column, row)}>
                    {column.cell?.(row) ?? textOf(column, row)}
                  </div>
                ))}
              </div>
            );
          })}
        </div>
      </div>
      {ordered.length === 0 && <div class="panel-empty">{props.empty}</div>}
    </>
  );
}
