/**
 * Draws the pictures of docs/workbench.md: `cargo xtask ui-test --project=pictures`. They are recordings of the page with a
 * real trace, not part of the tests: another machine draws letters a little differently.
 */

import type { ChildProcess } from "node:child_process";
import { copyFileSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Page } from "@playwright/test";
import { drawn, openAt, test } from "./page";
import { serve } from "./setup";
import { ROOT, WORK, dump, json, pathOf, typhon } from "./traces";

const FOLDER = join(ROOT, "docs/workbench");

test.use({ viewport: { width: 1440, height: 810 } });
test.describe.configure({ mode: "serial" });

/** A picture of the page as WebP, which the browser itself encodes; what is in the repository is to stay small. */
async function draw(page: Page, name: string): Promise<void> {
  await drawn(page);
  await page.mouse.move(2, 2);
  await page.waitForTimeout(300);
  const png = (await page.screenshot()).toString("base64");
  const canvas = await page.context().newPage();
  const webp = await canvas.evaluate(async (data) => {
    const image = new Image();
    image.src = `data:image/png;base64,${data}`;
    await image.decode();
    const surface = document.createElement("canvas");
    [surface.width, surface.height] = [image.naturalWidth, image.naturalHeight];
    surface.getContext("2d")?.drawImage(image, 0, 0);
    return surface.toDataURL("image/webp", 0.7).split(",")[1] ?? "";
  }, png);
  await canvas.close();
  mkdirSync(FOLDER, { recursive: true });
  writeFileSync(join(FOLDER, `${name}.webp`), Buffer.from(webp, "base64"));
}

async function choose(page: Page, command: string): Promise<void> {
  await page.keyboard.press("Control+KeyK");
  await page.keyboard.type(command);
  await page.keyboard.press("Enter");
}

test("pictures", async ({ page }) => {
  test.setTimeout(300_000);
  const colony = join(WORK, "colony.typhon-trace");
  typhon("demo", "--gc", "--ticks", "600", "--ants", "20000", "-o", colony, "--force");
  if (json("trace", "stats", colony, "--where", "kind=GcStart", "--by", "kind").rows.length === 0) throw new Error("no collections: cargo xtask dotnet, and DOTNET_ROOT as in docs/demo.md");
  const { server, url } = await serve("pictures", colony);
  await openAt(page, url, 1, "colony");
  await draw(page, "1-opened");
  // Step 2: the slowest tick.
  const { ticks } = json("trace", "stats", colony);
  await choose(page, `:tick ${ticks.worst[0].tick}`);
  await draw(page, "2-slowest-tick");
  // Step 3: its longest system.
  const found = typhon("trace", "dump", colony, "--json", "--where", `kind=SchedulerChunk tick=${ticks.worst[0].tick}`, "--sort", "dur", "--limit", "1");
  const longest = JSON.parse(found.split("\n")[0] ?? "");
  await page.evaluate((event) => (location.hash = `${location.hash.replace(/^#/, "")}&e=${event}`), longest.event);
  await page.locator(`.inspector[data-event="${longest.event}"]`).waitFor();
  await draw(page, "3-inspector");
  await page.getByRole("tab", { name: "Ticks", exact: true }).click();
  await choose(page, "light theme");
  await page.keyboard.press("0");
  await draw(page, "5-ticks-light");
  await choose(page, "dark theme");
  stop(server);
  // Recordings of the reference engine and of a .NET program, and one that was cut, where a user may have it.
  const folder = join(tmpdir(), "recordings");
  mkdirSync(folder, { recursive: true });
  const copies = (["anthill", "gc", "cut"] as const).map((trace) => {
    copyFileSync(pathOf(trace), join(folder, `${trace}.typhon-trace`));
    return join(folder, `${trace}.typhon-trace`);
  });
  const others = await serve("pictures", ...copies);
  const show = (trace: "anthill" | "gc" | "cut", link = "") => openAt(page, others.url, ["anthill", "gc", "cut"].indexOf(trace) + 1, trace, link);
  const [pause] = dump("gc", "--kind", "GcSuspension", "--sort", "dur", "--limit", "1");
  // Times of the command line begin at the first record, which is where this axis begins as well.
  await show("gc", `t=${Math.max(pause.ts - 4 * pause.dur, 0)}..${pause.ts + 8 * pause.dur}&v=inspector,collections`);
  await choose(page, "dark theme");
  await draw(page, "4-collections");
  await show("anthill");
  await page.getByRole("textbox", { name: "Search spans, fields, ticks" }).fill("name=SpiderUpdate dur>100us");
  await page.getByRole("button", { name: "List" }).click();
  await draw(page, "6-search");
  await page.keyboard.press("Escape");
  await page.keyboard.press("Control+KeyK");
  await page.keyboard.type("tick");
  await draw(page, "7-palette");
  await page.keyboard.press("Escape");
  await show("cut", "v=notices,statistics");
  await draw(page, "8-cut-file");
  // The view of the design's pictures.
  const [query] = dump("anthill", "--where", "name=EcsQueryExecute", "--sort", "dur", "--limit", "1");
  for (const theme of ["dark", "light"]) {
    await show("anthill", `t=1332409000..1368409000&e=${query.event}&v=inspector,statistics`);
    await choose(page, `${theme} theme`);
    await draw(page, `9-anthill-${theme}`);
  }
  stop(others.server);
  rmSync(folder, { recursive: true });
});

function stop(server: ChildProcess): void {
  server.removeAllListeners("exit");
  server.kill("SIGTERM");
}
