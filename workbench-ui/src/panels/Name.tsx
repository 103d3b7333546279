/** Names of spans, with the colour of their family beside them. */

import { visible } from "../format";
import { KINDS } from "../generated/kinds";
import { type NameTable, meta, names } from "../state/store";
import { familyToken } from "../timeline/families";

const FAMILY_BY_KIND: ReadonlyMap<number, string> = new Map(KINDS.map(({ id, family }) => [id, family]));
const FAMILY_BY_KIND_NAME: ReadonlyMap<string, string> = new Map(KINDS.map(({ name, family }) => [name, family]));

export function familyOfKind(kind: number): string {
  return FAMILY_BY_KIND.get(kind) ?? "unlisted";
}

let indexed: { of: NameTable; byText: Map<string, number> } | null = null;

/** The id of a name; of several with the same text the last, which is the least general. */
export function nameId(text: string): number | undefined {
  const of = names.value;
  if (indexed?.of !== of) indexed = { of, byText: new Map(of.texts.map((name, id) => [name, id])) };
  return indexed.byText.get(text);
}

/** The family of what a statistics row is about. */
export function familyOfKey(by: string, key: string): string {
  if (by === "family") return key;
  if (by === "system") return "Scheduler.Chunk";
  if (by === "thread") return "unlisted";
  const own = FAMILY_BY_KIND_NAME.get(key);
  if (own !== undefined) return own;
  const id = nameId(key);
  return id === undefined ? "unlisted" : familyOfKind(names.value.kinds[id] ?? -1);
}

export function Swatch({ family }: { family: string }) {
  return <i class="swatch" aria-hidden="true" style={{ background: `var(--fam-${familyToken(family)})` }} />;
}

/** A name by its id. */
export function NameOf({ id }: { id: number }) {
  const text = names.value.texts[id];
  return (
    <>
      <Swatch family={familyOfKind(names.value.kinds[id] ?? -1)} />
      {text === undefined ? "other names" : visible(text)}
    </>
  );
}

export function laneLabel(lane: number | undefined): string {
  const label = lane === undefined ? undefined : meta.value?.lanes.find(({ id }) => id === lane)?.label;
  return label === undefined ? "no lane" : visible(label);
}
