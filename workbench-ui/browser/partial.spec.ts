import type { Page } from "@playwright/test";
import { accessible, addressOf, asked, drawn, expect, line, open, openAt, test, token, trackOf } from "./page";
import { serve } from "./setup";
import { json, pathOf } from "./traces";

/** Half of the file is read, as far as the page is told: the server is real, the state in its messages is replaced. */
async function halfRead(page: Page): Promise<void> {
  await page.routeWebSocket(/\/api\/v1\/ws$/, (socket) => {
    const server = socket.connectToServer();
    server.onMessage((message) => {
      if (typeof message !== "string") return socket.send(message);
      const told = JSON.parse(message);
      for (const session of [...(told.sessions ?? []), ...(told.session?.id ? [told.session] : [])]) {
        session.state = { is: "opening", bytesDone: 1000, bytesTotal: 2000, bytesPerSecond: 100, remainingMs: 10_000 };
      }
      socket.send(JSON.stringify(told));
    });
  });
}

test("what is not read yet is hatched, and what is read can be used (B-3)", async ({ page }) => {
  await halfRead(page);
  await page.goto(`${addressOf("full")}&s=2`);
  const { durationNs } = json("trace", "info", pathOf("anthill")).time;
  // As long again as what is read: half of the bytes.
  await expect.poll(() => page.evaluate(() => (window.__typhon?.window()?.toNs ?? 0) / 2 / 1e9)).toBeGreaterThan(durationNs / 1e9 - 0.001);
  await expect(page.getByRole("progressbar", { name: "Reading the file" })).toHaveAttribute("aria-valuenow", "50");
  await expect(page.getByText("≈")).toBeVisible();
  await expect.poll(() => page.evaluate(() => (window.__typhon?.visibleEntries() ?? []).length)).toBeGreaterThan(10);
  const track = await trackOf(page, "thread:");
  const background = await token(page, "bg-canvas");
  const shares = async (from: number, to: number, y: number, of?: string) => {
    const colours = await line(page, { x: track.x + track.width * from, y }, { x: track.x + track.width * to, y }, of);
    return colours.filter((colour) => colour !== background).length / colours.length;
  };
  // Lines 6 px apart, at every height, and no bar.
  for (const y of [track.y + 3, track.y + 9, track.y + track.height - 5]) {
    await expect.poll(async () => {
      const share = await shares(0.6, 0.95, y);
      return share > 0.1 && share < 0.6;
    }, { message: `hatched at ${y}` }).toBe(true);
  }
  const bars = await page.evaluate(() => window.__typhon?.visibleEntries() ?? []);
  expect(bars.every(({ x, w }) => x + w <= track.x + track.width / 2 + 2)).toBe(true);
  // Ticks take the half that is read, and can be asked for.
  const strip = await page.locator(".tl-overview-canvas").boundingBox();
  const tip = page.getByRole("tooltip");
  const [x, y, width] = [strip?.x ?? 0, (strip?.y ?? 0) + 40, strip?.width ?? 1];
  await page.mouse.move(x + width * 0.45, y);
  const { counts } = json("trace", "info", pathOf("anthill"));
  await expect(tip).toContainText(`Tick ${Math.floor(0.9 * counts.ticks) + 1}`);
  await page.mouse.move(x + width * 0.75, y);
  await expect(tip).toHaveCount(0);
  await page.mouse.move(1, 1);
  // When it is read there is no hatch, and the end is known.
  await page.unrouteAll({ behavior: "ignoreErrors" });
  const plain = await page.context().newPage();
  await open(plain, "anthill");
  expect((await plain.evaluate(() => window.__typhon?.window()))?.toNs).toBeCloseTo((await asked(plain, "anthill", "meta")).time.endNs, 0);
  await expect(plain.getByText("≈")).toHaveCount(0);
});

test("sessions: a tab shows another recording, and stays there", async ({ page }) => {
  await open(page, "anthill");
  await page.getByRole("tab", { name: /gc\.typhon-trace/ }).click();
  await drawn(page);
  await expect(page.getByRole("tab", { name: /gc\.typhon-trace/ })).toHaveAttribute("aria-selected", "true");
  const { counts } = json("trace", "info", pathOf("gc"));
  await expect(page.locator(".status-bar")).toContainText(`${counts.records} events`);
});

test("recordings that were opened before are offered where none is open, with what they hold", async ({ page }) => {
  const first = await serve("recent", pathOf("anthill"));
  await openAt(page, first.url, 1, "anthill");
  await expect.poll(() => page.evaluate(async () => JSON.stringify(await (await fetch("/api/v1/settings", { headers: { Authorization: `Bearer ${sessionStorage.getItem("typhon-token")}` } })).json()))).toContain("anthill.typhon-trace");
  await page.goto("about:blank");
  first.server.removeAllListeners("exit");
  first.server.kill("SIGTERM");
  const second = await serve("recent");
  const other = await page.context().newPage();
  await other.goto(second.url);
  const line = other.getByRole("list", { name: "Opened before" }).getByRole("button");
  const { counts } = json("trace", "info", pathOf("anthill"));
  await expect(line).toHaveCount(1);
  await expect(line).toContainText("anthill.typhon-trace");
  await expect(line).toContainText(`${counts.ticks} ticks`);
  await accessible(other, "recordings that were opened before");
  await line.click();
  await drawn(other);
  await expect(other.locator(".status-bar")).toContainText("29,552 events");
  second.server.removeAllListeners("exit");
  second.server.kill("SIGTERM");
});
