/** The timeline: overview above, tracks below, their gutter at the left. */

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { setLayout } from "../state/actions";
import * as s from "../state/store";
import { Grid } from "./Grid";
import { PinnedGutter, ScrolledGutter } from "./Gutter";
import { OverviewCanvas } from "./OverviewCanvas";
import { Tooltip, type TipAt } from "./Tooltip";
import { setFocusView } from "./focus";
import { installHook } from "./hook";
import { click, doubleClick, dragFrom, isClick, onWheel } from "./pointer";
import { scrollAreaTop } from "./scene";
import { TimelineView } from "./view";

const LEAST_GUTTER_PX = 120;

export function Timeline() {
  const view = useMemo(() => new TimelineView(), []);
  const areaRef = useRef<HTMLDivElement>(null);
  const canvasRef = useRef<HTMLCanvasElement>(null);
  const scrollRef = useRef<HTMLDivElement>(null);
  const [tip, setTip] = useState<TipAt | null>(null);

  useEffect(() => {
    const [area, canvas, scroller] = [areaRef.current, canvasRef.current, scrollRef.current];
    if (area === null || canvas === null || scroller === null) return;
    view.attach(canvas);
    setFocusView(view);
    view.showTrack = (lane) => showTrack(view, scroller, lane);
    const uninstall = installHook(view, canvas);
    const observer = new ResizeObserver(() => view.resize(canvas.clientWidth, canvas.clientHeight));
    observer.observe(canvas);
    const wheel = (event: WheelEvent) => {
      const rect = canvas.getBoundingClientRect();
      if (event.clientX < rect.left) return; // over the gutter the list scrolls
      onWheel(view, event, event.clientX - rect.left, (px) => scroller.scrollBy(0, px));
    };
    area.addEventListener("wheel", wheel, { passive: false });
    return () => {
      observer.disconnect();
      area.removeEventListener("wheel", wheel);
      uninstall();
      setFocusView(null);
      view.detach();
    };
  }, []);

  const at = (event: PointerEvent | MouseEvent) => {
    const rect = canvasRef.current?.getBoundingClientRect();
    return { x: event.clientX - (rect?.left ?? 0), y: event.clientY - (rect?.top ?? 0) };
  };
  const scrollBy = (px: number) => scrollRef.current?.scrollBy(0, px);

  const onPointerMove = (event: PointerEvent) => {
    const { x, y } = at(event);
    view.pointer.value = x < 0 ? null : { x, y };
    if (x < 0 || event.buttons !== 0) return setTip(null);
    const hit = view.hit(x, y);
    setTip({ x: event.clientX, y: event.clientY, canvasX: x, canvasY: y, hit });
  };
  const onPointerLeave = () => {
    s.cursorNs.value = null;
    view.pointer.value = null;
    setTip(null);
  };
  const onPointerDown = (down: PointerEvent) => {
    const area = areaRef.current;
    const { x, y } = at(down);
    if (area === null || down.button !== 0 || x < 0 || isOnScrollBar(scrollRef.current, down)) return;
    const drag = dragFrom(view, down, x, y, scrollBy);
    let isDragging = false;
    setTip(null);
    const move = (event: PointerEvent) => {
      isDragging ||= !isClick(down, event);
      if (isDragging) drag.move(event);
    };
    const end = (event: PointerEvent) => {
      area.removeEventListener("pointermove", move);
      area.removeEventListener("pointerup", end);
      area.removeEventListener("pointercancel", end);
      if (isDragging) drag.up(event);
      else if (event.type === "pointerup" && y >= view.measures.ruler) click(view.hit(x, y), down.shiftKey);
    };
    area.setPointerCapture(down.pointerId);
    area.addEventListener("pointermove", move);
    area.addEventListener("pointerup", end);
    area.addEventListener("pointercancel", end);
  };

  const { pinnedHeight, scrolledHeight } = view.layout.value;
  const top = view.measures.ruler + pinnedHeight;
  const gutter = s.layout.value.gutterPx;
  const problem = view.problem.value;
  return (
    <div class="timeline" style={gutter === null ? {} : { "--w-gutter": `${gutter}px` }}>
      <OverviewCanvas view={view} />
      <div
        class="tl-area"
        ref={areaRef}
        onPointerMove={onPointerMove}
        onPointerLeave={onPointerLeave}
        onPointerDown={onPointerDown}
        onDblClick={(event) => at(event).x >= 0 && void doubleClick(view.hit(at(event).x, at(event).y))}
        data-measuring={s.isMeasuring.value}
      >
        <canvas class="tl-canvas" ref={canvasRef} aria-hidden="true" />
        <PinnedGutter view={view} />
        <div class="tl-scroll" ref={scrollRef} style={{ top: `${top}px` }} tabIndex={-1} onScroll={(event) => (view.scrollTop.value = event.currentTarget.scrollTop)}>
          <div style={{ height: `${scrolledHeight}px` }}>
            <ScrolledGutter view={view} />
          </div>
        </div>
        <Grid view={view} />
        <GutterHandle />
        {problem !== null && (
          <div class="tl-problem" role="alert">
            <span>Part of the timeline cannot be shown: {problem.detail}</span>
            <button type="button" class="button" onClick={() => view.retry()}>
              Retry
            </button>
          </div>
        )}
      </div>
      <Tooltip view={view} at={tip} />
    </div>
  );
}

function isOnScrollBar(scroller: HTMLElement | null, event: PointerEvent): boolean {
  if (scroller === null) return false;
  const rect = scroller.getBoundingClientRect();
  return scroller.scrollHeight > scroller.clientHeight && event.clientX > rect.left + scroller.clientWidth && event.clientY > rect.top;
}

/** Scrolls so that a lane can be seen. */
function showTrack(view: TimelineView, scroller: HTMLElement, lane: number): void {
  const track = view.layout.peek().scrolled.find((one) => one.lane?.id === lane);
  if (track === undefined || view.scene === null) return;
  const room = view.scene.height - scrollAreaTop(view.scene);
  if (track.top < scroller.scrollTop) scroller.scrollTop = track.top;
  else if (track.top + track.height > scroller.scrollTop + room) scroller.scrollTop = Math.min(track.top, track.top + track.height - room);
}

/** Drag to resize the gutter; the width holds for all tracks. */
function GutterHandle() {
  const onPointerDown = (down: PointerEvent) => {
    down.stopPropagation();
    const handle = down.currentTarget as HTMLElement;
    const start = handle.offsetLeft;
    handle.setPointerCapture(down.pointerId);
    const move = (event: PointerEvent) => {
      const px = Math.max(LEAST_GUTTER_PX, Math.min(start + event.clientX - down.clientX, window.innerWidth / 2));
      setLayout({ gutterPx: Math.round(px) });
    };
    const up = () => {
      handle.removeEventListener("pointermove", move);
      handle.removeEventListener("pointerup", up);
    };
    handle.addEventListener("pointermove", move);
    handle.addEventListener("pointerup", up);
  };
  return <div class="tl-gutter-handle" onPointerDown={onPointerDown} onDblClick={() => setLayout({ gutterPx: null })} aria-hidden="true" />;
}
