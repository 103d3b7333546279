/** How texts from a trace are shown. Pure. */

// C0, DEL, C1, and what changes the direction of the text around it.
const UNSAFE = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff]/g;

/** Control and direction characters as `\x1b`, `\u202e`. */
export function visible(text: string): string {
  return text.replace(UNSAFE, (character) => {
    const code = character.charCodeAt(0);
    return code < 256 ? `\\x${code.toString(16).padStart(2, "0")}` : `\\u${code.toString(16).padStart(4, "0")}`;
  });
}

const segments = new Intl.Segmenter(undefined, { granularity: "grapheme" });

/**
 * The longest beginning of a text that fits, with an ellipsis when something is cut; empty when fewer than `least`
 * letters would be left. `width` measures.
 */
export function elide(text: string, room: number, width: (text: string) => number, least = 2): string {
  if (width(text) <= room) return text;
  const characters = [...segments.segment(text)].map(({ segment }) => segment);
  let fits = 0;
  let tooMany = characters.length;
  while (fits + 1 < tooMany) {
    const middle = (fits + tooMany) >> 1;
    if (width(`${characters.slice(0, middle).join("")}…`) <= room) fits = middle;
    else tooMany = middle;
  }
  return fits < least ? "" : `${characters.slice(0, fits).join("").trimEnd()}…`;
}

/** A path that is cut at its left. */
export function elidePath(path: string, room: number, width: (text: string) => number): string {
  if (width(path) <= room) return path;
  const parts = path.split("/");
  for (let from = 1; from < parts.length; from += 1) {
    const shorter = `…/${parts.slice(from).join("/")}`;
    if (width(shorter) <= room) return shorter;
  }
  return `…${path.slice(-8)}`;
}

const CAPPED: Record<string, string> = {
  ratesRealms: "realms of rates",
  runnableRealms: "runnable realms",
  reportedSessions: "sessions",
};

/** What the rows are that the engine left out of a record (B-5). */
export function cappedNoun(what: string): string {
  return CAPPED[what] ?? what;
}
