/** Before all tests: recordings, and one server for them. Its end is the returned function. */

import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { BINARY, ROOT, STATE, TRACES, WORK, makeTraces, pathOf } from "./traces";

const START_MS = 60_000;

/** Starts `typhon ui` and waits for the address that it prints. Settings and bookmarks go to folders of their own. */
export async function serve(name: string, ...args: string[]): Promise<{ server: ChildProcess; url: string }> {
  const folder = join(WORK, name);
  mkdirSync(folder, { recursive: true });
  // A development build of the page, for work on it without building the binary each time.
  const page = process.env["TYPHON_UI_DIR"];
  const development = page === undefined ? [] : ["--ui-dir", page];
  const env = { ...process.env, TYPHON_CACHE_DIR: join(folder, "cache"), XDG_CONFIG_HOME: join(folder, "config"), HOME: folder };
  const server = spawn(BINARY, ["ui", "--no-browser", "--root", WORK, "--source-root", ROOT, ...development, ...args], { cwd: WORK, env, stdio: ["ignore", "pipe", "inherit"] });
  const url = await new Promise<string>((resolve, reject) => {
    let text = "";
    const timer = setTimeout(() => reject(new Error(`typhon ui printed no address: ${text}`)), START_MS);
    server.stdout?.on("data", (chunk: Buffer) => {
      text += chunk.toString();
      const found = /http:\/\/\S+#token=\w+/.exec(text);
      if (!found) return;
      clearTimeout(timer);
      resolve(found[0]);
    });
    server.on("exit", (code) => reject(new Error(`typhon ui ended with ${code}: ${text}`)));
  });
  return { server, url };
}

export default async function setup(): Promise<() => void> {
  makeTraces();
  const full = await serve("full", ...TRACES.map(pathOf));
  const empty = await serve("empty");
  writeFileSync(STATE, JSON.stringify({ full: full.url, empty: empty.url }));
  return () => {
    for (const { server } of [full, empty]) {
      server.removeAllListeners("exit");
      server.kill("SIGTERM");
    }
  };
}
