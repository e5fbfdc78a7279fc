// Pointer lock on behalf of a work: the page holds the lock on its own stage and relays the movement. The sandbox has
// no token for it, and needs none.

import { Refusal } from "./bridge.js";

/**
 * @param {HTMLElement} stage
 * @param {(method: string, params: object) => void} notify tells the work
 * @param {(locked: boolean) => void} changed
 */
export function makePointer(stage, notify, changed) {
  let dx = 0, dy = 0, drawing = 0;

  const isHeld = () => document.pointerLockElement === stage;

  async function lock() {
    if (isHeld()) return {};
    await new Promise((resolve, reject) => {
      const over = new AbortController(), { signal } = over;
      const settle = () => {
        over.abort();
        if (isHeld()) resolve(undefined);
        else reject(new Refusal("unavailable", "The browser kept the pointer. Click inside the work, then try again."));
      };
      document.addEventListener("pointerlockchange", settle, { signal });
      document.addEventListener("pointerlockerror", settle, { signal });
      // Some browsers answer with a promise as well, some with an exception.
      Promise.resolve().then(() => stage.requestPointerLock()).catch(settle);
    });
    return {};
  }

  function unlock() {
    if (isHeld()) document.exitPointerLock();
    return {};
  }

  function relay() {
    drawing = 0;
    if (isHeld() && (dx || dy)) notify("pointer.move", { dx, dy });
    dx = dy = 0;
  }

  stage.addEventListener("mousemove", event => {
    if (!isHeld()) return;
    dx += event.movementX;
    dy += event.movementY;
    drawing ||= requestAnimationFrame(relay);
  });
  // While the lock is held the buttons arrive here too, and the keyboard has to stay in the frame.
  for (const [kind, down] of /** @type {const} */ ([["mousedown", true], ["mouseup", false]])) {
    stage.addEventListener(kind, event => {
      if (!isHeld()) return;
      event.preventDefault();
      notify("pointer.button", { button: event.button, down });
    });
  }
  let held = false;
  document.addEventListener("pointerlockchange", () => {
    if (held === isHeld()) return;
    held = isHeld();
    if (!held) notify("pointer.lost", {});
    changed(held);
  });

  return { lock, unlock };
}
