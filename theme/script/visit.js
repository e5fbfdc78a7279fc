// What a visit keeps for a work: the newest state, the code, revision, position and word of its save. It does what the
// work and the save drawer ask, one thing at a time, and nothing here is stored in the browser.

import { drawCode, keyOf, readCode } from "./code.js";
import { Pace } from "./pace.js";
import { limits, saves } from "./policy.js";
import { Refusal } from "./refusal.js";
import { SEAL_BYTES_MAX, openWithCode, sealWithCode } from "./seal.js";
import * as server from "./server.js";

/** @typedef {"offline" | "encrypted" | "plaintext"} Position */
/** @typedef {Uint8Array<ArrayBuffer>} Bytes */

const encoder = new TextEncoder();
const UNSURE_MAX = 3;

export class Visit {
  /** @type {Position} */
  position = "encrypted";
  /** The code of the save, once the server has it. @type {string | null} */
  code = null;
  /** The word that opens it, if it has one. */
  word = "";
  /** The newest state, as JSON. @type {string | null} */
  json = null;
  /** Whether the newest state is nowhere but here. */
  unsaved = false;
  /** What the server holds under the code, as it was sent. @type {{key: string, bytes: number, plain: boolean} | null} */
  held = null;
  /** How often another save took the place of what was here. */
  loads = 0;
  /** Why the last save failed. @type {Refusal | null} */
  trouble = null;

  /** creator/work @type {string} */
  work;
  #changed;
  /** @type {string | null} */
  #revision = null;
  /** The code of a first save that was not confirmed yet. */
  #draft = "";
  /** Bodies whose answers were lost: the server may have one of them. @type {Bytes[]} */
  #unsure = [];
  /** What was here before another save was taken over. @type {Record<string, any> | null} */
  #before = null;
  /** @type {Promise<unknown>} */
  #last = Promise.resolve();
  /** @type {Promise<{code: string | null}> | null} */
  #waiting = null;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;
  #saves = new Pace(limits.savesPerMinuteMax);
  #loads = new Pace(limits.loadsPerMinuteMax);

  /** @param {string} work creator/work @param {() => void} changed called when there is something new to show */
  constructor(work, changed) {
    this.work = work;
    this.#changed = changed;
    addEventListener("online", () => { if (this.trouble && this.unsaved) this.flush().catch(() => {}); });
    document.addEventListener("visibilitychange", () => { if (document.hidden && this.#timer) this.flush().catch(() => {}); });
  }

  /**
   * Takes a state of the work and saves it. One that nobody asked for is kept here until the player wants a save, and
   * then saved now and then.
   * @param {unknown} state @param {boolean} unasked
   * @returns {Promise<{code: string | null}>}
   */
  async put(state, unasked) {
    const json = JSON.stringify(state);
    if (json === undefined) throw new Refusal("bad-request", "A state is what JSON can hold.");
    return this.keep(json, unasked);
  }

  /** The same with a state that is JSON already. @param {string} json @param {boolean} unasked */
  async keep(json, unasked) {
    const most = saves.bodyBytesMax - SEAL_BYTES_MAX, size = encoder.encode(json).length;
    if (size > most) throw new Refusal("too-large", `This state has ${size} bytes, and a save holds ${most}. The last one is kept.`);
    if (json !== this.json || !this.code) this.unsaved = true;
    this.json = json;
    this.#changed();
    if (this.position === "offline") return { code: null };
    if (!this.unsaved) return { code: this.code };
    if (!unasked) return this.flush();
    if (this.code && this.trouble?.type !== "newer-save") this.#later();
    return { code: this.code };
  }

  /** The state of this visit, or the one under a code. @param {unknown} code */
  async get(code) {
    if (code === undefined || code === null || code === "") return this.json === null ? null : JSON.parse(this.json);
    if (!this.#loads.take()) throw new Refusal("too-fast", `A work may try ${limits.loadsPerMinuteMax} codes a minute.`);
    await this.open(String(code).slice(0, 100), "");
    return JSON.parse(this.json ?? "null");
  }

  #later() {
    this.#timer ??= setTimeout(() => { this.flush().catch(() => {}); }, limits.autosaveSecondsMin * 1000);
  }

  /** Saves the newest state online. One save is on its way at a time; who comes meanwhile shares the next. */
  flush() {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    return this.#waiting ??= this.#inTurn(async () => {
      await this.#saves.wait();
      this.#waiting = null;
      if (this.position === "offline") return { code: null };
      try {
        await this.#write();
        this.trouble = null;
        return { code: this.code };
      } catch (problem) {
        this.trouble = problem instanceof Refusal ? problem : new Refusal("unavailable", String(problem));
        if (["offline", "unreachable", "busy", "rate"].includes(this.trouble.type)) this.#later();
        throw problem;
      } finally {
        this.#changed();
      }
    });
  }

  /** @template T @param {() => Promise<T>} task @returns {Promise<T>} */
  #inTurn(task) {
    const mine = this.#last.then(task, task);
    this.#last = mine.catch(() => {});
    return mine;
  }

  async #write() {
    const json = this.json ?? "null", plain = this.position === "plaintext";
    const code = this.code ?? (this.#draft ||= drawCode());
    const key = await keyOf(this.work, code);
    const bytes = plain ? /** @type {Bytes} */ (encoder.encode(json)) : await sealWithCode(this.work, code, json);
    const send = () => server.put(key, { bytes, plain }, { work: this.work, word: this.word, revision: this.#revision });
    const lost = this.#unsure;
    this.#unsure = [...lost.slice(-UNSURE_MAX), bytes];
    try {
      this.#revision = await send().catch(async problem => {
        // Did the answer to a save of our own get lost, and is that the "newer" one?
        if (problem.type !== "newer-save" || lost.length === 0 || !await this.#isThere(key, lost)) throw problem;
        return send();
      });
      this.#unsure = [];
    } catch (problem) {
      if (problem instanceof Refusal) this.#failed(problem, code);
      throw problem;
    }
    this.#draft = "";
    this.code = code;
    this.held = { key, bytes: bytes.length, plain };
    if (!plain) this.word = "";
    if (this.json === json) this.unsaved = false;
    else this.#later();
  }

  /** @param {Refusal} problem @param {string} code */
  #failed(problem, code) {
    if (problem.type === "not-found") { // deleted elsewhere: the next save makes it anew
      this.#revision = this.held = null;
      problem.message = `The save under ${code} was deleted on another device. Save once more to make it anew.`;
    }
    // Whatever was refused did not arrive; after silence it may have.
    if (!["offline", "unreachable"].includes(problem.type)) this.#unsure = [];
  }

  /** Whether one of these bodies is under the key; then the next save replaces it. @param {string} key @param {Bytes[]} bodies */
  async #isThere(key, bodies) {
    const found = await server.get(key, { work: this.work, word: this.word });
    const same = bodies.some(body => body.length === found.bytes.length && body.every((byte, i) => byte === found.bytes[i]));
    if (same) this.#revision = found.revision;
    return same;
  }

  /** Takes over the save under a code; if that fails, everything stays as it is. @param {string} written @param {string} word */
  async open(written, word) {
    const code = readCode(written);
    if (this.code && this.unsaved && !this.trouble) await this.flush().catch(() => {});
    return this.#inTurn(async () => {
      const key = await keyOf(this.work, code);
      const { bytes, plain, revision } = await server.get(key, { work: this.work, word });
      const json = plain ? new TextDecoder().decode(bytes) : await openWithCode(this.work, code, bytes);
      const held = { key, bytes: bytes.length, plain };
      this.#adopt(json, { position: plain ? "plaintext" : "encrypted", code, word: plain ? word : "", held, revision, unsaved: false });
    });
  }

  /** @param {string} json @param {Record<string, any>} save */
  #adopt(json, { revision, ...save }) {
    JSON.parse(json);
    const { position, code, word, held, unsaved } = this;
    this.#before = this.json === null ? null : { json: this.json, position, code, word, held, unsaved, revision: this.#revision };
    this.#take({ word: "", held: null, json, ...save, revision });
  }

  /** @param {Record<string, any>} save */
  #take({ revision, ...save }) {
    this.loads++;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    Object.assign(this, save, { trouble: null });
    this.#revision = revision;
    this.#draft = "";
    this.#unsure = [];
    this.#changed();
  }

  /** Whether `back` leads anywhere. */
  get canGoBack() {
    return this.#before !== null;
  }

  /** Takes up again what was here before a save was loaded. */
  async back() {
    return this.#inTurn(async () => {
      const before = this.#before;
      this.#before = null;
      if (before) this.#take(before);
    });
  }

  /**
   * Takes over what a block held. Nobody knows yet what the server has under its code: the next save asks before it
   * replaces anything.
   * @param {{json: string, code: string | null}} opened
   */
  async takeBlock({ json, code }) {
    return this.#inTurn(async () => {
      this.#adopt(json, { position: code ? "encrypted" : "offline", code, revision: null, unsaved: code !== null });
    });
  }

  /** The block of an offline save was taken away by the player. */
  taken() {
    if (this.position === "offline") this.unsaved = false;
    this.#changed();
  }

  /** Moves the save to another position, under the code that it has. @param {Position} position */
  async move(position) {
    const before = { position: this.position, word: this.word };
    this.position = position;
    if (position !== "offline" && this.code) await this.#again(before);
    this.#changed();
  }

  /** Sets the word of a readable save, or takes it away. @param {string} word */
  async setWord(word) {
    const before = { position: this.position, word: this.word };
    if (this.held?.plain && this.word && this.word !== word) { // the server forgets a word with the readable text
      this.position = "encrypted";
      await this.#again(before);
      this.position = "plaintext";
    }
    this.word = word;
    if (this.code && this.position === "plaintext") await this.#again({ word: "" });
    this.#changed();
  }

  /** Saves on other terms; if the server refuses them, the old ones hold. @param {Partial<Visit>} before */
  async #again(before) {
    this.unsaved = true;
    await this.flush().catch(problem => {
      if (!["offline", "unreachable", "busy", "rate"].includes(problem.type)) Object.assign(this, before);
      throw problem;
    });
  }

  /** After somebody else saved: ours takes the place of theirs. */
  async keepOurs() {
    const theirs = this.trouble?.details.revision;
    if (typeof theirs === "string") this.#revision = theirs;
    return this.flush();
  }

  /** After somebody else saved: ours gets a code of its own. */
  async keepBoth() {
    this.code = this.#revision = this.held = null;
    return this.flush();
  }

  /** After somebody else saved: theirs takes the place of ours. */
  async takeTheirs() {
    await this.open(this.code ?? "", this.word);
  }

  /** Deletes the save on the server; the state stays here. */
  async remove() {
    return this.#inTurn(async () => {
      if (!this.code || !this.held) return;
      await server.remove(this.held.key, { work: this.work, word: this.word, revision: this.#revision });
      this.#take({ code: null, held: null, word: "", unsaved: this.json !== null, revision: null });
    });
  }
}
