/** The timeline's canvas: decides what tiles are needed, makes a scene per frame and draws it. */

import { effect, signal, untracked } from "@preact/signals";
import { isAsking } from "../protocol/http";
import type { Problem } from "../protocol/types";
import { isGliding } from "../state/motion";
import { socket } from "../state/sessions";
import * as s from "../state/store";
import { type Axis, bucketPx, levelOf, makeAxis, nsAt, tilesIn } from "./axis";
import { type BitmapWish, BitmapMaker } from "./bitmaps";
import { BAND_ROWS, type Tile, TileCache, choose } from "./cache";
import { forgetWidths } from "./draw";
import { drawGauge } from "./drawGauges";
import { drawGc, drawPauseWash, pausesIn } from "./drawGc";
import { drawLinks } from "./drawLinks";
import { drawLoss } from "./drawLoss";
import { drawCursor, drawGrid, drawRuler } from "./drawRuler";
import { DIMMED, DIRECT_SCALE, clipTo, drawBand, drawLabels, drawMarkers, drawOutlines, drawOverflowLine, wideSpans } from "./drawSpans";
import { Durations } from "./durations";
import { placeTile } from "./geometry";
import { type Band, type Needs, TileLoader } from "./loader";
import type { PaintStyle } from "./painter";
import { FORCED_COLOURS, type Palette, laneSlot, nameStyle, readPalette } from "./palette";
import { type PlacedBand, type Scene, type SpanHit, hitTest, scrollAreaTop, trackTop, visibleTracks } from "./scene";
import { type Measures, type Track, type TrackLayout, layOut } from "./tracks";
import { spansUtilisation } from "./utilisation";
import { NONE, wholeLengths } from "./wholes";

/** Times of frames, for the test hook. */
const KEPT_FRAMES = 600;
/** A bitmap of another scale is stretched while the view moves and painted anew when it has been still for this long. */
const STILL_MS = 60;
const LABEL_REQUESTS = 80;

const VIEW_ID = 0;
const FILTER_VIEW_ID = 2;

/** A band of a lane, and the track that shows it. */
interface SeenBand extends Band {
  track: Track;
}

export const EMPTY_LAYOUT: TrackLayout = { pinned: [], scrolled: [], pinnedHeight: 0, scrolledHeight: 0 };

export class TimelineView {
  readonly cache = new TileCache();
  readonly layout = signal<TrackLayout>(EMPTY_LAYOUT);
  readonly scrollTop = signal(0);
  /** Where the mouse is on the canvas. What lies under it is looked up anew at each frame. */
  readonly pointer = signal<{ x: number; y: number } | null>(null);
  readonly problem = signal<Problem | null>(null);
  /** Share of the window in which a lane works, by track. */
  readonly utilisation = signal<ReadonlyMap<string, number>>(new Map());
  /** The range of the entry that the keyboard is on. */
  readonly focusRange = signal<s.Range | null>(null);
  readonly hasFocus = signal(false);
  /** Grows with every scene in which other entries can be seen. */
  readonly sceneVersion = signal(0);
  readonly styleVersion = signal(0);
  /** Other canvases that show the same window: is all of theirs drawn? */
  readonly beside = new Set<() => boolean>();
  /** Grows when texts are drawn in another font. */
  fontVersion = 0;
  scene: Scene | null = null;
  /** Scrolls so that a lane can be seen; set by the component. */
  showTrack: (lane: number) => void = () => {};
  palette: Palette = readPalette();
  style: PaintStyle;
  readonly frameTimes: number[] = [];
  readonly drawTimes: number[] = [];

  private readonly loader = new TileLoader(this.cache, socket, VIEW_ID, () => this.tilesCame());
  private readonly filterLoader = new TileLoader(this.cache, socket, FILTER_VIEW_ID, () => this.tilesCame());
  private readonly bitmaps = new BitmapMaker(this.cache, () => this.requestDraw());
  private readonly durations = new Durations(() => this.requestDraw());
  private context: CanvasRenderingContext2D | null = null;
  private canvas: HTMLCanvasElement | null = null;
  private size = { width: 0, height: 0, ratio: 1 };
  private frame: number | undefined;
  private lastFrameMs = 0;
  private movedMs = 0;
  private restTimer: number | undefined;
  private pannedMs = 0;
  private lastScale = "";
  private lastFromNs = 0;
  private lanesKey = "";
  private stops: (() => void)[] = [];
  measures: Measures & { ruler: number; ticks: number; overload: number; minimap: number } = {
    row: 18, strip: 22, gc: 32, gauge: 28, memory: 64, ruler: 28, ticks: 72, overload: 20, minimap: 44,
  };

  constructor() {
    this.style = this.makeStyle();
    this.stops = [
      effect(() => this.follow()),
      effect(() => this.relayOut()),
      effect(() => {
        // The mouse stays where it is while time moves under it.
        void s.timeWindow.value;
        const at = this.pointer.value;
        if (at !== null) s.cursorNs.value = nsAt(this.axis(), at.x);
      }),
      effect(() => {
        // Whatever is drawn and may change.
        void [s.timeWindow.value, s.selection.value, s.links.value, s.cursorNs.value, s.measure.value, s.draggedRange.value, s.selectedRange.value, s.focused.value];
        void [s.filter.value, s.searchMode.value, s.collections.value, s.notices.value, s.ticks.value, s.timeDisplay.value];
        void [this.scrollTop.value, this.pointer.value, this.layout.value, s.activeSession.value, s.connection.value, this.hasFocus.value, this.focusRange.value];
        this.requestDraw();
      }),
    ];
  }

  /** Colours and names: what was painted with older ones is painted anew. */
  private follow(): void {
    void [s.names.value, s.meta.value, s.colourMode.value];
    untracked(() => this.restyle());
  }

  private makeStyle(): PaintStyle {
    const { signal: colours, bars, outline } = this.palette;
    const names = nameStyle(s.names.peek(), s.meta.peek()?.families ?? [], s.colourMode.peek());
    return { ...names, bars, outline, fault: colours["gc-pause"], canvas: colours["bg-canvas"] };
  }

  restyle(): void {
    this.palette = readPalette();
    this.readMeasures();
    this.style = this.makeStyle();
    this.bitmaps.setStyle(this.style, `${this.palette.epoch}`);
    this.styleVersion.value = this.styleVersion.peek() + 1;
    this.requestDraw();
  }

  private readMeasures(): void {
    const style = getComputedStyle(document.documentElement);
    const px = (name: string) => Number.parseFloat(style.getPropertyValue(name)) || 0;
    const next = {
      row: px("--tk-row"), strip: px("--tk-strip"), gc: px("--tk-gc"), gauge: px("--tk-gauge"), memory: px("--tk-memory"), ruler: px("--tk-ruler"),
      ticks: px("--tk-ticks"), overload: px("--tk-overload"), minimap: px("--tk-minimap"),
    };
    if (JSON.stringify(next) === JSON.stringify(this.measures)) return;
    this.measures = next;
    this.relayOut();
  }

  private relayOut(): void {
    const meta = s.meta.value;
    const lanes = meta?.lanes ?? [];
    const key = `${s.activeId.value}/${JSON.stringify(lanes.map(({ id, kind, label, rows }) => [id, kind, label, rows]))}`;
    if (key !== this.lanesKey) {
      // Numbers of lanes mean something else now.
      this.lanesKey = key;
      this.cache.clear();
      this.durations.clear();
    }
    this.layout.value = layOut(lanes, s.gauges.value, s.laneView.value, this.measures);
  }

  /** The page's own font arrives after the first frame. */
  private async useOwnFont(): Promise<void> {
    await Promise.all([400, 500, 600].map((weight) => document.fonts.load(`${weight} 11px ${this.palette.font}`)));
    forgetWidths();
    this.fontVersion += 1;
    this.restyle();
    this.sceneVersion.value += 1;
  }

  attach(canvas: HTMLCanvasElement): void {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
    this.restyle();
    // Without it the system's font stays, which is no less right.
    void this.useOwnFont().catch(() => {});
    const theme = new MutationObserver(() => this.restyle());
    theme.observe(document.documentElement, { attributeFilter: ["data-theme"] });
    const forced = window.matchMedia(FORCED_COLOURS);
    const follow = () => this.restyle();
    forced.addEventListener("change", follow);
    this.stops.push(() => theme.disconnect(), () => forced.removeEventListener("change", follow));
  }

  detach(): void {
    this.stops.forEach((stop) => stop());
    this.bitmaps.stop();
    if (this.frame !== undefined) cancelAnimationFrame(this.frame);
  }

  resize(width: number, height: number): void {
    const ratio = window.devicePixelRatio || 1;
    this.size = { width, height, ratio };
    if (this.canvas !== null) {
      this.canvas.width = Math.round(width * ratio);
      this.canvas.height = Math.round(height * ratio);
    }
    this.readMeasures();
    // A canvas is empty after a change of its size: draw before the browser shows it.
    this.draw();
  }

  get widthPx(): number {
    return this.size.width;
  }

  requestDraw(): void {
    if (this.frame !== undefined) return;
    this.frame = requestAnimationFrame((now) => {
      this.frame = undefined;
      if (now - this.lastFrameMs < 1000) this.keep(this.frameTimes, now - this.lastFrameMs);
      this.lastFrameMs = now;
      const start = performance.now();
      this.draw();
      this.keep(this.drawTimes, performance.now() - start);
    });
  }

  private keep(list: number[], value: number): void {
    list.push(value);
    if (list.length > KEPT_FRAMES) list.shift();
  }

  retry(): void {
    this.problem.value = null;
    this.loader.retry();
    this.filterLoader.retry();
  }

  private tilesCame(): void {
    this.problem.value = this.loader.failure ?? this.filterLoader.failure;
    this.requestDraw();
  }

  axis(): Axis {
    return makeAxis(s.timeWindow.peek(), this.size.width, this.size.ratio);
  }

  private isStill(): boolean {
    return performance.now() - this.movedMs >= STILL_MS;
  }

  /** Notes when the view moves; draws once more when it has come to rest. */
  private noteMotion(axis: Axis): void {
    const now = performance.now();
    const scale = `${axis.nsPerPx}/${axis.ratio}`;
    if (scale === this.lastScale && axis.fromNs === this.lastFromNs) return;
    this.pannedMs = now;
    // Bitmaps depend on the scale alone.
    if (scale !== this.lastScale) this.movedMs = now;
    [this.lastScale, this.lastFromNs] = [scale, axis.fromNs];
    window.clearTimeout(this.restTimer);
    this.restTimer = window.setTimeout(() => this.requestDraw(), STILL_MS + 5);
  }

  /** Makes a scene and draws it. */
  draw(): void {
    if (this.context === null || this.size.width <= 0 || this.size.height <= 0) return;
    const axis = this.axis();
    this.noteMotion(axis);
    const scene: Scene = {
      axis, level: levelOf(axis), layout: this.layout.peek(), palette: this.palette, height: this.size.height,
      rulerHeight: this.measures.ruler, scrollTop: this.scrollTop.peek(), bands: [], isPainted: true,
    };
    const bands = this.bandsOf(scene);
    this.ask(scene, bands);
    this.place(scene, bands, 0, false);
    const filterId = s.activeFilterId.peek();
    if (filterId !== 0) this.place(scene, bands, filterId, true);
    this.scene = scene;
    this.paint(this.context, scene);
    this.afterDraw(scene);
  }

  /** Bands of the tracks that can be seen: what tiles are asked for, and drawn. */
  private bandsOf(scene: Scene): SeenBand[] {
    const bands: SeenBand[] = [];
    for (const track of visibleTracks(scene)) {
      if (track.gauge !== null) {
        const layers = [...track.gauge.layers, ...(track.gauge.line === null ? [] : [track.gauge.line])];
        for (const { lane } of layers) bands.push({ track, lane, band: 0, rows: 1 });
      }
      if (track.lane === null || (track.rows === 0 && track.markersTop === null && track.kind !== "gc")) continue;
      const top = trackTop(scene, track) + track.rowsTop;
      const size = BAND_ROWS * track.pitch;
      for (let band = 0; band === 0 || band * BAND_ROWS < track.rows; band += 1) {
        const [from, to] = [top + band * size, top + (band + 1) * size];
        if (band > 0 && (to < 0 || from > scene.height)) continue;
        const rows = Math.min(Math.max(track.lane.rows - band * BAND_ROWS, 1), BAND_ROWS);
        bands.push({ track, lane: track.lane.id, band, rows });
      }
    }
    return bands;
  }

  private ask(scene: Scene, bands: SeenBand[]): void {
    const session = s.activeId.peek();
    if (session === null || s.meta.peek() === null) return;
    const [first, end] = tilesIn(scene.axis, scene.level, 0, scene.axis.widthPx);
    const needs: Needs = {
      session,
      generation: s.generation.peek(),
      filterId: 0,
      level: scene.level,
      firstTile: Math.max(first - 1, 0),
      endTile: Math.min(end + 1, first + 62),
      bands,
    };
    this.loader.want(needs);
    const filterId = s.activeFilterId.peek();
    if (filterId !== 0) this.filterLoader.want({ ...needs, filterId });
  }

  /** Puts the tiles that are there at their places. */
  private place(scene: Scene, bands: SeenBand[], filterId: number, isFiltered: boolean): void {
    const { axis, level } = scene;
    const [first, end] = tilesIn(axis, level, 0, axis.widthPx);
    for (const band of bands) this.placeBand(scene, band, filterId, isFiltered, first, end);
  }

  private placeBand(scene: Scene, { track, lane, band }: SeenBand, filterId: number, isFiltered: boolean, first: number, end: number): void {
    const { axis, level } = scene;
    const isDrawable = (tile: Tile) =>
      tile.spans === null || tile.spans.count === 0 || tile.bitmap !== null || track.kind === "gc" || bucketPx(axis, tile.level) > DIRECT_SCALE;
    for (let tile = first; tile < end; tile += 1) {
      const key = { filterId, level, lane, band, tile };
      const own = this.cache.peek(key);
      if (own === undefined || !this.paintTile(own, track, scene)) scene.isPainted = false;
      const wanted = placeTile(axis, level, tile);
      const next = placeTile(axis, level, tile + 1);
      for (const { tile: found, from, to } of choose(this.cache, key, isDrawable)) {
        const share = (at: number) => (at === 0 ? wanted.x : at === 512 ? next.x : wanted.x + at * wanted.scale);
        const [clipFrom, clipTo] = [Math.max(share(from), 0), Math.min(share(to), axis.widthPx)];
        if (clipTo <= clipFrom) continue;
        scene.bands.push({ track, band, tile: found, at: placeTile(axis, found.level, found.tile, clipFrom, clipTo), isFiltered });
      }
    }
  }

  /** Has the bitmap of a tile made when there is none, or none of this scale and the view is still. True when it is as it should be. */
  private paintTile(tile: Tile, track: Track, { axis, level }: Scene): boolean {
    const scale = bucketPx(axis, level);
    if (scale > DIRECT_SCALE || track.kind === "gc" || track.gauge !== null || tile.spans === null || tile.spans.count === 0) return true;
    const rows = Math.min(Math.max((track.lane?.rows ?? 0) - tile.band * BAND_ROWS, 1), BAND_ROWS);
    const wholes = s.colourMode.peek() === "duration" ? wholeLengths(this.cache, tile) : NONE;
    const wish: BitmapWish = { scale, ratio: axis.ratio, pitchPx: track.pitch, rows, mode: s.colourMode.peek(), laneSlot: track.lane ? laneSlot(track.lane) : 0, wholes };
    if (this.bitmaps.isCurrent(tile, wish)) return true;
    if (tile.bitmap === null || tile.bitmap.style === "" || this.isStill()) this.bitmaps.make(tile, wish);
    return false;
  }

  private paint(context: CanvasRenderingContext2D, scene: Scene): void {
    const { axis, palette, height } = scene;
    this.cache.pictures.beginFrame();
    context.setTransform(axis.ratio, 0, 0, axis.ratio, 0, 0);
    context.fillStyle = palette.signal["bg-canvas"];
    context.fillRect(0, 0, axis.widthPx, height);
    drawGrid(context, scene);
    const pauses = pausesIn(scene);
    drawPauseWash(context, scene, pauses);
    const isDimmed = s.activeFilterId.peek() !== 0 || s.filter.peek().is === "running";
    const isIsolated = s.activeFilterId.peek() !== 0 && s.searchMode.peek() === "isolate";
    const byTrack = new Map<Track, PlacedBand[]>();
    for (const band of scene.bands) {
      const list = byTrack.get(band.track);
      if (list === undefined) byTrack.set(band.track, [band]);
      else list.push(band);
    }
    for (const track of visibleTracks(scene)) {
      if (track.isPinned) this.backPinned(context, scene, track);
      if (track.gauge !== null) drawGauge(context, scene, track, track.gauge, this.cache.pictures);
      else if (track.kind === "gc") drawGc(context, scene, track, pauses);
      else {
        clipTo(context, scene, track, () => {
          for (const band of byTrack.get(track) ?? []) {
            if (band.isFiltered || !isIsolated) drawBand(context, scene, band, this.style, isDimmed && !band.isFiltered, this.cache);
          }
          drawOverflowLine(context, scene, track);
          this.markers(context, scene, track, isDimmed, isIsolated);
          this.labels(context, scene, track, isDimmed);
        });
      }
      this.separator(context, scene, track);
    }
    drawLoss(context, scene);
    drawLinks(context, scene);
    drawOutlines(context, scene, this.hovered(scene), this.hasFocus.peek(), this.focusRange.peek());
    drawRuler(context, scene);
    drawCursor(context, scene);
  }

  /** Pinned tracks lie over the scrolled ones. */
  private backPinned(context: CanvasRenderingContext2D, scene: Scene, track: Track): void {
    context.fillStyle = scene.palette.signal["bg-canvas"];
    context.fillRect(0, trackTop(scene, track), scene.axis.widthPx, track.height);
  }

  private separator(context: CanvasRenderingContext2D, scene: Scene, track: Track): void {
    const y = Math.round(trackTop(scene, track) + track.height) - 1;
    if (!track.isPinned && y < scrollAreaTop(scene)) return;
    context.fillStyle = scene.palette.signal.line;
    context.fillRect(0, y, scene.axis.widthPx, 1);
  }

  private markers(context: CanvasRenderingContext2D, scene: Scene, track: Track, isDimmed: boolean, isIsolated: boolean): void {
    if (!isIsolated) {
      context.globalAlpha = isDimmed ? DIMMED : 1;
      drawMarkers(context, scene, track, this.style, false);
      context.globalAlpha = 1;
    }
    drawMarkers(context, scene, track, this.style, true);
  }

  /** What a search did not find is too faint for a label. */
  private labels(context: CanvasRenderingContext2D, scene: Scene, track: Track, isDimmed: boolean): void {
    const known = (lane: number, row: number, index: number) => this.durations.get(lane, row, index);
    const bands = isDimmed ? scene.bands.filter((band) => band.isFiltered) : scene.bands;
    drawLabels(context, scene, track, wideSpans(bands, track), this.style, known);
  }

  private hovered(scene: Scene): SpanHit | null {
    const at = this.pointer.peek();
    return at === null ? null : hitTest(scene, at.x, at.y);
  }

  /** What is worked out when the view is still. */
  private afterDraw(scene: Scene): void {
    if (performance.now() - this.pannedMs < STILL_MS) return;
    const wishes: { lane: number; row: number; index: number; px: number }[] = [];
    for (const track of visibleTracks(scene)) {
      const { lane } = track;
      if (lane === null || track.kind === "gc") continue;
      for (const { row, index, x, to } of wideSpans(scene.bands, track)) {
        if (to - x >= 70) wishes.push({ lane: lane.id, row, index, px: to - x });
      }
    }
    wishes.sort((a, b) => b.px - a.px);
    if (s.isReady.peek()) this.durations.want(wishes.slice(0, LABEL_REQUESTS));
    if (this.loader.isLoading) return;
    if (scene.bands.some(({ tile }) => tile.spans !== null && tile.spans.count > 0) && performance.getEntriesByName("first-tile").length === 0) {
      performance.mark("first-tile");
    }
    this.utilisation.value = spansUtilisation(scene, this.style);
    this.sceneVersion.value = this.sceneVersion.peek() + 1;
  }

  /** Is what the store asks for all there and drawn, at rest, and no answer of the server still to come? */
  isComplete(): boolean {
    const { scene } = this;
    if (scene === null || !s.isReady.peek() || s.meta.peek() === null || s.filter.peek().is === "running") return false;
    if (this.frame !== undefined || isGliding() || s.settledWindow.peek() !== s.timeWindow.peek() || isAsking()) return false;
    if (!this.loader.isSatisfied || (s.activeFilterId.peek() !== 0 && !this.filterLoader.isSatisfied)) return false;
    return scene.isPainted && [...this.beside].every((isDrawn) => isDrawn());
  }

  hit(x: number, y: number): SpanHit | null {
    return this.scene === null ? null : hitTest(this.scene, x, y);
  }
}
