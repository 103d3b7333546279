import type { ChildProcess } from "node:child_process";
import type { Page } from "@playwright/test";
import { addressIn, addressOf, drawn, expect, open, openAt, test } from "./page";
import { serve } from "./setup";
import { TRACES, pathOf } from "./traces";

const REFUSED = "This address lacks the token of the running typhon ui";
const LINK = "t=100000000..200000000";
const WRONG = "0".repeat(64);

const tokenOf = (page: Page) => page.evaluate(() => sessionStorage.getItem("typhon-token"));
const windowOf = (page: Page) => page.evaluate(() => window.__typhon?.window());
/** A page that gets a token loads itself again; what is asked of it before that is lost. */
const loadedAgain = (page: Page) => page.waitForEvent("load");

test("a copied link opens in a second tab of the browser, whatever old tabs answer (B-27, F-3)", async ({ page, context }) => {
  // A tab that an earlier run on this port left: it has a token, which this run does not accept.
  const origin = new URL(addressOf("full")).origin;
  const stale = await context.newPage();
  await stale.goto(`${origin}/#token=${WRONG}`);
  await expect(stale.getByRole("heading", { name: REFUSED })).toBeVisible();

  const getsIn = loadedAgain(stale);
  await open(page, "demo", LINK);
  const link = await addressIn(page);
  expect(link).toMatch(/#.*t=100000000\.\.200000000/);
  expect(link, "a link has no token").not.toContain("token");
  // Also the tab of the earlier run gets in, by itself.
  await getsIn;
  expect(await tokenOf(stale)).toBe(await tokenOf(page));
  await drawn(stale);
  await stale.evaluate((wrong) => sessionStorage.setItem("typhon-token", wrong), WRONG);
  const second = await context.newPage();
  await second.goto(link);
  await drawn(second);
  expect(await windowOf(second)).toEqual({ fromNs: 100_000_000, toNs: 200_000_000 });
  await expect(second.getByRole("tab", { name: `${TRACES[0]}.typhon-trace` })).toHaveAttribute("aria-selected", "true");
  expect(await addressIn(second)).not.toContain("token");
});

test("a link that no other tab can help with says how to get in, once", async ({ page }) => {
  await page.goto(`${new URL(addressOf("full")).origin}/#${LINK}`);
  await expect(page.getByRole("heading", { name: REFUSED })).toBeVisible();
  await expect(page.locator(".fact-card")).toContainText("Open the address that typhon ui printed");
  await expect(page.locator(".notice-bar")).toHaveCount(0);
});

test("a page whose request is refused for its token takes that of another tab and goes on where it was; it asks once", async ({ page, context }) => {
  await open(page, "demo", LINK);
  const valid = await tokenOf(page);
  let documents = 0;
  page.on("request", (request) => void (request.isNavigationRequest() && (documents += 1)));
  const other = await context.newPage();
  await open(other, "demo");
  await page.evaluate((wrong) => sessionStorage.setItem("typhon-token", wrong), WRONG);
  const goesOn = loadedAgain(page);
  await page.keyboard.press("]");
  // The window of the tick is asked for with the wrong token.
  await goesOn;
  await drawn(page);
  expect(documents).toBe(1);
  expect(await tokenOf(page)).toBe(valid);
  const shown = await windowOf(page);
  expect(shown, "the tick that was gone to").not.toEqual({ fromNs: 100_000_000, toNs: 200_000_000 });
  expect(Math.round(shown?.fromNs ?? 0)).toBeGreaterThan(90_000_000);
  expect(Math.round(shown?.toNs ?? 0)).toBeLessThan(210_000_000);

  // Nobody has one any more: the page says so, and neither asks nor loads itself again and again.
  await other.close();
  await page.evaluate(() => {
    const asked = ((window as unknown as { asked: number[] }).asked = [] as number[]);
    new BroadcastChannel("typhon-token").onmessage = ({ data }) => data.is === "question" && asked.push(1);
  });
  await page.evaluate((wrong) => sessionStorage.setItem("typhon-token", wrong), WRONG);
  await page.keyboard.press("]");
  await expect(page.getByRole("heading", { name: REFUSED })).toBeVisible();
  await page.waitForTimeout(3000);
  expect(await page.evaluate(() => (window as unknown as { asked: number[] }).asked.length)).toBe(1);
  expect(documents).toBe(1);
});

test("a page goes on by itself when the server was started anew and a tab has the new token", async ({ page, context }) => {
  const stop = (server: ChildProcess) => {
    server.removeAllListeners("exit");
    server.kill("SIGTERM");
  };
  let { server, url } = await serve("restarted", pathOf("anthill"));
  const port = new URL(url).port;
  const again = async () => {
    const ended = new Promise((resolve) => server.once("close", resolve));
    stop(server);
    await ended;
    ({ server, url } = await serve("restarted", "--port", port, pathOf("anthill")));
  };
  try {
    const [fromNs, toNs] = [1_332_409_000, 1_368_409_000];
    await openAt(page, url, 1, "anthill", `t=${fromNs}..${toNs}`);
    // The new tab opens after this one was refused…
    await again();
    await expect(page.getByRole("heading", { name: REFUSED })).toBeVisible();
    const getsIn = loadedAgain(page);
    const first = await context.newPage();
    await openAt(first, url, 1, "anthill");
    await getsIn;
    expect(await tokenOf(page)).toBe(await tokenOf(first));
    await drawn(page);
    expect(await windowOf(page)).toEqual({ fromNs, toNs });
    await first.close();
    // … or while this one has no connection to be refused by.
    let isUp = true;
    await page.routeWebSocket("**/api/v1/ws", (socket) => void (isUp ? socket.connectToServer() : socket.close()));
    await page.reload();
    await drawn(page);
    isUp = false;
    await again();
    const second = await context.newPage();
    await openAt(second, url, 1, "anthill");
    expect(await tokenOf(page)).not.toBe(await tokenOf(second));
    const goesOn = loadedAgain(page);
    isUp = true;
    await goesOn;
    expect(await tokenOf(page)).toBe(await tokenOf(second));
    await drawn(page);
    expect(await windowOf(page)).toEqual({ fromNs, toNs });
    await expect(page.locator(".notice-bar")).toHaveCount(0);
  } finally {
    stop(server);
  }
});
