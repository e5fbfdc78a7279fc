// Saves under lock: AES-256-GCM with a key from the code (HKDF) or from a passphrase (PBKDF2). /save-format.html
// describes every byte. All of it is WebCrypto, which works beside the page's own thread.

import { Refusal } from "./refusal.js";

const NONCE_BYTES = 12, SALT_BYTES = 16, TAG_BYTES = 16, PAD_BYTES = 256;
const UNDER_CODE = new Uint8Array([0x54, 0x46, 0x43, 1]); // "TFC", version 1
const UNDER_PASSPHRASE = new Uint8Array([0x54, 0x46, 0x50, 1]); // "TFP", version 1
/** A block that asks for many times the usual work was not made here. */
const ROUNDS_TIMES_MAX = 10;
/** Of one that is sealed under a code: what the seal adds at most. */
export const SEAL_BYTES_MAX = UNDER_CODE.length + NONCE_BYTES + TAG_BYTES + PAD_BYTES - 1;

/** @typedef {Uint8Array<ArrayBuffer>} Bytes */

const utf8 = (/** @type {string} */ text) => /** @type {Bytes} */ (new TextEncoder().encode(text));
const random = (/** @type {number} */ count) => crypto.getRandomValues(new Uint8Array(count));

/** @param {Uint8Array[]} parts @returns {Bytes} */
export function join(...parts) {
  const all = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

/** JSON ends in as many spaces as make its length say little. @param {string} json */
function padded(json) {
  const bytes = utf8(json), all = new Uint8Array(Math.ceil(bytes.length / PAD_BYTES) * PAD_BYTES).fill(0x20);
  all.set(bytes);
  return all;
}

/** @param {string} slug @param {string} code */
async function keyFromCode(slug, code) {
  const material = await crypto.subtle.importKey("raw", utf8(code), "HKDF", false, ["deriveKey"]);
  const how = { name: "HKDF", hash: "SHA-256", salt: utf8(slug), info: utf8("tinyfiles save 1") };
  return crypto.subtle.deriveKey(how, material, { name: "AES-GCM", length: 256 }, false, ["encrypt", "decrypt"]);
}

/** @param {string} passphrase @param {Bytes} salt @param {number} iterations */
async function keyFromPassphrase(passphrase, salt, iterations) {
  const material = await crypto.subtle.importKey("raw", utf8(passphrase.normalize("NFKC")), "PBKDF2", false, ["deriveKey"]);
  const how = { name: "PBKDF2", hash: "SHA-256", salt, iterations };
  return crypto.subtle.deriveKey(how, material, { name: "AES-GCM", length: 256 }, false, ["encrypt", "decrypt"]);
}

/** Header, nonce, ciphertext and tag; header and slug are authenticated. @param {CryptoKey} key @param {string} slug @param {Bytes} header @param {Bytes} nonce @param {string} json */
async function seal(key, slug, header, nonce, json) {
  const how = { name: "AES-GCM", iv: nonce, additionalData: join(header, utf8(slug)) };
  return join(header, nonce, new Uint8Array(await crypto.subtle.encrypt(how, key, padded(json))));
}

/** The JSON, or null when key, slug or a byte is another. @param {CryptoKey} key @param {string} slug @param {Bytes} sealed @param {number} headerBytes */
async function unseal(key, slug, sealed, headerBytes) {
  const header = sealed.slice(0, headerBytes), iv = sealed.slice(headerBytes, headerBytes + NONCE_BYTES);
  try {
    const how = { name: "AES-GCM", iv, additionalData: join(header, utf8(slug)) };
    const bytes = await crypto.subtle.decrypt(how, key, sealed.slice(headerBytes + NONCE_BYTES));
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes).trimEnd();
  } catch {
    return null;
  }
}

/** What a sealed save is opened with. @param {Uint8Array} sealed @returns {"code" | "passphrase"} */
export function openedWith(sealed) {
  const starts = (/** @type {Bytes} */ magic) => magic.every((byte, i) => sealed[i] === byte);
  if (starts(UNDER_CODE)) return "code";
  if (starts(UNDER_PASSPHRASE)) return "passphrase";
  throw new Refusal("damaged", "This is not a save that this page can read. It may have been made by a newer version: reload the page and try again.");
}

/** @param {string} slug @param {string} code @param {string} json @param {Bytes} [nonce] */
export async function sealWithCode(slug, code, json, nonce = random(NONCE_BYTES)) {
  return seal(await keyFromCode(slug, code), slug, UNDER_CODE, nonce, json);
}

/** @param {string} slug @param {string} code @param {Bytes} sealed */
export async function openWithCode(slug, code, sealed) {
  if (openedWith(sealed) !== "code") throw new Refusal("wrong-code", "This block has a passphrase, not a code.");
  const json = await unseal(await keyFromCode(slug, code), slug, sealed, UNDER_CODE.length);
  if (json === null) throw new Refusal("wrong-code", "The code does not open this save. Compare its characters. Nothing was changed.");
  return json;
}

/** @param {string} slug @param {string} passphrase @param {string} json @param {number} rounds @param {{salt?: Bytes, nonce?: Bytes}} [chosen] */
export async function sealWithPassphrase(slug, passphrase, json, rounds, { salt = random(SALT_BYTES), nonce = random(NONCE_BYTES) } = {}) {
  const count = new Uint8Array(4);
  new DataView(count.buffer).setUint32(0, rounds);
  return seal(await keyFromPassphrase(passphrase, salt, rounds), slug, join(UNDER_PASSPHRASE, count, salt), nonce, json);
}

/** @param {string} slug @param {string} passphrase @param {Bytes} sealed @param {number} usualRounds */
export async function openWithPassphrase(slug, passphrase, sealed, usualRounds) {
  if (openedWith(sealed) !== "passphrase") throw new Refusal("wrong-passphrase", "This block opens with its code, not with a passphrase.");
  const saltAt = UNDER_PASSPHRASE.length + 4, nonceAt = saltAt + SALT_BYTES;
  const rounds = sealed.length < nonceAt ? 0 : new DataView(sealed.buffer, sealed.byteOffset).getUint32(UNDER_PASSPHRASE.length);
  if (rounds < 1 || rounds > usualRounds * ROUNDS_TIMES_MAX) throw new Refusal("damaged", "This block was not made here: its number of rounds makes no sense.");
  const json = await unseal(await keyFromPassphrase(passphrase, sealed.slice(saltAt, nonceAt), rounds), slug, sealed, nonceAt);
  if (json === null) throw new Refusal("wrong-passphrase", "The passphrase does not open this block. Try again: nothing was changed.");
  return json;
}
