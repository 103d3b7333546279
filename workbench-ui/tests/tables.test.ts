import { describe, expect, it } from "vitest";
import { formatTable } from "../src/panels/table/export";
import { nextSort, sorted } from "../src/panels/table/sort";

const table = {
  heads: ["Name", "Total"],
  rows: [
    ['a "b", c', "1.00 ms"],
    ["x|y\tz", "absent"],
  ],
  raw: [
    { key: 'a "b", c', totalNs: 1_000_000 },
    { key: "x|y\tz", totalNs: null },
  ],
};

describe("tables as text", () => {
  it("quotes CSV as RFC 4180 says", () => {
    expect(formatTable(table, "CSV")).toBe('Name,Total\r\n"a ""b"", c",1.00 ms\r\nx|y\tz,absent\r\n');
  });
  it("keeps tabs and line ends out of TSV cells", () => {
    expect(formatTable(table, "TSV")).toBe('Name\tTotal\na "b", c\t1.00 ms\nx|y z\tabsent\n');
  });
  it("escapes what Markdown would read as a column", () => {
    expect(formatTable(table, "Markdown")).toBe('| Name | Total |\n| --- | --- |\n| a "b", c | 1.00 ms |\n| x\\|y\tz | absent |\n');
  });
  it("gives programs raw numbers", () => {
    expect(JSON.parse(formatTable(table, "JSON"))).toEqual(table.raw);
  });
});

describe("order of rows", () => {
  it("keeps missing values last both ways, and equal rows in their order", () => {
    const rows = [{ v: null }, { v: 2, id: "a" }, { v: 5 }, { v: 2, id: "b" }];
    expect(sorted(rows, ({ v }) => v, false).map(({ v }) => v)).toEqual([2, 2, 5, null]);
    expect(sorted(rows, ({ v }) => v, true).map(({ v, id }) => id ?? v)).toEqual([5, "a", "b", null]);
  });
  it("starts numbers with the largest and texts with A, and turns round", () => {
    expect(nextSort({ key: "", isDescending: false }, "n", true)).toEqual({ key: "n", isDescending: true });
    expect(nextSort({ key: "n", isDescending: true }, "n", true)).toEqual({ key: "n", isDescending: false });
    expect(nextSort({ key: "n", isDescending: true }, "name", false)).toEqual({ key: "name", isDescending: false });
  });
});
