// The site's own API as the page speaks to it: saves by their key, and the Python function of a work. Answers are
// values, and every way to fail is a Refusal with a sentence for the player.

import { limits, saves } from "./policy.js";
import { Refusal } from "./refusal.js";

/** @typedef {Uint8Array<ArrayBuffer>} Bytes */
/** @typedef {{work: string, word?: string, revision?: string | null}} Terms `revision` is the one to replace, null to make the first */

const KIB = 1024;
const PLAIN = "application/json", SEALED = "application/octet-stream";

/** @param {number} seconds */
const wait = seconds => seconds < 90 ? `${Math.max(1, Math.round(seconds))} seconds` : `${Math.round(seconds / 60)} minutes`;

/** What the player reads, by the name of the problem. @type {Record<string, string | ((more: any) => string)>} */
const SENTENCES = {
  "not-found": "There is no save under this code for this work. Compare the characters; and a code belongs to one work only. Nothing was changed.",
  "wrong-word": more => more.attempts_left > 0 || more.wait_seconds === 0
    ? `The code is right, the word is missing or another. ${more.attempts_left > 0 ? `${more.attempts_left} tries are left before each further one has to wait.` : "Try again."} The save is not harmed.`
    : `The word is another. The next try is possible in ${wait(more.wait_seconds ?? 60)}. The save is not harmed.`,
  "word-wait": more => `Too many wrong words. Wait ${wait(more.wait_seconds ?? 60)} and try again. The save is not harmed.`,
  "bad-word": `A word has ${saves.wordLetters} letters from a to z.`,
  "newer-save": "Another device saved in the meantime. Nothing was overwritten: choose in the save drawer which one to keep.",
  "too-large": `This work's progress is over ${saves.bodyBytesMax / KIB} KiB, which no save may have. Its creator has to mend that; the last save is still there.`,
  "too-deep": "This work's progress is nested too deeply to be kept in readable form. Keep it encrypted, or offline.",
  "storage-full": "The server has no room left. The last save is still there. Take a block of text from the save drawer, and try again another day.",
  quota: "The server has taken in all that it takes in a day. The last save is still there. Take a block of text from the save drawer, or try again tomorrow.",
  rate: more => `Many requests came from your network address. Wait ${wait(more.wait_seconds ?? 60)} and try again; nothing is lost.`,
  busy: "The server is busy. Play on: this page tries again.",
  "python-closed": "Python is closed for now. The work goes on without it.",
  "python-busy": "Too many functions are being run just now. Try again in a moment.",
  "python-timeout": "The function took too long and was stopped.",
  "python-memory": "The function asked for too much memory and was stopped.",
  "python-processes": "The function started too many threads and was stopped.",
  "python-output": "The function's answer was too large.",
  "python-bad-answer": "The function's answer was not JSON.",
  "python-denied": "The function tried something that is not allowed, and was stopped.",
  "python-crash": "The function crashed.",
  "python-error": more => `The function failed${more.line ? ` in line ${more.line}` : ""}: ${more.message ?? more.error_type ?? "it did not say why"}`,
  "python-inputs": "What the work sent to its function is too large or too deeply nested.",
  "python-unknown": "This work has no Python function on the server.",
  offline: "This device is offline. Play on: the page keeps your progress and saves it when you are back.",
  unreachable: "The server does not answer. Play on: the page keeps your progress and tries again. To be safe, take a block of text from the save drawer.",
};

/** @param {string} path @param {RequestInit} options @param {string} work */
async function ask(path, options, work) {
  try {
    return await fetch(path, {
      ...options, headers: { ...options.headers, "Tinyfiles-Work": work }, cache: "no-store", credentials: "omit",
      referrerPolicy: "no-referrer", redirect: "error", signal: AbortSignal.timeout(limits.requestSecondsMax * 1000),
    });
  } catch {
    throw refusal(navigator.onLine ? "unreachable" : "offline");
  }
}

/** @param {string} type @param {Record<string, unknown>} [more] */
function refusal(type, more = {}) {
  const sentence = SENTENCES[type];
  const { message, title, detail, ...details } = more;
  return new Refusal(type, typeof sentence === "function" ? sentence(more) : sentence ?? String(detail ?? title ?? SENTENCES.unreachable), details);
}

/** Reads a problem of RFC 9457, or what a server in front answers instead. @param {Response} response */
async function problem(response) {
  /** @type {any} */
  let said = null;
  if (response.headers.get("Content-Type")?.startsWith("application/problem+json")) said = await response.json().catch(() => null);
  const seconds = Number(response.headers.get("Retry-After")) || undefined;
  const { type: link, status, ...more } = { wait_seconds: seconds, ...said };
  const named = /#([a-z-]{1,40})$/.exec(String(link))?.[1];
  const type = named ?? ({ 404: "not-found", 412: "newer-save", 413: "too-large", 429: "rate" }[response.status] ?? "unreachable");
  return refusal(type === "unavailable" || type === "internal" ? "unreachable" : type, { ...more, revision: response.headers.get("ETag") ?? undefined });
}

/** @param {Terms} terms @returns {Record<string, string>} */
const headers = ({ word, revision }) => ({
  ...word ? { "Save-Word": word } : {},
  ...revision === undefined ? {} : revision === null ? { "If-None-Match": "*" } : { "If-Match": revision },
});

/** @param {string} key @param {{bytes: Bytes, plain: boolean}} body @param {Terms} terms @returns {Promise<string>} the new revision */
export async function put(key, { bytes, plain }, terms) {
  const type = { "Content-Type": plain ? PLAIN : SEALED };
  const response = await ask(`/api/saves/${key}`, { method: "PUT", body: bytes, headers: { ...headers(terms), ...type } }, terms.work);
  const revision = response.headers.get("ETag");
  if (!response.ok || !revision) throw await problem(response);
  return revision;
}

/** @param {string} key @param {Terms} terms @returns {Promise<{bytes: Bytes, plain: boolean, revision: string}>} */
export async function get(key, terms) {
  const response = await ask(`/api/saves/${key}`, { headers: headers(terms) }, terms.work);
  const revision = response.headers.get("ETag");
  if (!response.ok || !revision) throw await problem(response);
  const bytes = new Uint8Array(await response.arrayBuffer());
  return { bytes, plain: response.headers.get("Content-Type")?.startsWith(PLAIN) ?? false, revision };
}

/** @param {string} key @param {Terms} terms */
export async function remove(key, terms) {
  const response = await ask(`/api/saves/${key}`, { method: "DELETE", headers: headers(terms) }, terms.work);
  if (!response.ok) throw await problem(response);
}

/** Calls the function of a work. @param {string} work @param {object} inputs @returns {Promise<any>} */
export async function python(work, inputs) {
  const options = { method: "POST", body: JSON.stringify(inputs), headers: { "Content-Type": PLAIN } };
  const response = await ask(`/api/python/${work}`, options, work);
  if (!response.ok) {
    const said = await problem(response);
    // What is said of saves means something else here.
    throw { "not-found": refusal("python-unknown"), "too-large": refusal("python-inputs") }[said.type] ?? said;
  }
  return response.json().catch(() => { throw refusal("python-bad-answer"); });
}
