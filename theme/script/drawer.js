// The save drawer: shows what a visit keeps, and does what the player wants with it. Loaded when it is first opened.

import { look, makeBlock, openBlock } from "./blocks.js";
import { saves } from "./policy.js";
import { Refusal } from "./refusal.js";

/** @typedef {import("./visit.js").Visit} Visit */
/** @typedef {import("./visit.js").Position} Position */

/** @type {Record<Position, string>} */
const NAMES = { offline: "Offline", encrypted: "Online, encrypted", plaintext: "Online, plaintext" };
/** @type {Record<Position, string>} */
const MOVES = {
  offline: "Nothing more is sent. The save that is online stays there until you delete it.",
  encrypted: "The readable save is replaced by one that only the code opens. A word is no longer needed.",
  plaintext: "From then on the server can read what is saved.",
};
const PREVIEW_CHARS = 120;

/**
 * @param {HTMLElement} root the drawer of the page
 * @param {Visit} visit
 * @param {(why: string) => void} restart starts the work again, with the state that the visit has now
 */
export function makeDrawer(root, visit, restart) {
  /** @template {HTMLElement} [T=HTMLElement] @param {string} id */
  const part = id => /** @type {T} */ (root.querySelector(`#${id}`));
  const input = (/** @type {string} */ id) => /** @type {HTMLInputElement} */ (part(id));
  const radios = /** @type {NodeListOf<HTMLInputElement>} */ (root.querySelectorAll("[name=position]"));
  let chosen = visit.position, known = visit.position, blob = "";

  /** Does something and says what came of it. @param {string} place @param {() => Promise<string>} task */
  async function act(place, task) {
    const said = part(place);
    said.classList.remove("wrong");
    said.textContent = "One moment…";
    try {
      said.textContent = await task();
    } catch (problem) {
      said.classList.add("wrong");
      said.textContent = problem instanceof Refusal ? problem.message : "Something went wrong in this page. Reload it and try again.";
    }
    show();
  }

  /** @param {string} id @param {string} place @param {() => Promise<string>} task */
  function on(id, place, task) {
    const element = part(id);
    element.addEventListener(element.localName === "form" ? "submit" : "click", event => {
      event.preventDefault();
      act(place, task);
    });
  }

  function state() {
    if (visit.trouble?.type === "newer-save") return "Another device saved under this code in the meantime. Nothing was overwritten. Which one should stay?";
    if (visit.trouble) return visit.trouble.message;
    if (visit.json === null) return "The work has saved nothing yet.";
    if (visit.position === "offline") return visit.unsaved ? "Your progress is in this page only. Make a block of text before you leave." : "You have this progress as a block of text.";
    if (!visit.code) return "The work has progress to keep. It is in this page only, until you save.";
    return visit.unsaved ? "The newest progress will be saved in a moment." : "Saved.";
  }

  function sees() {
    const { held, json } = visit;
    if (!held) return visit.position === "offline" ? "Nothing, and nothing is sent." : "Nothing yet.";
    const key = `A key (${held.key.slice(0, 8)}…), which is a hash of this work's name and your code`;
    const body = held.plain ? `${held.bytes} bytes that it can read: ${(json ?? "").slice(0, PREVIEW_CHARS)}${(json ?? "").length > PREVIEW_CHARS ? "…" : ""}; ${visit.word ? "a hash of your word" : "no word"}`
      : `${held.bytes} bytes that it cannot read`;
    const left = visit.position === "offline" ? " That is the save from before; delete it below if it should go." : "";
    return `${key}; ${body}; a revision number and a day. No address, no account, no log.${left}`;
  }

  /** Shows what is so now. */
  function show() {
    if (known !== visit.position) chosen = known = visit.position;
    const conflict = visit.trouble?.type === "newer-save";
    part("save-state").textContent = state();
    part("save-state").classList.toggle("wrong", visit.trouble !== null);
    part("conflict").hidden = !conflict;
    part("code-slip").hidden = !visit.code;
    if (part("code").textContent !== (visit.code ?? "")) part("code-copy").textContent = "Copy";
    part("code").textContent = visit.code ?? "";
    part("save-now").hidden = visit.json === null || visit.position === "offline" || conflict || !visit.unsaved;
    part("save-now").textContent = visit.trouble ? "Try again" : "Save now";
    part("save-back").hidden = !visit.canGoBack;
    for (const radio of radios) radio.checked = radio.value === chosen;
    const moves = visit.code !== null && chosen !== visit.position;
    part("move-part").hidden = !moves;
    part("move").textContent = `Move this save to “${NAMES[chosen]}”`;
    part("move-words").textContent = MOVES[chosen];
    part("word-part").hidden = visit.position !== "plaintext" || moves;
    part("sees").textContent = sees();
    part("make-with-code").hidden = !visit.code;
    part("delete-part").hidden = !visit.held;
    part("block-part").classList.toggle("first", visit.position === "offline");
  }

  for (const radio of radios) {
    radio.addEventListener("change", () => {
      chosen = /** @type {Position} */ (radio.value);
      // Without a save there is nothing to move: the choice is for the first one.
      if (!visit.code) visit.move(chosen);
      if (chosen === "offline") /** @type {HTMLDetailsElement} */ (part("block-part")).open = true;
      show();
    });
  }

  /** After a save was taken over. @param {string} what */
  function taken(what) {
    chosen = visit.position;
    restart(`${what} The work has started again with it.`);
    return `${what} The work has started again with it. Some works ask you to choose “continue”.`;
  }

  async function copy(/** @type {string} */ text, /** @type {HTMLElement} */ button) {
    await navigator.clipboard.writeText(text).then(() => { button.textContent = "Copied"; }, () => { button.textContent = "Select it and copy"; });
  }

  on("save-now", "save-state", async () => (await visit.flush(), "Saved."));
  on("save-back", "save-state", async () => (await visit.back(), taken("You are back.")));
  on("take-theirs", "save-state", async () => (await visit.takeTheirs(), taken("The newer save is here.")));
  on("keep-ours", "save-state", async () => (await visit.keepOurs(), "Yours has taken its place."));
  on("keep-both", "save-state", async () => (await visit.keepBoth(), "Yours has a code of its own now."));
  on("move", "move-words", async () => (await visit.move(chosen), ""));
  on("word-part", "word-said", async () => {
    const word = input("word").value.trim().toLowerCase();
    if (word && !new RegExp(`^[a-z]{${saves.wordLetters}}$`).test(word)) throw new Refusal("bad-word", `A word has ${saves.wordLetters} letters from a to z.`);
    await visit.setWord(word);
    return word ? "The code opens this save only with the word now. Note both." : "The code alone opens this save now.";
  });
  on("load", "load-said", async () => {
    try {
      await visit.open(input("load-code").value, input("load-word").value.trim().toLowerCase());
    } catch (problem) {
      if (problem instanceof Refusal && ["wrong-word", "word-wait"].includes(problem.type)) askForWord();
      throw problem;
    }
    input("load-code").value = input("load-word").value = "";
    return taken("Loaded.");
  });
  on("make-block", "make-said", async () => {
    const passphrase = input("passphrase").value;
    if (!passphrase.trim()) throw new Refusal("bad-passphrase", "Write a passphrase first: a few words that you will know again. Without it the block stays shut.");
    return offer(await makeBlock(visit.work, visit.json ?? "null", { passphrase }), "The block opens with that passphrase, here or on any device. Keep both.");
  });
  on("make-with-code", "make-said", async () => offer(await makeBlock(visit.work, visit.json ?? "null", { code: visit.code ?? "" }), "The block opens with your code, also when the server is gone."));
  on("open-block", "open-said", async () => {
    await visit.takeBlock(await openBlock(visit.work, input("block-text").value, input("secret").value));
    input("block-text").value = input("secret").value = "";
    return taken("The block is open.");
  });
  on("delete", "delete-said", async () => (await visit.remove(), "Deleted."));
  part("code-copy").addEventListener("click", () => copy(visit.code ?? "", part("code-copy")));
  part("made-copy").addEventListener("click", () => { copy(input("made-text").value, part("made-copy")); visit.taken(); });
  part("made-file").addEventListener("click", () => visit.taken());
  input("made-text").addEventListener("focus", () => input("made-text").select());
  input("made-text").addEventListener("copy", () => visit.taken());
  input("block-text").addEventListener("input", async () => {
    const needs = await look(visit.work, input("block-text").value).then(found => found.needs, () => null);
    part("secret-name").textContent = needs === "code" ? "Its code" : needs === "passphrase" ? "Its passphrase" : "Its passphrase or code";
  });

  /** @param {string} text @param {string} words */
  function offer(text, words) {
    URL.revokeObjectURL(blob);
    blob = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
    /** @type {HTMLAnchorElement} */ (part("made-file")).href = blob;
    input("made-text").value = text;
    part("made").hidden = false;
    return words;
  }

  function askForWord() {
    for (const label of input("load-word").labels ?? []) label.hidden = false;
    input("load-word").hidden = false;
    input("load-word").focus();
  }

  /** @type {HTMLDetailsElement} */ (part("load-part")).open = visit.json === null;
  return {
    show,
    /** Opens the form for a code that a work could not load by itself. @param {string} code @param {string} why */
    offerToLoad(code, why) {
      /** @type {HTMLDetailsElement} */ (part("load-part")).open = true;
      input("load-code").value = code;
      part("load-said").textContent = why;
      askForWord();
    },
  };
}
