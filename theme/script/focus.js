// Who has the keyboard. While a work plays its frame gets it, and gets it back; the page does not scroll under its
// keys. A player who goes to a control of the page keeps it there: a work that takes it away again is told on.

import { limits } from "./policy.js";

const STILL_AGAIN_MS = 1500;
const TAB_MS = 500;
const THEFTS_WITHIN_MS = 10_000;
const LOOK_MS = 250;
/** Nobody leaves a window again as quickly as this. */
const AT_ONCE_MS = 300;

/**
 * @param {HTMLElement} stage
 * @param {() => HTMLIFrameElement | null} current the frame that plays
 * @param {() => void} robbed called when the work has taken the keyboard too often
 */
export function keepFocus(stage, current, robbed) {
  const root = document.documentElement, hovers = matchMedia("(any-hover: hover)");
  let pointerInside = false, touching = false, lastTab = 0;
  /** Where in the page the player went, if they want the keyboard there. @type {HTMLElement | null} */
  let wanted = null;
  /** @type {number[]} */
  let thefts = [];
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;

  const has = () => document.activeElement !== null && document.activeElement === current();

  function give() {
    wanted = null;
    current()?.focus({ preventScroll: true });
    be(has());
  }

  /** Keeps the page from scrolling under the keys of the work. @param {boolean} still */
  function be(still) {
    clearTimeout(timer);
    root.classList.toggle("still", still && current() !== null && hovers.matches);
  }

  /** The player moves about in the page: let it scroll, until they are back in the game. */
  function stir() {
    if (!root.classList.contains("still") && !has()) return;
    be(false);
    timer = setTimeout(() => be(has()), STILL_AGAIN_MS);
  }

  const outside = (/** @type {Event} */ event) => !(event.target instanceof Node && stage.contains(event.target));
  for (const kind of ["wheel", "pointermove", "pointerdown"]) {
    document.addEventListener(kind, event => { if (outside(event)) stir(); }, { passive: true });
  }

  stage.addEventListener("pointerenter", event => {
    if (event.pointerType !== "mouse") return;
    pointerInside = true;
    if (document.activeElement?.matches("input, textarea")) return; // somebody writes a code, and the mouse only passes by
    wanted = null;
    if (current()) give();
  });
  stage.addEventListener("pointerleave", () => { pointerInside = false; });
  stage.addEventListener("click", () => { if (current()) give(); });

  document.addEventListener("keydown", event => {
    touching = false;
    if (event.key === "Tab") lastTab = performance.now();
    wanted = event.target instanceof HTMLElement ? event.target : document.body;
  }, true);
  document.addEventListener("pointerdown", event => {
    // A finger on the frame leaves no trace here, so a finger on the page means nothing either.
    touching = event.pointerType !== "mouse";
    wanted = touching || !outside(event) ? null : document.body;
  }, true);
  document.addEventListener("focusin", event => {
    if (event.target === current()) return;
    be(false);
    lastTab = 0; // it led here, not into the frame
    if (!touching && event.target instanceof HTMLElement) wanted = event.target;
  });

  // The only trace of the keyboard going into a frame.
  addEventListener("blur", () => {
    if (!has()) return;
    const taken = wanted !== null && !pointerInside && performance.now() - lastTab > TAB_MS;
    if (!taken) {
      be(true);
      return;
    }
    const now = performance.now(), control = wanted;
    thefts = [...thefts.filter(then => now - then < THEFTS_WITHIN_MS), now];
    if (thefts.length > limits.focusTheftsMax) {
      thefts = [];
      robbed();
    }
    setTimeout(() => {
      if (control === document.body) current()?.blur();
      else control?.focus({ preventScroll: true });
    });
  });

  return { give, release: () => be(false), has };
}

/**
 * Tells on a work that opens one dialog after another. A dialog belongs to the browser: the page, which goes on running,
 * sees only that the window lost the keyboard. While it is gone the page moves the focus from the frame to itself, so
 * that it is told when the keyboard comes back, and whether it is gone again before anybody could have done that.
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
