/** Which of the two themes is shown (B-39): the one that was chosen, else the system's, and dark where that has none. */

import { effect } from "@preact/signals";
import { type Theme, theme } from "./store";

/** `prefersLight` is what the system says. */
export function shownTheme(chosen: Theme, prefersLight: boolean): "dark" | "light" {
  if (chosen !== "system") return chosen;
  return prefersLight ? "light" : "dark";
}

/** Shows it, from now on: another choice and another setting of the system are followed at once. */
export function followTheme(): void {
  const systemIsLight = matchMedia("(prefers-color-scheme: light)");
  const show = () => {
    document.documentElement.dataset["theme"] = shownTheme(theme.value, systemIsLight.matches);
  };
  effect(show);
  systemIsLight.addEventListener("change", show);
}
