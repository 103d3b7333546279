/** The name that a mistyped one is nearest to. Pure. */

/** Edits (insert, remove, replace, swap of neighbours) from one text to the other, at most `limit` + 1. */
export function editDistance(a: string, b: string, limit: number): number {
  if (Math.abs(a.length - b.length) > limit) return limit + 1;
  let before: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, at) => at);
  for (let i = 1; i <= a.length; i += 1) {
    const row = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const cost = a[i - 1] === b[j - 1] ? 0 : 1;
      let least = Math.min((last[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, (last[j - 1] ?? 0) + cost);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) least = Math.min(least, (before[j - 2] ?? 0) + 1);
      row.push(least);
    }
    [before, last] = [last, row];
  }
  return last[b.length] ?? limit + 1;
}

/** The nearest of some names, if it is near enough to have been meant. */
export function nearestName(text: string, names: readonly string[]): string | null {
  const wanted = text.toLowerCase();
  const limit = Math.max(1, Math.floor(wanted.length / 3));
  let best: string | null = null;
  let least = limit + 1;
  for (const name of names) {
    const distance = editDistance(wanted, name.toLowerCase(), limit);
    if (distance > 0 && distance < least) [best, least] = [name, distance];
  }
  return best;
}

/** The first name in a filter: the value of `name=` or `kind=`, or a bare word. With its place in the text. */
export function nameInFilter(text: string): { value: string; from: number; to: number } | null {
  for (const match of text.matchAll(/(?:\b(?:name|kind|system)\s*=\s*)("[^"]*"|[^\s|()]+)|(?<![\w.=<>~!*])([A-Za-z_][\w.]*)(?=\s|$)/g)) {
    const found = match[1] ?? match[2];
    if (found === undefined) continue;
    const from = match.index + match[0].lastIndexOf(found);
    return { value: found.replace(/^"|"$/g, ""), from, to: from + found.length };
  }
  return null;
}
