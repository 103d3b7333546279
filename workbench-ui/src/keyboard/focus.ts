/**
 * Moves the focus to what will be there in the next frame, unless somebody has moved it by then: a dialog that opens takes it
 * at once, and so does the search field. That an element which had it has gone, and gave it back, does not count.
 */
export function focusWhenDrawn(find: () => HTMLElement | null | undefined): void {
  const before = document.activeElement;
  requestAnimationFrame(() => {
    const now = document.activeElement;
    if (now === before || now === document.body || before?.isConnected !== true) find()?.focus();
  });
}
