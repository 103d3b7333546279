import { defineConfig } from "@playwright/test";

/**
 * Tests in a real browser, with a real `typhon ui` (`cargo xtask ui-test`). The browser is the system's: nothing is
 * downloaded. Project `pictures` draws what is in the docs; it does not run by default.
 */
const executablePath = process.env["TYPHON_CHROMIUM"] ?? "/usr/bin/chromium";
// Workers read this file again, with the environment of the first process but without its arguments.
if (process.argv.includes("--project=pictures")) process.env["TYPHON_UI_PICTURES"] = "1";
const wantsPictures = process.env["TYPHON_UI_PICTURES"] !== undefined;

export default defineConfig({
  testDir: "browser",
  outputDir: "../target/ui-tests/results",
  globalSetup: "./browser/setup.ts",
  fullyParallel: true,
  workers: 2,
  forbidOnly: process.env["CI"] !== undefined,
  // Seconds on a quiet machine; the limits are for one that has other work.
  timeout: 240_000,
  expect: { timeout: 40_000 },
  reporter: [["list"], ["./browser/no-skips.ts"]],
  use: {
    viewport: { width: 1440, height: 900 },
    // What the page shows while no theme is chosen.
    colorScheme: "dark",
    permissions: ["clipboard-read", "clipboard-write"],
    // Containers have no user namespaces to build a sandbox from; the pages are our own.
    launchOptions: { executablePath, args: ["--no-sandbox", "--force-color-profile=srgb"] },
  },
  projects: [
    { name: "tests", testMatch: "*.spec.ts" },
    ...(wantsPictures ? [{ name: "pictures", testMatch: "pictures.ts" }] : []),
  ],
});
