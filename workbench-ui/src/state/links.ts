/** What the primary event waited for, and what waited for it (B-20): asked for whenever another event is selected. */

import { effect } from "@preact/signals";
import { Latest } from "../protocol/latest";
import { report } from "./actions";
import * as s from "./store";

const asking = new Latest();

export function followLinks(): void {
  effect(() => {
    const [api, event] = [s.sessionApi.value, s.primary.value?.event ?? null];
    if (s.links.peek()?.event !== event) s.links.value = null;
    if (api === null || event === null || !s.isReady.value) return asking.abort();
    void asking
      .run((signal) => api.links(event, signal))
      .then((found) => {
        if (found !== undefined) s.links.value = { ...found, event };
      })
      .catch(report);
  });
}
