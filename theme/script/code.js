// Save codes: drawn, read as people write them, and made into the key of a record. /save-format.html describes them.

import { Refusal } from "./refusal.js";

/** Without I, L, O, 0 and 1, which are taken for each other. */
const ALPHABET = "ABCDEFGHJKMNPQRSTUVWXYZ23456789";
const SYMBOLS = 16, IN_A_GROUP = 4;
/** Bytes from here on are thrown away: taken modulo the alphabet they would favour its first symbols. */
const FAIR = 256 - 256 % ALPHABET.length;
/** What people and their programs write between the groups: white space, every dash, underscores, points, and nothings. */
const BETWEEN = /[\s\p{Pd}\u2212_.\u200b-\u200d\u2060\ufeff\u00ad]/gu;

/** @param {string} symbols */
const grouped = symbols => symbols.match(new RegExp(`.{${IN_A_GROUP}}`, "g"))?.join("-") ?? "";

/** A new code, every symbol equally likely. */
export function drawCode() {
  let symbols = "";
  while (symbols.length < SYMBOLS) {
    const [byte] = crypto.getRandomValues(new Uint8Array(1));
    if (byte < FAIR) symbols += ALPHABET[byte % ALPHABET.length];
  }
  return grouped(symbols);
}

/** The code that somebody wrote: capitals or not, with or without dashes and spaces. @param {string} written */
export function readCode(written) {
  const symbols = [...written.normalize("NFKC").toUpperCase().replace(BETWEEN, "")];
  const alien = symbols.find(symbol => !ALPHABET.includes(symbol));
  if (alien !== undefined && symbols.length <= 2 * SYMBOLS) {
    const never = "ILO01".includes(alien) ? " I, L, O, 0 and 1 are left out because they look alike." : "";
    throw new Refusal("bad-code", `No code has the character “${alien}”.${never} Compare it with what you noted.`);
  }
  if (symbols.length !== SYMBOLS) {
    throw new Refusal("bad-code", `A code has ${SYMBOLS} characters, and this has ${symbols.length}. Compare it with what you noted.`);
  }
  return grouped(symbols.join(""));
}

/**
 * The key that the server files a save under; it is all that the server learns of the code.
 * @param {string} slug creator/work
 * @param {string} code as `readCode` returns it
 */
export async function keyOf(slug, code) {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(`${slug}:${code}`));
  return [...new Uint8Array(digest)].map(byte => byte.toString(16).padStart(2, "0")).join("");
}
