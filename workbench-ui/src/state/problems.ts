/** What went wrong and concerns no panel. */

import { ApiError, isAbort, isRefusal } from "../protocol/http";
import type * as t from "../protocol/types";
import * as s from "./store";

/** A failure as the panels show it. */
export function problemOf(error: unknown): t.Problem {
  if (error instanceof ApiError) return error.problem;
  return { status: 0, code: "internal", detail: error instanceof Error ? error.message : String(error) };
}

/** Shows what went wrong; what was given up on purpose is no problem. */
export function report(error: unknown): void {
  if (isAbort(error)) return;
  // A whole screen says it, with what to do.
  if (isRefusal(error)) s.connection.value = { is: "refused" };
  else s.lastProblem.value = problemOf(error);
}
