import { duration } from "../src/format";
import { addressIn, asked, drawn, expect, open, showsTick, test } from "./page";
import { json, pathOf } from "./traces";

async function windowText(page: import("@playwright/test").Page): Promise<string> {
  return (await page.locator('[data-panel="timeline"] .tabs-right').textContent()) ?? "";
}

test("without a mouse: the slowest tick, what ran in it, its inspector, and back", async ({ page }) => {
  await open(page, "demo");
  const { ticks } = json("trace", "stats", pathOf("demo"));
  const worst = ticks.worst[0];
  // The middle of the whole trace is some tick; G I lists ticks, the first row is the slowest.
  await page.keyboard.press("g");
  await page.keyboard.press("i");
  await expect(page.getByRole("tab", { name: "Ticks", exact: true })).toBeFocused();
  await page.keyboard.press("Tab");
  await expect(page.getByRole("grid", { name: "Ticks" })).toBeVisible();
  const row = page.getByRole("grid", { name: "Ticks" }).locator('[aria-rowindex="2"]');
  for (let step = 0; step < 20 && !(await row.evaluate((at) => at === document.activeElement)); step += 1) await page.keyboard.press("Tab");
  await expect(row).toBeFocused();
  await page.keyboard.press("Enter");
  await showsTick(page, worst.tick);
  await drawn(page);
  // F6 goes round the panels; the timeline's grid has one stop.
  for (let step = 0; step < 4 && !(await page.getByRole("grid", { name: "Tracks" }).evaluate((at) => at === document.activeElement)); step += 1) await page.keyboard.press("F6");
  await expect(page.getByRole("grid", { name: "Tracks" })).toBeFocused();
  await page.keyboard.press("ArrowDown");
  await expect(page.getByRole("grid", { name: "Tracks" })).toHaveAttribute("aria-activedescendant", /^cell-/);
  await page.keyboard.press("Enter");
  const inspector = page.locator(".inspector[data-event]");
  await expect(inspector).toBeVisible();
  const first = await inspector.getAttribute("data-event");
  const cell = await page.getByRole("grid", { name: "Tracks" }).getAttribute("aria-activedescendant");
  await page.keyboard.press("ArrowRight");
  await expect(page.getByRole("grid", { name: "Tracks" })).not.toHaveAttribute("aria-activedescendant", cell ?? "");
  await page.keyboard.press("Enter");
  await expect(inspector).not.toHaveAttribute("data-event", first ?? "");
  await page.goBack();
  await expect(inspector).toHaveAttribute("data-event", first ?? "");
  await page.getByRole("grid", { name: "Tracks" }).focus();
  await page.keyboard.press("Escape");
  await expect(page.getByText("Nothing is selected.")).toBeVisible();
});

test("keys go by position: zoom, pan, ticks, the whole trace", async ({ page }) => {
  await open(page, "demo");
  const whole = await windowText(page);
  const press = async (key: string) => {
    const before = await windowText(page);
    await page.keyboard.press(key);
    await expect.poll(() => windowText(page), { message: key }).not.toBe(before);
    // The motion has to come to rest before the next key is judged.
    await drawn(page);
  };
  for (const key of ["KeyW", "Equal", "KeyD", "KeyA", "Control+ArrowRight", "KeyS", "BracketRight", "BracketLeft", "Digit0", "Shift+BracketRight"]) await press(key);
  await press("Digit0");
  await expect.poll(() => windowText(page)).toBe(whole);
  const { ticks } = json("trace", "stats", pathOf("demo"));
  await page.keyboard.press("Control+KeyK");
  await page.keyboard.type(`:tick ${ticks.worst[0].tick}`);
  await expect(page.getByRole("option")).toContainText(`${duration(ticks.worst[0].durNs)}, the slowest`);
  await page.keyboard.press("Enter");
  await showsTick(page, ticks.worst[0].tick);
  await drawn(page);
  await page.keyboard.press("Shift+BracketLeft");
  await showsTick(page, ticks.worst[1].tick);
});

test("a key that moves the focus has moved it before the next key comes", async ({ page }) => {
  await open(page, "demo", "v=,");
  await page.getByRole("grid", { name: "Tracks" }).focus();
  // One task for each key, as the browser has them, and no frame in between.
  const found = await page.evaluate(async () => {
    const at: (string | undefined)[] = [];
    for (const key of ["g", "i", "F6", "F6"]) {
      const code = key.length === 1 ? `Key${key.toUpperCase()}` : key;
      document.activeElement?.dispatchEvent(new KeyboardEvent("keydown", { key, code, bubbles: true, cancelable: true }));
      const channel = new MessageChannel();
      await new Promise((next) => ((channel.port1.onmessage = next), channel.port2.postMessage(null)));
      at.push(document.activeElement?.closest<HTMLElement>("[data-panel]")?.dataset["panel"]);
    }
    return at;
  });
  expect(found).toEqual(["timeline", "bottom", "timeline", "inspector"]);
  await expect(page.getByRole("tab", { name: "Ticks", exact: true })).toHaveAttribute("aria-selected", "true");
});

test("the palette finds commands, lanes and names; the help sheet has every key; both give the focus back", async ({ page }) => {
  await open(page, "anthill");
  const tracks = page.getByRole("grid", { name: "Tracks" });
  await tracks.focus();
  await page.keyboard.press("Control+KeyK");
  await page.keyboard.type("light th");
  await expect(page.getByRole("option").first()).toHaveText("Light theme");
  await page.keyboard.press("Enter");
  await expect(page.locator("html")).toHaveAttribute("data-theme", "light");
  await expect(tracks).toBeFocused();
  await page.keyboard.press("Control+KeyK");
  await page.keyboard.type("find spiderup");
  await page.keyboard.press("Enter");
  await expect(page.locator(".search-result")).toContainText("hits");
  await page.keyboard.press("Control+KeyK");
  await page.keyboard.type("dark th");
  await page.keyboard.press("Enter");
  await expect(page.locator("html")).toHaveAttribute("data-theme", "dark");
  await page.keyboard.press("Shift+Slash");
  const help = page.getByRole("dialog", { name: "Keys" });
  await expect(help).toContainText("previous, next tick");
  for (let step = 0; step < 3; step += 1) {
    await page.keyboard.press("Tab");
    expect(await help.evaluate((at) => at.contains(document.activeElement))).toBe(true);
  }
  await page.keyboard.press("Escape");
  await expect(help).toHaveCount(0);
  await expect(tracks).toBeFocused();
});

test("Tab reaches every part and is never trapped", async ({ page }) => {
  await open(page, "anthill");
  const reached = new Set<string>();
  for (let step = 0; step < 250; step += 1) {
    await page.keyboard.press("Tab");
    reached.add(await page.evaluate(() => {
      const at = document.activeElement;
      if (at === null || at === document.body) return "outside";
      return at.closest("[data-panel]")?.getAttribute("data-panel") ?? (at.closest("header") ? "title" : "other");
    }));
  }
  for (const part of ["title", "timeline", "inspector", "bottom"]) expect([...reached], part).toContain(part);
});

test("views survive reloading and Back; links never hold the token", async ({ page }) => {
  await open(page, "anthill", "t=1332409000..1368409000");
  await page.getByRole("tab", { name: "Ticks", exact: true }).click();
  const field = page.getByRole("textbox", { name: "Search spans, fields, ticks" });
  await field.fill("name=AntUpdate");
  await expect(page.locator(".search-result")).toContainText("hits");
  await drawn(page);
  const address = await addressIn(page);
  expect(address).toContain("f=name%3DAntUpdate");
  expect(address).not.toContain("token");
  const before = await windowText(page);
  await page.reload();
  await drawn(page);
  await expect(field).toHaveValue("name=AntUpdate");
  await expect(page.getByRole("tab", { name: "Ticks", exact: true })).toHaveAttribute("aria-selected", "true");
  await expect.poll(() => windowText(page)).toBe(before);
  await page.keyboard.press("0");
  await expect.poll(() => windowText(page)).not.toBe(before);
  await drawn(page);
  await page.goBack();
  await expect.poll(() => windowText(page)).toBe(before);
});

test("what happens is said to screen readers", async ({ page }) => {
  await open(page, "anthill");
  const live = page.getByRole("status");
  await page.keyboard.press("]");
  await expect(live).toHaveText(/^Tick \d+$/);
  await page.getByRole("textbox", { name: "Search spans, fields, ticks" }).fill("name=AntUpdate");
  await expect(live).toHaveText(/^[\d,]+ hits$/);
});

test("arrow keys stay in the window: the slowest tick, down through all its rows, and the inspector", async ({ page }) => {
  await open(page, "anthill");
  const worst = json("trace", "stats", pathOf("anthill")).ticks.worst[0];
  await page.keyboard.press("Shift+BracketRight");
  // At once, while the window still moves to the tick.
  await page.keyboard.press("ArrowDown");
  await showsTick(page, worst.tick);
  await drawn(page);
  const tracks = page.getByRole("grid", { name: "Tracks" });
  await expect(tracks).toHaveAttribute("aria-activedescendant", /^cell-/);
  const shown = await page.evaluate(() => window.__typhon?.window());
  const inspector = page.locator(".inspector[data-event]");
  const lanes = new Set<string>();
  let events: string[] = [];
  for (let step = 0; step < 40; step += 1) {
    const cell = (await tracks.getAttribute("aria-activedescendant")) ?? "";
    lanes.add(cell.split("-")[1] ?? "");
    await page.keyboard.press("Enter");
    await expect(tracks.locator(`#${cell}`)).toHaveCount(1);
    await drawn(page);
    const event = (await inspector.getAttribute("data-event")) ?? "";
    if (event !== events[events.length - 1]) events = [...events, event];
    await page.keyboard.press("ArrowDown");
    await drawn(page);
    expect(await page.evaluate(() => window.__typhon?.window()), `the window after ${cell}`).toEqual(shown);
    if ((await tracks.getAttribute("aria-activedescendant")) === cell) break;
  }
  await expect(page.getByRole("status")).toHaveText("Nothing below is in the window");
  // Down to the last lane, past those that are idle; what was inspected on the way runs in the tick or reaches into what is shown of its neighbours.
  expect(lanes.size).toBeGreaterThan(2);
  expect(events.length).toBeGreaterThan(4);
  let ofTick = 0;
  const ticks: unknown[] = [];
  for (const event of events) {
    const { startNs, durationNs, tick } = await asked(page, "anthill", `event/${event}`);
    expect(startNs < (shown?.toNs ?? 0) && startNs + Math.max(durationNs ?? 0, 1) > (shown?.fromNs ?? 0), `${event} is in the window`).toBe(true);
    ofTick += tick === worst.tick ? 1 : 0;
    ticks.push([event, tick, startNs, durationNs]);
  }
  expect(ofTick, JSON.stringify(ticks)).toBeGreaterThan(events.length / 2);
});

test("characters that a layout writes at other positions do what they stand for; positions come first", async ({ page }) => {
  await open(page, "anthill");
  const worst = json("trace", "stats", pathOf("anthill")).ticks.worst;
  // As browsers report them on a German keyboard.
  type Press = { code: string; key: string; shiftKey?: boolean; ctrlKey?: boolean; altKey?: boolean; modifierAltGraph?: boolean };
  const press = (init: Press) => page.evaluate((event) => document.body.dispatchEvent(new KeyboardEvent("keydown", { ...event, bubbles: true, cancelable: true })), init);
  await press({ code: "Digit0", key: "}", modifierAltGraph: true });
  await showsTick(page, worst[0].tick);
  await drawn(page);
  await press({ code: "Digit7", key: "{", modifierAltGraph: true, ctrlKey: true, altKey: true });
  await showsTick(page, worst[1].tick);
  await drawn(page);
  await press({ code: "Digit9", key: "]", modifierAltGraph: true });
  await showsTick(page, worst[1].tick + 1);
  await drawn(page);
  // The plus of this keyboard is where a US keyboard has ].
  await press({ code: "BracketRight", key: "+" });
  await showsTick(page, worst[1].tick + 2);
  await press({ code: "Minus", key: "?", shiftKey: true });
  await expect(page.getByRole("dialog", { name: "Keys" })).toBeVisible();
});
