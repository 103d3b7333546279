import { describe, expect, it } from "vitest";
import css from "../src/style/tokens.css?raw";
import { FAMILY_TOKENS } from "../src/timeline/families";
import { contrast, parseHex } from "../src/timeline/palette";

function block(start: string): Record<string, string> {
  const from = css.indexOf(start);
  const text = css.slice(from, css.indexOf("\n}", from));
  return Object.fromEntries([...text.matchAll(/--([\w-]+):\s*(#[0-9a-f]{3,8})\b/g)].map(([, name, value]) => [name, value]));
}

const dark = block(':root, [data-theme="dark"]');
const light = { ...dark, ...block('[data-theme="light"]') };
const SURFACES = ["bg-app", "bg-canvas", "bg-panel", "bg-raised", "bg-hover", "bg-selected"];
// On a selected row --text-3 becomes --text-2, and nothing says "error" there.
const NEVER_SELECTED = ["text-3", "error"];
const TEXT = ["text", "text-2", "text-3", "accent", "error", "warn", "loss", "live", "slower", "faster"];
const MARKS = ["gc-pause", "gc-outline", "hot", "ovl-1", "ovl-2", "ovl-3", "ovl-4", "ovl-6", "mem-gen0", "mem-gen1", "mem-gen2", "mem-loh", "mem-poh", "mem-committed",
  "off-sync", "off-preempt", "off-quantum", "off-paging", "off-user", "off-idle", "off-other", "loss-hatch", "line-strong", "select", "focus", "search-hit", "fam-other"];

/** Lightness and two axes of colour, in which distances are alike to the eye. */
function oklab(hex: string): [number, number, number] {
  const [r, g, b] = parseHex(hex).map((value) => {
    const share = value / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  }) as [number, number, number];
  const l = Math.cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b);
  const m = Math.cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b);
  const s = Math.cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b);
  return [0.2104542553 * l + 0.793617785 * m - 0.0040720468 * s, 1.9779984951 * l - 2.428592205 * m + 0.4505937099 * s, 0.0259040371 * l + 0.7827717662 * m - 0.808675766 * s];
}

describe.each([["dark", dark], ["light", light]] as const)("contrast, %s", (name, tokens) => {
  const of = (token: string) => {
    const value = tokens[token];
    if (value === undefined) throw new Error(`no token ${token}`);
    return value.slice(0, 7);
  };
  it.each(TEXT)("--%s reads on every surface (4.5:1)", (token) => {
    for (const surface of SURFACES) {
      if (surface === "bg-selected" && NEVER_SELECTED.includes(token)) continue;
      expect(contrast(of(token), of(surface)), `on ${surface}`).toBeGreaterThanOrEqual(4.5);
    }
  });
  it("text on the accent reads", () => expect(contrast(of("accent-ink"), of("accent"))).toBeGreaterThanOrEqual(4.5));
  it.each(MARKS)("--%s shows on the canvas (3:1)", (token) => expect(contrast(of(token), of("bg-canvas"))).toBeGreaterThanOrEqual(3));
  it.each(FAMILY_TOKENS.map((token) => `fam-${token}`))("--%s shows on the canvas and its ink reads", (token) => {
    expect(contrast(of(token), of("bg-canvas"))).toBeGreaterThanOrEqual(3);
    expect(Math.max(contrast(of(token), of("ink-dark")), contrast(of(token), of("ink-light")))).toBeGreaterThanOrEqual(4.5);
  });
  it("families, the pause red and amber can be told apart", () => {
    const colours = [...FAMILY_TOKENS.map((token) => `fam-${token}`), "gc-pause", "hot"].map((token) => [token, oklab(of(token))] as const);
    let least = { distance: 1, pair: "" };
    colours.forEach(([a, x], at) =>
      colours.slice(at + 1).forEach(([b, y]) => {
        const distance = Math.hypot(x[0] - y[0], x[1] - y[1], x[2] - y[2]);
        if (distance < least.distance) least = { distance, pair: `${a}/${b}` };
      }),
    );
    expect(least.distance, least.pair).toBeGreaterThanOrEqual(name === "dark" ? 0.064 : 0.059);
  });
});
