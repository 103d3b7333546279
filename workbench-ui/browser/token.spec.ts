import { addressOf, drawn, expect, open, test } from "./page";
import { TRACES } from "./traces";

const REFUSED = "This address lacks the token of the running typhon ui";
const LINK = "t=100000000..200000000";

test("a copied link opens in a second tab of the browser, whatever old tabs answer (B-27, F-3)", async ({ page, context }) => {
  // A tab that an earlier run on this port left: it has a token, which this run does not accept.
  const origin = new URL(addressOf("full")).origin;
  const stale = await context.newPage();
  await stale.goto(`${origin}/#token=${"0".repeat(64)}`);
  await expect(stale.getByRole("heading", { name: REFUSED })).toBeVisible();

  await open(page, "demo", LINK);
  await expect(page).toHaveURL(/#.*t=100000000\.\.200000000/);
  expect(page.url(), "a link has no token").not.toContain("token");
  const second = await context.newPage();
  await second.goto(page.url());
  await drawn(second);
  expect(await second.evaluate(() => window.__typhon?.window())).toEqual({ fromNs: 100_000_000, toNs: 200_000_000 });
  await expect(second.getByRole("tab", { name: `${TRACES[0]}.typhon-trace` })).toHaveAttribute("aria-selected", "true");
  expect(second.url()).not.toContain("token");
  // Also the tab of the earlier run gets in when it is loaded again.
  await stale.reload();
  await drawn(stale);
});

test("a link that no other tab can help with says how to get in, once", async ({ page }) => {
  await page.goto(`${new URL(addressOf("full")).origin}/#${LINK}`);
  await expect(page.getByRole("heading", { name: REFUSED })).toBeVisible();
  await expect(page.locator(".fact-card")).toContainText("Open the address that typhon ui printed");
  await expect(page.locator(".notice-bar")).toHaveCount(0);
});
