import { appendFileSync, copyFileSync, mkdirSync, renameSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "@playwright/test";
import { drawn, expect, openAt, test } from "./page";
import { serve } from "./setup";
import { WORK, pathOf } from "./traces";

/** A server of its own: what is changed here concerns no other test. */
async function withServer(name: string, use: (url: string, file: string) => Promise<void>): Promise<void> {
  mkdirSync(join(WORK, name), { recursive: true });
  const file = join(WORK, name, "own.typhon-trace");
  copyFileSync(pathOf("anthill"), file);
  const { server, url } = await serve(name, file);
  try {
    await use(url, file);
  } finally {
    server.removeAllListeners("exit");
    server.kill("SIGTERM");
  }
}

/** What the server keeps. */
function settings(page: Page): Promise<string> {
  return page.evaluate(async () => {
    const response = await fetch("/api/v1/settings", { headers: { Authorization: `Bearer ${sessionStorage.getItem("typhon-token")}` } });
    return JSON.stringify(await response.json());
  });
}

test("a file that changes on disk is offered again, and what is open stays (B-6)", async ({ page }) => {
  await withServer("changing", async (url, file) => {
    await openAt(page, url, 1, "own");
    const events = await page.locator(".status-bar span").first().textContent();
    appendFileSync(file, Buffer.alloc(64));
    const bar = page.locator(".notice-bar", { hasText: "on disk" });
    await expect(bar).toContainText("The file on disk has grown");
    // Another recording in its place.
    copyFileSync(pathOf("demo"), `${file}.new`);
    renameSync(`${file}.new`, file);
    await expect(bar).toContainText(/The file on disk (was replaced|has changed)/);
    await drawn(page);
    expect(await page.locator(".status-bar span").first().textContent()).toBe(events);
    await bar.getByRole("button", { name: "Reload" }).click();
    await expect(page.locator(".status-bar span").first()).not.toHaveText(events ?? "");
    await expect(bar).toHaveCount(0);
  });
});

test("files of one name are told apart by the folders they are in", async ({ page }) => {
  const files = ["before", "after"].map((folder) => {
    mkdirSync(join(WORK, "twins", folder), { recursive: true });
    const file = join(WORK, "twins", folder, "run.typhon-trace");
    copyFileSync(pathOf("anthill"), file);
    return file;
  });
  const { server, url } = await serve("twins", ...files);
  try {
    await page.goto(url);
    const tabs = page.getByRole("tablist", { name: "Sessions" }).getByRole("tab");
    await expect(tabs).toHaveText([/run\.typhon-tracebefore/, /run\.typhon-traceafter/]);
  } finally {
    server.removeAllListeners("exit");
    server.kill("SIGTERM");
  }
});

test("theme, lanes and widths are as they were left when the page is opened again (B-18, B-39)", async ({ page }) => {
  await withServer("settings", async (url) => {
    await openAt(page, url, 1, "own");
    const tracks = () => page.evaluate(() => (window.__typhon?.tracks() ?? []).map(({ key }) => key));
    const before = await tracks();
    const saved = page.waitForResponse((response) => response.url().endsWith("/settings") && response.request().method() === "PUT");
    await page.keyboard.press("Control+KeyK");
    await page.keyboard.type("light theme");
    await page.keyboard.press("Enter");
    await page.getByRole("tab", { name: "Lanes" }).click();
    // The last one: a pin moves it.
    await page.locator(".lane-switches").getByRole("button", { name: /^Pin / }).last().click();
    await saved;
    await drawn(page);
    const pinned = await tracks();
    expect(pinned).not.toEqual(before);
    await expect.poll(() => settings(page)).toMatch(/"pinned":\["[^"]/);
    await page.reload();
    await drawn(page);
    await expect(page.locator("html")).toHaveAttribute("data-theme", "light");
    expect(await tracks()).toEqual(pinned);
  });
});

test("without a choice the page is light or dark as the system is, also when that changes; a choice stays (B-39)", async ({ page }) => {
  await withServer("theme", async (url) => {
    const shows = (theme: "dark" | "light") => expect(page.locator("html")).toHaveAttribute("data-theme", theme);
    const canvas = () => page.evaluate(() => getComputedStyle(document.documentElement).colorScheme);
    await page.emulateMedia({ colorScheme: "light" });
    await openAt(page, url, 1, "own");
    await shows("light");
    expect(await canvas()).toBe("light");
    await page.emulateMedia({ colorScheme: "dark" });
    await shows("dark");
    // What else is kept in the settings chooses no theme.
    await page.getByRole("group", { name: "Time" }).getByRole("button", { name: "Clock" }).click();
    await expect.poll(() => settings(page)).toContain('"timeDisplay":"clock"');
    await page.reload();
    await drawn(page);
    await page.emulateMedia({ colorScheme: "light" });
    await shows("light");
    await page.keyboard.press("Control+KeyK");
    await page.keyboard.type("dark theme");
    await page.keyboard.press("Enter");
    await shows("dark");
    await expect.poll(() => settings(page)).toContain('"theme":"dark"');
    for (const system of ["dark", "light"] as const) {
      await page.emulateMedia({ colorScheme: system });
      await shows("dark");
      await page.reload();
      await drawn(page);
      await shows("dark");
    }
  });
});
