/** Files dropped on the page. Browsers do not tell where they lie, and would leave the page to show them as text. */

import { report } from "../state/actions";

export function refuseDrops(): void {
  addEventListener("dragover", (event) => event.preventDefault());
  addEventListener("drop", (event) => {
    event.preventDefault();
    report(new Error("A browser does not tell where a dropped file lies: use Open trace, or typhon ui FILE"));
  });
}
