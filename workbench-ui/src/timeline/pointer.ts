/** What the pointer does on the tracks (B-17, B-22). */

import { announce, clearSelection, pan, report, select, selectRange, setWindow, showRange, zoom } from "../state/actions";
import * as s from "../state/store";
import { duration } from "../format";
import { nsAt } from "./axis";
import { focusOn } from "./focus";
import { type SpanHit, placeOf } from "./scene";
import type { TimelineView } from "./view";

const CLICK_PX = 3;
const WHEEL_STEP = 1.0015;
const LINE_PX = 16;

function deltaPx(event: WheelEvent, delta: number): number {
  return event.deltaMode === WheelEvent.DOM_DELTA_LINE ? delta * LINE_PX : event.deltaMode === WheelEvent.DOM_DELTA_PAGE ? delta * 400 : delta;
}

/** Wheel zooms at the cursor; with Shift, or sideways, it pans; with Ctrl it scrolls. */
export function onWheel(view: TimelineView, event: WheelEvent, x: number, scrollBy: (px: number) => void): void {
  event.preventDefault();
  const [dx, dy] = [deltaPx(event, event.deltaX), deltaPx(event, event.deltaY)];
  if (event.ctrlKey) return scrollBy(dy);
  const axis = view.axis();
  if (event.shiftKey || Math.abs(dx) > Math.abs(dy)) return pan((event.shiftKey && dx === 0 ? dy : dx) / axis.widthPx);
  zoom(WHEEL_STEP ** -dy, nsAt(axis, x));
}

/** An aggregate is opened by going closer, everything else is selected. */
export function click(hit: SpanHit | null, add: boolean): void {
  s.measure.value = null;
  // Taking a range back and what the click selects are one step for Back.
  const remember = s.selectedRange.peek() === null;
  selectRange(null);
  if (hit === null) {
    if (!add) clearSelection({ remember });
    return;
  }
  const place = placeOf(hit);
  if (place === null) {
    showRange({ fromNs: hit.fromNs, toNs: hit.toNs }, 1);
    return announce(`${hit.entry.index} spans`);
  }
  select([{ event: null, place, startNs: hit.fromNs, durationNs: hit.toNs - hit.fromNs, name: hit.entry.name }], { add, remember });
  focusOn(place, hit.fromNs, hit.toNs);
}

/** Shows the whole span, of which a tile may know a part only. */
export async function doubleClick(hit: SpanHit | null): Promise<void> {
  const [api, place] = [s.sessionApi.peek(), hit === null ? null : placeOf(hit)];
  if (api === null || place === null) return;
  try {
    const { startNs, durationNs } = await api.at(place);
    showRange({ fromNs: startNs, toNs: startNs + Math.max(durationNs ?? 0, 1) });
  } catch (error) {
    report(error);
  }
}

type Drag = { move(event: PointerEvent): void; up(event: PointerEvent): void };

/** A range from where the pointer went down. */
function rangeDrag(view: TimelineView, down: PointerEvent, x: number, show: (range: s.Range) => void, done: (range: s.Range) => void): Drag {
  const first = nsAt(view.axis(), x);
  const rangeOf = (event: PointerEvent): s.Range => {
    const last = nsAt(view.axis(), x + event.clientX - down.clientX);
    return { fromNs: Math.min(first, last), toNs: Math.max(first, last) };
  };
  return {
    move: (event) => show(rangeOf(event)),
    up: (event) => done(rangeOf(event)),
  };
}

/** What a drag that begins here does. Null: nothing but a click. */
export function dragFrom(view: TimelineView, down: PointerEvent, x: number, y: number, scrollBy: (px: number) => void): Drag {
  if (s.isMeasuring.peek()) {
    return rangeDrag(view, down, x, (range) => (s.measure.value = range), (range) => {
      s.measure.value = range;
      s.isMeasuring.value = false;
      announce(`Measured ${duration(range.toNs - range.fromNs)}`);
    });
  }
  const isOnRuler = y < view.measures.ruler;
  if (isOnRuler || down.ctrlKey) {
    return rangeDrag(view, down, x, (range) => (s.draggedRange.value = range), (range) => {
      s.draggedRange.value = null;
      setWindow(range, { glide: true, remember: true });
    });
  }
  if (down.shiftKey) {
    return rangeDrag(view, down, x, (range) => (s.draggedRange.value = range), (range) => {
      s.draggedRange.value = null;
      selectRange(range);
      announce(`Selected ${duration(range.toNs - range.fromNs)}`);
    });
  }
  const start = s.timeWindow.peek();
  const { nsPerPx } = view.axis();
  let lastY = down.clientY;
  return {
    move: (event) => {
      const by = (down.clientX - event.clientX) * nsPerPx;
      setWindow({ fromNs: start.fromNs + by, toNs: start.toNs + by });
      scrollBy(lastY - event.clientY);
      lastY = event.clientY;
    },
    up: () => {},
  };
}

export function isClick(down: PointerEvent, up: PointerEvent): boolean {
  return Math.hypot(down.clientX - up.clientX, down.clientY - up.clientY) <= CLICK_PX;
}
