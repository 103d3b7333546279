/** The filter: typed, checked at each key, evaluated by the server (B-25). */

import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { count, visible } from "../format";
import { focusPanel } from "../keyboard/dispatch";
import { ApiError } from "../protocol/http";
import { Latest } from "../protocol/latest";
import type { Problem } from "../protocol/types";
import { announce, refuseSearch, report, search, setLayout } from "../state/actions";
import { type SearchMode, activeFilterId, filter, hitAt, isReady, searchMode, sessionApi } from "../state/store";
import { showHit, stepHit } from "./hits";
import { NothingFound } from "./NothingFound";
import { Segments } from "./Segments";

const MODES: readonly (readonly [SearchMode, string])[] = [
  ["dim", "Dim others"],
  ["isolate", "Isolate"],
  ["list", "List"],
];
const PAUSE_MS = 300;

const checking = new Latest();

/** The text with the part underlined that the server does not understand; lies behind the field. */
function Underline({ text, problem }: { text: string; problem: Problem }) {
  const characters = [...text];
  const from = Math.min(problem.column ?? 0, characters.length);
  const to = Math.max(Math.min(from + (problem.length ?? 1), characters.length), from);
  return (
    <span class="search-under mono" aria-hidden="true">
      {characters.slice(0, from).join("")}
      <u>{to > from ? characters.slice(from, to).join("") : "\u00a0"}</u>
    </span>
  );
}

function Result() {
  const state = filter.value;
  switch (state.is) {
    case "none":
      return <kbd>/</kbd>;
    case "running":
      return <span class="text-2">{Math.round((100 * state.done) / Math.max(state.total, 1))} %</span>;
    case "failed":
      return <span class="text-2">{state.problem.code === "filter" ? "not understood" : "failed"}</span>;
    case "ready":
      return (
        <>
          <span class="text-2">
            {hitAt.value === null ? `${count(state.matches)} ${state.matches === 1 ? "hit" : "hits"}` : `${count(hitAt.value + 1)} of ${count(state.matches)}`}
          </span>
          {state.matches > 0 && (
            <>
              <button type="button" class="search-step" aria-label="Previous hit" title="Previous hit (Shift N)" onClick={() => void stepHit(-1)}>
                ‹
              </button>
              <button type="button" class="search-step" aria-label="Next hit" title="Next hit (N)" onClick={() => void stepHit(1)}>
                ›
              </button>
            </>
          )}
        </>
      );
  }
}

export function setSearchMode(mode: SearchMode): void {
  searchMode.value = mode;
  if (mode === "list") setLayout({ bottomTab: "search", isBottomOpen: true });
}

export function SearchField() {
  const state = filter.value;
  const text = useSignal("");
  const problem = useSignal<Problem | null>(null);
  const isOpen = useSignal(false);
  const timer = useRef<number | undefined>(undefined);
  const frame = useRef<HTMLDivElement>(null);
  /** Where Enter goes when the search that it began has ended. */
  const stepAfter = useRef<1 | -1 | 0>(0);

  // A search that was started elsewhere (a link, Back, the inspector) shows in the field.
  const active = state.is === "none" ? "" : state.text;
  useEffect(() => {
    if (active !== "" && active !== text.value.trim()) text.value = active;
    if (active === "" && document.activeElement?.id !== "search") text.value = "";
  }, [active]);
  useEffect(() => {
    if (state.is === "running" && stepAfter.current === 1 && state.text === text.value.trim()) {
      const [first] = state.first;
      if (first !== undefined && hitAt.value === null) {
        stepAfter.current = 0;
        showHit(first, 0);
      }
    }
    if (state.is === "ready") {
      announce(`${count(state.matches)} hits`);
      if (stepAfter.current !== 0 && state.text === text.value.trim()) void stepHit(stepAfter.current);
      stepAfter.current = 0;
    }
    if (state.is === "failed") problem.value = state.problem;
  }, [state]);
  useEffect(() => {
    const leave = (event: FocusEvent) => {
      if (!frame.current?.contains(event.target as Node)) isOpen.value = false;
    };
    document.addEventListener("focusin", leave);
    return () => document.removeEventListener("focusin", leave);
  }, []);

  const check = async (now: string): Promise<boolean> => {
    const api = sessionApi.value;
    if (api === null || now.trim() === "") {
      problem.value = null;
      return true;
    }
    try {
      const answer = await checking.run((signal) => api.checkFilter(now, signal));
      if (answer !== undefined) problem.value = null;
      return answer !== undefined;
    } catch (error) {
      if (!(error instanceof ApiError) || error.problem.code !== "filter") report(error);
      else if (now === text.value) {
        problem.value = error.problem;
        refuseSearch(now, error.problem);
      }
      return false;
    }
  };
  const onInput = (now: string) => {
    text.value = now;
    stepAfter.current = 0;
    isOpen.value = true;
    window.clearTimeout(timer.current);
    if (now.trim() === "") {
      // Nothing is searched for, and nothing said of what was: the field says what it is for.
      checking.abort();
      problem.value = null;
      return void search("");
    }
    timer.current = window.setTimeout(() => {
      void check(now).then((isValid) => (isValid && now === text.value ? search(now) : undefined));
    }, PAUSE_MS);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Escape") {
      // Ends the search and leaves the field, as a find bar does; what was stepped to stays selected.
      event.preventDefault();
      event.stopPropagation();
      window.clearTimeout(timer.current);
      stepAfter.current = 0;
      text.value = "";
      problem.value = null;
      void search("");
      isOpen.value = false;
      focusPanel("timeline");
    } else if (event.key === "Enter") {
      event.preventDefault();
      if (activeFilterId.value !== 0 && state.is === "ready" && state.text === text.value.trim()) return void stepHit(event.shiftKey ? -1 : 1);
      window.clearTimeout(timer.current);
      stepAfter.current = event.shiftKey ? -1 : 1;
      // What is being searched for already goes on; among its first hits one need not wait.
      if (state.is === "running" && state.text === text.value.trim()) {
        if (event.shiftKey || hitAt.value === null || hitAt.value + 1 >= state.first.length) return;
        stepAfter.current = 0;
        return void stepHit(1);
      }
      void check(text.value).then((isValid) => (isValid ? search(text.value) : undefined));
    } else if (event.key === "ArrowDown" && state.is === "ready") {
      event.preventDefault();
      void stepHit(1);
    } else if (event.key === "ArrowUp" && state.is === "ready") {
      event.preventDefault();
      void stepHit(-1);
    }
  };
  const fault = problem.value;
  const isFaulty = fault !== null && text.value.trim() !== "";
  return (
    <div class={isFaulty ? "search is-faulty" : "search"} role="search" ref={frame} onFocusIn={() => (isOpen.value = true)}>
      <div class="search-line">
        <svg width="14" height="14" viewBox="0 0 14 14" fill="none" stroke="currentColor" stroke-width="1.5" aria-hidden="true">
          <circle cx="6" cy="6" r="4.2" />
          <path d="M9.2 9.2 13 13" />
        </svg>
        <div class="search-box">
          {isFaulty && <Underline text={text.value} problem={fault} />}
          <input
            id="search"
            type="text"
            class={text.value === "" ? "" : "mono"}
            aria-label="Search spans, fields, ticks"
            aria-invalid={isFaulty}
            aria-describedby={isFaulty ? "search-fault" : undefined}
            placeholder="Search spans, fields, ticks"
            spellcheck={false}
            autocomplete="off"
            disabled={!isReady.value}
            value={text.value}
            onInput={({ currentTarget }) => onInput(currentTarget.value)}
            onKeyDown={onKeyDown}
          />
        </div>
        <span class="search-result">
          <Result />
        </span>
      </div>
      {isOpen.value && (isFaulty || state.is === "ready") && (
        <div class="search-more">
          {isFaulty && (
            <p id="search-fault" role="alert">
              {visible(fault.detail)}
              {fault.hint ? <span class="text-2"> {visible(fault.hint)}</span> : null}
            </p>
          )}
          {!isFaulty && state.is === "ready" && state.matches === 0 && <NothingFound text={state.text} />}
          {!isFaulty && state.is === "ready" && state.matches > 0 && <Segments label="Hits" values={MODES} now={searchMode.value} set={setSearchMode} />}
        </div>
      )}
    </div>
  );
}
