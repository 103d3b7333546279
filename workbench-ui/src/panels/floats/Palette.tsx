/** Commands, lanes, names, panels and times by a few letters (B-36). */

import { useSignal } from "@preact/signals";
import { count, duration, instant, visible } from "../../format";
import { focusPanel, focusSearch, showTable, toggleMeasuring } from "../../keyboard/dispatch";
import { letter } from "../../keyboard/keymap";
import { announce, reveal, search, setColourMode, setLaneView, setLayout, setTheme, setTimeDisplay, showRange, showSelection, showTick, showWhole, stepSlowTick, stepTick, toggleLane } from "../../state/actions";
import { type ColourMode, DEFAULT_LAYOUT, EMPTY_LANE_VIEW, laneView, meta, names, openFloat, selection, ticks } from "../../state/store";
import { addBookmark } from "../Bookmarks";
import { laneItems } from "../Lanes";
import { setSearchMode } from "../SearchField";
import { filterOf } from "../slowest";
import { type Target, parseTarget, rank } from "./commands";
import { Dialog, closeFloat } from "./Dialog";

interface Command {
  text: string;
  aside?: string;
  keys?: string;
  run(): void;
}

const COLOURS: readonly [ColourMode, string][] = [
  ["family", "family"],
  ["kind", "kind"],
  ["system", "system"],
  ["thread", "thread"],
  ["duration", "duration"],
  ["depth", "depth"],
];

function fixed(): Command[] {
  const list: Command[] = [
    { text: "Whole trace", keys: "Digit0", run: showWhole },
    { text: "Next slowest tick", keys: "Shift+BracketRight", run: () => stepSlowTick(1) },
    { text: "Next tick", keys: "BracketRight", run: () => stepTick(1) },
    { text: "Previous tick", keys: "BracketLeft", run: () => stepTick(-1) },
    { text: "Search", keys: "Slash", run: focusSearch },
    { text: "Show statistics", run: () => showTable("statistics") },
    { text: "Show longest spans", run: () => showTable("top") },
    { text: "Show ticks as table", run: () => showTable("ticks") },
    { text: "Show collections as table", run: () => showTable("collections") },
    { text: "Show gauges as table", run: () => showTable("gauges") },
    { text: "Show search results", run: () => showTable("search") },
    { text: "Show lanes", run: () => setLayout({ inspectorTab: "lanes", isInspectorOpen: true }) },
    { text: "Show notices", run: () => setLayout({ inspectorTab: "notices", isInspectorOpen: true }) },
    { text: "Show bookmarks", run: () => setLayout({ inspectorTab: "bookmarks", isInspectorOpen: true }) },
    { text: "Go to the timeline", run: () => focusPanel("timeline") },
    { text: "Set bookmark", keys: "KeyM", run: addBookmark },
    { text: "Measure", keys: "KeyR", run: toggleMeasuring },
    { text: "Dim what does not match", run: () => setSearchMode("dim") },
    { text: "Hide what does not match", run: () => setSearchMode("isolate") },
    { text: "End the search", run: () => void search("") },
    { text: "Show all lanes", run: () => setLaneView(EMPTY_LANE_VIEW) },
    { text: "Panels as they were", aside: "sizes and tabs of the design", run: () => setLayout(DEFAULT_LAYOUT) },
    { text: "Dark theme", run: () => setTheme("dark") },
    { text: "Light theme", run: () => setTheme("light") },
    { text: "Theme of the system", run: () => setTheme("system") },
    { text: "Times since start", run: () => setTimeDisplay("start") },
    { text: "Times of the clock (UTC)", run: () => setTimeDisplay("clock") },
    { text: "Times within ticks", run: () => setTimeDisplay("tick") },
    { text: "Times in clock ticks", run: () => setTimeDisplay("raw") },
    { text: "Open a trace", run: () => (openFloat.value = "open") },
    { text: "Keys", keys: "Shift+Slash", run: () => (openFloat.value = "help") },
    ...COLOURS.map(([mode, text]) => ({ text: `Colour by ${text}`, run: () => setColourMode(mode) })),
  ];
  if (selection.value.length > 0) list.unshift({ text: "Fit the selection", keys: "KeyZ", run: showSelection });
  return list;
}

/** Rank of a tick by duration, from 1. */
function slowness(place: number): number {
  const own = ticks.value.durationNs[place] ?? 0;
  return 1 + ticks.value.durationNs.filter((other) => (other ?? 0) > own).length;
}

function ofTarget(target: Target): Command[] {
  switch (target.is) {
    case "tick": {
      const place = ticks.value.numbers.indexOf(target.number);
      if (place < 0) return [];
      const length = ticks.value.durationNs[place] ?? null;
      const order = slowness(place);
      const aside = `${length === null ? "no end" : duration(length)}, ${order === 1 ? "the slowest" : `number ${count(order)} by duration`}`;
      return [{ text: `Go to tick ${count(target.number)}`, aside, run: () => showTick(place) }];
    }
    case "moment":
      return [{ text: `Go to ${instant(target.ns)}`, run: () => reveal({ fromNs: target.ns, toNs: target.ns + 1 }) }];
    case "range":
      return [
        {
          text: `Show ${instant(target.fromNs)} – ${instant(target.toNs)}`,
          aside: duration(target.toNs - target.fromNs),
          run: () => showRange(target, 0),
        },
      ];
  }
}

function ofTrace(): Command[] {
  const lanes = laneItems().map(({ key, label }) => {
    const isHidden = laneView.value.hidden.includes(key);
    const isPinned = laneView.value.pinned.includes(key);
    return [
      { text: `${isPinned ? "Unpin" : "Pin"} lane ${visible(label)}`, run: () => toggleLane("pinned", key) },
      { text: `${isHidden ? "Show" : "Hide"} lane ${visible(label)}`, run: () => toggleLane("hidden", key) },
    ];
  });
  const present = new Set(meta.value?.kinds.map(({ id }) => id));
  const spans = names.value.texts
    .map((text, id) => ({ text, id }))
    .filter(({ id }) => id >= 256 || present.has(id))
    .map(({ text, id }) => ({ text: `Find ${visible(text)}`, run: () => void search(filterOf(id < 256 ? "kind" : "name", text)) }));
  return [...spans, ...lanes.flat()];
}

/** What is said when nothing answers. */
function nothing(query: string): string {
  if (!query.startsWith(":") && parseTarget(query) === null) return "No command, lane or name has these letters.";
  const { numbers } = ticks.value;
  if (parseTarget(query)?.is !== "tick") return "Write :tick 12, :1.2s, :00:04.321 or :1.2s..1.3s, within the trace.";
  if (numbers.length === 0) return "This recording has no ticks.";
  return `There is no such tick: the recording has ${count(numbers[0] ?? 0)} to ${count(numbers[numbers.length - 1] ?? 0)}.`;
}

const SHOWN = 12;

function answers(query: string): Command[] {
  if (meta.value === null) return fixed().filter(({ text }) => /theme|Open|Keys/.test(text) && rank(text, query) !== null);
  const target = parseTarget(query);
  if (target !== null) return ofTarget(target);
  if (query.startsWith(":")) return [];
  const all = query.trim() === "" ? fixed() : [...fixed(), ...ofTrace()];
  return all
    .map((command) => ({ command, order: rank(command.text, query) }))
    .filter((one): one is { command: Command; order: number } => one.order !== null)
    .sort((a, b) => a.order - b.order)
    .slice(0, SHOWN)
    .map(({ command }) => command);
}

export function Palette() {
  const query = useSignal("");
  const at = useSignal(0);
  const list = answers(query.value);
  const active = Math.min(at.value, list.length - 1);
  const run = (command: Command | undefined) => {
    if (command === undefined) return;
    closeFloat();
    command.run();
    announce(command.text);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined) at.value = (active + step + list.length) % Math.max(list.length, 1);
    else if (event.key === "Enter") run(list[active]);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <Dialog label="Commands" className="palette">
      <div class="palette-line">
        <input
          type="text"
          data-autofocus
          role="combobox"
          aria-label="Command, lane, name, :tick 12, :1.2s..1.3s"
          aria-expanded="true"
          aria-controls="palette-list"
          aria-activedescendant={list.length > 0 ? `palette-${active}` : undefined}
          placeholder="Command, lane, name, :tick 12, :1.2s..1.3s"
          spellcheck={false}
          autocomplete="off"
          value={query.value}
          onInput={({ currentTarget }) => {
            query.value = currentTarget.value;
            at.value = 0;
          }}
          onKeyDown={onKeyDown}
        />
        <kbd>Esc</kbd>
      </div>
      <ul id="palette-list" role="listbox" aria-label="Commands">
        {list.map((command, index) => (
          <li
            key={command.text}
            id={`palette-${index}`}
            role="option"
            aria-selected={index === active}
            onPointerMove={() => (at.value = index)}
            onClick={() => run(command)}
          >
            <span>{command.text}</span>
            {command.aside && <span class="text-3">{command.aside}</span>}
            {command.keys && <kbd>{letter(command.keys)}</kbd>}
          </li>
        ))}
      </ul>
      {list.length === 0 && (
        <p class="palette-none text-2">{nothing(query.value)}</p>
      )}
    </Dialog>
  );
}
