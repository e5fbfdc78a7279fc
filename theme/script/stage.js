// The stage: the frame scaled to fit and never cropped, full screen, also where the browser has none for elements, and
// pointer lock.

import { Refusal } from "./refusal.js";

/** What lies around the stage and must not be reached while the stage covers it. */
const AROUND = ".top, .bottom, .skip, .work > .head, .bar, .saves, .about, .related";

/**
 * @param {HTMLElement} stage with the work's natural size in `data-width` and `data-height`, if it has one
 * @param {HTMLButtonElement} leave the button that ends full screen
 * @param {() => void} changed called after full screen began or ended
 */
export function makeStage(stage, leave, changed) {
  const width = Number(stage.dataset.width), height = Number(stage.dataset.height);
  const hasView = width > 0 && height > 0;

  function fit() {
    const frame = stage.querySelector("iframe");
    if (!frame || !hasView) return;
    const scale = Math.min(stage.clientWidth / width, stage.clientHeight / height);
    const left = (stage.clientWidth - width * scale) / 2, top = (stage.clientHeight - height * scale) / 2;
    frame.style.width = `${width}px`;
    frame.style.height = `${height}px`;
    frame.style.transform = `translate(${left}px, ${top}px) scale(${scale})`;
  }

  const isFull = () => document.fullscreenElement === stage || stage.classList.contains("full");

  /** @param {boolean} on */
  function cover(on) {
    stage.classList.toggle("full", on);
    for (const element of document.querySelectorAll(AROUND)) /** @type {HTMLElement} */ (element).inert = on;
    update();
  }

  function update() {
    // Escape ends full screen where there is a keyboard; our own cover has no such key, and phones no keyboard.
    leave.hidden = !isFull() || !stage.classList.contains("full") && matchMedia("(hover: hover)").matches;
    fit();
    changed();
  }

  async function fill() {
    if (isFull()) return end();
    try {
      await stage.requestFullscreen({ navigationUI: "hide" });
    } catch { // no such method on iPhones, or the browser refuses
      cover(true);
    }
  }

  function end() {
    if (document.fullscreenElement) document.exitFullscreen().catch(() => {});
    else if (stage.classList.contains("full")) cover(false);
  }

  new ResizeObserver(fit).observe(stage);
  document.addEventListener("fullscreenchange", update);
  document.addEventListener("keydown", event => { if (event.key === "Escape") end(); });
  leave.addEventListener("click", end);
  return { fit, fill, end };
}

/**
 * Pointer lock on behalf of a work: the page holds the lock on its own stage and relays the movement. The sandbox has no
 * token for it, and needs none.
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
