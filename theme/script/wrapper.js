// The page around a work: starts it in a fresh frame when asked to, keeps it in its place, and says what happens.

import { Bridge } from "./bridge.js";
import { keepFocus, watchDialogs } from "./focus.js";
import { makeKeeping } from "./keeping.js";
import { limits } from "./policy.js";
import { makePointer, makeStage } from "./stage.js";

const find = (/** @type {string} */ id) => /** @type {HTMLElement} */ (document.getElementById(id));
const stage = find("stage"), poster = find("poster"), reason = find("reason"), news = find("news");
const [play, stop, restart, fill, leave] = ["play", "stop", "restart", "fill", "leave"]
  .map(id => /** @type {HTMLButtonElement} */ (find(id)));
const { src = "", title = "", sandbox = "", allow = "", referrerpolicy = "", capabilities = "" } = stage.dataset;

const declared = capabilities.split(" ").filter(Boolean);

/** @type {HTMLIFrameElement | null} */
let frame = null;
/** @type {Bridge | null} */
let bridge = null;
/** @type {ReturnType<typeof setTimeout> | undefined} */
let loadTimer;

const pointer = makePointer(stage, (method, params) => bridge?.notify(method, params), locked => {
  tell(locked ? "The work follows your pointer. Escape gives it back." : "Playing. The pointer is yours again.");
});
const keeping = makeKeeping(new URL(src).pathname.slice(1, -1), declared, tell, why => { start(); tell(why); });
/** @type {Record<string, import("./bridge.js").Handler>} */
const handlers = { "pointer.lock": pointer.lock, "pointer.unlock": pointer.unlock, ...keeping.handlers };
const focus = keepFocus(stage, () => frame, () => end("The work kept taking the keyboard from this page, so it was stopped."));
watchDialogs(() => frame, focus, () => end("The work opened one dialog after another, so it was stopped."));
const { fit, fill: toggleFull, end: endFull } = makeStage(stage, leave, () => { if (frame) focus.give(); });

/** @param {string} text @param {boolean} [loud] */
function tell(text, loud = false) {
  news.textContent = text;
  news.classList.toggle("loud", loud);
}

function start() {
  remove();
  frame = document.createElement("iframe");
  frame.title = title;
  frame.setAttribute("sandbox", sandbox);
  frame.setAttribute("allow", allow);
  frame.setAttribute("referrerpolicy", referrerpolicy);
  frame.name = keeping.nameForFrame();
  frame.src = src;
  frame.addEventListener("load", () => {
    clearTimeout(loadTimer);
    tell("Playing.");
    // Only while nobody has gone elsewhere: a work may load itself again at any time.
    if (document.activeElement !== document.body && !focus.has()) return;
    frame?.blur(); // the keys of a frame that was focused while empty go nowhere (Chromium)
    focus.give();
  });
  bridge = new Bridge(declared, handlers,
    () => end("The work sent more messages than this page can read, so it was stopped."));
  loadTimer = setTimeout(late, limits.loadSecondsMax * 1000);
  tell("Loading…");
  poster.hidden = true;
  stop.disabled = restart.disabled = false;
  stage.append(frame);
  stage.scrollIntoView({ block: "nearest" });
  fit();
  focus.give();
}

/** Takes the frame away, and with it all sound, timers and memory of the work. */
function remove() {
  clearTimeout(loadTimer);
  bridge?.close();
  bridge = null;
  pointer.unlock();
  focus.release();
  frame?.remove();
  frame = null;
}

/** Stops and says why; the player can start again. @param {string} why @param {boolean} [loud] */
function end(why, loud = true) {
  const hadFocus = focus.has() || document.activeElement === stop;
  remove();
  endFull();
  poster.hidden = false;
  reason.hidden = !loud;
  reason.textContent = loud ? why : "";
  find("play-word").textContent = "Start again";
  stop.disabled = restart.disabled = true;
  tell(why, loud);
  if (hadFocus) play.focus({ preventScroll: true });
}

function late() {
  tell(`It has not loaded after ${limits.loadSecondsMax} seconds. The connection may be slow or the work busy: wait, restart it, or stop it.`, true);
}

addEventListener("message", event => {
  if (!frame || !bridge || event.source !== frame.contentWindow) return;
  if (event.data?.tf === "missing") {
    end(event.data.status === 410 ? "This work was taken down." : "The work is not at its address. It may have been moved or taken down.");
  } else {
    bridge.greet(event);
  }
});

// Nothing goes on playing in a forgotten tab.
let hiddenSince = 0;
/** @type {ReturnType<typeof setTimeout> | undefined} */
let hiddenTimer;
function putAway() {
  const minutes = limits.hiddenSecondsMax / 60;
  if (frame) end(`Put away after ${minutes} minute${minutes === 1 ? "" : "s"} out of sight, so that nothing goes on playing in a forgotten tab.`);
}
document.addEventListener("visibilitychange", () => {
  clearTimeout(hiddenTimer);
  if (document.hidden) {
    hiddenSince = Date.now();
    hiddenTimer = setTimeout(putAway, limits.hiddenSecondsMax * 1000);
  } else if (Date.now() - hiddenSince > limits.hiddenSecondsMax * 1000) {
    putAway(); // timers of hidden pages sleep
  }
});

poster.addEventListener("click", event => {
  if (!(event.target instanceof Element && event.target.closest("noscript, .reason"))) start();
});
restart.addEventListener("click", start);
stop.addEventListener("click", () => end("Stopped.", false));
fill.addEventListener("click", () => {
  if (!frame) start();
  toggleFull();
});
// A work may ask "leave this page?", but not hold back a player who follows a link.
document.addEventListener("click", event => {
  const link = event.target instanceof Element ? event.target.closest("a") : null;
  if (link && !link.hasAttribute("download") && !link.getAttribute("href")?.startsWith("#") && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
    if (frame) end("Stopped.", false);
  }
});
