/** All keys, with the letters of the user's own keyboard. */

import { KEYS, letter } from "../../keyboard/keymap";
import { Dialog, closeFloat } from "./Dialog";

const GROUPS = [...new Set(KEYS.map(({ group }) => group))];

export function Help() {
  return (
    <Dialog label="Keys" className="help">
      <header>
        <h2>Keys</h2>
        <button type="button" class="icon-button" aria-label="Close" data-autofocus onClick={closeFloat}>
          ×
        </button>
      </header>
      <div class="help-groups">
        {GROUPS.map((group) => (
          <section key={group}>
            <h3>{group}</h3>
            <dl>
              {KEYS.filter((line) => line.group === group).map(({ id, text, keys }) => (
                <div key={id}>
                  <dt>{text}</dt>
                  <dd>
                    {keys.map((combination) => (
                      <kbd key={combination}>{letter(combination)}</kbd>
                    ))}
                  </dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
        <section>
          <h3>Mouse</h3>
          <dl>
            {[
              ["zoom at the cursor", "wheel"],
              ["pan", "drag, Shift wheel"],
              ["scroll the lanes", "Ctrl wheel"],
              ["show a range", "drag on ruler or minimap"],
              ["select a range", "Shift drag"],
              ["zoom to a box", "Ctrl drag"],
              ["add to the selection", "Shift click"],
              ["fit a span", "double-click"],
            ].map(([text, how]) => (
              <div key={text}>
                <dt>{text}</dt>
                <dd class="text-2">{how}</dd>
              </div>
            ))}
          </dl>
        </section>
      </div>
    </Dialog>
  );
}
