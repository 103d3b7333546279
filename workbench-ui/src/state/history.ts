/** Address bar and store. A change that Back should undo pushes; everything else replaces the current entry. */

import { batch } from "@preact/signals";
import { takeToken } from "../protocol/http";
import { type Link, formatLink, parseLink } from "./permalink";
import * as s from "./store";

let isApplying = false;
let replaceTimer: number | undefined;

/** What the address bar is to say now. */
export function currentLink(): Link {
  const { isInspectorOpen, isBottomOpen, inspectorTab, bottomTab } = s.layout.value;
  const link: Link = {
    window: s.timeWindow.value,
    panels: { inspector: isInspectorOpen ? inspectorTab : null, bottom: isBottomOpen ? bottomTab : null },
    colour: s.colourMode.value,
  };
  if (s.selectedRange.value !== null) link.range = s.selectedRange.value;
  const event = s.primary.value?.event;
  if (event) link.event = event;
  if (s.filter.value.is !== "none" && s.filter.value.is !== "failed") link.filter = s.filter.value.text;
  if (s.sessions.value.length > 1 && s.activeId.value !== null) link.session = s.activeId.value;
  return link;
}

/** Keeps the present view as a step of its own, before it changes. */
export function pushHistory(): void {
  if (isApplying || s.meta.value === null) return;
  writeNow();
  history.pushState(null, "", location.hash || "#");
}

/** Brings the address bar up to date, soon: browsers limit how often that may be done. */
export function replaceHistory(): void {
  if (isApplying || s.meta.value === null) return;
  window.clearTimeout(replaceTimer);
  replaceTimer = window.setTimeout(writeNow, 200);
}

/** Is a change of the address bar still to come? */
export function isAddressDue(): boolean {
  return replaceTimer !== undefined;
}

/** Brings the address bar up to date at once, before the page is loaded again. */
export function keepAddress(): void {
  if (s.meta.value !== null) writeNow();
}

function writeNow(): void {
  window.clearTimeout(replaceTimer);
  replaceTimer = undefined;
  history.replaceState(null, "", `#${formatLink(currentLink())}`);
}

/** What a link asks of the store; the session module carries out what needs the server. */
export interface LinkTarget {
  openSession(id: string): void;
  selectEvent(event: string): void;
  search(text: string): void;
}

export function applyLink(link: Link, target: LinkTarget): void {
  isApplying = true;
  try {
    batch(() => {
      if (link.session) target.openSession(link.session);
      if (link.window) s.timeWindow.value = link.window;
      s.selectedRange.value = link.range ?? null;
      if (link.colour) s.colourMode.value = link.colour;
      if (link.panels) {
        const { inspector, bottom } = link.panels;
        s.layout.value = {
          ...s.layout.value,
          isInspectorOpen: inspector !== null,
          isBottomOpen: bottom !== null,
          inspectorTab: inspector ?? s.layout.value.inspectorTab,
          bottomTab: bottom ?? s.layout.value.bottomTab,
        };
      }
      if (!link.event) s.selection.value = [];
    });
    if (link.event && link.event !== s.primary.value?.event) target.selectEvent(link.event);
    const text = s.filter.value.is === "none" ? "" : s.filter.value.text;
    if ((link.filter ?? "") !== text) target.search(link.filter ?? "");
  } finally {
    isApplying = false;
  }
}

/** Follows Back, Forward and typed fragments; takes the token out of the address bar. Returns the link to start with. */
export function followAddress(target: LinkTarget, tokenTaken: () => void): Link {
  const take = () => {
    const rest = takeToken(location.hash);
    if (rest === null) return false;
    history.replaceState(null, "", `${location.pathname}${rest === "" ? "" : `#${rest}`}`);
    return true;
  };
  take();
  const follow = () => {
    if (take()) tokenTaken();
    applyLink(parseLink(location.hash), target);
  };
  window.addEventListener("popstate", follow);
  window.addEventListener("hashchange", follow);
  return parseLink(location.hash);
}
