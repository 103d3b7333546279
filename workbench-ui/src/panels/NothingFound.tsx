/** An empty result: what was searched, and what may have been meant (ui-design §8). */

import { visible } from "../format";
import { search } from "../state/actions";
import { meta, names } from "../state/store";
import { nameInFilter, nearestName } from "./nearest";
import { quoted } from "./slowest";

/** Names that occur in the trace; ids below 256 are the kinds, of which only those with events count. */
function occurring(): string[] {
  const present = new Set(meta.value?.kinds.map(({ id }) => id));
  return names.value.texts.filter((_, id) => id >= 256 || present.has(id));
}

export function NothingFound({ text }: { text: string }) {
  const word = nameInFilter(text);
  const near = word === null ? null : nearestName(word.value, occurring());
  const value = near !== null && /^[\w.]+$/.test(near) ? near : quoted(near ?? "");
  return (
    <div class="nothing-found">
      <b>Nothing matches {visible(text)}</b>
      <p>
        {near !== null && word !== null && (
          <>
            Did you mean{" "}
            <button type="button" class="link" onClick={() => void search(text.slice(0, word.from) + value + text.slice(word.to))}>
              {visible(near)}
            </button>
            ?{" "}
          </>
        )}
        The search covers the whole trace, not only the window.
      </p>
    </div>
  );
}
