import { bytes, count } from "../format";
import { KEYS, letter } from "../keyboard/keymap";
import { setLayout } from "../state/actions";
import { filter, meta, notices } from "../state/store";
import { notShown } from "./notices";

const HINTS = ["zoom", "pan", "tick", "slowTick", "help"] as const;

export function StatusBar() {
  const facts = meta.value;
  const lost = notices.value === null ? 0 : notShown(notices.value, facts?.totals.withheldEvents ?? 0);
  return (
    <footer class="status-bar">
      {facts !== null && (
        <span>
          {count(facts.totals.events)} events · {count(facts.file.blocks)} blocks · {bytes(facts.file.bytes)}
        </span>
      )}
      {lost > 0 && (
        <button type="button" class="loss" onClick={() => setLayout({ inspectorTab: "notices", isInspectorOpen: true })}>
          {count(lost)} events not shown
        </button>
      )}
      {filter.value.is === "ready" && <span>{count(filter.value.matches)} hits</span>}
      <span class="status-keys">
        {HINTS.map((name) => {
          const key = KEYS.find((one) => one.id === name);
          return key === undefined ? null : (
            <span key={name}>
              {key.keys.slice(0, 2).map((combination) => (
                <kbd key={combination}>{letter(combination)}</kbd>
              ))}{" "}
              {key.short ?? key.text}
            </span>
          );
        })}
      </span>
    </footer>
  );
}
