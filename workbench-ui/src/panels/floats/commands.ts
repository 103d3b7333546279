/** What the palette understands. Times and ticks are pure; the list of commands is in `Palette.tsx`. */

export type Target = { is: "tick"; number: number } | { is: "moment"; ns: number } | { is: "range"; fromNs: number; toNs: number };

const UNITS: Record<string, number> = { ns: 1, us: 1e3, µs: 1e3, ms: 1e6, s: 1e9, m: 60e9, min: 60e9, h: 3600e9 };

/** `1.2s`, `800us`, `00:04.321`, `1:02:03`: ns since the start. */
export function parseTime(text: string): number | null {
  const clock = /^(?:(\d+):)?(\d{1,2}):(\d{1,2}(?:\.\d+)?)$/.exec(text);
  if (clock) return Math.round((Number(clock[1] ?? 0) * 3600 + Number(clock[2]) * 60 + Number(clock[3])) * 1e9);
  const number = /^(\d[\d,]*(?:\.\d+)?)\s*(ns|us|µs|ms|s|min|m|h)$/.exec(text);
  if (!number) return null;
  const unit = UNITS[number[2] ?? ""];
  return unit === undefined ? null : Math.round(Number((number[1] ?? "").replaceAll(",", "")) * unit);
}

/** `:tick 8412`, `:00:04.321`, `:1.2s..1.3s` (B-36). */
export function parseTarget(text: string): Target | null {
  const rest = text.trim().replace(/^:/, "").trim();
  const tick = /^(?:tick|t)\s*(\d[\d,]*)$/i.exec(rest);
  if (tick) return { is: "tick", number: Number((tick[1] ?? "").replaceAll(",", "")) };
  const [from, to, more] = rest.split("..").map((part) => parseTime(part.trim()));
  if (more !== undefined) return null;
  if (from != null && to != null) return to > from ? { is: "range", fromNs: from, toNs: to } : null;
  return from != null && to === undefined ? { is: "moment", ns: from } : null;
}

/**
 * How well a text answers a query: lower is better, null not at all. Beginnings of the text and of words come before what is
 * inside, letters in order last.
 */
export function rank(text: string, query: string): number | null {
  const [hay, needle] = [text.toLowerCase(), query.trim().toLowerCase()];
  if (needle === "") return 0;
  const at = hay.indexOf(needle);
  if (at === 0) return 0;
  if (at > 0) return /[\s\-_.:]/.test(hay[at - 1] ?? "") || /[A-Z]/.test(text[at] ?? "") ? 1 : 2;
  let from = 0;
  for (const letter of needle) {
    from = hay.indexOf(letter, from) + 1;
    if (from === 0) return null;
  }
  return 3;
}
