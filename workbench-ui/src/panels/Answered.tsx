/** What a panel shows of a request besides its answer. */

import { visible } from "../format";
import type { Answer } from "./useRequest";

export function BusyLine({ of }: { of: Answer<unknown> }) {
  return of.isLoading ? <div class="busy-line" role="progressbar" aria-label="Asking the server" /> : null;
}

export function Fault({ of }: { of: Answer<unknown> }) {
  if (of.problem === null) return null;
  return (
    <p class="panel-fault" role="alert">
      {visible(of.problem.detail)}
      {of.problem.hint ? ` ${visible(of.problem.hint)}` : ""}{" "}
      <button type="button" class="link" onClick={of.retry}>
        Retry
      </button>
    </p>
  );
}
