import { count, duration } from "../src/format";
import { drawn, expect, open, pixels, test, token } from "./page";
import { dump, json, pathOf } from "./traces";

const WINDOW = "t=1332409000..1368409000";

test("in forced colours bars have an outline in the colour of texts", async ({ page }) => {
  await open(page, "anthill", WINDOW);
  const bar = () =>
    page.evaluate(() => window.__typhon?.visibleEntries().filter(({ flags, w, track }) => (flags & 7) === 0 && w > 12 && track.startsWith("thread:")).sort((a, b) => b.w - a.w)[0] ?? null);
  const found = await bar();
  if (found === null) throw new Error("no bar is wide enough");
  const [edge, inside] = [{ x: found.x + 0.5, y: found.y + 6 }, { x: found.x + found.w - 8, y: found.y + 2.5 }];
  const plain = await pixels(page, [inside]);
  await page.emulateMedia({ forcedColors: "active" });
  // The page hears of it in its own time.
  const forced = async () => {
    const { at, text, canvas } = await pixels(page, [edge, inside]);
    return at[0] === text && at[1] === canvas && plain.at[0] !== canvas;
  };
  await expect.poll(forced).toBe(true);
  await page.emulateMedia({ forcedColors: "none" });
  await expect.poll(async () => (await pixels(page, [inside])).at).toEqual(plain.at);
});

test("the overload strip tells what the detector recorded for a tick", async ({ page }) => {
  await open(page, "anthill");
  const starts = dump("anthill", "--kind", "TickStart").map(({ ts }) => ts);
  const place = 4;
  const record = dump("anthill", "--where", "kind=242").find(({ ts }) => ts >= starts[place] && ts < starts[place + 1]);
  const wait = dump("anthill", "--where", "kind=241").find(({ ts }) => ts >= starts[place] && ts < starts[place + 1]);
  const box = await page.locator(".tl-overview-canvas").boundingBox();
  const head = await page.locator(".tl-overview .tl-head", { hasText: "Overload" }).boundingBox();
  await page.mouse.move((box?.x ?? 0) + ((box?.width ?? 0) * (place + 0.5)) / starts.length, (head?.y ?? 0) + 10);
  const tip = page.getByRole("tooltip");
  await expect(tip).toContainText(`Tick ${count(place + 1)}`);
  const { overrunRatio, levelName, consecutiveOverrun, consecutiveUnderrun } = record.fields;
  await expect(tip).toContainText(`${overrunRatio.toFixed(2)} × budget · level ${levelName}`);
  await expect(tip).toContainText(`in a row: over ${consecutiveOverrun}, under ${consecutiveUnderrun}`);
  await expect(tip).toContainText(`then the metronome waited ${duration(wait.dur)}, ${wait.fields.intentClassName}`);
  await page.mouse.move(1, 1);
  await expect(tip).toHaveCount(0);
  await drawn(page);
  // Bars are as high as the ratio, up to twice the budget; what is above has a mark.
  const { ticks } = json("trace", "stats", pathOf("anthill"));
  const budgetNs = 1e9 / json("trace", "info", pathOf("anthill")).runtimeConfig.baseTickRate;
  const [bar, background, mark] = [await token(page, "ovl-1"), await token(page, "bg-canvas"), await token(page, "text")];
  const [most, other] = [ticks.worst[0], ticks.worst[2]];
  const looked = async (tick: number, y: number) => (await pixels(page, [{ x: (box?.x ?? 0) + ((box?.width ?? 0) * (tick - 0.5)) / starts.length, y: (head?.y ?? 0) + y }], ".tl-overview-canvas canvas")).at[0];
  const topOf = (ns: number) => 18 - (Math.min(ns / budgetNs, 2) / 2) * 15;
  expect(most.durNs / budgetNs).toBeGreaterThan(2);
  expect([await looked(most.tick, 1.5), await looked(most.tick, 4.5)]).toEqual([mark, bar]);
  expect(other.durNs / budgetNs).toBeGreaterThan(1.2);
  expect(other.durNs / budgetNs).toBeLessThan(2);
  expect([await looked(other.tick, 1.5), await looked(other.tick, topOf(other.durNs) - 1.5), await looked(other.tick, 13.5)]).toEqual([background, background, bar]);
});

test("lanes can be moved, hidden and put back as they were", async ({ page }) => {
  await open(page, "kinds");
  await page.getByRole("tab", { name: "Lanes" }).click();
  const shown = (of: string) => page.evaluate((kind) => (window.__typhon?.tracks() ?? []).filter(({ key }) => key.startsWith(kind)).map(({ key }) => key), of);
  const before = await shown("thread:");
  expect(before.length).toBeGreaterThan(2);
  const labels = await page.locator(".facts", { has: page.locator("h3", { hasText: "Threads" }) }).locator("label").allTextContents();
  await page.getByRole("button", { name: `Move ${labels[1]} up`, exact: true }).click();
  await drawn(page);
  const moved = await shown("thread:");
  expect(moved.slice(0, 2)).toEqual([before[1], before[0]]);
  expect(moved.slice(2)).toEqual(before.slice(2));
  // A gauge's switches are those of the track that it shares with others.
  const gauge = page.locator(".facts", { has: page.locator("h3", { hasText: "Gauges" }) }).locator("label").first();
  const gauges = await shown("gauges:");
  await gauge.click();
  await drawn(page);
  expect(await shown("gauges:")).toEqual(gauges.slice(1));
  await page.getByRole("button", { name: "As they were" }).click();
  await drawn(page);
  expect([await shown("thread:"), await shown("gauges:")]).toEqual([before, gauges]);
});

test("no frame of a pan is blank, and what was drawn does not move in its row", async ({ page }) => {
  await open(page, "demo", "t=100000000..140000000");
  const box = await page.locator(".tl-canvas").boundingBox();
  const [x, y] = [(box?.x ?? 0) + (box?.width ?? 0) / 2, (box?.y ?? 0) + (box?.height ?? 0) - 20];
  const seen = () => page.evaluate(() => (window.__typhon?.visibleEntries() ?? []).filter(({ isAggregate }) => !isAggregate).map(({ track, row, index, y }) => [`${track}/${row}/${index}`, y] as const));
  const rows = new Map(await seen());
  expect(rows.size).toBeGreaterThan(10);
  await page.mouse.move(x, y);
  await page.mouse.down();
  for (let step = 1; step <= 20; step += 1) {
    await page.mouse.move(x - step * 40, y);
    await page.evaluate(() => new Promise(requestAnimationFrame));
    const now = await seen();
    expect(now.length, `frame ${step}`).toBeGreaterThan(0);
    for (const [key, at] of now) {
      if (rows.has(key)) expect(at, key).toBe(rows.get(key));
      rows.set(key, at);
    }
  }
  await page.mouse.up();
});
