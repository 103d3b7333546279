import type { Page } from "@playwright/test";
import { bytes, count } from "../src/format";
import { FAMILY_TOKENS } from "../src/timeline/families";
import { levelOf, makeAxis, tileX, tilesIn, xOf as axisX } from "../src/timeline/axis";
import { niceTop } from "../src/timeline/gauges";
import { makeRuler } from "../src/timeline/ruler";
import { SLOT, durationSlot, hash } from "../src/timeline/palette";
import { asked, drawn, expect, line, open, pixels, test, token, trackOf, xOf } from "./page";
import { type Document, dump, json, pathOf } from "./traces";

// High enough for all lanes.
test.use({ viewport: { width: 1440, height: 1500 } });

/** What has to be added to a time of the command line, whose 0 is the first record of the file. */
async function zero(page: Page, trace: "gc" | "anthill"): Promise<number> {
  return -(await asked(page, trace, "meta")).time.zeroNs;
}

/** Where a colour begins and ends along a line of pixels. */
function runs(colours: readonly string[], wanted: string): [number, number][] {
  const found: [number, number][] = [];
  colours.forEach((colour, at) => {
    if (colour !== wanted) return;
    const last = found[found.length - 1];
    // A flag's pole may cross it.
    if (last !== undefined && at - last[1] <= 1) last[1] = at + 1;
    else found.push([at, at + 1]);
  });
  return found;
}

test("the collections' gutter says how long the window was suspended, as the command line does", async ({ page }) => {
  await open(page, "gc");
  const suspended = dump("gc", "--kind", "GcSuspension").reduce((sum, { dur }) => sum + dur, 0);
  const shown = page.locator('[data-track="gc"] em');
  const units: Record<string, number> = { ns: 1, "µs": 1e3, ms: 1e6, s: 1e9 };
  const shownNs = async () => {
    const [, number, unit] = /([\d.]+)\s*(ns|µs|ms|s)/.exec((await shown.textContent()) ?? "") ?? [];
    return Number(number) * (units[unit ?? ""] ?? Number.NaN);
  };
  // Not to be told from the sum by eye, though a suspension is much shorter than a pixel here.
  await expect.poll(async () => Math.abs((await shownNs()) / suspended - 1)).toBeLessThan(0.02);
});

test("suspensions are red bars at their true extent, flags have the colour of the generation (B-14)", async ({ page }) => {
  await open(page, "gc");
  const shift = await zero(page, "gc");
  const pauses = dump("gc", "--kind", "GcSuspension").map(({ ts, dur }) => [ts + shift, ts + shift + dur] as const);
  const ends = new Map(dump("gc", "--kind", "GcEnd").map((end) => [end.fields.count, end]));
  const whole = dump("gc", "--kind", "GcStart").map((start) => ({ ...start.fields, reasonName: start.fields.reasonName, fromNs: start.ts + shift, end: ends.get(start.fields.count) }));
  // A blocking collection that lasts long enough to be looked at, and a background one.
  const lasts = ({ fromNs, end }: Document) => (end === undefined ? 0 : end.ts + shift - fromNs);
  const blocking = whole.filter(({ type }) => type === 0).sort((a, b) => lasts(b) - lasts(a))[0];
  const background = whole.filter(({ type, end }) => type === 1 && end !== undefined).sort((a, b) => lasts(b) - lasts(a))[0];
  const [red, outline] = [await token(page, "gc-pause"), await token(page, "gc-outline")];
  for (const collection of [blocking, background]) {
    const toNs = collection.end.ts + shift;
    const margin = (toNs - collection.fromNs) / 2;
    const [from, to] = [Math.floor(Math.max(collection.fromNs - margin, 0)), Math.ceil(toNs + margin)];
    await open(page, "gc", `t=${from}..${to}`);
    const track = await trackOf(page, "gc");
    const y = track.y + track.height - 10;
    const seen = runs(await line(page, { x: track.x, y }, { x: track.x + track.width, y }), red);
    const expected: [number, number][] = [];
    for (const [start, end] of pauses) {
      const [x, right] = [Math.max((await xOf(page, start)) - track.x, 0), Math.min((await xOf(page, end)) - track.x, track.width)];
      if (right <= 0 || x >= track.width) continue;
      const last = expected[expected.length - 1];
      if (last !== undefined && x <= last[1] + 1) last[1] = right;
      else expected.push([x, Math.max(right, x + 2)]);
    }
    expect(seen.length, `pauses of collection ${collection.count}`).toBe(expected.length);
    for (const [at, [x, right]] of expected.entries()) {
      expect(Math.abs((seen[at]?.[0] ?? -9) - x), "begins").toBeLessThan(2);
      expect(Math.abs((seen[at]?.[1] ?? -9) - right), "ends").toBeLessThan(2.5);
    }
    // The flag of the start opens to the right of it.
    const flag = await pixels(page, [{ x: (await xOf(page, collection.fromNs)) + 1.5, y: track.y + 3.5 }]);
    expect(flag.at[0]).toBe(await token(page, `mem-gen${collection.generation}`));
    if (collection === background) {
      // Nothing stands still all the time: between the pauses there is the outline alone.
      const top = await line(page, { x: (await xOf(page, collection.fromNs)) + 2, y: track.y + track.height - 15.5 }, { x: (await xOf(page, toNs)) - 2, y: track.y + track.height - 15.5 });
      expect(top.filter((colour) => colour === outline).length).toBeGreaterThan(top.length / 2);
      expect(new Set(top.filter((colour) => colour !== outline && colour !== red)).size, "the outline has no gaps").toBeLessThan(8);
    }
    await page.mouse.move(await xOf(page, (collection.fromNs + toNs) / 2), y);
    const tip = page.getByRole("tooltip");
    await expect(tip).toContainText(`#${collection.count}`);
    await expect(tip).toContainText(`gen ${collection.generation}`);
    await expect(tip).toContainText(collection.reasonName);
    await expect(tip).toContainText(`promoted ${bytes(collection.end.fields.promotedBytes)}`);
    await expect(tip).toContainText(`Gen2 ${bytes(collection.end.fields.gen2SizeAfter)}`);
    await page.mouse.move(1, 1);
  }
});

test("the heap is stacked on a scale that no pan changes (B-14)", async ({ page }) => {
  await open(page, "gc");
  const shift = await zero(page, "gc");
  const LAYERS = ["lohSizeAfter", "pohSizeAfter", "gen2SizeAfter", "gen1SizeAfter", "gen0SizeAfter"] as const;
  const COLOURS = ["mem-loh", "mem-poh", "mem-gen2", "mem-gen1", "mem-gen0"];
  const ends = dump("gc", "--kind", "GcEnd").map(({ ts, fields }) => ({ ns: ts + shift, sizes: LAYERS.map((layer) => Number(fields[layer])), committed: Number(fields.totalCommittedBytes) }));
  const sum = (sizes: readonly number[]) => sizes.reduce((all, size) => all + size, 0);
  const most = Math.max(...ends.map(({ sizes, committed }) => Math.max(sum(sizes), committed)));
  const scale = niceTop(most, "bytes");
  // The collection after which sizes stay the longest.
  const stays = (at: number) => (ends[at + 1]?.ns ?? 0) - (ends[at]?.ns ?? 0);
  const at = ends.map((_, place) => place).sort((a, b) => stays(b) - stays(a))[0] ?? 0;
  const { ns, sizes } = ends[at] ?? { ns: 0, sizes: [] };
  const length = stays(at);
  const moment = ns + length / 2;
  const look = async (fromNs: number) => {
    await open(page, "gc", `t=${Math.floor(fromNs)}..${Math.ceil(fromNs + length * 2)}`);
    const track = await trackOf(page, "gauges:memory");
    const x = await xOf(page, moment);
    return { track, x, column: await line(page, { x, y: track.y }, { x, y: track.y + track.height }) };
  };
  const first = await look(Math.max(moment - length, 0));
  const [top, bottom] = [3, first.track.height - 3];
  let below = 0;
  for (const [layer, size] of sizes.entries()) {
    const before = below;
    below += size;
    const [y, under] = [bottom - (below / scale) * (bottom - top), bottom - (before / scale) * (bottom - top)];
    // A layer thinner than its edge cannot be told from its neighbours.
    const above = sizes[layer + 1] ?? 0;
    if (under - y < 4 || (layer + 1 < sizes.length && (above / scale) * (bottom - top) < 4)) continue;
    const near = first.column.slice(Math.max(Math.floor(y) - 2, 0), Math.ceil(y) + 3);
    const wanted = await token(page, COLOURS[layer] ?? "");
    const distance = (a: string, b: string) => Math.max(...[0, 2, 4].map((part) => Math.abs(Number.parseInt(a.slice(part, part + 2), 16) - Number.parseInt(b.slice(part, part + 2), 16))));
    // The edge is 1.25 px of the layer's own colour, smoothed where it ends within a pixel.
    expect(Math.min(...near.map((colour) => distance(colour, wanted))), `${LAYERS[layer]} ends at ${y.toFixed(1)} of ${first.track.height}`).toBeLessThan(40);
  }
  // The gutter says the sum at the mouse.
  await page.mouse.move(first.x, first.track.y + first.track.height / 2);
  await expect(page.locator('.tl-head[data-track="gauges:memory"] em')).toHaveText(bytes(sum(sizes)));
  for (const [layer, name] of ["LOH", "POH", "2", "1", "0"].entries()) await expect(page.getByRole("tooltip")).toContainText(`${name} ${bytes(sizes[layer] ?? 0)}`);
  await page.mouse.move(1, 1);
  // A pan with larger values in view or out of it: the same column.
  const second = await look(Math.max(moment - length * 1.6, 0));
  expect(second.column).toEqual(first.column);
});

test("a gauge that does not change looks the same across the borders of its tiles", async ({ page }) => {
  await open(page, "gc");
  const shift = await zero(page, "gc");
  const ends = dump("gc", "--kind", "GcEnd").map(({ ts }) => ts + shift);
  const stays = (at: number) => (ends[at + 1] ?? 0) - (ends[at] ?? 0);
  const at = ends.map((_, place) => place).sort((a, b) => stays(b) - stays(a))[0] ?? 0;
  const [fromNs, until] = [Math.floor((ends[at] ?? 0) + stays(at) / 4), Math.ceil((ends[at] ?? 0) + (stays(at) * 3) / 4)];
  await open(page, "gc", `t=${fromNs}..${until}`);
  await page.mouse.move(1, 1);
  await drawn(page);
  const track = await trackOf(page, "gauges:memory");
  const axis = makeAxis({ fromNs, toNs: until }, track.width, 1);
  const level = levelOf(axis);
  const marks = makeRuler(axis).marks.map(({ ns }) => Math.round(axisX(axis, ns)));
  const [first, end] = tilesIn(axis, level, 0, track.width - 100);
  const borders = Array.from({ length: end - first - 1 }, (_, place) => tileX(axis, level, first + 1 + place));
  const clear = borders.filter((x) => x > 8 && marks.every((mark) => Math.abs(mark - x) > 4));
  expect(clear.length, "borders away from lines of the grid").toBeGreaterThan(0);
  for (const x of clear) {
    for (let y = 4; y < track.height - 4; y += 3) {
      const row = await pixels(page, [-3, -2, -1, 0, 1, 2].map((by) => ({ x: track.x + x + by + 0.5, y: track.y + y + 0.5 })));
      expect(new Set(row.at).size, `at ${x}, ${y}: ${row.at.join()}`).toBe(1);
    }
  }
});

test("what is painted of gauges counts towards what the page may keep", async ({ page }) => {
  await open(page, "gc");
  const { durationNs } = json("trace", "info", pathOf("gc")).time;
  const sizes = async () => (await page.evaluate(() => window.__typhon?.cache())) ?? { bitmapBytes: 0, pictureBytes: 0 };
  await open(page, "gc", `t=${Math.floor(durationNs / 4)}..${Math.floor(durationNs / 2)}`);
  const track = await trackOf(page, "gauges:memory");
  const first = await sizes();
  // Over the whole width and height of the track, in four bytes a pixel.
  expect(first.pictureBytes).toBeGreaterThanOrEqual(track.width * track.height * 4);
  expect(first.bitmapBytes).toBeGreaterThanOrEqual(first.pictureBytes);
  // Back and forth in small steps, through other tiles and other scales.
  for (const key of ["KeyD", "KeyD", "KeyD", "KeyW", "KeyA", "KeyA", "KeyS", "KeyS", "KeyD"]) {
    await page.keyboard.press(key);
    await drawn(page);
    const now = await sizes();
    expect(now.pictureBytes, key).toBeLessThan(10 * first.pictureBytes);
    expect(now.bitmapBytes, key).toBeLessThanOrEqual(96 << 20);
  }
});

test("gauges: values at the mouse, counters as what a tick added, three heights (B-15)", async ({ page }) => {
  const snapshots = dump("anthill", "--kind", "PerTickSnapshot");
  const gauge = (place: number, id: number) => Number(snapshots[place].fields.gauges.find((one: Document) => one.gauge === id).value);
  await open(page, "anthill");
  const shift = await zero(page, "anthill");
  const place = 20;
  const [from, to] = [snapshots[place - 2].ts + shift, snapshots[place + 2].ts + shift];
  await open(page, "anthill", `t=${Math.floor(from)}..${Math.ceil(to)}`);
  await page.getByRole("button", { name: "Unfold More gauges" }).click();
  await drawn(page);
  // Just behind the snapshot its values hold.
  const x = (await xOf(page, snapshots[place].ts + shift)) + 4;
  const cache = await trackOf(page, "gauges:page-cache");
  await page.mouse.move(x, cache.y + cache.height / 2);
  const tip = page.getByRole("tooltip");
  for (const [layer, id] of [["free", 0x201], ["clean", 0x202], ["dirty", 0x203], ["exclusive", 0x204]] as const) {
    await expect(tip).toContainText(`${layer} ${count(gauge(place, id))} pages`);
  }
  const rate = async (key: string, id: number) => {
    const head = page.locator(`.tl-head[data-track="gauges:${key}"]`);
    await expect(head.locator("em")).toHaveText(count(gauge(place, id) - gauge(place - 1, id)));
  };
  await rate("tx-created", 0x414);
  await rate("commits", 0x410);
  const head = page.locator('.tl-head[data-track="gauges:page-cache"]');
  const heights: number[] = [];
  for (let step = 0; step < 3; step += 1) {
    heights.push((await trackOf(page, "gauges:page-cache")).height);
    await head.hover();
    await head.getByTitle("Height: summary, normal, double").click();
    await drawn(page);
  }
  expect(heights).toEqual([22, 28, 56]);
  expect((await trackOf(page, "gauges:page-cache")).height).toBe(22);
});

test("bars have the colour of the mode, and the same in every recording (B-19)", async ({ page }) => {
  const FROM = 1_332_409_000;
  const family = (text: string) => FAMILY_TOKENS[hash(text) % FAMILY_TOKENS.length] ?? "";
  const find = () =>
    page.evaluate(() => window.__typhon?.visibleEntries().filter(({ isAggregate, flags, name, w, track }) => !isAggregate && (flags & 6) === 0 && name === "PheroDecay" && w > 20 && track.startsWith("thread:")).sort((a, b) => b.w - a.w)[0] ?? null);
  await open(page, "anthill");
  // Events by their place, as the server names them.
  const bars = new Map<string, string>();
  for (const { event } of dump("anthill", "--where", "name=PheroDecay", "--ticks", "6..11")) {
    const { place } = await asked(page, "anthill", `event/${event}`);
    bars.set(`${place.lane}/${place.row}/${place.index}`, event);
  }
  for (const mode of ["family", "kind", "system", "thread", "duration", "depth"] as const) {
    await open(page, "anthill", `t=${FROM}..${FROM + 36_000_000}&c=${mode}`);
    const bar = await find();
    if (bar === null) throw new Error("PheroDecay is not in view");
    const { at } = await pixels(page, [{ x: bar.x + bar.w - 5, y: bar.y + 2 }]);
    const heap = ["mem-loh", "mem-gen2", "mem-gen1", "mem-gen0"];
    // In dark what takes longer is lighter, in light darker; the ramp has eight steps over these four colours. Which theme it
    // is may change between pages: settings are the user's, and other tests change them.
    const isDark = (await page.locator("html").getAttribute("data-theme")) === "dark";
    const record = dump("anthill", "--where", "name=PheroDecay").find(({ event }) => event === bars.get(`${bar.lane}/${bar.row}/${bar.index}`));
    const longer = durationSlot(record.dur) - SLOT.ramp;
    const step = isDark ? longer : 7 - longer;
    const expected = {
      family: "fam-sched", kind: `fam-${family("SchedulerChunk")}`, system: `fam-${family("PheroDecay")}`, thread: `fam-${family(record.thread)}`,
      duration: step % 7 === 0 ? heap[(step / 7) * 3] : undefined, depth: bar.row % 2 === 0 ? "fam-other" : null,
    }[mode];
    if (expected === null) {
      // The second of two greys, towards the canvas.
      expect(at[0], mode).not.toBe(await token(page, "fam-other"));
      expect(new Set([0, 2, 4].map((part) => Math.round(Number.parseInt((at[0] ?? "").slice(part, part + 2), 16) / 32))).size, `${at[0]} is grey`).toBeLessThan(3);
      continue;
    }
    if (expected !== undefined) expect(at[0], mode).toBe(await token(page, expected));
    else {
      const [low, high] = [await token(page, heap[Math.floor((step / 7) * 3)] ?? ""), await token(page, heap[Math.ceil((step / 7) * 3)] ?? "")];
      const between = [0, 2, 4].every((part) => {
        const [a, b, c] = [low, high, at[0] ?? ""].map((colour) => Number.parseInt(colour.slice(part, part + 2), 16)) as [number, number, number];
        return c >= Math.min(a, b) - 2 && c <= Math.max(a, b) + 2;
      });
      expect(between, `${at[0]} lies between ${low} and ${high}`).toBe(true);
    }
  }
});

test("an operation and its completion are one selection, the completion lighter; instants merge into one marker with their number (B-12)", async ({ page }) => {
  await page.setViewportSize({ width: 1440, height: 2600 });
  const [done] = dump("anthill", "--kind", "PageCacheFlushCompleted", "--sort", "dur", "--limit", "1");
  const started = dump("anthill", "--kind", "PageCacheFlush").find(({ spanId }) => spanId === done.spanId);
  await open(page, "anthill", `e=${started.event}`);
  const shift = await zero(page, "anthill");
  const [from, to] = [done.ts + shift - done.dur / 2, done.ts + shift + done.dur * 1.5];
  await open(page, "anthill", `t=${Math.floor(from)}..${Math.ceil(to)}&e=${started.event}`);
  await expect(page.locator(".linked")).toContainText("Complete");
  const barOf = async (event: string) => {
    const { place } = await asked(page, "anthill", `event/${event}`);
    const parts = await page.evaluate((at) => window.__typhon?.visibleEntries().filter(({ lane, row, index, isAggregate }) => !isAggregate && lane === at.lane && row === at.row && index === at.index) ?? [], place);
    const widest = parts.sort((one, other) => other.w - one.w)[0];
    if (widest === undefined) throw new Error(`${event} is not in view`);
    return widest;
  };
  const [tail, start] = [await barOf(done.event), await barOf(started.event)];
  expect([tail.flags & 128, start.flags & 128]).toEqual([128, 0]);
  const [select, page_] = [await token(page, "select"), await token(page, "fam-page")];
  const edges = await pixels(page, [tail, start].map(({ x, y, w }) => ({ x: x + w / 2, y: y - 1 })));
  expect(edges.at, "both are outlined").toEqual([select, select]);
  const inside = (await pixels(page, [{ x: tail.x + tail.w - 6, y: tail.y + 3 }])).at[0];
  expect(inside).not.toBe(page_);
  expect(inside).not.toBe(await token(page, "bg-canvas"));
  // The other end of the pair leads to the same two.
  await page.locator(".linked .link").click();
  await expect(page.locator(`.inspector[data-event="${done.event}"]`)).toBeVisible();
  await expect(page.locator(".linked")).toContainText("Started by PageCacheFlush");

  // Instants: what a marker stands for, counted.
  await open(page, "anthill", `t=1332409000..1368409000`);
  const lane = (await page.evaluate(() => window.__typhon?.tracks() ?? [])).find(({ label }) => label === started.thread || label.endsWith("Worker-1"));
  if (lane === undefined) throw new Error("no worker is shown");
  const all = dump("anthill", "--where", `thread="${lane.label}"`).filter(({ dur }) => dur === undefined).map(({ ts }) => ts + shift);
  const markers = await page.evaluate((key) => window.__typhon?.markers(key) ?? [], lane.key);
  expect(markers.length).toBeGreaterThan(3);
  expect(markers.reduce((sum, { count: of }) => sum + of, 0)).toBe(all.filter((ns) => ns >= 1_332_409_000 && ns < 1_368_409_000).length);
  const gaps = markers.slice(1).map(({ x }, at) => x - (markers[at]?.x ?? 0));
  expect(Math.min(...gaps), "no two are nearer than 6 px").toBeGreaterThanOrEqual(6);
  const largest = [...markers].sort((a, b) => b.count - a.count)[0];
  await page.mouse.move(largest?.x ?? 0, largest?.y ?? 0);
  await expect(page.getByRole("tooltip")).toContainText(`${count(largest?.count ?? 0)} instants`);
});

test("a span without an end fades and says so (B-13)", async ({ page }) => {
  // Salvaged files alone have such spans, and none of ours: of a real answer one flag is set. What the index makes of them has
  // tests of its own.
  let wanted: { lane: number; row: number; index: number } | null = null;
  await page.routeWebSocket(/\/api\/v1\/ws$/, (socket) => {
    const server = socket.connectToServer();
    server.onMessage((message) => {
      if (typeof message !== "string" && wanted !== null) markOpen(message, wanted);
      socket.send(message);
    });
  });
  const [record] = dump("anthill", "--where", "name=PheroDecay", "--sort", "dur", "--limit", "1");
  await open(page, "anthill", `e=${record.event}`);
  const { place } = await asked(page, "anthill", `event/${record.event}`);
  const shift = await zero(page, "anthill");
  const link = `t=${Math.floor(record.ts + shift - record.dur)}..${Math.ceil(record.ts + shift + record.dur * 2)}`;
  await open(page, "anthill", link);
  // Of a span that lies in several tiles the last part, which has the end.
  const find = () => page.evaluate((at) => window.__typhon?.visibleEntries().filter(({ lane, row, index, isAggregate }) => !isAggregate && lane === at.lane && row === at.row && index === at.index).sort((a, b) => b.x - a.x)[0] ?? null, place);
  const whole = await find();
  const last = async (bar: NonNullable<Awaited<ReturnType<typeof find>>>) => line(page, { x: bar.x + bar.w - 14, y: bar.y + 2.5 }, { x: bar.x + bar.w - 1, y: bar.y + 2.5 });
  expect(new Set(await last(whole!)).size).toBe(1);
  wanted = place;
  await page.route(/\/row\/|\/event\/[\d.]+$/, async (route) => {
    const response = await route.fetch();
    await route.fulfill({ response, json: { ...(await response.json()), hasNoEnd: true } });
  });
  await open(page, "anthill", link);
  await page.reload();
  await drawn(page);
  const bar = await find();
  const shades = await last(bar!);
  expect(new Set(shades).size, "it fades over its last 12 px").toBeGreaterThan(6);
  await page.mouse.move(bar!.x + bar!.w / 2, bar!.y + 6);
  await expect(page.getByRole("tooltip")).toContainText("no end in the recording: drawn until the lane's next record");
  await page.mouse.down();
  await page.mouse.up();
  await expect(page.locator(".inspector .figures")).toContainText("no end");
  await expect(page.locator(".inspector .fact", { hasText: "End" })).toContainText("no end in the recording");
});

/** Sets the flag "no end" of an entry in the frames of a message. */
function markOpen(message: Buffer, wanted: { lane: number; row: number; index: number }): void {
  for (let at = 0; at + 32 <= message.length; ) {
    const [content, entries] = [message[at + 6] ?? 255, message.readUInt32LE(at + 28)];
    const size = content === 4 ? 32 : 16;
    if (content === 0 && message.readUInt32LE(at + 12) === wanted.lane) {
      const firstRow = message.readUInt16LE(at + 26);
      for (let entry = 0; entry < entries; entry += 1) {
        const offset = at + 32 + entry * 16;
        const flags = message[offset + 5] ?? 0;
        const isIt = (flags & 1) === 0 && firstRow + (message[offset + 4] ?? 0) === wanted.row && message.readUInt32LE(offset + 8) === wanted.index;
        if (isIt) message[offset + 5] = flags | 8;
      }
    }
    at += 32 + (content === 255 ? 0 : entries * size);
  }
}
