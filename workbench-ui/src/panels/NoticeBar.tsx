/** What concerns the whole page: losses, a file that changed, a connection that broke, a request that failed. */

import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { visible } from "../format";
import { isDisconnected } from "../protocol/http";
import { setLayout } from "../state/actions";
import { reopen } from "../state/sessions";
import { activeSession, connection, lastProblem, meta, notices } from "../state/store";
import { headline, isLossy, total } from "./notices";
import { Repair } from "./Notices";

function Bar(props: { title: string; detail?: string | undefined; children?: ComponentChildren; dismiss?: () => void; isUrgent?: boolean }) {
  return (
    <div class="notice-bar" role={props.isUrgent ? "alert" : "note"}>
      <b>{props.title}</b>
      {props.detail && <span class="notice-detail">{props.detail}</span>}
      <span class="notice-actions">
        {props.children}
        {props.dismiss && (
          <button type="button" class="icon-button" aria-label="Dismiss" title="Dismiss" onClick={props.dismiss}>
            ×
          </button>
        )}
      </span>
    </div>
  );
}

const ON_DISK: Record<string, string> = {
  grown: "The file on disk has grown",
  changed: "The file on disk has changed",
  truncated: "The file on disk was cut",
  replaced: "The file on disk was replaced",
  overwritten: "Another recording was written over the file",
  gone: "The file is no longer on disk",
};

function DiskBar() {
  const session = activeSession.value;
  const title = session === null ? undefined : ON_DISK[session.onDisk];
  if (session === null || title === undefined) return null;
  return (
    <Bar title={title} detail="This page keeps what it has read.">
      {session.onDisk !== "gone" && (
        <button type="button" class="button" onClick={() => void reopen(session)}>
          Reload
        </button>
      )}
    </Bar>
  );
}

function LossBar() {
  const dismissed = useSignal<string | null>(null);
  const [all, session, facts] = [notices.value, activeSession.value, meta.value];
  if (all === null || session === null || facts === null || !isLossy(all) || dismissed.value === session.id) return null;
  const first = all.notices.find(({ severity }) => severity !== "info") ?? all.notices[0];
  const text = total(all) === 1 ? "1 notice" : `${total(all)} notices`;
  return (
    <Bar title={headline(all, facts.time.endNs)} detail={first && visible(first.message)} dismiss={() => (dismissed.value = session.id)} isUrgent>
      <Repair />
      <button type="button" class="button" onClick={() => setLayout({ inspectorTab: "notices", isInspectorOpen: true })}>
        {text}
      </button>
    </Bar>
  );
}

export function NoticeBar() {
  const isLost = connection.value.is === "lost";
  // The bar about the connection says that as well.
  const problem = isLost && isDisconnected(lastProblem.value) ? null : lastProblem.value;
  return (
    <>
      {isLost && meta.value !== null && (
        <Bar title="typhon ui does not answer" detail="This page keeps what it has and tries again by itself." isUrgent />
      )}
      {problem !== null && (
        <Bar
          title={visible(problem.detail)}
          detail={problem.hint ? visible(problem.hint) : undefined}
          dismiss={() => (lastProblem.value = null)}
          isUrgent
        />
      )}
      <DiskBar />
      <LossBar />
    </>
  );
}
