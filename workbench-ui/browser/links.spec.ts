import { duration } from "../src/format";
import { accessible, asked, drawn, expect, open, pixels, test, token, trackOf, xOf } from "./page";
import { dump, json, pathOf, type Document } from "./traces";

// High enough for all lanes.
test.use({ viewport: { width: 1440, height: 1500 } });

const WINDOW = "t=1332409000..1368409000";

/** The chunks of a system in a tick of anthill, in order of time. */
function chunksOf(system: number, tick: number): Document[] {
  return dump("anthill", "--kind", "SchedulerChunk", "--ticks", String(tick)).filter(({ fields }) => fields.systemIdx === system).sort((a, b) => a.ts - b.ts);
}

const nameOf = (system: number): string => json("trace", "info", pathOf("anthill")).systems.find(({ index }: Document) => index === system).name;

test("a system is linked with what it waited for and what waited for it, from start to start (B-20)", async ({ page }) => {
  // A dependency of tick 9 whose two systems ran.
  const dependencies = dump("anthill", "--kind", "SchedulerDependencyReady", "--ticks", "9").map(({ fields }) => fields);
  const found = dependencies.find(({ fromSysIdx, toSysIdx }) => chunksOf(fromSysIdx, 9).length > 0 && chunksOf(toSysIdx, 9).length > 0);
  const { fromSysIdx, toSysIdx } = found;
  const end = ({ ts, dur }: Document) => ts + dur;
  const before = chunksOf(fromSysIdx, 9).sort((a, b) => end(b) - end(a))[0];
  const after = chunksOf(toSysIdx, 9)[0];
  await open(page, "anthill", `e=${after.event}`);
  const order = page.locator(".facts", { has: page.locator("h3", { hasText: "Before and after" }) });
  const line = order.locator(".linked", { hasText: `After ${nameOf(fromSysIdx)}` });
  await expect(line).toContainText(`ended ${duration(Math.max(after.ts - end(before), 0))} before it`);
  const [ready] = dump("anthill", "--kind", "SystemReady", "--ticks", "9").filter(({ fields }) => fields.systemIdx === toSysIdx);
  await expect(order.locator(".linked", { hasText: "Could run" })).toContainText(`${duration(after.ts - ready.ts)} before a worker took it`);

  await accessible(page, "links", ['[data-panel="inspector"]']);

  // Drawn from the beginning of the one to that of the other.
  const shift = -(await asked(page, "anthill", "meta")).time.zeroNs;
  const [fromNs, toNs] = [before.ts + shift, after.ts + shift];
  const margin = (toNs - fromNs) / 2;
  await open(page, "anthill", `t=${Math.floor(fromNs - margin)}..${Math.ceil(toNs + margin)}&e=${after.event}`);
  await expect(line).toBeVisible();
  await drawn(page);
  const elbows = await page.evaluate(() => window.__typhon?.links() ?? []);
  const elbow = elbows.find(({ from, to }) => from === before.event && to === after.event);
  if (elbow === undefined) throw new Error(`not drawn: ${JSON.stringify(elbows)}`);
  expect(Math.abs(elbow.x - (await xOf(page, fromNs)))).toBeLessThan(1);
  expect(Math.abs(elbow.toX - (await xOf(page, toNs)))).toBeLessThan(1);
  const select = await token(page, "select");
  const along = Array.from({ length: 9 }, (_, at) => ({ x: elbow.x + ((elbow.toX - elbow.x) * (at + 0.5)) / 10, y: elbow.alongY }));
  const seen = (await pixels(page, along)).at.filter((colour) => colour === select).length;
  expect(seen, "the line is there").toBeGreaterThan(6);

  // Also to a lane that is pinned.
  const lanes = await page.evaluate(() => (window.__typhon?.tracks() ?? []).filter(({ key }) => key.startsWith("thread:")).map(({ key }) => key));
  const lane = lanes.find((key) => key.includes(after.thread)) ?? "";
  const head = page.locator(`.tl-head[data-track="${lane}"]`);
  await head.hover();
  await head.getByRole("button", { name: /^Pin / }).click();
  await drawn(page);
  const track = await trackOf(page, lane);
  const pinned = (await page.evaluate(() => window.__typhon?.links() ?? [])).find(({ from, to }) => from === before.event && to === after.event);
  expect(pinned?.toY).toBeGreaterThanOrEqual(track.y);
  expect(pinned?.toY).toBeLessThan(track.y + track.height);
  await page.locator(`.tl-head[data-track="${lane}"]`).getByRole("button", { name: /^Pin / }).click();

  // And they lead there; Back leads back.
  await line.getByRole("button").click();
  await expect(page.locator(`.inspector[data-event="${before.event}"]`)).toBeVisible();
  await expect(order.locator(".linked", { hasText: `Then ${nameOf(toSysIdx)}` })).toBeVisible();
  await page.goBack();
  await expect(page.locator(`.inspector[data-event="${after.event}"]`)).toBeVisible();
  await page.keyboard.press("Escape");
  await expect.poll(() => page.evaluate(() => window.__typhon?.links().length)).toBe(0);
});

test("ids have the names that the tables give them; those that the tables do not have stay numbers with a mark (B-24)", async ({ page }) => {
  const { systems, archetypes, eventQueues } = json("trace", "info", pathOf("anthill"));
  const fact = (name: string) => page.locator(".inspector .fact", { has: page.locator("dt", { hasText: new RegExp(`^${name}$`) }) }).locator("dd");
  const [touched] = dump("anthill", "--kind", "SchedulerSystemArchetype", "--limit", "1");
  await open(page, "anthill", `${WINDOW}&e=${touched.event}`);
  const { systemIndex, archetypeId } = touched.fields;
  await expect(fact("systemIndex")).toHaveText(`${systems.find(({ index }: Document) => index === systemIndex).name} ${systemIndex}`);
  await expect(fact("archetypeId")).toHaveText(`${archetypes.find((one: Document) => one.archetypeId === archetypeId).name} ${archetypeId}`);
  const [query] = dump("anthill", "--kind", "EcsQueryExecute", "--limit", "1");
  expect(archetypes.map((one: Document) => one.archetypeId)).not.toContain(query.fields.archetypeTypeId);
  await page.evaluate((event) => (location.hash = `e=${event}`), query.event);
  await expect(fact("archetypeTypeId")).toHaveText(`${query.fields.archetypeTypeId} not in the tables`);
  const [queue] = dump("anthill", "--kind", "QueueTickEnd", "--limit", "1");
  await page.evaluate((event) => (location.hash = `e=${event}`), queue.event);
  const named = eventQueues.find((one: Document) => (one.queueIndex ?? one.index) === queue.fields.queueId);
  await expect(fact("queueId")).toHaveText(`${named.name} ${queue.fields.queueId}`);
});

test("times are shown since the start, by the clock, by tick and as they are stored (B-21)", async ({ page }) => {
  const where = ["--where", "name=PheroDecay", "--sort", "dur", "--limit", "1"];
  const [record] = dump("anthill", ...where);
  const [absolute] = dump("anthill", ...where, "--time", "abs");
  const [raw] = dump("anthill", ...where, "--time", "raw");
  await open(page, "anthill");
  const shift = -(await asked(page, "anthill", "meta")).time.zeroNs;
  const from = record.ts + shift;
  await open(page, "anthill", `t=${from - record.dur}..${from + 2 * record.dur}&e=${record.event}`);
  await drawn(page);
  const start = page.locator(".inspector .fact", { has: page.locator("dt", { hasText: /^Start$/ }) }).locator("dd");
  const choose = (mode: string) => page.getByRole("group", { name: "Time" }).getByRole("button", { name: mode, exact: true }).click();
  const ruler = page.locator(".tl-gutter-pinned .tl-head").first();
  // The CLI prints 64-bit numbers as they are, and 1.7e18 does not fit a double: its text is looked at.
  const unixNs = BigInt(String(absolute.ts));
  await choose("Since start");
  const ms = ((record.ts + shift) / 1e6).toFixed(6);
  await expect(start).toHaveText(`${ms.replace(/\B(?=(\d{3})+\.)/, ",")}\u202fms`);
  await expect(ruler).toContainText("since start");
  await choose("Clock");
  const clock = new Date(Number(unixNs / 1_000_000n)).toISOString().slice(11, 19);
  // To the microsecond: beyond that a JSON number of this size is rounded.
  await expect(start).toContainText(`${clock}.${(unixNs % 1_000_000_000n).toString().padStart(9, "0").slice(0, 5)}`);
  await expect(ruler).toContainText("clock, UTC");
  await choose("Tick");
  const tick = dump("anthill", "--kind", "TickStart").filter(({ ts }) => ts <= record.ts).at(-1);
  await expect(start).toHaveText(`tick ${tick.tick} +${duration(record.ts - tick.ts)}`);
  await choose("Raw");
  await expect(start).toHaveText(String(raw.ts));
  await expect(ruler).toContainText("clock ticks");
  // The table and the tooltip follow.
  await page.getByRole("tab", { name: "Top spans", exact: true }).click();
  await drawn(page);
  const { place } = await asked(page, "anthill", `event/${record.event}`);
  const bar = await page.evaluate((at) => window.__typhon?.visibleEntries().find(({ lane, row, index, isAggregate }) => !isAggregate && lane === at.lane && row === at.row && index === at.index), place);
  await page.mouse.move((bar?.x ?? 0) + (bar?.w ?? 0) / 2, (bar?.y ?? 0) + 6);
  await expect(page.getByRole("tooltip")).toContainText(String(raw.ts));
  await choose("Since start");
});

test("links that lead in a circle, or to themselves, are followed a step at a time", async ({ page }) => {
  // No scheduler records this; what a file says is not for the page to believe.
  const events = dump("anthill", "--kind", "SchedulerChunk", "--ticks", "9", "--limit", "3").map(({ event }) => event as string);
  expect(events).toHaveLength(3);
  await open(page, "anthill", `e=${events[0]}`);
  const spans = await Promise.all(events.map(async (event) => {
    const { startNs, durationNs, place } = await asked(page, "anthill", `event/${event}`);
    return { event, startNs, durationNs, place, name: 0 };
  }));
  let answers = 0;
  await page.route("**/event/*/links", (route) => {
    answers += 1;
    const at = events.indexOf(/event\/([^/]+)\/links/.exec(route.request().url())?.[1] ?? "");
    const [before, here] = [spans[(at + 2) % 3], spans[at]];
    const links = [{ reason: "dependency", from: before, to: here }, { reason: "dependency", from: here, to: here }];
    return route.fulfill({ json: { links, isCut: false } });
  });
  await open(page, "anthill", `t=1332409000..1368409000&e=${events[0]}`);
  await drawn(page);
  const lines = page.locator(".linked button");
  await expect(lines).toHaveCount(2);
  expect(answers, "nothing is followed by itself").toBe(1);
  // Twice round, backwards; then to itself.
  for (let step = 1; step <= 6; step += 1) {
    await lines.first().click();
    await expect(page.locator(`.inspector[data-event="${events[(2 * step) % 3]}"]`)).toBeVisible();
    await drawn(page);
    await expect(lines).toHaveCount(2);
    expect(answers, `step ${step}`).toBe(1 + step);
  }
  await lines.last().click();
  await drawn(page);
  await expect(page.locator(`.inspector[data-event="${events[0]}"]`)).toBeVisible();
  expect(answers, "a click is one question").toBe(8);
  const elbows = await page.evaluate(() => window.__typhon?.links() ?? []);
  expect(elbows.every(({ from, to }) => events.includes(from ?? "") && events.includes(to ?? ""))).toBe(true);
  // Back goes the way back.
  await page.goBack();
  await expect(lines).toHaveCount(2);
  await page.goBack();
  await expect(page.locator(`.inspector[data-event="${events[1]}"]`)).toBeVisible();
});
