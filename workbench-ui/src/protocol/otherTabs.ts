/**
 * The token from another tab of this browser. It is never part of a link (B-27) and lives in the storage of one tab, so a
 * copied link that is opened in a second tab has none, and a tab that outlives its server has an old one; the tabs of the same
 * origin hand theirs over (F-3: nobody but pages of this server hears the channel).
 */

import { acceptsToken, keepToken, token } from "./http";

const CHANNEL = "typhon-token";
const WAIT_MS = 500;

type Message = { is: "question" } | { is: "answer"; token: string };

/** Keeps the first token that the server accepts, of those that are offered: a tab from another run on the same port offers its own as well. */
class Offers {
  private readonly tried = new Set([token()]);

  async take(offered: string): Promise<boolean> {
    if (this.tried.has(offered)) return false;
    this.tried.add(offered);
    if (!(await acceptsToken(offered))) return false;
    keepToken(offered);
    return true;
  }
}

/** The channel to the other tabs, as long as this page lives. */
export class OtherTabs {
  private readonly channel = new BroadcastChannel(CHANNEL);
  private offers: Offers | null = null;
  private letIn = () => {};

  /** From now on this tab answers the others, as long as it has a token itself. */
  constructor() {
    this.channel.onmessage = ({ data }: MessageEvent<Message>) => {
      if (data.is === "question") return this.tell();
      void this.offers?.take(data.token).then((isTaken) => isTaken && this.letIn());
    };
  }

  /** Offers this tab's token to those that wait for one. */
  tell(): void {
    if (token() !== "") this.channel.postMessage({ is: "answer", token: token() } satisfies Message);
  }

  /** Takes the first valid token that is offered from now on, without asking. */
  waitForOffer(letIn: () => void): void {
    this.offers ??= new Offers();
    this.letIn = letIn;
  }

  /** Asks the others, once; false when none has a token that the server accepts. */
  async ask(): Promise<boolean> {
    const channel = new BroadcastChannel(CHANNEL);
    const offers = new Offers();
    const found = new Promise<true>((resolve) => {
      channel.onmessage = ({ data }: MessageEvent<Message>) => {
        if (data.is === "answer") void offers.take(data.token).then((isTaken) => isTaken && resolve(true));
      };
    });
    channel.postMessage({ is: "question" } satisfies Message);
    const nobody = new Promise<false>((resolve) => setTimeout(() => resolve(false), WAIT_MS));
    const isFound = await Promise.race([found, nobody]);
    channel.close();
    return isFound;
  }
}
