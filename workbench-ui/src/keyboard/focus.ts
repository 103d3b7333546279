/**
 * Moves the focus to what will be there when the page has been brought up to date: before the next key, which may move it on.
 */
export function focusWhenRendered(find: () => HTMLElement | null | undefined): void {
  // Changes of state that came before have queued their rendering.
  queueMicrotask(() => find()?.focus());
}
