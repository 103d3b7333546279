import type { Page } from "@playwright/test";
import { addressIn, asked, drawn, expect, grid, open, showTable, test } from "./page";
import { dump } from "./traces";

const [FROM, TO] = [1_332_409_000, 1_368_409_000];

async function shown(page: Page): Promise<{ fromNs: number; toNs: number }> {
  const bounds = await page.evaluate(() => window.__typhon?.window());
  if (!bounds) throw new Error("nothing is drawn");
  return bounds;
}

/** Where a thread's lane is on the page. */
async function lane(page: Page): Promise<{ x: number; y: number; width: number }> {
  const track = (await page.evaluate(() => window.__typhon?.tracks() ?? [])).find(({ key }) => key.startsWith("thread:"));
  if (track === undefined) throw new Error("no thread is shown");
  return { x: track.x, y: track.y + track.height / 2, width: track.width };
}

test("the wheel zooms at the cursor, with Shift it pans, with Ctrl it scrolls the tracks (B-17)", async ({ page }) => {
  await open(page, "anthill", `t=${FROM}..${TO}`);
  const at = await lane(page);
  const x = at.x + Math.round(at.width / 4);
  await page.mouse.move(x, at.y);
  const nsUnder = ({ fromNs, toNs }: { fromNs: number; toNs: number }) => fromNs + ((x - at.x) / at.width) * (toNs - fromNs);
  const before = await shown(page);
  await page.mouse.wheel(0, -400);
  await drawn(page);
  const zoomed = await shown(page);
  expect((zoomed.toNs - zoomed.fromNs) / (before.toNs - before.fromNs)).toBeCloseTo(1.0015 ** -400, 3);
  expect(Math.abs(nsUnder(zoomed) - nsUnder(before)) / (zoomed.toNs - zoomed.fromNs)).toBeLessThan(0.001);
  await page.keyboard.down("Shift");
  await page.mouse.wheel(0, 100);
  await page.keyboard.up("Shift");
  await drawn(page);
  const panned = await shown(page);
  expect(panned.toNs - panned.fromNs).toBeCloseTo(zoomed.toNs - zoomed.fromNs, 0);
  expect((panned.fromNs - zoomed.fromNs) / (panned.toNs - panned.fromNs)).toBeCloseTo(100 / at.width, 3);
  await page.keyboard.down("Control");
  await page.mouse.wheel(0, 120);
  await page.keyboard.up("Control");
  await drawn(page);
  expect(await shown(page)).toEqual(panned);
  expect((await lane(page)).y).toBeLessThan(at.y);
});

test("a drag over the ruler or with Ctrl shows a range, a double click fits the span (B-17)", async ({ page }) => {
  await open(page, "anthill", `t=${FROM}..${TO}`);
  const at = await lane(page);
  const drag = async (y: number, from: number, to: number) => {
    await page.mouse.move(at.x + at.width * from, y);
    await page.mouse.down();
    await page.mouse.move(at.x + at.width * to, y, { steps: 4 });
    await page.mouse.up();
    await drawn(page);
  };
  const canvas = await page.locator(".tl-canvas").boundingBox();
  const first = await shown(page);
  await drag((canvas?.y ?? 0) + 10, 0.25, 0.75);
  const half = await shown(page);
  expect((half.toNs - half.fromNs) / (first.toNs - first.fromNs)).toBeCloseTo(0.5, 2);
  await page.keyboard.down("Control");
  await drag(at.y, 0.5, 0.75);
  await page.keyboard.up("Control");
  const eighth = await shown(page);
  expect((eighth.toNs - eighth.fromNs) / (first.toNs - first.fromNs)).toBeCloseTo(0.125, 2);
  expect(eighth.fromNs).toBeCloseTo(half.fromNs + (half.toNs - half.fromNs) / 2, -5);
  // Back to the whole range; the longest bar of a name is fitted with a tenth of its length at each side.
  await page.goBack();
  await page.goBack();
  await expect.poll(async () => Math.round((await shown(page)).fromNs)).toBe(FROM);
  await drawn(page);
  const bar = await page.evaluate(() => window.__typhon?.visibleEntries().filter(({ isAggregate, name, track }) => !isAggregate && name === "AntUpdate" && track.startsWith("thread:")).sort((a, b) => b.w - a.w)[0]);
  await page.mouse.dblclick((bar?.x ?? 0) + (bar?.w ?? 0) / 2, (bar?.y ?? 0) + 6);
  const event = page.locator(".inspector[data-event]");
  await expect(event).toBeVisible();
  await drawn(page);
  const id = await event.getAttribute("data-event");
  const record = dump("anthill", "--where", "name=AntUpdate").find((one) => one.event === id);
  const fitted = await shown(page);
  expect((fitted.toNs - fitted.fromNs) / record.dur).toBeCloseTo(1.2, 1);
});

test("a drag on the session moves the window, and every panel with it (B-10)", async ({ page }) => {
  await open(page, "anthill", `t=${FROM}..${TO}`);
  await showTable(page, "Ticks");
  const ticks = grid(page, "Ticks");
  const before = await ticks.getAttribute("aria-rowcount");
  const slider = await page.getByRole("slider", { name: "Window, on the session" }).boundingBox();
  const [x, y, width] = [slider?.x ?? 0, (slider?.y ?? 0) + (slider?.height ?? 0) / 2, slider?.width ?? 1];
  // On free ground: a new range.
  await page.mouse.move(x + width * 0.1, y);
  await page.mouse.down();
  await page.mouse.move(x + width * 0.4, y, { steps: 5 });
  await page.mouse.up();
  await drawn(page);
  const whole = dump("anthill").reduce((most, { ts, dur }) => Math.max(most, ts + (dur ?? 0)), 0);
  const range = await shown(page);
  expect((range.toNs - range.fromNs) / whole).toBeGreaterThan(0.25);
  expect((range.toNs - range.fromNs) / whole).toBeLessThan(0.35);
  await expect(ticks).not.toHaveAttribute("aria-rowcount", before ?? "");
  // Inside of it: the same length, elsewhere.
  await page.mouse.move(x + width * 0.25, y);
  await page.mouse.down();
  await page.mouse.move(x + width * 0.35, y, { steps: 5 });
  await page.mouse.up();
  await drawn(page);
  const moved = await shown(page);
  expect(moved.toNs - moved.fromNs).toBeCloseTo(range.toNs - range.fromNs, -3);
  expect((moved.fromNs - range.fromNs) / whole).toBeCloseTo(0.1, 1);
});

test("a drag with Shift selects a range, which all tables are about until Escape or a click takes it back (B-22)", async ({ page }) => {
  await open(page, "anthill", `t=${FROM}..${TO}`);
  const at = await lane(page);
  const drag = async (from: number, to: number) => {
    await page.keyboard.down("Shift");
    await page.mouse.move(at.x + at.width * from, at.y);
    await page.mouse.down();
    await page.mouse.move(at.x + at.width * to, at.y, { steps: 4 });
    await page.mouse.up();
    await page.keyboard.up("Shift");
    await drawn(page);
  };
  const panel = await showTable(page, "Statistics");
  const note = panel.locator(".tools-note").first();
  await expect(note).toHaveText(/names in the window$/);
  await drag(0.25, 0.5);
  await expect(note).toHaveText(/names in the selection$/);
  expect(await shown(page)).toEqual({ fromNs: FROM, toNs: TO });
  const [fromNs, toNs] = (/&r=(\d+)\.\.(\d+)/.exec(await addressIn(page)) ?? []).slice(1).map(Number) as [number, number];
  expect((toNs - fromNs) / (TO - FROM)).toBeCloseTo(0.25, 2);
  const { rows } = await asked(page, "anthill", `stats?by=name&fromNs=${fromNs}&toNs=${toNs}&top=0`);
  await expect(note).toHaveText(`${rows.length} names in the selection`);
  await expect(grid(page, "Statistics by name")).toHaveAttribute("aria-rowcount", String(rows.length + 1));
  for (const tab of ["Top spans", "Ticks", "Collections", "Gauges"]) {
    await showTable(page, tab);
    await expect(panel.locator(".tools-note").first(), tab).toHaveText(/in the selection/);
  }
  // The window may move meanwhile, and reloading keeps the range.
  await page.keyboard.press("KeyD");
  await drawn(page);
  await expect(panel.locator(".tools-note").first()).toHaveText(/in the selection/);
  expect(await addressIn(page)).not.toContain(`t=${FROM}..`);
  await page.reload();
  await drawn(page);
  await expect(panel.locator(".tools-note").first()).toHaveText(/in the selection/);
  await page.keyboard.press("Escape");
  await expect(panel.locator(".tools-note").first()).toHaveText(/in the window/);
  await page.goBack();
  await expect(panel.locator(".tools-note").first()).toHaveText(/in the selection/);
  await drawn(page);
  await page.mouse.click(at.x + at.width * 0.9, at.y);
  await expect(panel.locator(".tools-note").first()).toHaveText(/in the window/);
  await drag(0.1, 0.2);
  await expect(panel.locator(".tools-note").first()).toHaveText(/in the selection/);
  const clear = panel.getByRole("button", { name: "Clear selection" });
  // It leaves room in the head, on one line, for what the head says of the rows.
  await showTable(page, "Statistics");
  expect((await clear.boundingBox())?.height).toBeLessThan(24);
  expect(await note.evaluate((at) => at.scrollWidth <= at.clientWidth), "all of the head can be read").toBe(true);
  await clear.click();
  await expect(panel.locator(".tools-note").first()).toHaveText(/in the window/);
});

test("head and table name the same ticks: those that overlap the window", async ({ page }) => {
  await open(page, "anthill");
  const ticks = await asked(page, "anthill", "ticks?first=0&count=67");
  // From the pause after a tick to the middle of the next but one.
  const [third, fifth] = [ticks.startNs[3] + ticks.durationNs[3] + 1, ticks.startNs[5] + Math.floor(ticks.durationNs[5] / 2)];
  expect(third).toBeLessThan(ticks.startNs[4]);
  await open(page, "anthill", `t=${third}..${fifth}`);
  await expect(page.locator('[data-panel="timeline"] .tabs-right')).toContainText(`ticks ${ticks.numbers[4]}–${ticks.numbers[5]}`);
  const panel = await showTable(page, "Ticks");
  await expect(panel.locator(".tools-note").first()).toHaveText("2 of 67 ticks in the window");
});
