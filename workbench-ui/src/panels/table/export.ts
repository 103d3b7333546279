/** A table as text, for the clipboard and for files. Pure but for {@link download} and {@link copy}. */

import { announce, report } from "../../state/actions";

/** Values as they are shown, with raw numbers beside them for programs. */
export interface TextTable {
  heads: string[];
  rows: string[][];
  /** The same cells for JSON: numbers stay numbers. */
  raw: Record<string, string | number | null>[];
}

export const FORMATS = ["TSV", "CSV", "JSON", "Markdown"] as const;
export type Format = (typeof FORMATS)[number];

const EXTENSIONS: Record<Format, [string, string]> = {
  TSV: ["tsv", "text/tab-separated-values"],
  CSV: ["csv", "text/csv"],
  JSON: ["json", "application/json"],
  Markdown: ["md", "text/markdown"],
};

/** RFC 4180. */
function csvCell(text: string): string {
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

const tsvCell = (text: string) => text.replace(/[\t\r\n]/g, " ");
const markdownCell = (text: string) => text.replace(/[\r\n]/g, " ").replaceAll("\\", "\\\\").replaceAll("|", "\\|");

export function formatTable({ heads, rows, raw }: TextTable, format: Format): string {
  const lines = (separator: string, ending: string, cell: (text: string) => string) =>
    [heads, ...rows].map((row) => row.map(cell).join(separator) + ending).join("");
  switch (format) {
    case "TSV":
      return lines("\t", "\n", tsvCell);
    case "CSV":
      return lines(",", "\r\n", csvCell);
    case "JSON":
      return `${JSON.stringify(raw, null, 2)}\n`;
    case "Markdown": {
      const row = (cells: string[]) => `| ${cells.map(markdownCell).join(" | ")} |\n`;
      return row(heads) + row(heads.map(() => "---")) + rows.map(row).join("");
    }
  }
}

export function downloadTable(table: TextTable, format: Format, name: string): void {
  const [extension, type] = EXTENSIONS[format];
  download(`${name}.${extension}`, new Blob([formatTable(table, format)], { type }));
}

export function download(name: string, blob: Blob): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** Puts a text on the clipboard and says so. */
export async function copy(text: string, what: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    announce(`${what} copied`);
  } catch (error) {
    report(error);
  }
}
