import { count, duration, visible } from "../format";
import { SearchField } from "../panels";
import { setColourMode, setTheme, setTimeDisplay } from "../state/actions";
import { closeSession } from "../state/sessions";
import {
  type ColourMode,
  type Theme,
  activeId,
  activeSession,
  colourMode,
  meta,
  openFloat,
  sessions,
  theme,
  timeDisplay,
} from "../state/store";
import { asidesOf } from "./asides";

const TIMES = [
  ["start", "Since start"],
  ["clock", "Clock"],
  ["tick", "Tick"],
  ["raw", "Raw"],
] as const;
const COLOURS: readonly [ColourMode, string][] = [
  ["family", "Family"],
  ["system", "System"],
  ["duration", "Duration"],
];
const NEXT_THEME: Record<Theme, Theme> = { dark: "light", light: "system", system: "dark" };

function Segments<T extends string>(props: { label: string; values: readonly (readonly [T, string])[]; now: T; set(value: T): void }) {
  return (
    <div class="segments" role="group" aria-label={props.label}>
      {props.values.map(([value, text]) => (
        <button type="button" key={value} aria-pressed={props.now === value} onClick={() => props.set(value)}>
          {text}
        </button>
      ))}
    </div>
  );
}

function SessionTabs() {
  const asides = asidesOf(sessions.value);
  return (
    <div class="sessions" role="tablist" aria-label="Sessions">
      {sessions.value.map(({ id, name, path }, at) => {
        const isActive = id === activeId.value;
        const facts = isActive ? meta.value : null;
        const ticks = facts === null ? "" : facts.ticks.count > 0 ? `${count(facts.ticks.count)} ticks` : duration(facts.time.endNs);
        return (
          <button
            type="button"
            key={id}
            role="tab"
            class="session-tab"
            aria-selected={isActive}
            title={visible(path)}
            onClick={() => (activeId.value = id)}
            onAuxClick={() => void closeSession(id)}
          >
            <span>{visible(name)}</span>
            {asides[at] && <small>{visible(asides[at])}</small>}
            {ticks && <small>{ticks}</small>}
          </button>
        );
      })}
    </div>
  );
}

export function TitleBar() {
  const open = activeSession.value;
  const hasRaw = meta.value?.time.zeroTicks !== undefined;
  return (
    <header class="title-bar">
      <div class="brand">
        <svg width="20" height="20" viewBox="0 0 20 20" fill="none" stroke-width="2" stroke-linecap="round" aria-hidden="true">
          <path stroke="var(--accent)" d="M10 2a8 8 0 1 1-7.4 5" />
          <path stroke="var(--fam-sched)" d="M10 6a4 4 0 1 1-3.9 3.2" />
        </svg>
        Typhon
      </div>
      <SessionTabs />
      <button type="button" class="icon-button" aria-label="Open a trace" title="Open a trace" onClick={() => (openFloat.value = "open")}>
        +
      </button>
      {open !== null && sessions.value.length > 1 && (
        <button type="button" class="icon-button" aria-label={`Close ${visible(open.name)}`} title="Close this session" onClick={() => void closeSession(open.id)}>
          ×
        </button>
      )}
      <div class="title-search">
        <SearchField />
      </div>
      <div class="title-right">
        <div class="title-right title-switches">
          <Segments label="Time" values={hasRaw ? TIMES : TIMES.filter(([mode]) => mode !== "raw")} now={timeDisplay.value} set={setTimeDisplay} />
          <Segments label="Colour by" values={COLOURS} now={colourMode.value} set={setColourMode} />
        </div>
        <button
          type="button"
          class="icon-button"
          aria-label={`Theme: ${theme.value}`}
          title={`Theme: ${theme.value}`}
          onClick={() => setTheme(NEXT_THEME[theme.value])}
        >
          <svg width="14" height="14" viewBox="0 0 14 14" aria-hidden="true">
            <circle cx="7" cy="7" r="5.5" fill="none" stroke="currentColor" stroke-width="1.5" />
            <path d="M7 1.5a5.5 5.5 0 0 1 0 11z" fill="currentColor" />
          </svg>
        </button>
        <button type="button" class="icon-button" aria-label="Keys" title="Keys (?)" onClick={() => (openFloat.value = "help")}>
          ?
        </button>
      </div>
    </header>
  );
}
