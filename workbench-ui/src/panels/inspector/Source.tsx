/** The place in the program, with the lines around it where they may be read. */

import { visible } from "../../format";
import type { EventDetail } from "../../protocol/types";
import { useRequest } from "../useRequest";
import { Section } from "./Facts";

const AROUND = 3;
const NO_LINES =
  "The lines around it are not below a folder of sources: by default that is the repository around the folder in which typhon ui was started; --source-root DIR names another.";

export function SourceOf({ of }: { of: EventDetail }) {
  const site = of.site;
  const answer = useRequest(site?.hasSource ? (api, signal) => api.source(site.id, signal) : null, [site?.id]);
  if (site === null) return null;
  if (site.file === null) {
    return (
      <Section title="Source">
        <p class="text-3" title={`Place ${site.id} of the program`}>
          The recording does not say which line this is.
        </p>
      </Section>
    );
  }
  const source = answer.value;
  const lines = source?.lines.map((text, at) => ({ number: source.firstLine + at, text })) ?? [];
  const near = lines.filter(({ number }) => Math.abs(number - (site.line ?? 0)) <= AROUND);
  return (
    <Section title="Source">
      <p class="source-path mono">{`${visible(site.file)}:${site.line ?? "?"}`}</p>
      {site.method !== null && site.method !== "" && <p class="text-2">in {visible(site.method)}</p>}
      {near.length > 0 ? (
        <pre class="source-lines">
          {near.map(({ number, text }) => (
            <div key={number} class={number === site.line ? "is-here" : ""}>
              <span class="text-3">{number}</span>
              {visible(text)}
            </div>
          ))}
        </pre>
      ) : (
        <p class="text-3">{answer.problem ? visible(answer.problem.detail) : site.hasSource ? "" : NO_LINES}</p>
      )}
    </Section>
  );
}
