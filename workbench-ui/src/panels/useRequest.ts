import { useEffect, useState } from "preact/hooks";
import { type SessionApi, isAbort, isDisconnected } from "../protocol/http";
import type { Problem } from "../protocol/types";
import { problemOf } from "../state/problems";
import { connection, isReady, sessionApi } from "../state/store";

export interface Answer<T> {
  value: T | null;
  problem: Problem | null;
  isLoading: boolean;
  retry(): void;
}

/**
 * Asks the server about the active session whenever one of the keys changes. The last answer stays until the next one
 * is there; an answer about another session is never shown. Nothing is asked while the file is being indexed, nor when
 * `ask` is null.
 */
export function useRequest<T>(ask: ((api: SessionApi, signal: AbortSignal) => Promise<T>) | null, keys: readonly unknown[]): Answer<T> {
  const api = sessionApi.value;
  const [state, setState] = useState<{ of: SessionApi | null; value: T | null; problem: Problem | null }>({ of: null, value: null, problem: null });
  const [isLoading, setLoading] = useState(false);
  const [attempt, setAttempt] = useState(0);
  const canAsk = isReady.value && ask !== null;
  useEffect(() => {
    if (api === null || ask === null || !canAsk) return;
    const controller = new AbortController();
    setLoading(true);
    ask(api, controller.signal)
      .then((value) => !controller.signal.aborted && setState({ of: api, value, problem: null }))
      .catch((error: unknown) => {
        if (controller.signal.aborted || isAbort(error)) return;
        setState({ of: api, value: null, problem: problemOf(error) });
      })
      .finally(() => !controller.signal.aborted && setLoading(false));
    return () => controller.abort();
  }, [api, canAsk, attempt, ...keys]);
  // What nobody answered is asked again when the server is back.
  const link = connection.value.is;
  useEffect(() => {
    if (link === "open" && isDisconnected(state.problem)) setAttempt((before) => before + 1);
  }, [link]);
  const isOwn = state.of === api;
  return {
    value: isOwn ? state.value : null,
    problem: isOwn ? state.problem : null,
    isLoading,
    retry: () => setAttempt(attempt + 1),
  };
}
