// Measures how soon a page shows its first tiles, and its heap after a thousand random views.
//
//   node bench/views.mjs BINARY TRACE [--ui-dir DIR] [--views 1000] [--size 1920x1080]
//
// The time counts from the navigation to the moment when every tile of the first view is painted, five times; the server has the
// index by then. A view is a random window between the whole trace and a millionth of it. The heap is read after a collection.

import { spawn } from "node:child_process";
import process from "node:process";
import { chromium } from "@playwright/test";

const words = process.argv.slice(2);
const option = (name, otherwise) => {
  const at = words.indexOf(`--${name}`);
  return at < 0 ? otherwise : words.splice(at, 2)[1];
};
const uiDir = option("ui-dir", null);
const views = Number(option("views", "1000"));
const [width, height] = option("size", "1920x1080").split("x").map(Number);
const [binary, trace] = words;
if (!binary || !trace) {
  console.error("usage: node bench/views.mjs BINARY TRACE [--ui-dir DIR] [--views 1000] [--size 1920x1080]");
  process.exit(64);
}

const server = spawn(binary, ["ui", "--no-browser", ...(uiDir ? ["--ui-dir", uiDir] : []), trace], { stdio: ["ignore", "pipe", "inherit"] });
const url = await new Promise((resolve, reject) => {
  server.stdout.once("data", (bytes) => resolve(String(bytes).trim().split("\n")[0]));
  server.once("exit", (code) => reject(new Error(`typhon ui ended with ${code}`)));
});

try {
  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu", "--js-flags=--expose-gc"] });
  const firsts = [];
  let page = null;
  for (let run = 0; run < 5; run += 1) {
    await page?.close();
    page = await browser.newPage({ viewport: { width, height } });
    await page.goto(url);
    firsts.push(
      await page.evaluate(
        () =>
          new Promise((done) => {
            const look = () =>
              window.__typhon?.isComplete() && window.__typhon.visibleEntries().length > 0 ? done(performance.now()) : requestAnimationFrame(look);
            look();
          }),
      ),
    );
  }
  firsts.sort((a, b) => a - b);
  console.log(`first view painted  least ${firsts[0].toFixed(0)}  median ${firsts[2].toFixed(0)}  most ${firsts[4].toFixed(0)} ms after navigation`);
  const heap = () => page.evaluate(() => {
    globalThis.gc?.();
    return performance.memory.usedJSHeapSize / 2 ** 20;
  });
  const before = await heap();
  let state = 1;
  const random = () => (state = (Math.imul(state, 1664525) + 1013904223) >>> 0) / 2 ** 32;
  const end = await page.evaluate(async () => {
    const token = sessionStorage.getItem("typhon-token");
    const meta = await (await fetch("/api/v1/sessions/1/meta", { headers: { Authorization: `Bearer ${token}` } })).json();
    return meta.time.endNs;
  });
  for (let view = 0; view < views; view += 1) {
    const length = Math.max(1000, end * 10 ** (-6 * random()));
    const from = random() * Math.max(end - length, 1);
    await page.evaluate((link) => (location.hash = link), `t=${Math.floor(from)}..${Math.ceil(from + length)}`);
    if (view % 10 === 9) await page.waitForFunction(() => window.__typhon.isComplete());
  }
  console.log(`heap ${before.toFixed(1)} MiB at first, ${(await heap()).toFixed(1)} MiB after ${views} views`, await page.evaluate(() => JSON.stringify(window.__typhon.cache())));
  await browser.close();
} finally {
  server.removeAllListeners("exit");
  server.kill();
}
