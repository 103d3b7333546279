/** Exact durations for labels: tiles know them to a bucket only, so the server is asked, a few at a time. */

import { isAbort } from "../protocol/http";
import { sessionApi } from "../state/store";

const AT_ONCE = 4;
const MOST_KNOWN = 20_000;

interface Wish {
  lane: number;
  row: number;
  index: number;
}

const keyOf = ({ lane, row, index }: Wish) => `${lane}/${row}/${index}`;

export class Durations {
  private readonly known = new Map<string, number>();
  private queue: Wish[] = [];
  private running = 0;
  private controller = new AbortController();
  private readonly changed: () => void;

  constructor(changed: () => void) {
    this.changed = changed;
  }

  get(lane: number, row: number, index: number): number | null {
    const ns = this.known.get(keyOf({ lane, row, index }));
    return ns === undefined || Number.isNaN(ns) ? null : ns;
  }

  /** Wants these, the first ones first; what was wanted before and is not now is forgotten. */
  want(wishes: Wish[]): void {
    this.queue = wishes.filter((wish) => !this.known.has(keyOf(wish)));
    while (this.running < AT_ONCE && this.queue.length > 0) void this.next();
  }

  clear(): void {
    this.controller.abort();
    this.controller = new AbortController();
    this.queue = [];
    this.known.clear();
  }

  private async next(): Promise<void> {
    const wish = this.queue.shift();
    const api = sessionApi.value;
    if (wish === undefined || api === null) return;
    this.running += 1;
    const { signal } = this.controller;
    try {
      const detail = await api.at(wish, signal);
      if (signal.aborted) return;
      if (this.known.size > MOST_KNOWN) this.known.clear();
      this.known.set(keyOf(wish), Math.max(detail.durationNs ?? 0, 0));
    } catch (error) {
      // A label without its duration is still right; the inspector says what is wrong with the record.
      if (!isAbort(error)) this.known.set(keyOf(wish), Number.NaN);
    } finally {
      this.running -= 1;
    }
    this.changed();
    if (!signal.aborted) void this.next();
  }
}
