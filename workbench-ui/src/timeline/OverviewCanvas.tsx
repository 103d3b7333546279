/** Tick overview, overload strip and minimap with their gutter. */

import { type Signal, computed, effect, useSignal } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import { count, duration, estimate, percent } from "../format";
import { announce, setWindow, showTick } from "../state/actions";
import { isAbort } from "../protocol/http";
import { socket } from "../state/sessions";
import * as s from "../state/store";
import { type Axis, levelOf, nsAt, tilesIn } from "./axis";
import { TileCache } from "./cache";
import {
  HANDLE, budgetNs, drawMinimapBase, drawMinimapHits, drawMinimapWindow, drawOverload, drawTickOverview, minimapAxis, minimapGroups,
  overviewHeights, windowOnMinimap, windowOnStrip,
} from "./drawOverview";
import { drawUnread } from "./drawLoss";
import { TileLoader } from "./loader";
import { overloadLines } from "./overload";
import { type TickBar, type TickStrip, barAt, tickStrip } from "./overview";
import { type Tip, TipBox } from "./Tooltip";
import type { TimelineView } from "./view";

const VIEW_ID = 1;
const FILTER_VIEW_ID = 3;

class OverviewView {
  strip: TickStrip = { bars: [], gaps: [], perBar: 1, widthPx: 0, readPx: 0 };
  heights = { ticks: 72, overload: 20, minimap: 44 };
  private readonly cache = new TileCache(16 << 20, 0);
  private readonly loader = new TileLoader(this.cache, socket, VIEW_ID, () => this.tilesCame());
  private readonly hits = new TileLoader(this.cache, socket, FILTER_VIEW_ID, () => this.tilesCame());
  private base: OffscreenCanvas | null = null;
  private baseKey = "";
  private ticks: { key: string; strip: TickStrip; pictures: [OffscreenCanvas, OffscreenCanvas] } | null = null;
  private tilesVersion = 0;
  private frame: number | undefined;
  private width = 0;
  private stripKey: unknown = null;
  private session: string | null = null;

  constructor(
    private readonly canvas: HTMLCanvasElement,
    private readonly view: TimelineView,
  ) {}

  private tilesCame(): void {
    this.tilesVersion += 1;
    this.requestDraw();
  }

  requestDraw(): void {
    if (this.frame !== undefined) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = undefined;
      this.draw();
    });
  }

  /** Is everything drawn that can be seen? */
  isComplete(): boolean {
    return this.frame === undefined && this.loader.isSatisfied && (s.activeFilterId.peek() === 0 || this.hits.isSatisfied);
  }

  resize(width: number): void {
    this.width = width;
    this.draw();
  }

  axis(): Axis {
    return minimapAxis(this.width, window.devicePixelRatio || 1);
  }

  get height(): number {
    return this.heights.ticks + this.heights.overload + this.heights.minimap;
  }

  private ask(axis: Axis, level: number): void {
    const session = s.activeId.peek();
    if (session === null || s.meta.peek() === null) return;
    if (session !== this.session) {
      this.session = session;
      this.cache.clear();
    }
    const [firstTile, endTile] = tilesIn(axis, level, 0, axis.widthPx);
    const bands = minimapGroups(s.meta.peek()?.lanes ?? []).flat().map(({ id }) => ({ lane: id, band: 0, rows: 1 }));
    const needs = { session, generation: s.generation.peek(), filterId: 0, level, firstTile, endTile, bands };
    this.loader.want(needs);
    const filterId = s.activeFilterId.peek();
    const rows = (s.meta.peek()?.lanes ?? []).filter(({ kind }) => kind === "thread").map(({ id, rows }) => ({ lane: id, band: 0, rows: Math.min(Math.max(rows, 1), 32) }));
    if (filterId !== 0) this.hits.want({ ...needs, filterId, bands: rows });
  }

  private minimapBase(axis: Axis, level: number): OffscreenCanvas {
    const { palette, style } = this.view;
    const height = this.heights.minimap;
    const key = [palette.epoch, this.width, height, axis.ratio, this.tilesVersion, s.generation.peek(), s.wholeRange.peek().toNs, s.collections.peek().length, s.bookmarks.peek().length, s.notices.peek() !== null, s.activeId.peek()].join("/");
    if (this.base !== null && key === this.baseKey) return this.base;
    const base = new OffscreenCanvas(Math.max(Math.round(this.width * axis.ratio), 1), Math.max(Math.round(height * axis.ratio), 1));
    const context = base.getContext("2d") as unknown as CanvasRenderingContext2D | null;
    if (context !== null) {
      context.scale(axis.ratio, axis.ratio);
      drawMinimapBase(context, palette, this.cache, axis, level, style, height);
    }
    [this.base, this.baseKey] = [base, key];
    return base;
  }

  /** Tick overview and overload strip, as outside of the window and as in it; made anew when something else than the window changes. */
  private tickPictures(ratio: number): [OffscreenCanvas, OffscreenCanvas] {
    const { palette } = this.view;
    const { ticks, overload } = this.heights;
    const key = [palette.epoch, this.view.fontVersion, this.width, ticks, overload, ratio, s.meta.peek()?.ticks.p95Ns, budgetNs()].join("/");
    if (this.ticks !== null && this.ticks.key === key && this.ticks.strip === this.strip) return this.ticks.pictures;
    const make = (isIn: boolean) => {
      const picture = new OffscreenCanvas(Math.max(Math.round(this.width * ratio), 1), Math.max(Math.round((ticks + overload) * ratio), 1));
      const context = picture.getContext("2d") as unknown as CanvasRenderingContext2D | null;
      if (context === null) return picture;
      context.scale(ratio, ratio);
      drawTickOverview(context, palette, this.strip, ticks, isIn);
      context.translate(0, ticks);
      drawOverload(context, palette, this.strip, overload);
      return picture;
    };
    const pictures: [OffscreenCanvas, OffscreenCanvas] = [make(false), make(true)];
    this.ticks = { key, strip: this.strip, pictures };
    return pictures;
  }

  private drawTicks(context: CanvasRenderingContext2D, ratio: number): void {
    const height = this.heights.ticks + this.heights.overload;
    if (height === 0) return;
    const [outside, inside] = this.tickPictures(ratio);
    const window = windowOnStrip(this.strip);
    const part = (picture: OffscreenCanvas, from: number, to: number) => {
      const [x, end] = [Math.round(from * ratio), Math.round(to * ratio)];
      if (end > x) context.drawImage(picture, x, 0, end - x, picture.height, x / ratio, 0, (end - x) / ratio, picture.height / ratio);
    };
    if (window === null) return part(outside, 0, this.width);
    context.fillStyle = this.view.palette.signal["accent-wash"];
    context.fillRect(window.from, 0, Math.max(window.to - window.from, 2), this.heights.ticks);
    part(outside, 0, window.bars.from);
    part(inside, window.bars.from, window.bars.to);
    part(outside, window.bars.to, this.width);
  }

  draw(): void {
    const context = this.canvas.getContext("2d");
    if (context === null || this.width <= 0) return;
    const axis = this.axis();
    const { ratio } = axis;
    const [width, height] = [Math.round(this.width * ratio), Math.round(this.height * ratio)];
    if (this.canvas.width !== width || this.canvas.height !== height) {
      this.canvas.width = width;
      this.canvas.height = height;
      this.canvas.style.height = `${this.height}px`;
    }
    const stripKey = s.ticks.peek();
    if (this.stripKey !== stripKey || this.strip.widthPx !== this.width) {
      this.strip = tickStrip(stripKey, this.width, s.readShare.peek());
      this.stripKey = stripKey;
    }
    const level = levelOf(axis);
    this.ask(axis, level);
    const { palette } = this.view;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = palette.signal["bg-canvas"];
    context.fillRect(0, 0, this.width, this.height);
    this.drawTicks(context, ratio);
    const unread = s.readShare.peek() < 1;
    if (unread) drawUnread(context, palette, this.strip.readPx, this.width, 0, this.heights.ticks + this.heights.overload);
    context.translate(0, this.heights.ticks + this.heights.overload);
    context.drawImage(this.minimapBase(axis, level), 0, 0, this.width, this.heights.minimap);
    if (unread) drawUnread(context, palette, this.width * s.readShare.peek(), this.width, 0, this.heights.minimap, false);
    drawMinimapHits(context, palette, this.cache, axis, level, s.activeFilterId.peek(), this.heights.minimap);
    drawMinimapWindow(context, palette, axis, this.heights.minimap);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = palette.signal.line;
    for (const y of [this.heights.ticks, this.heights.ticks + this.heights.overload, this.height]) context.fillRect(0, y - 1, this.width, 1);
  }
}

/** A drag on the minimap: the window, one of its edges, or a new range. */
function dragMinimap(view: OverviewView, down: PointerEvent, x: number): (event: PointerEvent) => void {
  const axis = view.axis();
  const { from, to } = windowOnMinimap(axis);
  const start = s.timeWindow.peek();
  const shift = (event: PointerEvent) => (event.clientX - down.clientX) * axis.nsPerPx;
  const reach = HANDLE.hit / 2 + HANDLE.width / 2;
  if (Math.abs(x - (from - HANDLE.width / 2)) <= reach && x < (from + to) / 2) {
    return (event) => setWindow({ fromNs: Math.min(start.fromNs + shift(event), start.toNs - 1), toNs: start.toNs });
  }
  if (Math.abs(x - (to + HANDLE.width / 2)) <= reach) {
    return (event) => setWindow({ fromNs: start.fromNs, toNs: Math.max(start.toNs + shift(event), start.fromNs + 1) });
  }
  if (x > from && x < to && to - from < axis.widthPx - 1) {
    return (event) => setWindow({ fromNs: start.fromNs + shift(event), toNs: start.toNs + shift(event) });
  }
  const first = nsAt(axis, x);
  return (event) => {
    const last = nsAt(axis, x + event.clientX - down.clientX);
    if (Math.abs(event.clientX - down.clientX) > 2) setWindow({ fromNs: Math.min(first, last), toNs: Math.max(first, last) });
  };
}

function showBars(from: TickBar, to: TickBar): void {
  const { startNs, durationNs } = s.ticks.peek();
  const [first, last] = from.first <= to.first ? [from, to] : [to, from];
  const end = last.end - 1;
  setWindow({ fromNs: startNs[first.first] ?? 0, toNs: (startNs[end] ?? 0) + Math.max(durationNs[end] ?? 0, 1) });
}

/** A drag over tick bars shows their range, a click one tick. */
function dragTicks(view: OverviewView, down: PointerEvent, x: number): { move(event: PointerEvent): void; click(): void } {
  const first = barAt(view.strip, x);
  return {
    move: (event) => {
      const bar = barAt(view.strip, x + event.clientX - down.clientX);
      if (first !== null && bar !== null && Math.abs(event.clientX - down.clientX) > 3) showBars(first, bar);
    },
    click: () => {
      if (first !== null) showTick(first.worst);
    },
  };
}

/** What is said of a bar before the server is asked. */
export function tickTip(bar: TickBar): Tip {
  const { numbers, durationNs, levels, multipliers, collections } = s.ticks.peek();
  const place = bar.worst;
  const began = collections[place] ?? 0;
  const lines = [
    bar.end - bar.first > 1 ? `the longest of ticks ${count(numbers[bar.first] ?? 0)}–${count(numbers[bar.end - 1] ?? 0)}` : "",
    (levels[place] ?? 0) > 0 || (multipliers[place] ?? 1) > 1 ? `overload level ${levels[place]}, rate ÷ ${multipliers[place]}` : "",
    began > 0 ? `${began === 1 ? "1 collection touches" : `${began} collections touch`} it` : "",
  ];
  const ns = durationNs[place] ?? null;
  return { title: `Tick ${count(numbers[place] ?? 0)}`, figure: ns === null ? "no end" : duration(ns), swatch: null, lines: lines.filter((line) => line !== "") };
}

interface Hovered {
  bar: TickBar;
  isOverload: boolean;
  x: number;
  y: number;
}

const TIP_DELAY_MS = 80;

/** Reads where the mouse is by itself, so that a move of it draws nothing else anew. */
function HoveredTip({ of }: { of: Signal<Hovered | null> }) {
  return of.value === null ? null : <TickTip at={of.value} />;
}

/** Of a tick; on the overload strip with what the detector recorded. */
function TickTip({ at }: { at: Hovered }) {
  const place = at.bar.worst;
  const [detail, setDetail] = useState<{ place: number; lines: string[] }>({ place: -1, lines: [] });
  useEffect(() => {
    const api = s.sessionApi.peek();
    if (!at.isOverload || api === null || !s.isReady.peek()) return;
    const controller = new AbortController();
    const timer = setTimeout(() => {
      overloadLines(api, place, controller.signal)
        .then((lines) => setDetail({ place, lines }))
        .catch((error: unknown) => {
          if (!isAbort(error)) setDetail({ place, lines: [`the detector's record cannot be read: ${error instanceof Error ? error.message : String(error)}`] });
        });
    }, TIP_DELAY_MS);
    return () => {
      clearTimeout(timer);
      controller.abort();
    };
  }, [place, at.isOverload]);
  const tip = tickTip(at.bar);
  const more = at.isOverload && detail.place === place ? detail.lines : [];
  return <TipBox tip={{ ...tip, lines: [...tip.lines, ...more] }} x={at.x} y={at.y} />;
}

export function OverviewCanvas({ view: timeline }: { view: TimelineView }) {
  const canvasRef = useRef<HTMLCanvasElement>(null);
  const boxRef = useRef<HTMLDivElement>(null);
  const viewRef = useRef<OverviewView | null>(null);
  const hovered = useSignal<Hovered | null>(null);
  const { ticks, overload, minimap } = timeline.measures;
  const heights = overviewHeights({ ticks, overload, minimap });
  void [s.ticks.value, s.meta.value, timeline.layout.value];
  useEffect(() => {
    const [canvas, box] = [canvasRef.current, boxRef.current];
    if (canvas === null || box === null) return;
    const view = new OverviewView(canvas, timeline);
    viewRef.current = view;
    const isDrawn = () => view.isComplete();
    timeline.beside.add(isDrawn);
    const observer = new ResizeObserver(() => view.resize(box.clientWidth));
    observer.observe(box);
    const stop = effect(() => {
      void [s.timeWindow.value, s.meta.value, s.ticks.value, s.collections.value, s.notices.value, s.bookmarks.value];
      void [s.connection.value, s.filter.value, s.colourMode.value, s.names.value, timeline.sceneVersion.value, timeline.styleVersion.value];
      view.requestDraw();
    });
    return () => {
      timeline.beside.delete(isDrawn);
      observer.disconnect();
      stop();
    };
  }, []);
  useEffect(() => {
    const view = viewRef.current;
    if (view === null) return;
    view.heights = heights;
    view.draw();
  });
  const onPointerDown = (down: PointerEvent) => {
    const view = viewRef.current;
    const box = boxRef.current;
    if (view === null || box === null || down.button !== 0) return;
    const rect = box.getBoundingClientRect();
    const [x, y] = [down.clientX - rect.left, down.clientY - rect.top];
    const onTicks = y < heights.ticks + heights.overload;
    const ticks = onTicks ? dragTicks(view, down, x) : null;
    const move = ticks?.move ?? dragMinimap(view, down, x);
    const moved = (event: PointerEvent) => move(event);
    const up = (event: PointerEvent) => {
      box.removeEventListener("pointermove", moved);
      box.removeEventListener("pointerup", up);
      const isClick = Math.abs(event.clientX - down.clientX) <= 3;
      if (ticks !== null && isClick) ticks.click();
      else announce(`Window ${duration(s.timeWindow.peek().toNs - s.timeWindow.peek().fromNs)}`);
    };
    box.setPointerCapture(down.pointerId);
    box.addEventListener("pointermove", moved);
    box.addEventListener("pointerup", up);
  };
  const onPointerMove = (event: PointerEvent) => {
    const [view, box] = [viewRef.current, boxRef.current];
    if (view === null || box === null) return;
    const rect = box.getBoundingClientRect();
    const y = event.clientY - rect.top;
    const bar = event.buttons === 0 && y < heights.ticks + heights.overload ? barAt(view.strip, event.clientX - rect.left) : null;
    hovered.value = bar === null ? null : { bar, isOverload: y >= heights.ticks, x: event.clientX, y: event.clientY };
  };
  return (
    <div class="tl-overview">
      <OverviewGutter heights={heights} />
      <div class="tl-overview-canvas" ref={boxRef} onPointerDown={onPointerDown} onPointerMove={onPointerMove} onPointerLeave={() => (hovered.value = null)}>
        <canvas ref={canvasRef} aria-hidden="true" />
        <WindowSlider label="Window, by tick" top={0} height={heights.ticks + heights.overload} />
        <WindowSlider label="Window, on the session" top={heights.ticks + heights.overload} height={heights.minimap} />
      </div>
      <HoveredTip of={hovered} />
    </div>
  );
}

/** The window as a slider, for keys and screen readers. */
function WindowSlider(props: { label: string; top: number; height: number }) {
  const { fromNs, toNs } = s.timeWindow.value;
  const whole = s.wholeRange.value.toNs;
  if (props.height === 0) return null;
  const onKeyDown = (event: KeyboardEvent) => {
    const step = { ArrowLeft: -0.1, ArrowRight: 0.1, PageUp: 1, PageDown: -1 }[event.key];
    const length = toNs - fromNs;
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    if (step !== undefined) setWindow({ fromNs: fromNs + step * length, toNs: toNs + step * length }, { glide: true });
    else if (event.key === "Home") setWindow({ fromNs: 0, toNs: length }, { glide: true });
    else if (event.key === "End") setWindow({ fromNs: whole - length, toNs: whole }, { glide: true });
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div
      class="tl-slider"
      role="slider"
      tabIndex={0}
      aria-label={props.label}
      aria-valuemin={0}
      aria-valuemax={Math.round(whole)}
      aria-valuenow={Math.round(fromNs)}
      aria-valuetext={`${duration(toNs - fromNs)} from ${duration(fromNs)}`}
      style={{ top: `${props.top}px`, height: `${props.height}px` }}
      onKeyDown={onKeyDown}
    />
  );
}

/** Ticks above the 95th percentile, and the longest. */
const slowTicks = computed(() => {
  const p95 = s.meta.value?.ticks.p95Ns ?? Number.POSITIVE_INFINITY;
  let [above, worst] = [0, 0];
  for (const ns of s.ticks.value.durationNs) {
    worst = Math.max(worst, ns ?? 0);
    if (ns !== null && ns > p95) above += 1;
  }
  return { above, worst };
});

function OverviewGutter({ heights }: { heights: { ticks: number; overload: number; minimap: number } }) {
  const { fromNs, toNs } = s.timeWindow.value;
  const ticks = s.meta.value?.ticks;
  const p95 = ticks?.p95Ns ?? null;
  const { above, worst } = slowTicks.value;
  const whole = s.wholeRange.value.toNs;
  const budget = budgetNs();
  return (
    <div class="tl-gutter">
      {heights.ticks > 0 && (
        <div class="tl-head" style={{ height: `${heights.ticks}px` }}>
          <div class="tl-name">
            <span>Ticks</span>
            <em>{count(ticks?.count ?? 0)}</em>
          </div>
          {p95 !== null && (
            <div class="tl-sub">
              P95 {duration(p95)}
              {budget !== null && <span class="tl-wide"> · budget {duration(budget)}</span>}
            </div>
          )}
          {above > 0 && <div class="tl-sub hot">{`${count(above)} above P95`}<span class="tl-wide"> · worst {duration(worst)}</span></div>}
        </div>
      )}
      {heights.overload > 0 && (
        <div class="tl-head slim" style={{ height: `${heights.overload}px` }}>
          <div class="tl-name">
            <span>Overload</span>
            <em>× budget</em>
          </div>
        </div>
      )}
      <div class="tl-head" style={{ height: `${heights.minimap}px` }}>
        <div class="tl-name">
          <span>Session</span>
          <em>{s.readShare.value < 1 ? estimate(duration(whole)) : duration(whole)}</em>
        </div>
        <div class="tl-sub">window {percent((toNs - fromNs) / whole)}</div>
      </div>
    </div>
  );
}
