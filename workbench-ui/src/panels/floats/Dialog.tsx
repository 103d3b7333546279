/** A float over the page: focus goes in, stays in, and comes back; Escape and a click beside it close it. */

import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { openFloat } from "../../state/store";

export function closeFloat(): void {
  openFloat.value = "none";
}

export function Dialog(props: { label: string; className: string; children: ComponentChildren }) {
  const frame = useRef<HTMLDivElement>(null);
  // Before the next key arrives: an effect after the paint would leave the first letters of a quick typist to the page.
  useLayoutEffect(() => {
    const before = document.activeElement;
    const first = frame.current?.querySelector<HTMLElement>("[data-autofocus]") ?? frame.current;
    first?.focus();
    return () => {
      if (before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, []);
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Escape") {
      event.preventDefault();
      event.stopPropagation();
      return closeFloat();
    }
    if (event.key !== "Tab") return;
    const all = [...(frame.current?.querySelectorAll<HTMLElement>('button:not([disabled]):not([tabindex="-1"]), input, [tabindex="0"]') ?? [])];
    const [first, last] = [all[0], all[all.length - 1]];
    const here = document.activeElement;
    if (event.shiftKey && (here === first || here === frame.current)) last?.focus();
    else if (!event.shiftKey && here === last) first?.focus();
    else return;
    event.preventDefault();
  };
  return (
    <div class="float-back" onPointerDown={(event) => event.target === event.currentTarget && closeFloat()}>
      <div class={`float ${props.className}`} role="dialog" aria-modal="true" aria-label={props.label} tabIndex={-1} ref={frame} onKeyDown={onKeyDown}>
        {props.children}
      </div>
    </div>
  );
}
