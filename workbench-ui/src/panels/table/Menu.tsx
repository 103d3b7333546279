/** A button with a list of things to do. */

import { useLayoutEffect, useRef, useState } from "preact/hooks";

export interface MenuItem {
  text: string;
  run(): void;
}

export function Menu({ label, items }: { label: string; items: readonly MenuItem[] }) {
  const [isOpen, setOpen] = useState(false);
  const frame = useRef<HTMLDivElement>(null);
  const buttons = () => [...(frame.current?.querySelectorAll<HTMLElement>('[role="menuitem"]') ?? [])];

  useLayoutEffect(() => {
    if (!isOpen) return;
    buttons()[0]?.focus();
    const leave = (event: Event) => {
      if (!frame.current?.contains(event.target as Node)) setOpen(false);
    };
    document.addEventListener("pointerdown", leave);
    document.addEventListener("focusin", leave);
    return () => {
      document.removeEventListener("pointerdown", leave);
      document.removeEventListener("focusin", leave);
    };
  }, [isOpen]);

  const close = () => {
    setOpen(false);
    frame.current?.querySelector<HTMLElement>("[aria-haspopup]")?.focus();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const all = buttons();
    const at = all.indexOf(document.activeElement as HTMLElement);
    const next = { ArrowDown: at + 1, ArrowUp: at - 1 + all.length, Home: 0, End: all.length - 1 }[event.key];
    if (event.key === "Escape") close();
    else if (next !== undefined) all[next % all.length]?.focus();
    else return;
    event.preventDefault();
    event.stopPropagation();
  };

  return (
    <div class="menu-frame" ref={frame}>
      <button type="button" class="link" aria-haspopup="menu" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        {label}
      </button>
      {isOpen && (
        <div class="menu" role="menu" aria-label={label} onKeyDown={onKeyDown}>
          {items.map(({ text, run }) => (
            <button
              type="button"
              role="menuitem"
              key={text}
              tabIndex={-1}
              onClick={() => {
                close();
                run();
              }}
            >
              {text}
            </button>
          ))}
        </div>
      )}
    </div>
  );
}
