import { bytes, count, duration } from "../src/format";
import { exportedRows, grid, open, expect, showTable, shownRows, showsTick, test } from "./page";
import { dump, json, pathOf } from "./traces";

for (const trace of ["demo", "anthill"] as const) {
  test(`ticks of ${trace}: how many, and which were the slowest`, async ({ page }) => {
    await open(page, trace);
    const panel = await showTable(page, "Ticks");
    const { ticks } = json("trace", "stats", pathOf(trace));
    await expect(grid(page, "Ticks")).toHaveAttribute("aria-rowcount", String(ticks.count + 1));
    const rows = await exportedRows(page, panel);
    const worst = rows.slice(0, ticks.worst.length).map(({ number, durationNs }) => ({ tick: number, durNs: durationNs }));
    expect(worst).toEqual(ticks.worst);
    // The slowest is amber and opens on the timeline.
    const [first] = await shownRows(grid(page, "Ticks"));
    expect([first?.[0], first?.[2]]).toEqual([count(ticks.worst[0].tick), duration(ticks.worst[0].durNs)]);
    await grid(page, "Ticks").locator('[aria-rowindex="2"] .hot').click();
    await showsTick(page, ticks.worst[0].tick);
  });
}

test("collections: every one, with pauses and sizes", async ({ page }) => {
  await open(page, "gc");
  const panel = await showTable(page, "Collections");
  const { gc } = json("trace", "stats", pathOf("gc"));
  const rows = await exportedRows(page, panel);
  const generations: Record<string, number> = {};
  for (const { generation } of rows) generations[String(generation)] = (generations[String(generation)] ?? 0) + 1;
  expect(generations).toEqual(gc.collections);
  const ends = new Map(dump("gc", "--kind", "GcEnd").map(({ fields }) => [fields.count, fields]));
  for (const row of rows) {
    const end = ends.get(row["count"]);
    expect([row["generation"], row["promotedBytes"], row["gen2Bytes"]]).toEqual([end.generation, end.promotedBytes, end.gen2SizeAfter ?? end.gen2Bytes ?? row["gen2Bytes"]]);
  }
  await expect(panel.locator(".tools-note")).toContainText(`${duration(gc.pauses.totalNs)} in all, ${duration(gc.pauses.maxNs)} at most`);
});

test("gauges: values, least and most of the trace", async ({ page }) => {
  await open(page, "anthill");
  const panel = await showTable(page, "Gauges");
  const seen = new Map<string, number[]>();
  for (const { fields } of dump("anthill", "--kind", "PerTickSnapshot")) {
    for (const gauge of fields.gauges) {
      const name = gauge.name ?? gauge.idName ?? gauge.gaugeName;
      seen.set(name, [...(seen.get(name) ?? []), Number(gauge.value)]);
    }
  }
  expect(seen.size).toBeGreaterThan(3);
  const rows = await exportedRows(page, panel);
  expect(rows.map(({ name }) => String(name)).sort()).toEqual([...seen.keys()].sort());
  for (const row of rows) {
    const values = seen.get(String(row["name"])) ?? [];
    expect([row["samplesAll"], row["minAll"], row["maxAll"]], String(row["name"])).toEqual([values.length, Math.min(...values), Math.max(...values)]);
    // With the whole trace as window, what is in the window is what is in the trace; entries are f32.
    expect(row["samples"], String(row["name"])).toBe(values.length);
    expect(row["max"], String(row["name"])).toBeCloseTo(Math.fround(Math.max(...values)), 3);
  }
});

test("the status bar says what typhon trace info says", async ({ page }) => {
  await open(page, "anthill");
  const { counts, file } = json("trace", "info", pathOf("anthill"));
  await expect(page.locator(".status-bar")).toContainText(`${count(counts.records)} events · ${count(counts.blocks)} blocks · ${bytes(file.size)}`);
});
