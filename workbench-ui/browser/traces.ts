/** The recordings of the tests, and what the command line says of them. */

import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

export const ROOT = join(import.meta.dirname, "../..");
export const WORK = join(ROOT, "target/ui-tests");
export const BINARY = process.env["TYPHON_BINARY"] ?? join(ROOT, "target/debug/typhon");
export const STATE = join(WORK, "server.json");

/** In the order in which the server opens them: the first has the session id 1. */
export const TRACES = ["demo", "anthill", "gc", "cut", "hostile", "kinds"] as const;
export type Trace = (typeof TRACES)[number];

export function pathOf(trace: Trace): string {
  return join(WORK, `${trace}.typhon-trace`);
}

/** Runs `typhon` and gives back what it prints. */
export function typhon(...args: string[]): string {
  return execFileSync(BINARY, args, { encoding: "utf8", maxBuffer: 1 << 28, stdio: ["ignore", "pipe", "pipe"] });
}

// biome-ignore lint: the documents have schemas of their own in docs/schemas
export type Document = any;

export function json(...args: string[]): Document {
  return JSON.parse(typhon(...args, "--json"));
}

/** The records of `typhon trace dump`, one a line. */
export function dump(trace: Trace, ...args: string[]): Document[] {
  const text = typhon("trace", "dump", pathOf(trace), "--json", ...args);
  return text.split("\n").filter((line) => line.startsWith("{")).map((line) => JSON.parse(line));
}

/** Texts of the hostile trace, in place of names of the same length in UTF-8. */
export const HOSTILE: readonly (readonly [string, string])[] = [
  ["TierAssignment", "<script>\u001b]0;xy"],
  ["SpiderUpdate", "<b onload\u202e"],
  ["PheroDecay", "\"'><img \u0007/"],
];

/** Makes all recordings anew. */
export function makeTraces(): void {
  rmSync(WORK, { recursive: true, force: true });
  mkdirSync(WORK, { recursive: true });
  typhon("demo", "--ticks", "150", "--ants", "4000", "--workers", "3", "--hz", "200", "-o", pathOf("demo"));
  copyFileSync(join(ROOT, "corpus/anthill.typhon-trace"), pathOf("anthill"));
  copyFileSync(join(ROOT, "corpus/all-kinds.typhon-trace"), pathOf("kinds"));
  typhon("gc", "--from", join(ROOT, "corpus/nettrace/net8-workstation-concurrent.nettrace"), "-o", pathOf("gc"));
  const demo = readFileSync(pathOf("demo"));
  writeFileSync(pathOf("cut"), demo.subarray(0, Math.floor(demo.length * 0.7)));
  writeFileSync(pathOf("hostile"), hostile(readFileSync(pathOf("anthill"))));
}

function hostile(trace: Buffer): Buffer {
  for (const [name, text] of HOSTILE) {
    const [from, to] = [Buffer.from(name), Buffer.from(text)];
    if (from.length !== to.length) throw new Error(`${name} and its replacement differ in length`);
    let at = trace.indexOf(from);
    if (at < 0) throw new Error(`${name} is not in the tables of the trace`);
    for (; at >= 0; at = trace.indexOf(from, at + 1)) to.copy(trace, at);
  }
  return trace;
}
