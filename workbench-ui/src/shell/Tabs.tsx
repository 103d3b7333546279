/** A row of tabs: one tab stop, arrows move. */

export function Tabs<T extends string>(props: {
  label: string;
  tabs: readonly (readonly [T, string])[];
  active: T | null;
  choose(tab: T): void;
}) {
  const onKeyDown = (event: KeyboardEvent) => {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (step === 0) return;
    event.preventDefault();
    event.stopPropagation();
    const at = props.tabs.findIndex(([tab]) => tab === props.active);
    const next = (Math.max(at, 0) + step + props.tabs.length) % props.tabs.length;
    const chosen = props.tabs[next];
    if (chosen) props.choose(chosen[0]);
    const buttons = (event.currentTarget as HTMLElement).querySelectorAll<HTMLElement>('[role="tab"]');
    buttons[next]?.focus();
  };
  return (
    <div class="tabs">
      <div role="tablist" aria-label={props.label} onKeyDown={onKeyDown}>
        {props.tabs.map(([tab, text], at) => (
          <button
            type="button"
            role="tab"
            key={tab}
            aria-selected={tab === props.active}
            tabIndex={tab === props.active || (props.active === null && at === 0) ? 0 : -1}
            onClick={() => props.choose(tab)}
          >
            {text}
          </button>
        ))}
      </div>
    </div>
  );
}
