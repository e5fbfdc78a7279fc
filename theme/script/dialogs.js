// A work that opens one dialog after another. A dialog belongs to the browser: the page sees only that the window lost
// the keyboard. While it is gone the page moves the focus from the frame to itself, so that it is told when the
// keyboard comes back, and whether it is gone again before anybody could have done that.

import { limits } from "./policy.js";

const LOOK_MS = 250;
/** Nobody leaves a window again as quickly as this. */
const AT_ONCE_MS = 300;

/**
 * @param {() => HTMLIFrameElement | null} current the frame that plays
 * @param {{give: () => void, has: () => boolean}} focus
 * @param {() => void} pestered called when too many dialogs came in a row
 */
export function watchDialogs(current, focus, pestered) {
  let inARow = 0, back = 0, owed = false;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;

  setInterval(() => {
    if (document.hidden || document.hasFocus() || !focus.has()) return;
    owed = true;
    current()?.blur();
  }, LOOK_MS);

  addEventListener("focus", () => {
    back = performance.now();
    if (!owed) return;
    timer = setTimeout(() => {
      owed = false;
      inARow = 0;
      if (document.activeElement === document.body) focus.give();
    }, AT_ONCE_MS);
  });
  addEventListener("blur", () => {
    if (!owed || focus.has() || performance.now() - back > AT_ONCE_MS) return;
    clearTimeout(timer);
    if (++inARow < limits.dialogsInARowMax || !current()) return;
    inARow = 0;
    owed = false;
    pestered();
  });
}
