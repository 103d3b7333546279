import { drawn, expect, grid, open, shownRows, showsTick, test } from "./page";
import { dump, json, pathOf } from "./traces";

test("the way of the guide: which system made the slowest tick slow, and was a collection to blame", async ({ page }) => {
  await open(page, "demo");
  const [worst] = json("trace", "stats", pathOf("demo")).ticks.worst;
  const started = Date.now();
  // 1. Find: one key.
  await page.keyboard.press("Shift+BracketRight");
  await showsTick(page, worst.tick);
  await drawn(page);
  // 2. Explain: one click orders the systems by their time in this tick, another one goes to the longest part of the first.
  await page.getByRole("group", { name: "Group by" }).getByRole("button", { name: "System" }).click();
  const { rows } = json("trace", "stats", pathOf("demo"), "--by", "system", "--ticks", String(worst.tick));
  const slowest = rows[0]?.key;
  await expect.poll(async () => (await shownRows(grid(page, "Statistics by system")))[0]?.[0]).toBe(slowest);
  await grid(page, "Statistics by system").locator('[aria-rowindex="2"]').click();
  const inspector = page.locator(".inspector[data-event]");
  await expect(inspector.locator("h2")).toHaveText(slowest ?? "");
  // 3. Was it a collection? The inspector says so, and the table of the window.
  const collections = inspector.locator(".fact", { hasText: "Collections" });
  await expect(collections).toContainText("none recorded");
  await page.getByRole("tab", { name: "Collections", exact: true }).click();
  await expect(page.locator('[data-panel="bottom"] .panel-empty')).toContainText("No collections in this recording");
  expect(Date.now() - started, "a minute, with a loaded machine's patience").toBeLessThan(180_000);
});

test("the same way where collections were recorded names the one to blame", async ({ page }) => {
  await open(page, "gc");
  const { gc } = json("trace", "stats", pathOf("gc"));
  await page.getByRole("tab", { name: "Collections", exact: true }).click();
  const table = grid(page, "Collections");
  await table.getByRole("button", { name: "Pause" }).click();
  await expect(table.getByRole("columnheader", { name: "Pause" })).toHaveAttribute("aria-sort", "descending");
  await drawn(page);
  const [longest] = await shownRows(table);
  expect(longest?.[2]).toBeTruthy();
  await table.locator('[aria-rowindex="2"]').click();
  await drawn(page);
  // It is what the track shows, from its start to its end.
  const end = dump("gc", "--kind", "GcEnd").find(({ fields }) => String(fields.count) === longest?.[0]);
  expect(end.fields.generation).toBe(Number(longest?.[1]));
  const shown = await page.evaluate(() => window.__typhon?.window());
  expect(shown?.fromNs).toBeLessThan(end.ts);
  expect(shown?.toNs).toBeGreaterThan(end.ts);
  expect(gc.pauses.maxNs).toBeGreaterThan(0);
});
