/** What is shown instead of a trace: no blank page, no endless spinner (B-2). */

import { useEffect, useState } from "preact/hooks";
import { bytes, count, duration, visible } from "../format";
import { shellWord } from "../panels/notices";
import { copy } from "../panels/table/export";
import { api, isAbort } from "../protocol/http";
import { cancelOpening, closeSession, openFile, reopen } from "../state/sessions";
import { activeSession, connection, meta, openFloat, recent } from "../state/store";

export type ScreenName = "refused" | "connecting" | "empty" | "opening" | "failed" | "cancelled";

/** Which screen is due; null when there is a trace to show. */
export function screenOf(): ScreenName | null {
  const link = connection.value;
  if (link.is === "refused") return "refused";
  const session = activeSession.value;
  // Also for the address of a session that is gone.
  if (session === null) return link.is === "open" ? "empty" : "connecting";
  if (session.state.is === "failed" || session.state.is === "cancelled") return session.state.is;
  return meta.value === null ? "opening" : null;
}

/** Bytes done, rate, remaining time. */
export function OpeningFacts() {
  const state = activeSession.value?.state;
  if (state?.is !== "opening") return null;
  const facts = [`${bytes(state.bytesDone)} of ${bytes(state.bytesTotal)}`];
  if (state.bytesPerSecond !== null) facts.push(`${bytes(state.bytesPerSecond)}/s`);
  if (state.remainingMs !== null) facts.push(`${duration(state.remainingMs * 1e6)} left`);
  const share = state.bytesDone / Math.max(1, state.bytesTotal);
  return (
    <>
      <span class="text-2">{facts.join(" · ")}</span>
      <div
        class="progress"
        role="progressbar"
        aria-label="Reading the file"
        aria-valuenow={Math.round(share * 100)}
        aria-valuemin={0}
        aria-valuemax={100}
      >
        <i style={{ width: `${share * 100}%` }} />
      </div>
    </>
  );
}

/** Recordings that were opened before. What lies outside of the folder that is served has to be named on the command line. */
function RecentFiles() {
  const [folder, setFolder] = useState<string | null>(null);
  useEffect(() => {
    const controller = new AbortController();
    api
      .files(null, controller.signal)
      .then(({ dir }) => setFolder(dir.replace(/\/?$/, "/")))
      .catch((error: unknown) => !isAbort(error) && setFolder(null));
    return () => controller.abort();
  }, []);
  if (recent.value.length === 0 || folder === null) return null;
  return (
    <ul class="recent" aria-label="Opened before">
      {recent.value.map(({ path, durationNs, ticks }) => {
        const name = visible(path.split("/").at(-1) ?? path);
        const facts = `${duration(durationNs)} · ${count(ticks)} ticks`;
        const command = `typhon ui ${shellWord(path)}`;
        return (
          <li key={path} title={visible(path)}>
            {path.startsWith(folder) ? (
              <button type="button" class="recent-file" onClick={() => void openFile(path)}>
                <span>{name}</span>
                <span class="text-3">{facts}</span>
              </button>
            ) : (
              <div class="recent-file">
                <span>
                  {name}{" "}
                  <button type="button" class="link" title={visible(command)} onClick={() => void copy(command, "Command")}>
                    Copy command
                  </button>
                </span>
                <span class="text-3">{facts}</span>
              </div>
            )}
          </li>
        );
      })}
    </ul>
  );
}

function Fact(props: { title: string; facts: [string, string][]; actions: [string, () => void][]; calm?: boolean }) {
  return (
    <div class="screen">
      <div class={props.calm ? "fact-card calm" : "fact-card"}>
        <h1>{props.title}</h1>
        <dl>
          {props.facts.map(([term, text]) => (
            <>
              <dt>{term}</dt>
              <dd>{text}</dd>
            </>
          ))}
        </dl>
        <div class="screen-actions">
          {props.actions.map(([text, run]) => (
            <button type="button" key={text} class="button" onClick={run}>
              {text}
            </button>
          ))}
        </div>
      </div>
    </div>
  );
}

export function Screen({ of }: { of: ScreenName }) {
  const session = activeSession.value;
  const another: [string, () => void] = ["Open another", () => (openFloat.value = "open")];
  switch (of) {
    case "refused":
      return (
        <Fact
          title="This address lacks the token of the running typhon ui"
          facts={[["Remedy", "Open the address that typhon ui printed, up to the end of its token. Links open by themselves while another tab of this browser shows it."]]}
          actions={[]}
        />
      );
    case "connecting": {
      const isLost = connection.value.is === "lost";
      const facts: [string, string][] = isLost ? [["Remedy", "Is typhon ui still running? This page tries again by itself."]] : [];
      return <Fact calm title={isLost ? "typhon ui does not answer" : "Connecting to typhon ui"} facts={facts} actions={[]} />;
    }
    case "empty":
      return (
        <div class="screen">
          <h1>Open a trace</h1>
          <p>Choose a recording, or record one: typhon demo -o demo.typhon-trace</p>
          <div class="screen-actions">
            <button type="button" class="button primary" onClick={() => (openFloat.value = "open")}>
              Open trace
            </button>
          </div>
          <RecentFiles />
        </div>
      );
    case "opening":
      return (
        <div class="screen">
          <h1>{visible(session?.name ?? "")}</h1>
          <OpeningFacts />
          <button type="button" class="button" onClick={() => session && void cancelOpening(session.id)}>
            Cancel
          </button>
        </div>
      );
    case "failed": {
      const detail = session?.state.is === "failed" ? session.state.detail : "";
      const again: [string, () => void] = ["Open again", () => session && void reopen(session)];
      const copy: [string, () => void] = ["Copy details", () => void navigator.clipboard.writeText(detail)];
      return (
        <Fact
          title={`${visible(session?.name ?? "")} cannot be shown`}
          facts={[
            ["File", visible(session?.path ?? "")],
            ["Reason", visible(detail)],
          ]}
          actions={[again, another, copy]}
        />
      );
    }
    case "cancelled":
      return (
        <Fact
          calm
          title={`Reading ${visible(session?.name ?? "")} was stopped`}
          facts={[["File", `${visible(session?.path ?? "")}, ${count(session?.fileBytes ?? 0)} bytes`]]}
          actions={[another, ["Close session", () => session && void closeSession(session.id)]]}
        />
      );
  }
}
