import { count, duration } from "../src/format";
import { asked, copied, drawn, exported, exportedRows, grid, open, expect, showTable, shownRows, test } from "./page";
import { dump, json, pathOf } from "./traces";

const GROUPS = ["kind", "name", "system", "thread", "family"] as const;

for (const trace of ["demo", "anthill", "gc"] as const) {
  test(`statistics of ${trace} are those of typhon trace stats, however they are grouped`, async ({ page }) => {
    await open(page, trace);
    const panel = await showTable(page, "Statistics");
    for (const by of GROUPS) {
      const { rows, rowCount } = json("trace", "stats", pathOf(trace), "--by", by, "--top", "0");
      await panel.getByRole("button", { name: by[0]?.toUpperCase() + by.slice(1), exact: true }).click();
      const table = grid(page, `Statistics by ${by}`);
      await drawn(page);
      await expect(table).toHaveAttribute("aria-rowcount", String(rowCount + 1));
      if (rowCount === 0) continue;
      const shown = await exportedRows(page, panel);
      const byKey = new Map(rows.map((row: { key: string }) => [row.key, row]));
      for (const row of shown) {
        const expected = byKey.get(row["key"]) as Record<string, number>;
        for (const column of ["count", "totalNs", "selfNs", "meanNs", "p50Ns", "p95Ns", "p99Ns", "maxNs", "minNs"]) {
          expect(row[column], `${by} ${row["key"]} ${column}`).toEqual(expected[column] ?? null);
        }
      }
      // What is on the screen: the first row, cell by cell.
      const [first] = await shownRows(table);
      const largest = rows[0];
      expect(first?.slice(0, 4)).toEqual([largest.key, count(largest.count), duration(largest.totalNs), duration(largest.selfNs)]);
    }
  });
}

test("statistics narrow to the window, to the same numbers as --range", async ({ page }) => {
  const [fromNs, toNs] = [1_332_409_000, 1_368_409_000];
  await open(page, "anthill", `t=${fromNs}..${toNs}`);
  await showTable(page, "Statistics");
  const meta = await page.evaluate(async () => {
    const response = await fetch("/api/v1/sessions/2/meta", { headers: { Authorization: `Bearer ${sessionStorage.getItem("typhon-token")}` } });
    return response.json();
  });
  const range = `${fromNs + meta.time.zeroNs}ns..${toNs + meta.time.zeroNs}ns`;
  const { rows } = json("trace", "stats", pathOf("anthill"), "--by", "name", "--top", "0", "--range", range);
  await expect(grid(page, "Statistics by name")).toHaveAttribute("aria-rowcount", String(rows.length + 1));
  const shown = await exportedRows(page, page.locator('[data-panel="bottom"]'));
  const wanted = Object.fromEntries(rows.map((row: Record<string, unknown>) => [row["key"], [row["count"], row["totalNs"], row["selfNs"]]]));
  expect(Object.fromEntries(shown.map((row) => [row["key"], [row["count"], row["totalNs"], row["selfNs"]]]))).toEqual(wanted);
});

test("tables sort by any column, and stay as they are while the window moves when pinned", async ({ page }) => {
  await open(page, "anthill");
  const panel = await showTable(page, "Statistics");
  const table = grid(page, "Statistics by name");
  const maxima = async () => (await shownRows(table)).map((row) => row[8]);
  await table.getByRole("button", { name: "Max" }).click();
  const { rows } = json("trace", "stats", pathOf("anthill"), "--by", "name", "--top", "0");
  const longest = rows.map(({ maxNs }: { maxNs: number | null }) => maxNs ?? -1).sort((a: number, b: number) => b - a);
  await expect(table.getByRole("columnheader", { name: "Max" })).toHaveAttribute("aria-sort", "descending");
  await expect.poll(async () => (await maxima())[0]).toBe(duration(longest[0]));
  await table.getByRole("button", { name: "Name" }).click();
  await expect(table.getByRole("columnheader", { name: "Name" })).toHaveAttribute("aria-sort", "ascending");
  await drawn(page);
  const names = (await shownRows(table)).map(([name]) => name ?? "");
  expect(names).toEqual([...names].sort(new Intl.Collator(undefined, { numeric: true }).compare));
  await panel.getByRole("button", { name: "Pin", exact: true }).click();
  const before = await table.getAttribute("aria-rowcount");
  await page.keyboard.press("]");
  await expect(panel.getByRole("button", { name: /^Pinned to/ })).toBeVisible();
  await expect(table).toHaveAttribute("aria-rowcount", before ?? "");
});

test("a row selects its slowest span, then the next slower ones", async ({ page }) => {
  await open(page, "anthill");
  await showTable(page, "Statistics");
  const expected = dump("anthill", "--where", "name=EcsQueryExecute", "--sort", "dur", "--limit", "2");
  const row = grid(page, "Statistics by name").locator('[role="row"]', { hasText: "EcsQueryExecute" });
  for (const { event, dur } of expected) {
    await row.click();
    const inspector = page.locator(".inspector[data-event]");
    await expect(inspector).toHaveAttribute("data-event", event);
    await expect(inspector.locator(".figures")).toContainText(duration(dur).split("\u202f")[0] ?? "");
  }
});

test("the longest spans are those of typhon trace dump --sort dur", async ({ page }) => {
  await open(page, "demo");
  const panel = await showTable(page, "Top spans");
  const shown = (await exportedRows(page, panel)).slice(0, 50);
  const expected = dump("demo", "--sort", "dur", "--limit", "50");
  expect(shown.map(({ durationNs }) => durationNs)).toEqual(expected.map(({ dur }) => dur));
  // A span belongs to the tick in which it starts; dump numbers by the order of the file, in which a span comes when it has ended.
  const starts = dump("demo", "--kind", "TickStart");
  const tickAt = (ts: number) => starts.filter((start) => start.ts <= ts).at(-1)?.tick ?? 0;
  const ticks = new Map(expected.map(({ event, ts }) => [event, tickAt(ts)]));
  for (const { event, tick } of shown) if (ticks.has(event)) expect(tick, String(event)).toBe(ticks.get(event));
});

test("histograms of the rows hold every span", async ({ page }) => {
  const own: string[] = [];
  page.on("request", (request) => void (request.url().includes("/histogram?") && own.push(request.url())));
  await open(page, "anthill");
  await showTable(page, "Statistics");
  const row = grid(page, "Statistics by name").locator('[role="row"][aria-rowindex="2"]');
  await expect(row.getByRole("img")).toHaveAttribute("aria-label", /^[\d,]+ durations from .* to /);
  const [{ spans, minNs, maxNs }] = json("trace", "stats", pathOf("anthill"), "--by", "name", "--top", "1").rows;
  await expect(row.getByRole("img")).toHaveAttribute("aria-label", `${count(spans)} durations from ${duration(minNs)} to ${duration(maxNs)}`);
  // They come with the rows: an answer for each would read all records again each time.
  expect(own).toEqual([]);
  const { rows } = await asked(page, "anthill", "stats?by=name&top=0&histograms=true");
  for (const { spans: all, buckets } of rows) expect(buckets.reduce((sum: number, bucket: { count: number }) => sum + bucket.count, 0)).toBe(all);
});

test("tables leave as TSV, CSV and Markdown with what is on the screen", async ({ page }) => {
  await open(page, "anthill");
  const panel = await showTable(page, "Statistics");
  const csv = (await exported(page, panel, "CSV")).trimEnd().split("\r\n");
  const { rowCount } = json("trace", "stats", pathOf("anthill"), "--by", "name");
  expect(csv).toHaveLength(rowCount + 1);
  expect(csv[0]).toMatch(/^Name,Count,Total,Self,Mean/);
  expect((await exported(page, panel, "Markdown")).split("\n")[1]).toMatch(/^(\| --- )+\|$/);
  await panel.getByRole("button", { name: "Export" }).first().click();
  const tsv = await copied(page, () => page.getByRole("menuitem", { name: "Copy TSV" }).click());
  expect(tsv.split("\n")[1]?.split("\t").slice(0, 2)).toEqual(csv[1]?.split(",").slice(0, 2));
});

test("rows that do not find room are counted, and have their share", async ({ page }) => {
  // A trace with so many names would take long to draw; what the page makes of the answer is what is looked at.
  await page.route("**/stats?*", async (route) => {
    const response = await route.fetch();
    const answer = await response.json();
    const selfNs = answer.rows.reduce((sum: number, row: { selfNs: number | null }) => sum + (row.selfNs ?? 0), 0);
    await route.fulfill({ response, json: { ...answer, left: { rows: 9_904, count: 9_904, totalNs: selfNs, selfNs } } });
  });
  await open(page, "anthill");
  const panel = await showTable(page, "Statistics");
  await expect(panel.getByText("9,904 more", { exact: true })).toBeVisible();
  const shares = (await exportedRows(page, panel)).map((row) => Number(row["selfShare"] ?? 0));
  expect(shares.reduce((sum, share) => sum + share, 0)).toBeCloseTo(0.5, 6);
});
