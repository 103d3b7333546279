/** Opens another trace: what lies in the folder that typhon ui serves. */

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { bytes, count, visible } from "../../format";
import { api, isAbort } from "../../protocol/http";
import { Latest } from "../../protocol/latest";
import type { FileEntry, Files, Problem } from "../../protocol/types";
import { problemOf } from "../../state/problems";
import { tryOpen } from "../../state/sessions";
import { Dialog, closeFloat } from "./Dialog";

const listing = new Latest();

function when(ms: number | null): string {
  return ms === null ? "" : new Date(ms).toISOString().slice(0, 16).replace("T", " ");
}

export function Open() {
  const files = useSignal<Files | null>(null);
  const fault = useSignal<Problem | null>(null);
  const typed = useSignal("");
  const list = async (dir: string | null) => {
    try {
      const answer = await listing.run((signal) => api.files(dir, signal));
      if (answer === undefined) return;
      files.value = answer;
      fault.value = null;
    } catch (error) {
      if (!isAbort(error)) fault.value = problemOf(error);
    }
  };
  useEffect(() => void list(null), []);
  /** The dialog stays with its path until the file is open: a mistake in it can be mended. */
  const open = async (path: string) => {
    fault.value = null;
    try {
      await tryOpen(path);
      closeFloat();
    } catch (error) {
      if (!isAbort(error)) fault.value = problemOf(error);
    }
  };
  const choose = (entry: FileEntry) => void (entry.isFolder ? list(entry.path) : open(entry.path));
  const now = files.value;
  return (
    <Dialog label="Open a trace" className="open">
      <header>
        <h2>Open a trace</h2>
        <button type="button" class="icon-button" aria-label="Close" onClick={closeFloat}>
          ×
        </button>
      </header>
      <form
        class="open-path"
        onSubmit={(event) => {
          event.preventDefault();
          if (typed.value.trim() !== "") void open(typed.value.trim());
        }}
      >
        <input
          type="text"
          class="mono"
          data-autofocus
          aria-label="Path of a trace"
          placeholder="Path of a trace"
          spellcheck={false}
          autocomplete="off"
          value={typed.value}
          onInput={({ currentTarget }) => (typed.value = currentTarget.value)}
        />
        <button type="submit" class="button primary">
          Open
        </button>
      </form>
      {fault.value !== null && (
        <p class="panel-fault" role="alert">
          {visible(fault.value.detail)}
          {fault.value.hint ? <span class="text-2"> {visible(fault.value.hint)}</span> : null}
        </p>
      )}
      {now !== null && (
        <>
          <p class="open-folder mono text-2" title={visible(now.dir)}>
            {visible(now.dir)}
          </p>
          <ul class="open-list" aria-label="Files">
            {now.parent !== null && (
              <li>
                <button type="button" onClick={() => void list(now.parent)}>
                  <span>..</span>
                  <span class="text-3">folder above</span>
                </button>
              </li>
            )}
            {now.entries.map((entry) => (
              <li key={entry.path}>
                <button type="button" onClick={() => choose(entry)}>
                  <span>{visible(entry.name)}</span>
                  <span class="text-3">{entry.isFolder ? "folder" : entry.bytes === null ? "" : bytes(entry.bytes)}</span>
                  <span class="text-3">{when(entry.modifiedUnixMs)}</span>
                </button>
              </li>
            ))}
          </ul>
          {now.left > 0 && <p class="text-2">and {count(now.left)} more; type a path to open one of them</p>}
          {now.entries.length === 0 && <p class="text-2">No recordings here. Make one: typhon demo -o demo.typhon-trace</p>}
        </>
      )}
    </Dialog>
  );
}
