/** Lines of a label, a value and what stands behind it. */

import type { ComponentChildren } from "preact";

export function Section(props: { title: string; aside?: ComponentChildren; children: ComponentChildren }) {
  return (
    <section class="facts">
      <h3>
        <span>{props.title}</span>
        {props.aside !== undefined && <span class="facts-aside">{props.aside}</span>}
      </h3>
      {props.children}
    </section>
  );
}

export function Fact(props: { name: string; children: ComponentChildren; aside?: ComponentChildren; hint?: string | undefined; note?: string | null }) {
  return (
    <div class="fact" title={props.hint}>
      <dt>{props.name}</dt>
      <dd>
        {props.children}
        {props.aside !== undefined && props.aside !== "" && <span class="text-3"> {props.aside}</span>}
        {props.note && <small class="fact-note">{props.note}</small>}
      </dd>
    </div>
  );
}
