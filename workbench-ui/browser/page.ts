/** What the tests do with the page. */

import { readFileSync } from "node:fs";
import AxeBuilder from "@axe-core/playwright";
import { type Locator, type Page, expect, test as base } from "@playwright/test";
import { type Document, STATE, TRACES, type Trace } from "./traces";

declare global {
  interface Window {
    __stillFrames?: number;
  }
}

interface Fixtures {
  /** Faults that the page reported; a test in which there are some has failed. */
  faults: string[];
}

export const test = base.extend<Fixtures>({
  faults: [
    async ({ page }, use) => {
      const faults: string[] = [];
      page.on("pageerror", (error) => faults.push(`${error.message}\n${error.stack}`));
      page.on("console", (message) => {
        if (message.type() === "error" && !message.text().startsWith("Failed to load resource")) faults.push(message.text());
      });
      await use(faults);
      expect(faults, "the page reported faults").toEqual([]);
    },
    { auto: true },
  ],
});
export { expect };

export function addressOf(server: "full" | "empty"): string {
  return JSON.parse(readFileSync(STATE, "utf8"))[server];
}

/** Opens a trace, with a link as the page makes them, and waits until the window that it asks for is drawn. */
export async function open(page: Page, trace: Trace, link = ""): Promise<void> {
  await openAt(page, addressOf("full"), TRACES.indexOf(trace) + 1, trace, link);
}

/** Opens one of the sessions of a server. */
export async function openAt(page: Page, url: string, session: number, trace: string, link = ""): Promise<void> {
  // The page loads itself again when only its token changes, at a moment that nothing here could wait for.
  if (page.url() !== "about:blank") await page.goto("about:blank");
  await page.goto(`${url}&s=${session}${link === "" ? "" : `&${link}`}`);
  await expect(page.getByRole("tab", { name: `${trace}.typhon-trace` })).toHaveAttribute("aria-selected", "true");
  await drawn(page);
  const asked = /(?:^|&)t=([\d.]+)\.\.([\d.]+)/.exec(link);
  // An event of the link may lie elsewhere, and then is moved to.
  if (asked === null || link.includes("e=")) return;
  const [fromNs, toNs] = asked.slice(1).map(Number);
  const drawnWindow = await page.evaluate(() => window.__typhon?.window());
  expect([Math.round(drawnWindow?.fromNs ?? -1), Math.round(drawnWindow?.toNs ?? -1)], "the window of the link").toEqual([fromNs, toNs]);
}

/** Frames in a row in which nothing is missing: what a click sets off begins in the next frame or two. */
const STILL_FRAMES = 4;

/** Waits until the page is at rest: all tiles drawn, nothing moves, the address bar is up to date, and the panels have their answers. */
export async function drawn(page: Page): Promise<void> {
  await page.evaluate(() => (window.__stillFrames = 0));
  await page.waitForFunction(
    (least) => {
      window.__stillFrames = window.__typhon?.isComplete() === true && window.__typhon.isInAddress() ? (window.__stillFrames ?? 0) + 1 : 0;
      return window.__stillFrames >= least;
    },
    STILL_FRAMES,
    { polling: "raf" },
  );
  await expect(page.locator(".busy-line")).toHaveCount(0);
}

/** Colours of the canvas at points of the page, and the system's own. */
export async function pixels(page: Page, points: readonly { x: number; y: number }[], of = ".tl-canvas"): Promise<{ at: string[]; canvas: string; text: string }> {
  return page.evaluate(([all, selector]) => {
    const canvas = document.querySelector<HTMLCanvasElement>(selector);
    const context = canvas?.getContext("2d");
    const { left, top } = canvas?.getBoundingClientRect() ?? { left: 0, top: 0 };
    const hex = (parts: ArrayLike<number>) => [0, 1, 2].map((at) => (parts[at] ?? 0).toString(16).padStart(2, "0")).join("");
    const probe = document.body.appendChild(document.createElement("i"));
    const system = (keyword: string) => {
      probe.style.color = keyword;
      return hex((getComputedStyle(probe).color.match(/\d+/g) ?? []).map(Number));
    };
    const ratio = devicePixelRatio;
    const at = all.map(({ x, y }) => hex(context?.getImageData(Math.floor((x - left) * ratio), Math.floor((y - top) * ratio), 1, 1).data ?? []));
    const found = { at, canvas: system("Canvas"), text: system("CanvasText") };
    probe.remove();
    return found;
  }, [points, of] as const);
}

/** A colour of the page's tokens, as {@link pixels} gives colours. */
export async function token(page: Page, name: string): Promise<string> {
  const value = await page.evaluate((of) => getComputedStyle(document.documentElement).getPropertyValue(of).trim(), `--${name}`);
  const digits = value.replace("#", "").toLowerCase();
  return digits.length === 3 ? [...digits].map((digit) => digit + digit).join("") : digits.slice(0, 6);
}

/** Colours from one point to another, a CSS pixel apart. */
export async function line(page: Page, from: { x: number; y: number }, to: { x: number; y: number }, of = ".tl-canvas"): Promise<string[]> {
  const steps = Math.round(Math.max(Math.abs(to.x - from.x), Math.abs(to.y - from.y)));
  const points = Array.from({ length: steps }, (_, at) => ({ x: from.x + ((to.x - from.x) * at) / steps, y: from.y + ((to.y - from.y) * at) / steps }));
  return (await pixels(page, points, of)).at;
}

/** A document of the server about the session of a trace. */
export async function asked(page: Page, trace: Trace, path: string): Promise<Document> {
  return page.evaluate(
    async (address) => (await fetch(address, { headers: { Authorization: `Bearer ${sessionStorage.getItem("typhon-token")}` } })).json(),
    `/api/v1/sessions/${TRACES.indexOf(trace) + 1}/${path}`,
  );
}

/** Where the tracks of the timeline are on the page; of one by the beginning of its key. */
export async function trackOf(page: Page, key: string): Promise<{ key: string; x: number; y: number; width: number; height: number }> {
  const found = (await page.evaluate(() => window.__typhon?.tracks() ?? [])).find((track) => track.key.startsWith(key));
  if (found === undefined) throw new Error(`no track ${key}`);
  return found;
}

/** Where a moment of the session's axis is on the page. */
export async function xOf(page: Page, ns: number): Promise<number> {
  const { x, width } = await trackOf(page, "");
  const shown = await page.evaluate(() => window.__typhon?.window());
  if (!shown) throw new Error("nothing is drawn");
  return x + ((ns - shown.fromNs) / (shown.toNs - shown.fromNs)) * width;
}

/** The window in the timeline's head holds a tick. */
export async function showsTick(page: Page, tick: number): Promise<void> {
  const text = page.locator('[data-panel="timeline"] .tabs-right');
  const range = async () => {
    const [, from, to] = /ticks? ([\d,]+)(?:–([\d,]+))?$/.exec((await text.textContent()) ?? "") ?? [];
    const number = (part: string | undefined) => Number(part?.replaceAll(",", ""));
    return from !== undefined && number(from) <= tick && tick <= number(to ?? from);
  };
  await expect.poll(range, { message: `tick ${tick} is in the window` }).toBe(true);
}

export function grid(page: Page, label: string): Locator {
  return page.getByRole("grid", { name: label, exact: true });
}

/** Rows of a table as they are shown, cell by cell. */
export async function shownRows(table: Locator): Promise<string[][]> {
  await expect(table.locator('.table-body [role="row"]').first()).toBeVisible();
  return table.locator('.table-body [role="row"]').evaluateAll((rows) =>
    rows
      .sort((a, b) => Number(a.getAttribute("aria-rowindex")) - Number(b.getAttribute("aria-rowindex")))
      .map((row) => [...row.querySelectorAll('[role="gridcell"]')].map((cell) => cell.textContent ?? "")),
  );
}

/** All rows of the table in a panel, as a program gets them. */
export async function exported(page: Page, panel: Locator, format: "JSON" | "CSV" | "TSV" | "Markdown" = "JSON"): Promise<string> {
  await panel.getByRole("button", { name: "Export" }).first().click();
  const download = page.waitForEvent("download");
  await page.getByRole("menuitem", { name: `Download ${format}` }).click();
  return readFileSync(await (await download).path(), "utf8");
}

export async function exportedRows(page: Page, panel: Locator): Promise<Record<string, string | number | null>[]> {
  return JSON.parse(await exported(page, panel));
}

/** What a click puts into the clipboard, which a page fills in its own time. */
export async function copied(page: Page, click: () => Promise<void>): Promise<string> {
  const text = () => page.evaluate(() => navigator.clipboard.readText());
  await page.evaluate(() => navigator.clipboard.writeText(""));
  await click();
  await expect.poll(text).not.toBe("");
  return text();
}

/** The address bar as the page itself has it: what the test is told of it comes later. */
export function addressIn(page: Page): Promise<string> {
  return page.evaluate(() => location.href);
}

export async function showTable(page: Page, tab: string): Promise<Locator> {
  const button = page.getByRole("tab", { name: tab, exact: true });
  if ((await button.getAttribute("aria-selected")) !== "true") await button.click();
  await drawn(page);
  return page.locator('[data-panel="bottom"]');
}

const TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
/** Of axe's rules, those whose answer depends on colours. */
const COLOUR_RULES = ["color-contrast", "link-in-text-block"];

/** No serious fault of accessibility, on the whole screen or in parts of it; or only none of its colours. */
export async function accessible(page: Page, what: string, parts: readonly string[] = ["html"], rules: "all" | "colours" = "all"): Promise<void> {
  // The page has no frames, so axe need not open a page of its own to put their results together.
  const axe = parts.reduce((builder, part) => builder.include(part), new AxeBuilder({ page }).setLegacyMode(true));
  axe.options({ resultTypes: ["violations"] });
  const { violations } = await (rules === "all" ? axe.withTags(TAGS) : axe.withRules(COLOUR_RULES)).analyze();
  // The gutter's chevrons and pins are as high as their tracks; the tab Lanes has the same switches, 24 px high.
  const isExcused = (id: string, html: string) => id === "target-size" && /class="tl-(chevron|pin)/.test(html);
  const serious = violations
    .map((fault) => ({ ...fault, nodes: fault.nodes.filter(({ html }) => !isExcused(fault.id, html)) }))
    .filter(({ nodes }) => nodes.length > 0)
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .map(({ id, nodes }) => `${id}: ${nodes.map(({ html, failureSummary }) => `${html.slice(0, 160)} ${failureSummary?.split("\n").slice(1, 2).join("")}`).join("\n    ")}`);
  expect(serious, what).toEqual([]);
}
