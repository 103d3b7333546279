import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import * as store from "../src/state/store";
import { followTheme, shownTheme } from "../src/state/theme";

describe("theme", () => {
  const root = { dataset: {} as Record<string, string> };
  let systemChanges = () => {};
  const system = { matches: false, addEventListener: (_: string, listener: () => void) => void (systemChanges = listener) };

  beforeEach(() => {
    vi.stubGlobal("document", { documentElement: root });
    vi.stubGlobal("matchMedia", (query: string) => {
      expect(query).toBe("(prefers-color-scheme: light)");
      return system;
    });
  });
  afterEach(() => void vi.unstubAllGlobals());

  it("is the system's until one is chosen, and dark where the system has none", () => {
    expect(store.theme.peek()).toBe("system");
    expect([shownTheme("system", true), shownTheme("system", false)]).toEqual(["light", "dark"]);
    for (const prefersLight of [true, false]) expect([shownTheme("dark", prefersLight), shownTheme("light", prefersLight)]).toEqual(["dark", "light"]);
  });

  it("follows the system while the page is open, until one is chosen", () => {
    const set = (isLight: boolean) => {
      system.matches = isLight;
      systemChanges();
      return root.dataset["theme"];
    };
    followTheme();
    expect(root.dataset["theme"]).toBe("dark");
    expect([set(true), set(false), set(true)]).toEqual(["light", "dark", "light"]);
    store.theme.value = "dark";
    expect(root.dataset["theme"]).toBe("dark");
    expect([set(false), set(true)]).toEqual(["dark", "dark"]);
    store.theme.value = "system";
    expect(root.dataset["theme"]).toBe("light");
  });
});
