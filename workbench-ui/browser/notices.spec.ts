import { existsSync, rmSync } from "node:fs";
import { spawnSync } from "node:child_process";
import { dirname } from "node:path";
import { duration } from "../src/format";
import { expect, open, showTable, test } from "./page";
import { BINARY, json, pathOf } from "./traces";

// Two tests make bookmarks of the same recording: one after the other.
test.describe.configure({ mode: "default" });

test("a cut file opens, says where it ends, and its repair command works", async ({ page }) => {
  await open(page, "cut");
  const { notices } = json("trace", "info", pathOf("cut"));
  const bar = page.locator(".notice-bar");
  await expect(bar.locator("b")).toHaveText(/^The recording stops at /);
  const command = (await bar.locator("code").textContent()) ?? "";
  const target = pathOf("cut").replace(".typhon-trace", "-repaired.typhon-trace");
  expect(command).toContain(`typhon trace repair ${pathOf("cut")} -o ${target}`);
  rmSync(target, { force: true });
  const { status } = spawnSync("sh", ["-c", command], { env: { ...process.env, PATH: `${dirname(BINARY)}:${process.env["PATH"]}` } });
  // 3: it could not copy what is not there.
  expect([0, 3]).toContain(status);
  expect(existsSync(target)).toBe(true);
  expect(json("trace", "info", target).notices.filter(({ severity }: { severity: string }) => severity === "data-loss")).toEqual([]);
  await bar.getByRole("button", { name: /notice/ }).click();
  const items = page.locator(".notice");
  const messages = () => items.locator("b").allTextContents();
  for (const { message } of notices) await expect.poll(async () => (await messages()).some((text) => text.startsWith(message)), { message }).toBe(true);
  const cut = notices.find(({ code }: { code: string }) => code === "truncated");
  await expect(items.filter({ hasText: cut.message })).toContainText(`offset ${cut.offset.toLocaleString("en-US")}`);
});

test("what is in a cut file is there, with the numbers of the command line", async ({ page }) => {
  await open(page, "cut");
  await showTable(page, "Statistics");
  const { rowCount } = json("trace", "stats", pathOf("cut"), "--by", "name");
  // The tick that the cut ended is listed, but has no duration that statistics could count.
  const { counts } = json("trace", "info", pathOf("cut"));
  await expect(page.getByRole("grid", { name: "Statistics by name" })).toHaveAttribute("aria-rowcount", String(rowCount + 1));
  await showTable(page, "Ticks");
  await expect(page.getByRole("grid", { name: "Ticks" })).toHaveAttribute("aria-rowcount", String(counts.ticks + 1));
});

test("a whole file has no notice bar, and its list says that nothing is missing", async ({ page }) => {
  await open(page, "demo");
  await expect(page.locator(".notice-bar")).toHaveCount(0);
  await page.getByRole("tab", { name: "Notices" }).click();
  await expect(page.getByText("Nothing is missing")).toBeVisible();
});

test("bookmarks keep their notes over a reload and lead back", async ({ page }) => {
  await open(page, "demo", "t=100000000..200000000");
  await page.keyboard.press("m");
  const note = page.getByRole("textbox", { name: /^Note at/ });
  await expect(note).toBeFocused();
  await page.keyboard.type("here it is slow");
  const kept = page.waitForResponse((response) => response.url().endsWith("/bookmarks") && response.request().method() === "PUT");
  await page.keyboard.press("Enter");
  await kept;
  await page.keyboard.press("0");
  await page.reload();
  await page.getByRole("tab", { name: "Bookmarks" }).click();
  await expect(note).toHaveValue("here it is slow");
  const download = page.waitForEvent("download");
  await page.getByRole("button", { name: "Download JSON" }).click();
  expect((await download).suggestedFilename()).toBe("demo.bookmarks.json");
  await page.getByRole("button", { name: /^Remove the bookmark/ }).click();
  await expect(note).toHaveCount(0);
});

test("the ruler measures time, ticks and events", async ({ page }) => {
  await open(page, "demo");
  await page.keyboard.press("r");
  await expect(page.getByText("Drag over the tracks to measure.")).toBeVisible();
  const tracks = await page.evaluate(() => window.__typhon?.tracks() ?? []);
  const { x, y, width, height } = tracks[tracks.length - 2] ?? { x: 0, y: 0, width: 1, height: 1 };
  await page.mouse.move(x + width * 0.25, y + height / 2);
  await page.mouse.down();
  await page.mouse.move(x + width * 0.75, y + height / 2, { steps: 4 });
  await page.mouse.up();
  const facts = page.locator(".facts", { has: page.locator("h3", { hasText: "Ruler" }) });
  await expect(facts).toBeVisible();
  const text = async (name: string) => (await facts.locator(".fact", { hasText: name }).first().locator("dd").textContent()) ?? "";
  const whole = json("trace", "info", pathOf("demo")).time.durationNs;
  const [value, unit] = (await text("Duration")).split("\u202f");
  const ns = Number(value) * ({ s: 1e9, ms: 1e6 }[unit ?? ""] ?? 0);
  // A drag begins and ends on whole pixels, and where the mouse was when the page looked.
  expect(ns / (whole / 2), duration(whole)).toBeGreaterThan(0.85);
  expect(ns / (whole / 2), duration(whole)).toBeLessThan(1.15);
  await expect(facts.locator(".fact", { hasText: "Events" }).locator("dd")).toHaveText(/^[\d,]+$/);
  await facts.getByRole("button", { name: "Keep as bookmark" }).click();
  await expect(page.locator(".bookmark")).toHaveCount(1);
  await page.getByRole("button", { name: /^Remove the bookmark/ }).click();
  await expect(page.locator(".bookmark")).toHaveCount(0);
});
