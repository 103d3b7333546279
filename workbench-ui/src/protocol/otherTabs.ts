/**
 * The token from another tab of this browser. It is never part of a link (B-27) and lives in the storage of one tab, so a
 * copied link that is opened in a second tab has none; the tabs of the same origin hand theirs over (F-3: nobody but pages
 * of this server hears the channel).
 */

import { acceptsToken, keepToken, token } from "./http";

const CHANNEL = "typhon-token";
const WAIT_MS = 500;

type Message = { is: "question" } | { is: "answer"; token: string };

/** From now on this tab answers the others, as long as it has a token itself. */
export function answerOtherTabs(): void {
  const channel = new BroadcastChannel(CHANNEL);
  channel.onmessage = ({ data }: MessageEvent<Message>) => {
    if (data.is === "question" && token() !== "") channel.postMessage({ is: "answer", token: token() } satisfies Message);
  };
}

/**
 * Asks the other tabs, and keeps the first token that the server accepts: a tab that was left open from another run on the
 * same port answers as well. False when there is none.
 */
export async function takeTokenOfAnotherTab(): Promise<boolean> {
  const channel = new BroadcastChannel(CHANNEL);
  const tried = new Set([token()]);
  const found = new Promise<string>((resolve) => {
    channel.onmessage = ({ data }: MessageEvent<Message>) => {
      if (data.is !== "answer" || tried.has(data.token)) return;
      tried.add(data.token);
      void acceptsToken(data.token).then((isAccepted) => isAccepted && resolve(data.token));
    };
  });
  channel.postMessage({ is: "question" } satisfies Message);
  const nobody = new Promise<null>((resolve) => setTimeout(() => resolve(null), WAIT_MS));
  const taken = await Promise.race([found, nobody]);
  channel.close();
  if (taken === null) return false;
  keepToken(taken);
  return true;
}
