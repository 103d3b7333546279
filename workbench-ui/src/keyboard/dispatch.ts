/** Keys to actions (B-37), by physical position. */

export function startKeyboard(): void {}
