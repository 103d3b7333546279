/** The search that is under way. */

import { Latest } from "../protocol/latest";
import { filter, hitAt } from "./store";

export const searching = new Latest();

/** Ends the search: what is still to come of it is not for the session that is shown next. */
export function endSearch(): void {
  searching.abort();
  filter.value = { is: "none" };
  hitAt.value = null;
}
