import { count } from "../src/format";
import { drawn, exportedRows, expect, grid, open, test } from "./page";
import { dump, json, pathOf } from "./traces";

const FILTERS = ["name=AntUpdate", "kind=Ecs* dur>100us", "thread~Worker dur>50us", "tick=9", "field.resultCount>100 | kind=GcStart", "AntUpdate !dur>1ms"];

test("hits are counted exactly, as typhon trace stats --where counts them", async ({ page }) => {
  await open(page, "anthill");
  await page.keyboard.press("/");
  const field = page.getByRole("textbox", { name: "Search spans, fields, ticks" });
  await expect(field).toBeFocused();
  for (const filter of FILTERS) {
    const { rows } = json("trace", "stats", pathOf("anthill"), "--where", filter, "--by", "kind", "--top", "0");
    const expected = rows.reduce((sum: number, row: { count: number }) => sum + row.count, 0);
    await field.fill(filter);
    await expect(page.locator(".search-result"), filter).toContainText(`${count(expected)} ${expected === 1 ? "hit" : "hits"}`);
  }
});

test("the list has every hit in order of time; N and Shift N walk it", async ({ page }) => {
  await open(page, "anthill");
  await page.keyboard.press("/");
  await page.keyboard.type("name=SpiderUpdate dur>100us");
  const expected = dump("anthill", "--where", "name=SpiderUpdate dur>100us").sort((a, b) => a.ts - b.ts);
  expect(expected.length).toBeGreaterThan(3);
  await page.getByRole("button", { name: "List" }).click();
  const table = grid(page, "Hits");
  await expect(table).toHaveAttribute("aria-rowcount", String(expected.length + 1));
  const rows = await exportedRows(page, page.locator('[data-panel="bottom"]'));
  expect(rows.map(({ event, tick, durationNs }) => [event, tick, durationNs])).toEqual(expected.map(({ event, tick, dur }) => [event, tick, dur]));
  await page.locator('[data-panel="bottom"] [role="tab"][aria-selected="true"]').focus();
  const inspector = page.locator(".inspector[data-event]");
  for (const at of [0, 1, 2]) {
    await page.keyboard.press("n");
    await expect(inspector).toHaveAttribute("data-event", expected[at].event);
    await expect(page.locator(".search-result")).toContainText(`${at + 1} of ${expected.length}`);
  }
  await page.keyboard.press("Shift+N");
  await expect(inspector).toHaveAttribute("data-event", expected[1].event);
  await page.keyboard.press("Shift+N");
  await expect(inspector).toHaveAttribute("data-event", expected[0].event);
  // Before the first comes the last.
  await page.keyboard.press("Shift+N");
  await expect(page.locator(".search-result")).toContainText(`${expected.length} of ${expected.length}`);
  await expect(inspector).toHaveAttribute("data-event", expected[expected.length - 1].event);
});

test("Ctrl F goes to the field, Enter to the first hit at once and on from there, Shift Enter back", async ({ page }) => {
  await open(page, "anthill");
  await page.keyboard.press("Control+KeyF");
  await page.keyboard.type("name=SpiderUpdate dur>100us");
  await page.keyboard.press("Enter");
  const expected = dump("anthill", "--where", "name=SpiderUpdate dur>100us").sort((a, b) => a.ts - b.ts);
  const inspector = page.locator(".inspector[data-event]");
  await expect(inspector).toHaveAttribute("data-event", expected[0].event);
  await page.keyboard.press("Enter");
  await expect(inspector).toHaveAttribute("data-event", expected[1].event);
  await page.keyboard.press("Shift+Enter");
  await expect(inspector).toHaveAttribute("data-event", expected[0].event);
  // What is in the field is selected, so that typing replaces it.
  await page.keyboard.press("Control+KeyF");
  await page.keyboard.type("name=AntUpdate");
  await expect(page.getByRole("textbox", { name: "Search spans, fields, ticks" })).toHaveValue("name=AntUpdate");
});

test("the first hits are there before all are known, and Enter goes to the first of them", async ({ page }) => {
  let letGo: (() => void) | undefined;
  await page.routeWebSocket(/\/api\/v1\/ws$/, (socket) => {
    const server = socket.connectToServer();
    server.onMessage((message) => {
      if (typeof message === "string" && message.includes('"filterReady"')) letGo = () => socket.send(message);
      else socket.send(message);
    });
  });
  await open(page, "anthill", "v=inspector,search");
  const filter = "dur>100us";
  const expected = dump("anthill", "--where", filter).sort((a, b) => a.ts - b.ts);
  expect(expected.length).toBeGreaterThan(100);
  await page.keyboard.press("/");
  await page.keyboard.type(filter);
  await page.keyboard.press("Enter");
  const panel = page.locator('[data-panel="bottom"]');
  const inspector = page.locator(".inspector[data-event]");
  await expect(inspector).toHaveAttribute("data-event", expected[0].event);
  await expect(panel).toContainText("searching; the first 100");
  await expect(page.locator(".search-result")).toContainText("%");
  const rows = await exportedRows(page, panel);
  expect(rows.map(({ event }) => event)).toEqual(expected.slice(0, 100).map(({ event }) => event));
  // Among them one goes as later among all.
  const field = page.getByRole("textbox", { name: "Search spans, fields, ticks" });
  await field.press("Enter");
  await field.press("Enter");
  await expect(inspector).toHaveAttribute("data-event", expected[2].event);
  await page.getByRole("grid", { name: "Tracks" }).focus();
  for (const [key, at] of [["n", 3], ["Shift+N", 2], ["Shift+N", 1], ["Shift+N", 0], ["Shift+N", 0]] as const) {
    await page.keyboard.press(key);
    await expect(inspector, `${key} to ${at}`).toHaveAttribute("data-event", expected[at].event);
  }
  await expect.poll(() => letGo !== undefined).toBe(true);
  letGo?.();
  await expect(page.locator(".search-result")).toContainText(`1 of ${count(expected.length)}`);
  await expect(panel).toContainText(`${count(expected.length)} hits in the trace`);
  await expect(grid(page, "Hits")).not.toHaveAttribute("aria-rowcount", "101");
  await expect(inspector).toHaveAttribute("data-event", expected[0].event);
  await field.press("Enter");
  await expect(inspector).toHaveAttribute("data-event", expected[1].event);
});

test("what comes late of a search is not for another session, nor for the next search", async ({ page }) => {
  let letGo: (() => void) | undefined;
  let isHeld = true;
  await page.routeWebSocket(/\/api\/v1\/ws$/, (socket) => {
    const server = socket.connectToServer();
    server.onMessage((message) => {
      if (isHeld && typeof message === "string" && message.includes('"filterReady"')) letGo = () => socket.send(message);
      else socket.send(message);
    });
  });
  await open(page, "anthill", "v=inspector,search");
  const field = page.getByRole("textbox", { name: "Search spans, fields, ticks" });
  await field.fill("dur>100us");
  const panel = page.locator('[data-panel="bottom"]');
  await expect(panel).toContainText("searching; the first 100");
  await expect.poll(() => letGo !== undefined).toBe(true);
  await page.getByRole("tab", { name: "gc.typhon-trace" }).click();
  await drawn(page);
  letGo?.();
  isHeld = false;
  // The answer to another question comes after it.
  await page.getByRole("tab", { name: "Statistics", exact: true }).click();
  await drawn(page);
  await expect(page.locator(".search-result kbd")).toHaveText("/");
  await expect(page.locator(".status-bar")).not.toContainText("hits");
  // A step whose answer comes when something else is searched for.
  await page.getByRole("tab", { name: "anthill.typhon-trace" }).click();
  await drawn(page);
  await field.fill("name=AntUpdate");
  await expect(page.locator(".search-result")).toContainText("hits");
  let answer = () => {};
  await page.route("**/search?*direction=*", (route) => void (answer = () => void route.continue()), { times: 1 });
  const step = page.waitForRequest("**/search?*direction=*");
  await page.getByRole("button", { name: "Next hit" }).click();
  await step;
  const answered = page.waitForResponse("**/search?*direction=*");
  await field.fill("name=SpiderUpdate");
  const expected = dump("anthill", "--where", "name=SpiderUpdate");
  await expect(page.locator(".search-result")).toContainText(`${count(expected.length)} hits`);
  answer();
  await answered;
  await drawn(page);
  await expect(page.locator(".inspector[data-event]")).toHaveCount(0);
  await expect(page.locator(".search-result")).toContainText(`${count(expected.length)} hits`);
});

test("a search without a connection says so, and goes when it is asked for again", async ({ page }) => {
  let isUp = true;
  const closings: (() => Promise<void>)[] = [];
  await page.routeWebSocket(/\/api\/v1\/ws$/, (socket) => {
    if (!isUp) return void socket.close();
    socket.connectToServer();
    closings.push(() => socket.close());
  });
  await open(page, "anthill");
  isUp = false;
  for (const close of closings) await close();
  const field = page.getByRole("textbox", { name: "Search spans, fields, ticks" });
  await field.fill("name=SpiderUpdate");
  await expect(page.locator(".search-result")).toHaveText("failed");
  await expect(page.locator("#search-fault")).toContainText("the connection to typhon ui is gone");
  isUp = true;
  // The page tries again by itself, after a while.
  await expect(async () => {
    await field.press("Enter");
    await expect(page.locator(".inspector[data-event]")).toContainText("SpiderUpdate", { timeout: 3000 });
  }).toPass();
});

test("Escape takes back an Enter whose search has not begun: a later search from elsewhere goes to no hit by itself", async ({ page }) => {
  await open(page, "anthill");
  let letGo = () => {};
  const held = new Promise<void>((resolve) => (letGo = resolve));
  await page.route("**/filters/check", async (route) => {
    await held;
    await route.continue();
  });
  await page.keyboard.press("/");
  await page.keyboard.type("name=SpiderUpdate");
  const asked = page.waitForRequest("**/filters/check");
  await page.keyboard.press("Enter");
  await asked;
  await page.keyboard.press("Escape");
  letGo();
  await page.keyboard.press("Control+KeyK");
  await expect(page.getByRole("combobox")).toBeFocused();
  await page.keyboard.type("Find AntUpdate");
  const steps: string[] = [];
  page.on("request", (request) => /\/search\?/.test(request.url()) && steps.push(request.url()));
  await page.keyboard.press("Enter");
  const expected = dump("anthill", "--where", "name=AntUpdate").sort((a, b) => a.ts - b.ts);
  await expect(page.locator(".search-result")).toContainText(`${count(expected.length)} hits`);
  await page.keyboard.press("n");
  await expect(page.locator(".search-result")).toContainText(`1 of ${count(expected.length)}`);
  await expect(page.locator(".inspector[data-event]")).toHaveAttribute("data-event", expected[0].event);
  expect(steps, "one step, that of N").toHaveLength(1);
});

test("a filter that is not understood says where, and what may be meant", async ({ page }) => {
  await open(page, "anthill");
  const field = page.getByRole("textbox", { name: "Search spans, fields, ticks" });
  await field.fill("dur>1ms knd=Foo");
  const alert = page.locator("#search-fault");
  await expect(alert).toContainText("knd");
  await expect(alert).toContainText("kind");
  await expect(page.locator(".search-under u")).toHaveText("knd");
  await expect(field).toHaveAttribute("aria-invalid", "true");
  await field.fill("name=AntUpdat");
  await page.locator(".search-more").getByRole("button", { name: "AntUpdate" }).click();
  await expect(field).toHaveValue("name=AntUpdate");
  await expect(page.locator(".search-result")).toContainText(`${count(dump("anthill", "--where", "name=AntUpdate").length)} hits`);
  await field.press("Escape");
  await expect(field).toHaveValue("");
  await expect(page.getByRole("grid", { name: "Tracks" })).toBeFocused();
  await expect(page.locator(".search-result kbd")).toHaveText("/");
});

test("what the filter before found is not shown for one that is not understood", async ({ page }) => {
  await open(page, "anthill");
  const field = page.getByRole("textbox", { name: "Search spans, fields, ticks" });
  await field.fill("name=AntUpdate");
  await expect(page.locator(".search-result")).toContainText("hits");
  await expect(page.locator(".status-bar")).toContainText("hits");
  await field.fill("kind=TickStrat");
  await expect(page.locator("#search-fault")).toContainText("did you mean `TickStart`?");
  await expect(page.locator(".search-result")).toHaveText("not understood");
  await expect(page.locator(".status-bar")).not.toContainText("hits");
  await field.fill("name=AntUpdate");
  await expect(page.locator(".search-result")).toContainText("hits");
});

test("isolated hits are all that the tables count", async ({ page }) => {
  await open(page, "anthill");
  const field = page.getByRole("textbox", { name: "Search spans, fields, ticks" });
  await field.fill("name=AntUpdate | name=SpiderUpdate");
  await page.getByRole("button", { name: "Isolate" }).click();
  const table = grid(page, "Statistics by name");
  await expect(table).toHaveAttribute("aria-rowcount", "3");
  await page.getByRole("button", { name: "Dim others" }).click();
  await expect(table).not.toHaveAttribute("aria-rowcount", "3");
});
