// The demonstration on the page about saves: seals a text under a code and opens it again while the reader types. It
// uses the very modules that the save drawer uses, and sends nothing.

import { writeBlock } from "./block.js";
import { drawCode, keyOf, readCode } from "./code.js";
import { openWithCode, sealWithCode } from "./seal.js";

const WORK = "moth/demonstration";
const SHOWN_BYTES = 96;

const root = /** @type {HTMLElement} */ (document.getElementById("demo"));
/** @template {HTMLElement} [T=HTMLInputElement] @param {string} name */
const part = name => /** @type {T} */ (root.querySelector(`[data-demo=${name}]`));
const hex = (/** @type {Uint8Array} */ bytes) => [...bytes].map(byte => byte.toString(16).padStart(2, "0")).join(" ");
let turn = 0;

async function show() {
  const mine = ++turn;
  /** @type {Record<string, string>} */
  const shown = {};
  try {
    const code = readCode(part("code").value), state = part("state").value;
    const sealed = await sealWithCode(WORK, code, state);
    shown.key = await keyOf(WORK, code);
    shown.sealed = `${sealed.length} bytes: ${hex(sealed.subarray(0, SHOWN_BYTES))}${sealed.length > SHOWN_BYTES ? " …" : ""}`;
    shown.block = await writeBlock(WORK, sealed);
    shown.opened = await tryToOpen(sealed);
  } catch (problem) {
    shown.opened = /** @type {Error} */ (problem).message;
  }
  if (mine !== turn) return; // a newer one is on its way
  for (const name of ["key", "sealed", "block", "opened"]) part(name).textContent = shown[name] ?? "";
}

/** @param {Uint8Array<ArrayBuffer>} sealed */
async function tryToOpen(sealed) {
  try {
    return await openWithCode(WORK, readCode(part("other").value), sealed);
  } catch (problem) {
    return /** @type {Error} */ (problem).message;
  }
}

function draw() {
  part("code").value = part("other").value = drawCode();
  show();
}

root.hidden = !crypto.subtle;
part("draw").addEventListener("click", draw);
for (const name of ["state", "code", "other"]) part(name).addEventListener("input", show);
draw();
