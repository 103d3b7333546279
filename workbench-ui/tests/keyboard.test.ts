import { describe, expect, it } from "vitest";
import { handledKeys } from "../src/keyboard/dispatch";
import { KEYS, combination, letter, writtenCombination } from "../src/keyboard/keymap";
import { parseTarget, rank } from "../src/panels/floats/commands";

/** What the browser does by itself. */
const NATIVE = ["Alt+ArrowLeft", "Alt+ArrowRight"];

describe("the keyboard map", () => {
  it("does what the help sheet says: every key of it is handled", () => {
    const { plain, go } = handledKeys();
    for (const { group, keys, id } of KEYS) {
      const known = group.startsWith("Go to") ? go : [...plain, ...NATIVE];
      for (const key of keys) expect(known, `${id}: ${key}`).toContain(key);
    }
    expect(go.sort()).toEqual(KEYS.filter(({ group }) => group.startsWith("Go to")).flatMap(({ keys }) => keys).sort());
  });
  it("has each key once", () => {
    const plain = KEYS.filter(({ group }) => !group.startsWith("Go to")).flatMap(({ keys }) => keys);
    expect(new Set(plain).size).toBe(plain.length);
  });
  it("goes by position, with modifiers in front", () => {
    const press = { code: "KeyZ", ctrlKey: false, metaKey: false, altKey: false, shiftKey: false };
    expect(combination(press)).toBe("KeyZ");
    expect(combination({ ...press, metaKey: true, shiftKey: true })).toBe("Ctrl+Shift+KeyZ");
  });
  it("goes by the character where the position has no meaning, as on keyboards that write brackets with AltGr", () => {
    const press = { ctrlKey: false, metaKey: false, altKey: false, shiftKey: false };
    const altGr = { ...press, getModifierState: (name: string) => name === "AltGraph" };
    // German, on Linux, and on Windows, which reports Ctrl and Alt with AltGr.
    for (const event of [altGr, { ...altGr, ctrlKey: true, altKey: true }]) {
      expect(combination({ ...event, code: "Digit0", key: "}" })).toBe("AltGr+Digit0");
      expect(handledKeys().plain).not.toContain("AltGr+Digit0");
      const meant = [["Digit7", "{"], ["Digit8", "["], ["Digit9", "]"], ["Digit0", "}"]].map(([code = "", key = ""]) => writtenCombination({ ...event, code, key }));
      expect(meant).toEqual(["Shift+BracketLeft", "BracketLeft", "BracketRight", "Shift+BracketRight"]);
    }
    expect(writtenCombination({ ...press, shiftKey: true, code: "Minus", key: "?" })).toBe("Shift+Slash");
    expect(writtenCombination({ ...press, shiftKey: true, code: "Digit7", key: "/" })).toBe("Slash");
    // On a Mac, Option.
    expect(writtenCombination({ ...press, altKey: true, code: "Digit5", key: "[" })).toBe("BracketLeft");
    // Commands of the browser stay its own.
    expect(writtenCombination({ ...press, ctrlKey: true, code: "Digit7", key: "/" })).toBeNull();
    expect(writtenCombination({ ...press, altKey: true, code: "Digit7", key: "0" })).toBeNull();
    expect(writtenCombination({ ...press, code: "KeyX", key: "x" })).toBeNull();
  });
  it("shows what is printed on the keys", () => {
    expect(["KeyW", "Shift+BracketRight", "Ctrl+KeyK", "Shift+Slash", "Digit0", "ArrowUp"].map(letter)).toEqual(["W", "}", "Ctrl K", "?", "0", "↑"]);
  });
});

describe("the palette", () => {
  it("understands ticks, moments and ranges", () => {
    expect(parseTarget(":tick 8412")).toEqual({ is: "tick", number: 8412 });
    expect(parseTarget("tick 8,412")).toEqual({ is: "tick", number: 8412 });
    expect(parseTarget(":00:04.321")).toEqual({ is: "moment", ns: 4_321_000_000 });
    expect(parseTarget(":1.2s..1.3s")).toEqual({ is: "range", fromNs: 1_200_000_000, toNs: 1_300_000_000 });
    expect(parseTarget(":800us .. 2ms")).toEqual({ is: "range", fromNs: 800_000, toNs: 2_000_000 });
    for (const nonsense of [":2s..1s", ":1s..2s..3s", ":soon", "AntUpdate"]) expect(parseTarget(nonsense), nonsense).toBeNull();
  });
  it("puts beginnings before words before the rest", () => {
    expect(["Theme", "Light theme", "Anthemed", "Too hot; come in", "Zoom"].map((text) => rank(text, "theme"))).toEqual([0, 1, 2, null, null]);
    expect(rank("AntUpdate", "aue")).toBe(3);
    expect(rank("AntUpdate", "update")).toBe(1);
  });
});
