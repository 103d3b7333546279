import { describe, expect, it } from "vitest";
import { type Link, formatLink, parseLink } from "../src/state/permalink";

describe("permalink", () => {
  it("comes back as it went", () => {
    const link: Link = {
      window: { fromNs: 1_332_409_000, toNs: 1_368_409_000 }, range: { fromNs: 1_340_000_000, toNs: 1_350_000_001 }, event: "118.84", panels: { inspector: "inspector", bottom: "top" },
      filter: "name=Spider* dur>100us & x=#", colour: "duration", session: "2",
    };
    expect(parseLink(`#${formatLink(link)}`)).toEqual(link);
  });
  it("keeps folded panels folded", () => {
    const link: Link = { panels: { inspector: null, bottom: null } };
    expect(parseLink(formatLink(link))).toEqual(link);
  });
  it.each(["#t=5..5", "#t=9..2", "#t=a..b", "#r=7..7", "#r=1", "#e=<script>", "#c=rainbow", "#f=%E0%A4%A", "#", "", "#&&=&t"])("ignores %s", (fragment) => {
    expect(parseLink(fragment)).toEqual({});
  });
  it("never holds a token", () => expect(formatLink(parseLink("#token=secret&t=1..2"))).toBe("t=1..2"));
});
