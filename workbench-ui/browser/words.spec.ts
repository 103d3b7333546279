/** What is said when something is not as it was asked for. */

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { addressIn, asked, drawn, expect, grid, open, openAt, showTable, test } from "./page";
import { serve } from "./setup";
import { WORK, dump, pathOf } from "./traces";

test("while the server does not answer panels say so and count nothing, and ask again when it does", async ({ page }) => {
  const { server, url } = await serve("silent", pathOf("anthill"));
  try {
    await openAt(page, url, 1, "anthill");
    // The link breaks and comes back, as through SSH.
    let isUp = true;
    await page.route("**/api/**", (route) => (isUp ? route.continue() : route.abort()));
    let cut = () => {};
    await page.routeWebSocket("**/api/v1/ws", (socket) => {
      if (!isUp) return void socket.close();
      socket.connectToServer();
      cut = () => void socket.close();
    });
    await page.reload();
    await drawn(page);
    const panel = page.locator('[data-panel="bottom"]');
    await expect(panel.locator(".tools-note")).toContainText("in the trace");
    isUp = false;
    cut();
    await expect(page.locator(".notice-bar")).toHaveText(/typhon ui does not answer/);
    await page.keyboard.press("KeyW");
    await expect(panel.locator(".panel-fault")).toContainText("The server does not answer.");
    await expect(panel).not.toContainText("Failed to fetch");
    await expect(panel).not.toContainText(/0 names/);
    await page.getByRole("tab", { name: "Top spans" }).click();
    await expect(panel.locator(".panel-fault")).toContainText("The server does not answer.");
    await expect(panel).not.toContainText("the 0 longest");
    isUp = true;
    await expect(panel.locator(".tools-note")).toContainText(/the [1-9][\d,]* longest in the window/);
    await expect(page.locator(".notice-bar")).toHaveCount(0);
  } finally {
    server.removeAllListeners("exit");
    server.kill("SIGTERM");
  }
});

test("a file that cannot be opened is named in the dialog, which keeps the path", async ({ page }) => {
  await open(page, "demo");
  writeFileSync(join(WORK, "packed.typhon-trace.gz"), Buffer.from([0x1f, 0x8b, 8, 8]));
  await page.getByRole("button", { name: "Open a trace", exact: true }).click();
  const dialog = page.getByRole("dialog", { name: "Open a trace" });
  const path = dialog.getByRole("textbox", { name: "Path of a trace" });
  await path.fill("packed.typhon-trace.gz");
  await path.press("Enter");
  await expect(dialog.getByRole("alert")).toContainText("packed.typhon-trace.gz: not a Typhon trace");
  await expect(dialog.getByRole("alert")).toContainText("gunzip -c");
  await expect(path).toHaveValue("packed.typhon-trace.gz");
  await expect(page.locator(".notice-bar")).toHaveCount(0);
  await path.fill("demo.typhon-trace");
  await path.press("Enter");
  await expect(dialog).toHaveCount(0);
});

test("totals say that they are of whole spans", async ({ page }) => {
  await open(page, "anthill", "t=1332409000..1333409000");
  const head = grid(page, "Statistics by name").getByRole("columnheader", { name: "Total" });
  await expect(head).toHaveAttribute("title", /touch the window count whole/);
});

test("a place of the program that the recording does not name is no number", async ({ page }) => {
  const [{ event }] = dump("anthill", "--limit", "1");
  await page.route("**/event/*", async (route) => {
    const answer = await route.fetch();
    const detail = await answer.json();
    await route.fulfill({ response: answer, json: { ...detail, site: { id: 32775, file: null, line: null, method: null, hasSource: false } } });
  });
  await open(page, "anthill", `e=${event}`);
  const section = page.locator(".facts", { has: page.locator("h3", { hasText: "Source" }) });
  await expect(section).toContainText("The recording does not say which line this is.");
  await expect(section).not.toContainText("32775");
});

test("a tick that is not there is answered with those that are", async ({ page }) => {
  await open(page, "demo");
  const { numbers } = await asked(page, "demo", "ticks?first=0&count=1000");
  await page.keyboard.press("Control+KeyK");
  await page.keyboard.type(":tick 99999");
  await expect(page.locator(".palette-none")).toHaveText(`There is no such tick: the recording has ${numbers[0]} to ${numbers[numbers.length - 1]}.`);
});

test("why a table is empty stands below its heads", async ({ page }) => {
  await open(page, "demo");
  await showTable(page, "Collections");
  const said = page.locator(".panel-empty", { hasText: "No collections in this recording" });
  await expect(said).toBeVisible();
  const [above, below] = [await grid(page, "Collections").boundingBox(), await said.boundingBox()];
  expect((below?.y ?? 0) - (above?.y ?? 0)).toBeLessThan(40);
});

test("in a small window the palette has the switches that the bar leaves out", async ({ page }) => {
  await page.setViewportSize({ width: 1024, height: 700 });
  await open(page, "demo");
  await expect(page.getByRole("group", { name: "Colour by" })).toBeHidden();
  for (const [typed, shows] of [["colour by duration", /&c=duration/], ["colour by family", /^(?!.*&c=)/]] as const) {
    await page.keyboard.press("Control+KeyK");
    await page.keyboard.type(typed);
    await page.keyboard.press("Enter");
    await expect.poll(() => addressIn(page)).toMatch(shows);
  }
  await page.keyboard.press("Control+KeyK");
  await page.keyboard.type("times of the clock");
  await page.keyboard.press("Enter");
  await expect(page.getByText("clock, UTC")).toBeVisible();
});

for (const [width, height] of [[1024, 700], [1280, 720]] as const) {
  test(`at ${width} × ${height} all keys can be seen, and what names lanes and threads can be read`, async ({ page }) => {
    await page.setViewportSize({ width, height });
    await open(page, "anthill", "t=1332409000..1368409000");
    const isCut = (at: Element) => at.scrollWidth > at.clientWidth || at.scrollHeight > at.clientHeight;
    await page.keyboard.press("Shift+Slash");
    const help = page.getByRole("dialog", { name: "Keys" });
    await expect(help).toContainText("double-click");
    expect(await help.evaluate(isCut)).toBe(false);
    await page.keyboard.press("Escape");
    await page.getByRole("tab", { name: "Lanes", exact: true }).click();
    const labels = page.locator(".lane-line label span");
    await expect(labels.first()).toBeVisible();
    expect(await labels.evaluateAll((all) => all.filter((one) => one.scrollWidth > one.clientWidth).map(({ textContent }) => textContent))).toEqual([]);
    // Workers differ in the last letter.
    await showTable(page, "Top spans");
    const cell = page.getByRole("grid", { name: "Longest spans" }).getByRole("gridcell", { name: /^Typhon\.Worker-\d$/ }).first();
    await expect(cell).toBeVisible();
    expect(await cell.evaluate(isCut)).toBe(false);
  });
}

test("an emptied search says nothing of what was in it", async ({ page }) => {
  await open(page, "anthill");
  const field = page.getByRole("textbox", { name: "Search spans, fields, ticks" });
  await field.fill("knd=1");
  const result = page.locator(".search-result");
  await expect(result).toHaveText("not understood");
  // At once, before the field is next drawn: not when a pause in the typing is over.
  const now = await field.evaluate(async (input: HTMLInputElement) => {
    input.value = "";
    input.dispatchEvent(new InputEvent("input", { bubbles: true }));
    await new Promise((resolve) => setTimeout(resolve, 30));
    return document.querySelector(".search-result")?.textContent;
  });
  expect(now).toBe("/");
});

test("a legend leaves out what it has no room for", async ({ page }) => {
  await page.setViewportSize({ width: 1024, height: 1500 });
  await open(page, "gc");
  const legends = page.locator(".tl-legend");
  await expect(legends.first()).toBeVisible();
  const cut = await legends.evaluateAll((all) =>
    all.flatMap((legend) => {
      const box = legend.getBoundingClientRect();
      const seen = [...legend.children].map((one) => ({ text: one.textContent, at: one.getBoundingClientRect() })).filter(({ at }) => at.top < box.bottom - 1);
      return seen.filter(({ at }) => at.right > box.right + 0.5 || at.bottom > box.bottom + 0.5).map(({ text }) => text);
    }),
  );
  expect(cut).toEqual([]);
});
