import type { Page } from "@playwright/test";
import { HOSTILE, dump } from "./traces";
import { accessible, addressIn, addressOf, drawn, expect, exported, grid, open, showTable, shownRows, test } from "./page";
import { visible } from "../src/format";

const TABLES = ["Statistics", "Top spans", "Ticks", "Collections", "Gauges", "Search results"];
const DETAILS = ["Inspector", "Bookmarks", "Notices", "Lanes"];

async function setTheme(page: Page, theme: "dark" | "light"): Promise<void> {
  await page.keyboard.press("Control+KeyK");
  await page.keyboard.type(`${theme} theme`);
  await page.keyboard.press("Enter");
  await expect(page.locator("html")).toHaveAttribute("data-theme", theme);
}

/** What stands under another theme is the same, so there only the colours are looked at. */
const THEMES = [
  ["dark", "all"],
  ["light", "colours"],
] as const;

test("every panel is accessible, in both themes", async ({ page }) => {
  const [query] = dump("anthill", "--where", "name=EcsQueryExecute", "--sort", "dur", "--limit", "1");
  await open(page, "anthill", `t=1332409000..1368409000&e=${query.event}&f=name%3DAntUpdate`);
  await expect(page.locator(`.inspector[data-event="${query.event}"]`)).toBeVisible();
  for (const [theme, rules] of THEMES) {
    await setTheme(page, theme);
    await accessible(page, `${theme}: the whole page`, ["html"], rules);
    for (const [at, tab] of TABLES.entries()) {
      await showTable(page, tab);
      const detail = DETAILS[at];
      if (detail !== undefined) await page.getByRole("tab", { name: detail, exact: true }).click();
      await drawn(page);
      await accessible(page, `${theme}: ${tab}, ${detail ?? "as before"}`, ['[data-panel="bottom"]', '[data-panel="inspector"]'], rules);
    }
  }
});

test("palette, keys, opening, a faulty filter and a cut file are accessible, in both themes", async ({ page }) => {
  await open(page, "cut");
  for (const [theme, rules] of THEMES) {
    await setTheme(page, theme);
    await accessible(page, `${theme}: cut file`, ["html"], rules);
    for (const [key, name] of [["Control+KeyK", "Commands"], ["Shift+Slash", "Keys"]] as const) {
      await page.keyboard.press(key);
      await expect(page.getByRole("dialog", { name })).toBeVisible();
      await accessible(page, `${theme}: ${name}`, [".float"], rules);
      await page.keyboard.press("Escape");
    }
    await page.getByRole("button", { name: "Open a trace" }).click();
    await expect(page.getByRole("dialog", { name: "Open a trace" }).locator("li").first()).toBeVisible();
    await accessible(page, `${theme}: open`, [".float"], rules);
    await page.keyboard.press("Escape");
    const field = page.getByRole("textbox", { name: "Search spans, fields, ticks" });
    await field.fill("knd=1");
    await expect(page.locator("#search-fault")).toBeVisible();
    await accessible(page, `${theme}: faulty filter`, [".title-bar"], rules);
    await field.fill("");
    await field.blur();
  }
});

for (const [theme, rules] of THEMES) {
  test(`empty, opening, failed, cancelled, lost and refused have screens of their own in ${theme}`, async ({ page }) => {
    await page.emulateMedia({ colorScheme: theme });
    const check = async (title: string | RegExp) => {
      await page.evaluate((value) => (document.documentElement.dataset["theme"] = value), theme);
      await expect(page.getByRole("heading", { level: 1 })).toHaveText(title);
      await accessible(page, `${theme}: ${title}`, ["html"], rules);
    };
    await page.goto(addressOf("empty"));
    await check("Open a trace");
    await page.getByRole("button", { name: "Open trace", exact: true }).click();
    await expect(page.getByRole("dialog", { name: "Open a trace" })).toBeVisible();
    await page.keyboard.press("Escape");

    // States that last milliseconds, or need a broken disk: the server is real, the state in its messages is replaced.
    let state: Record<string, unknown> = { is: "opening", bytesDone: 458_752_000, bytesTotal: 1_092_616_192, bytesPerSecond: 432_013_312, remainingMs: 1500 };
    await page.routeWebSocket(/\/api\/v1\/ws$/, (socket) => {
      const server = socket.connectToServer();
      server.onMessage((message) => {
        if (typeof message !== "string") return socket.send(message);
        const told = JSON.parse(message);
        for (const session of [...(told.sessions ?? []), ...(told.session?.id ? [told.session] : [])]) session.state = state;
        socket.send(JSON.stringify(told));
      });
    });
    await page.route(/\/meta$/, (route) => route.fulfill({ status: 409, contentType: "application/problem+json", body: JSON.stringify({ status: 409, code: "not-ready", detail: "the file is still being indexed" }) }));
    await page.goto(`${addressOf("full")}&s=1`);
    await page.reload();
    await check("demo.typhon-trace");
    await expect(page.getByText("438 MiB of 1.02 GiB · 412 MiB/s · 1.50\u202fs left".replaceAll(" MiB", "\u202fMiB").replace(" GiB", "\u202fGiB"))).toBeVisible();
    await expect(page.getByRole("button", { name: "Cancel" })).toBeVisible();
    state = { is: "failed", detail: "block 17 at offset 4,139,536: the file was cut while it was read; open it again" };
    await page.reload();
    await check("demo.typhon-trace cannot be shown");
    await expect(page.getByText("offset 4,139,536")).toBeVisible();
    state = { is: "cancelled" };
    await page.reload();
    await check("Reading demo.typhon-trace was stopped");
    await page.evaluate(() => sessionStorage.setItem("typhon-token", "0".repeat(64)));
    await page.unrouteAll({ behavior: "ignoreErrors" });
    await page.reload();
    await check("This address lacks the token of the running typhon ui");
  });
}

test("the address of a session that is gone leads to what can be opened", async ({ page }) => {
  await page.goto(`${addressOf("full")}&s=999`);
  await expect(page.getByRole("heading", { name: "Open a trace" })).toBeVisible();
});

test("a file that is dropped on the page is answered, and the page stays", async ({ page }) => {
  await open(page, "gc");
  const before = await addressIn(page);
  const dropped = (type: string) =>
    page.evaluate((of) => document.body.dispatchEvent(new DragEvent(of, { bubbles: true, cancelable: true })), type);
  // A browser leaves the page for a file unless the page prevents it, on both.
  for (const type of ["dragover", "drop"]) expect(await dropped(type), `${type} goes on to the browser`).toBe(false);
  await expect(page.getByText("use Open trace, or typhon ui FILE")).toBeVisible();
  await drawn(page);
  expect(await addressIn(page)).toBe(before);
});

test("names from a trace are text, whatever is in them", async ({ page }) => {
  await page.addInitScript(() => {
    const created = document.createElement.bind(document);
    (window as unknown as { made: string[] }).made = [];
    document.createElement = ((name: string, ...rest: []) => {
      (window as unknown as { made: string[] }).made.push(name.toLowerCase());
      return created(name, ...rest);
    }) as typeof document.createElement;
  });
  await open(page, "hostile");
  const panel = await showTable(page, "Statistics");
  await page.getByRole("group", { name: "Group by" }).getByRole("button", { name: "System" }).click();
  await drawn(page);
  await shownRows(grid(page, "Statistics by system"));
  const names = (await exported(page, panel, "TSV")).split("\n").map((line) => line.split("\t")[0]);
  for (const [, text] of HOSTILE) expect(names).toContain(visible(text));
  await page.locator('[role="row"]', { hasText: visible(HOSTILE[0]?.[1] ?? "") }).first().click();
  await expect(page.locator(".inspector[data-event]")).toBeVisible();
  await page.getByRole("tab", { name: "Lanes" }).click();
  await expect(page.locator(".lane-line", { hasText: "<script>" })).toBeVisible();
  await page.keyboard.press("Control+KeyK");
  await page.keyboard.type("find <script");
  await expect(page.getByRole("option").first()).toContainText("<script>\\x1b]0;xy");
  await page.keyboard.press("Enter");
  await expect(page.locator(".search-result")).toContainText("hits");
  await drawn(page);
  const made = await page.evaluate(() => (window as unknown as { made: string[] }).made);
  expect(made.filter((name) => name === "script" || name === "img")).toEqual([]);
  // Nothing invisible is left in the texts of the page.
  expect(await page.locator("body").innerText()).not.toMatch(/[\u0000-\u0008\u001b\u202e]/);
});

test("at 200 % nothing is cut off: the smallest layout has the same content", async ({ page }) => {
  await page.setViewportSize({ width: 960, height: 540 });
  await open(page, "anthill");
  await showTable(page, "Ticks");
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(960);
  await accessible(page, "960 × 540");
});
