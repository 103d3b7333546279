/** Bookmarks with notes, and what the ruler measured (B-26). */

import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { count, duration, instant } from "../format";
import type { Bookmark } from "../protocol/types";
import { announce, putBookmarks, reveal, selectEvent, setLayout, showRange } from "../state/actions";
import { type Range, activeSession, bookmarks, cursorNs, isMeasuring, measure, primary, ticks, timeWindow } from "../state/store";
import { Fact, Section } from "./inspector/Facts";
import { download } from "./table/export";
import { useRequest } from "./useRequest";

/** The bookmark whose note is to be written next. */
const editing = { id: "" };

function newId(): string {
  return crypto.getRandomValues(new Uint32Array(2)).reduce((text, part) => text + part.toString(36), "");
}

async function add(bookmark: Bookmark): Promise<void> {
  editing.id = bookmark.id;
  setLayout({ inspectorTab: "bookmarks", isInspectorOpen: true });
  await putBookmarks([...bookmarks.value, bookmark].sort((a, b) => a.fromNs - b.fromNs));
  announce("Bookmark set");
}

/** Marks the selection, else the moment under the mouse, else the middle of the window. */
export function addBookmark(): void {
  const one = primary.value;
  const { fromNs, toNs } = timeWindow.value;
  const at = Math.round(cursorNs.value ?? (fromNs + toNs) / 2);
  void add(
    one === null
      ? { id: newId(), fromNs: at, toNs: null, event: null, note: "" }
      : { id: newId(), fromNs: Math.round(one.startNs), toNs: Math.round(one.startNs + Math.max(one.durationNs, 1)), event: one.event, note: "" },
  );
}

export function addRangeBookmark({ fromNs, toNs }: Range): void {
  void add({ id: newId(), fromNs: Math.round(fromNs), toNs: Math.round(toNs), event: null, note: "" });
}

function go(bookmark: Bookmark): void {
  const { fromNs, toNs, event } = bookmark;
  if (event !== null) void selectEvent(event);
  else if (toNs !== null) showRange({ fromNs, toNs });
  else reveal({ fromNs, toNs: fromNs + 1 });
}

function save(changed: Bookmark): void {
  void putBookmarks(bookmarks.value.map((one) => (one.id === changed.id ? changed : one)));
}

function Note({ of }: { of: Bookmark }) {
  const field = useRef<HTMLInputElement>(null);
  const text = useSignal(of.note);
  useEffect(() => {
    if (editing.id !== of.id) return;
    editing.id = "";
    field.current?.focus();
  }, [of.id]);
  return (
    <input
      ref={field}
      class="note"
      type="text"
      maxLength={1000}
      aria-label={`Note at ${instant(of.fromNs)}`}
      placeholder="Note"
      value={text.value}
      onInput={({ currentTarget }) => (text.value = currentTarget.value)}
      onBlur={() => text.value !== of.note && save({ ...of, note: text.value })}
      onKeyDown={(event) => {
        if (event.key === "Enter" || event.key === "Escape") event.currentTarget.blur();
      }}
    />
  );
}

function Line({ of }: { of: Bookmark }) {
  const length = of.toNs === null ? "" : duration(of.toNs - of.fromNs);
  return (
    <li class="bookmark">
      <button type="button" class="link" onClick={() => go(of)}>
        {instant(of.fromNs)}
      </button>
      <span class="text-2">{length}</span>
      <button
        type="button"
        class="icon-button"
        aria-label={`Remove the bookmark at ${instant(of.fromNs)}`}
        title="Remove"
        onClick={() => void putBookmarks(bookmarks.value.filter(({ id }) => id !== of.id))}
      >
        ×
      </button>
      <Note of={of} />
    </li>
  );
}

function Measured({ range }: { range: Range }) {
  const { fromNs, toNs } = range;
  const stats = useRequest((api, signal) => api.stats("kind", { fromNs, toNs }, { top: 0 }, signal), [fromNs, toNs]);
  const touched = ticks.value.placesIn(range);
  const records = stats.value?.rows.reduce((sum, row) => sum + row.count, 0);
  return (
    <Section title="Ruler">
      <dl>
        <Fact name="Duration" hint={`${count(toNs - fromNs)} ns`}>
          {duration(toNs - fromNs)}
        </Fact>
        <Fact name="From">{instant(fromNs, 1)}</Fact>
        <Fact name="To">{instant(toNs, 1)}</Fact>
        <Fact name="Ticks">{count(touched.end - touched.first)}</Fact>
        <Fact name="Events">{records === undefined ? "counting" : count(records)}</Fact>
      </dl>
      <div class="inspector-actions">
        <button type="button" class="button" onClick={() => addRangeBookmark(range)}>
          Keep as bookmark
        </button>
        <button type="button" class="button" onClick={() => showRange(range)}>
          Zoom to ruler
        </button>
        <button type="button" class="button" onClick={() => (measure.value = null)}>
          Remove
        </button>
      </div>
    </Section>
  );
}

export function Bookmarks() {
  const list = bookmarks.value;
  const ruler = measure.value;
  const name = (activeSession.value?.name ?? "trace").replace(/\.typhon-trace$/, "");
  const save = () => download(`${name}.bookmarks.json`, new Blob([`${JSON.stringify({ bookmarks: list }, null, 2)}\n`], { type: "application/json" }));
  return (
    <div class="inspector">
      {ruler !== null && <Measured range={ruler} />}
      {ruler === null && isMeasuring.value && <p class="panel-hint">Drag over the tracks to measure.</p>}
      <Section
        title={`Bookmarks · ${count(list.length)}`}
        aside={
          list.length > 0 ? (
            <button type="button" class="link" onClick={save}>
              Download JSON
            </button>
          ) : undefined
        }
      >
        {list.length === 0 ? (
          <p class="text-2">
            No bookmarks yet. <kbd>M</kbd> marks the selection, <kbd>R</kbd> measures.
          </p>
        ) : (
          <ul class="bookmarks">
            {list.map((one) => (
              <Line key={one.id} of={one} />
            ))}
          </ul>
        )}
        <div class="inspector-actions">
          <button type="button" class="button" onClick={addBookmark}>
            Set bookmark <kbd>M</kbd>
          </button>
        </div>
      </Section>
    </div>
  );
}
