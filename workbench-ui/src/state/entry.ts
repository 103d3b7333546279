/** Getting in: with this tab's token, or with that of another tab when the server refuses it. */

import { isRefusal, onRefusal, token } from "../protocol/http";
import { OtherTabs } from "../protocol/otherTabs";
import { keepAddress } from "./history";
import { report } from "./problems";
import { loadSettings } from "./settings";
import * as s from "./store";

let channel: OtherTabs | null = null;
const others = () => (channel ??= new OtherTabs());
/** The token that was refused last, and whether another tab had a better one: nobody is asked twice for the same. */
let asked: { refused: string; isFound: Promise<boolean> } | null = null;

/** Begins anew with the token that was found, at the view that is shown. */
function beginAnew(): void {
  keepAddress();
  location.reload();
}

/** Says how to get in, and goes on when a tab with a valid token turns up. */
function shutOut(): false {
  s.connection.value = { is: "refused" };
  others().waitForOffer(beginAnew);
  return false;
}

/**
 * Finds a token in place of one that was refused, as after a new start of the server. With it the page begins anew, as its
 * address has it: sessions, filters and all that was read belong to the run that has ended.
 */
export function renewToken(refused: string): Promise<boolean> {
  if (asked?.refused !== refused) {
    const isFound = others().ask().then((isIt) => {
      if (isIt) beginAnew();
      else shutOut();
      return isIt;
    });
    asked = { refused, isFound };
  }
  return asked.isFound;
}

/** Gets in at the beginning. False when there is no token that the server accepts. */
export async function enter(): Promise<boolean> {
  // Made now: from here on this tab answers the others.
  const tabs = others();
  if (token() === "" && !(await tabs.ask())) return shutOut();
  if (!(await isAccepted()) && !((await tabs.ask()) && (await isAccepted()))) return shutOut();
  // Only what happens to a page that is in can be a new start of the server.
  onRefusal(renewToken);
  tabs.tell();
  return true;
}

/** Reads the settings, with which a page begins. False when the token is refused: a tab of an earlier run has one, but not this run's. */
async function isAccepted(): Promise<boolean> {
  try {
    await loadSettings();
  } catch (error) {
    if (isRefusal(error)) return false;
    report(error);
  }
  return true;
}
