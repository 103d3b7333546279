import { bytes, count, duration } from "../src/format";
import { asked, copied, drawn, expect, open, test } from "./page";
import { type Document, dump } from "./traces";

/** The lines of a section: label to text. */
async function facts(page: import("@playwright/test").Page, section: string): Promise<Record<string, string>> {
  const list = page.locator(".inspector .facts", { has: page.locator("h3", { hasText: new RegExp(`^${section}`) }) });
  await expect(list.first()).toBeVisible();
  const lines = await list.first().locator(".fact").evaluateAll((all) => all.map((line) => [line.querySelector("dt")?.textContent ?? "", line.querySelector("dd")?.textContent?.trim() ?? ""]));
  return Object.fromEntries(lines);
}

test("the inspector shows every field of an event as typhon trace dump has it", async ({ page }) => {
  const [record] = dump("anthill", "--where", "name=EcsQueryExecute", "--sort", "dur", "--limit", "1", "--raw");
  await open(page, "anthill", `e=${record.event}`);
  const inspector = page.locator(`.inspector[data-event="${record.event}"]`);
  await expect(inspector).toBeVisible();
  await expect(inspector.locator("h2")).toHaveText("EcsQueryExecute");
  await expect(inspector.locator(".figures > div").nth(0)).toHaveText(`${duration(record.dur).replace("\u202f", " ")}duration`);
  await expect(inspector.locator(".figures > div").nth(2)).toContainText(`of ${count(dump("anthill", "--where", "name=EcsQueryExecute").length)} alike`);
  const fields = await facts(page, "Fields");
  expect(Object.keys(fields)).toEqual(["archetypeTypeId", "resultCount", "scanMode", "Event"]);
  expect(fields).toMatchObject({ resultCount: String(record.fields.resultCount), scanMode: `${record.fields.scanModeName} ${record.fields.scanMode}`, Event: record.event });
  const where = await facts(page, "Where");
  expect(where["Lane"]).toContain(`${record.thread}`);
  expect(where["Lane"]).toContain(`slot ${record.slot}`);
  expect(where["Tick"]).toMatch(new RegExp(`^${record.tick} `));
  expect(where["Span id"]).toBe(record.spanId);
  await expect(inspector.locator(".source-path")).toHaveText(`${record.site.file}:${record.site.line}`);
  await inspector.locator("summary").click();
  const wire = (await inspector.locator(".wire").textContent()) ?? "";
  expect(wire.replace(/^[0-9a-f]{4} {2}/gm, "").replace(/\s/g, "")).toBe(record.raw);
});

test("the chain of parents is that of the recorded ids, with times, and can be walked", async ({ page }) => {
  const all = dump("anthill");
  const byId = new Map(all.filter(({ spanId }) => spanId).map((record) => [record.spanId, record]));
  const deep = all.find((record) => byId.get(byId.get(record.parentSpanId)?.parentSpanId)?.slot === record.slot && record.kind === "EcsQueryExecute");
  const parent = byId.get(deep.parentSpanId);
  const root = byId.get(parent.parentSpanId);
  await open(page, "anthill", `e=${deep.event}`);
  const chain = page.locator(".relative");
  await expect(chain.filter({ hasText: deep.kind })).toHaveAttribute("aria-current", "true");
  await expect(chain.filter({ hasText: parent.kind }).first()).toContainText(duration(parent.dur));
  await expect(chain.filter({ hasText: root.kind }).first()).toContainText(duration(root.dur));
  await chain.filter({ hasText: parent.kind }).first().click();
  await expect(page.locator(`.inspector[data-event="${parent.event}"]`)).toBeVisible();
  await page.goBack();
  await expect(page.locator(`.inspector[data-event="${deep.event}"]`)).toBeVisible();
});

test("absent fields are absent and not zero, whatever the kind; every kind opens", async ({ page }) => {
  const records = dump("kinds");
  // A kind with optional fields of which this record has none.
  const bare = records.find(({ kind, fields }) => kind === "TransactionCommit" && fields.componentCount === undefined);
  await open(page, "kinds", `e=${(bare ?? records[0]).event}`);
  if (bare !== undefined) expect((await facts(page, "Fields"))["componentCount"]).toBe("absent");
  const first = new Map<string, { event: string; fields: Record<string, unknown> }>();
  for (const record of records) if (record.kind !== null && !first.has(record.kind)) first.set(record.kind, record);
  expect(first.size).toBeGreaterThan(200);
  // One in seven, so that the test takes seconds; over the whole list nothing differs but names.
  const some = [...first.values()].filter((_, at) => at % 7 === 0);
  for (const { event, fields } of some) {
    await page.evaluate((link) => (location.hash = `e=${link}`), event);
    await expect(page.locator(`.inspector[data-event="${event}"]`)).toBeVisible();
    const shown = await facts(page, "Fields");
    for (const name of Object.keys(fields)) {
      if (!name.endsWith("Name") && name !== "name") expect(Object.keys(shown), `${event} ${name}`).toContain(name);
    }
  }
});

test("an event leaves as JSON, as text and as a link", async ({ page }) => {
  const [record] = dump("demo", "--where", "name=AntSteer", "--sort", "dur", "--limit", "1");
  await open(page, "demo", `e=${record.event}`);
  const inspector = page.locator(`.inspector[data-event="${record.event}"]`);
  const copiedBy = (button: string) => copied(page, () => inspector.getByRole("button", { name: button }).last().click());
  const document = JSON.parse(await copiedBy("Copy JSON"));
  expect(document).toMatchObject({ event: record.event, name: "AntSteer", tick: record.tick, durationNs: record.dur });
  expect(await copiedBy("Copy text")).toContain(`duration`);
  const link = await copiedBy("Copy link");
  expect(link).toContain(`e=${record.event}`);
  expect(link).not.toContain("token");
  // In this tab, which has the token, the link shows the same event.
  await page.goto(link);
  await drawn(page);
  await expect(page.locator(`.inspector[data-event="${record.event}"]`)).toBeVisible();
});

test("the source is shown where it lies below a source root", async ({ page }) => {
  const record = dump("demo", "--kind", "RuntimePhaseSpan").find(({ site }) => site?.file);
  await open(page, "demo", `e=${record.event}`);
  await expect(page.locator(".source-path")).toHaveText(`${record.site.file}:${record.site.line}`);
  await expect(page.locator(".source-lines .is-here")).toContainText(String(record.site.line));
});

test("children: how many, the longest, and all of them", async ({ page }) => {
  const [record] = dump("demo", "--where", "name=RuntimePhaseSpan", "--sort", "dur", "--limit", "1");
  await open(page, "demo", `e=${record.event}`);
  const end = record.ts + record.dur;
  const spans = dump("demo", "--where", `slot=${record.slot}`).filter(({ dur }) => dur !== undefined);
  // What begins before the end of another span and outlasts it is nobody's child.
  const crosses = (a: Document) => spans.some((b) => b.ts < a.ts && a.ts < b.ts + b.dur && b.ts + b.dur < a.ts + a.dur);
  const inside = spans.filter((span) => span.event !== record.event && span.ts >= record.ts && span.ts + span.dur <= end && !crosses(span));
  const heading = page.locator("h3", { hasText: "Children" });
  await expect(heading).toBeVisible();
  const shown = Number(/· ([\d,]+)/.exec((await heading.textContent()) ?? "")?.[1]?.replaceAll(",", ""));
  // Direct children only, so at most what is inside, and at least one.
  expect(shown).toBeGreaterThan(0);
  expect(shown).toBeLessThanOrEqual(inside.length);
  const longest = Math.max(...inside.map(({ dur }) => dur));
  await expect(page.locator(".facts", { has: heading }).locator(".relative").first()).toContainText(duration(longest));
  await heading.getByRole("button", { name: "All" }).click();
  await expect(page.getByRole("grid", { name: "Children" })).toHaveAttribute("aria-rowcount", String(shown + 1));
});

test("several selected events are added up", async ({ page }) => {
  await open(page, "anthill", "t=1332409000..1368409000");
  const bars = await page.evaluate(() =>
    (window.__typhon?.visibleEntries() ?? []).filter(({ isAggregate, w }) => !isAggregate && w > 30).slice(0, 2).map(({ x, y, w, h }) => ({ x: x + w / 2, y: y + h / 2 })),
  );
  expect(bars).toHaveLength(2);
  await page.mouse.click(bars[0]?.x ?? 0, bars[0]?.y ?? 0);
  await page.keyboard.down("Shift");
  await page.mouse.click(bars[1]?.x ?? 0, bars[1]?.y ?? 0);
  await page.keyboard.up("Shift");
  await expect(page.locator(".several h2")).toHaveText("2 selected");
  await expect(page.getByRole("grid", { name: "Selected events" })).toHaveAttribute("aria-rowcount", "3");
});

test("fields of several selected spans: sums, ends, and the time for one of what they count", async ({ page }) => {
  const all = dump("anthill", "--where", "name=EcsQueryExecute", "--ticks", "8..10");
  const [first, second] = all;
  await open(page, "anthill", `e=${first.event}`);
  const middle = async (event: string) => {
    const { place } = await asked(page, "anthill", `event/${event}`);
    const bar = await page.evaluate((at) => window.__typhon?.visibleEntries().find(({ lane, row, index, isAggregate }) => !isAggregate && lane === at.lane && row === at.row && index === at.index), place);
    return { x: (bar?.x ?? 0) + (bar?.w ?? 0) / 2, y: (bar?.y ?? 0) + 8 };
  };
  const { zeroNs } = (await asked(page, "anthill", "meta")).time;
  const [fromNs, toNs] = [first.ts - zeroNs, second.ts + second.dur - zeroNs];
  await open(page, "anthill", `t=${fromNs - 1000}..${toNs + 1000}&e=${first.event}`);
  const at = await middle(second.event);
  await page.keyboard.down("Shift");
  await page.mouse.click(at.x, at.y);
  await page.keyboard.up("Shift");
  await expect(page.locator(".several h2")).toHaveText("2 selected");
  const row = page.locator(".field-sums tr", { hasText: "resultCount" });
  const values = [first, second].map(({ fields }) => fields.resultCount);
  const sum = values.reduce((total, value) => total + value, 0);
  await expect(row.locator("td")).toHaveText([count(sum), count(sum / 2), count(Math.min(...values)), count(Math.max(...values)), duration((first.dur + second.dur) / sum)]);
  // What is an id or the name of a value is not added up.
  await expect(page.locator(".field-sums tbody th")).toHaveText(["resultCount"]);
});

test("sizes have their unit", async ({ page }) => {
  const [record] = dump("gc", "--kind", "GcEnd", "--limit", "1");
  await open(page, "gc", `e=${record.event}`);
  const fields = await facts(page, "Fields");
  expect(fields["promotedBytes"]).toBe(bytes(record.fields.promotedBytes));
  expect(fields["generation"]).toBe(String(record.fields.generation));
});
