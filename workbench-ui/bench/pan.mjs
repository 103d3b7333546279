// Measures frames while panning and zooming in headless Chromium with software rendering.
//
//   node bench/pan.mjs BINARY TRACE [--ui-dir DIR] [--size 1920x1080] [--rounds 3] [--profile FILE.cpuprofile]
//
// Each round: six windows from the whole trace down to a millionth of it; in each, 60 frames in which nothing happens and then
// 60 frames of panning by hand (pointer moves, one per frame). Printed are percentiles of the time between frames without and
// with panning, and of the time that drawing took, all windows together and each of them, and the page's caches and heap at the
// end. What else runs on the machine goes into all of them; the frames in which nothing happens tell how much that is. A profile is
// of the page's main thread while it is panned; the functions that took the longest are printed.

import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import process from "node:process";
import { chromium } from "@playwright/test";

const words = process.argv.slice(2);
const option = (name, otherwise) => {
  const at = words.indexOf(`--${name}`);
  return at < 0 ? otherwise : words.splice(at, 2)[1];
};
const uiDir = option("ui-dir", null);
const [width, height] = option("size", "1920x1080").split("x").map(Number);
const rounds = Number(option("rounds", "3"));
const profileTo = option("profile", null);
const [binary, trace] = words;
if (!binary || !trace) {
  console.error("usage: node bench/pan.mjs BINARY TRACE [--ui-dir DIR] [--size 1920x1080] [--rounds 3] [--profile FILE.cpuprofile]");
  process.exit(64);
}

const server = spawn(binary, ["ui", "--no-browser", ...(uiDir ? ["--ui-dir", uiDir] : []), trace], { stdio: ["ignore", "pipe", "inherit"] });
const url = await new Promise((resolve, reject) => {
  server.stdout.once("data", (bytes) => resolve(String(bytes).trim().split("\n")[0]));
  server.once("exit", (code) => reject(new Error(`typhon ui ended with ${code}`)));
});

/** Windows from the whole trace down to a millionth. */
const WINDOWS = 6;

const percentile = (values, share) => values.toSorted((a, b) => a - b)[Math.min(Math.floor(values.length * share), values.length - 1)] ?? 0;
const line = (name, values) =>
  console.log(`${name.padEnd(24)} p50 ${percentile(values, 0.5).toFixed(1)}  p95 ${percentile(values, 0.95).toFixed(1)}  max ${Math.max(...values).toFixed(1)} ms  (${values.length} frames)`);

/** The functions of a CPU profile with the most time of their own, as shares of the whole. */
function printProfile({ nodes, samples, timeDeltas }) {
  const own = new Map();
  const byId = new Map(nodes.map((node) => [node.id, node.callFrame]));
  samples.forEach((id, at) => {
    const { functionName, lineNumber, columnNumber } = byId.get(id);
    const name = `${functionName || "(anonymous)"} ${lineNumber + 1}:${columnNumber + 1}`;
    own.set(name, (own.get(name) ?? 0) + timeDeltas[at]);
  });
  const whole = timeDeltas.reduce((sum, us) => sum + us, 0);
  for (const [name, us] of [...own].sort((a, b) => b[1] - a[1]).slice(0, 30)) console.log(`${((us / whole) * 100).toFixed(1).padStart(6)} %  ${name}`);
}

/** Times between frames in which the page does nothing. Runs in the page. */
const emptyFrames = () =>
  new Promise((done) => {
    const times = [];
    let last = performance.now();
    const step = (now) => {
      times.push(now - last);
      last = now;
      if (times.length < 60) requestAnimationFrame(step);
      else done(times.slice(1));
    };
    requestAnimationFrame(step);
  });

/** Waits until all that the window asks for is drawn; when that takes too long, says what the page waits for. */
async function complete(page, asked, timeoutMs) {
  try {
    await page.waitForFunction(() => window.__typhon?.isComplete(), null, { timeout: timeoutMs });
  } catch (error) {
    const problem = await page.evaluate(() => document.querySelector(".tl-problem, [role=alert]")?.textContent ?? "it shows no problem");
    const cache = JSON.stringify(await page.evaluate(() => window.__typhon?.cache() ?? null));
    console.error(`not drawn after ${timeoutMs / 1000} s: ${problem}; no answer yet to [${[...asked].join(" ")}]; caches ${cache}`);
    throw error;
  }
}

/** Addresses that the page has asked for and has no answer from. */
function unanswered(page) {
  const asked = new Set();
  const pathOf = (request) => new URL(request.url()).pathname + new URL(request.url()).search;
  page.on("request", (request) => asked.add(pathOf(request)));
  for (const end of ["requestfinished", "requestfailed"]) page.on(end, (request) => asked.delete(pathOf(request)));
  return asked;
}

try {
  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--disable-gpu"] });
  const page = await browser.newPage({ viewport: { width, height } });
  const asked = unanswered(page);
  await page.goto(url);
  await complete(page, asked, 120_000);
  if ((await page.evaluate(() => window.__typhon.visibleEntries().length)) === 0) throw new Error("nothing is drawn");
  const box = await page.locator(".tl-canvas").boundingBox();
  const [left, y] = [box.x, box.y + box.height - 30];
  const empty = [];
  const [frames, draws] = [0, 1].map(() => Array.from({ length: WINDOWS }, () => []));
  const devtools = profileTo === null ? null : await page.context().newCDPSession(page);
  await devtools?.send("Profiler.enable");
  await devtools?.send("Profiler.start");
  for (let round = 0; round < rounds; round += 1) {
    await page.keyboard.press("Escape");
    for (let zoom = 0; zoom < WINDOWS; zoom += 1) {
      if (zoom > 0) {
        await page.mouse.move(left + box.width * 0.6, y);
        for (let step = 0; step < 10; step += 1) await page.mouse.wheel(0, -184);
      }
      await complete(page, asked, 60_000);
      empty.push(...(await page.evaluate(emptyFrames)));
      await page.evaluate(() => window.__typhon.clearTimes());
      // Within the page, so that a frame is not kept waiting for this script.
      await page.evaluate(
        ({ x, y, width }) =>
          new Promise((done) => {
            const area = document.querySelector(".tl-area");
            const send = (type, at) => area.dispatchEvent(new PointerEvent(type, { bubbles: true, clientX: at, clientY: y, button: 0, buttons: 1, pointerId: 1 }));
            area.setPointerCapture = () => {};
            send("pointerdown", x);
            let frame = 0;
            const step = () => {
              frame += 1;
              send("pointermove", x + Math.sin(frame / 20) * width * 0.4);
              if (frame < 60) requestAnimationFrame(step);
              else {
                send("pointerup", x);
                done();
              }
            };
            requestAnimationFrame(step);
          }),
        { x: left + box.width / 2, y, width: box.width },
      );
      frames[zoom].push(...(await page.evaluate(() => window.__typhon.frameTimes())).slice(1));
      draws[zoom].push(...(await page.evaluate(() => window.__typhon.drawTimes())));
    }
    for (let step = 0; step < 50; step += 1) await page.mouse.wheel(0, 200);
  }
  if (devtools !== null) {
    const { profile } = await devtools.send("Profiler.stop");
    writeFileSync(profileTo, JSON.stringify(profile));
    printProfile(profile);
  }
  line("empty frames", empty);
  line("frames of a pan", frames.flat());
  line("drawing", draws.flat());
  for (let zoom = 0; zoom < WINDOWS; zoom += 1) {
    line(`  frames, window ${zoom + 1}`, frames[zoom]);
    line(`  drawing, window ${zoom + 1}`, draws[zoom]);
  }
  const heap = await page.evaluate(() => performance.memory?.usedJSHeapSize ?? 0);
  console.log(`caches ${JSON.stringify(await page.evaluate(() => window.__typhon.cache()))}  heap ${(heap / 2 ** 20).toFixed(0)} MiB`);
  await browser.close();
} finally {
  server.kill("SIGINT");
}
