// A save as a block of text that survives mail, chat and word processors. /save-format.html describes it.

import { Refusal } from "./refusal.js";
import { join } from "./seal.js";

const BEGIN = "-----BEGIN TINYFILES SAVE-----", END = "-----END TINYFILES SAVE-----";
const HEADER = new Uint8Array([0x54, 0x46, 0x42, 1]); // "TFB", version 1
/** How every text of a version 1 block starts, so that it is found also where the lines around it are lost. */
const TEXT_START = "VEZCAQ";
const COLUMNS = 64, LINES_BEFORE = 2, LENGTH_BYTES = 4, CHECK_BYTES = 4;
const FRAME_BYTES = HEADER.length + LENGTH_BYTES + CHECK_BYTES;
/** The header and the length, as text. */
const START_CHARS = 12;
/** What mail and word processors put into a text: white space, marks of quotation, smart or not, invisible characters. */
const NOISE = /[\s>"'`“”„‟‘’‚‛«»‹›*|=\u200b-\u200f\u2060\ufeff\u00ad]/g;

/** @param {Uint8Array} bytes */
const check = async bytes => new Uint8Array(await crypto.subtle.digest("SHA-256", /** @type {BufferSource} */ (bytes))).subarray(0, CHECK_BYTES);

/** @param {string} slug @param {Uint8Array} sealed */
export async function writeBlock(slug, sealed) {
  const length = new Uint8Array(LENGTH_BYTES);
  new DataView(length.buffer).setUint32(0, sealed.length);
  const framed = join(HEADER, length, sealed), all = join(framed, await check(framed));
  const text = btoa(Array.from(all, byte => String.fromCharCode(byte)).join(""));
  const lines = text.match(new RegExp(`.{1,${COLUMNS}}`, "g")) ?? [];
  return [BEGIN, `Work: ${slug}`, ...lines, END, ""].join("\n");
}

/**
 * Finds the block in a text and takes the save out of it.
 * @param {string} text as somebody pasted it
 * @returns {Promise<{slug: string | null, sealed: Uint8Array<ArrayBuffer>}>}
 */
export async function readBlock(text) {
  const bare = text.replace(NOISE, ""), start = bare.indexOf(TEXT_START);
  if (start < 0) throw new Refusal("no-block", `There is no save block in this text. It begins with the line “${BEGIN}”; copy it from there to its last line.`);
  const slug = /Work:([a-z0-9-]+\/[a-z0-9-]+)/.exec(bare.slice(0, start))?.[1] ?? null;
  const chars = /^[A-Za-z0-9+/]*/.exec(bare.slice(start))?.[0] ?? "", stop = bare.charAt(start + chars.length);
  const known = chars.length >= START_CHARS ? new DataView(decode(chars.slice(0, START_CHARS)).buffer).getUint32(HEADER.length) : null;
  const bytes = FRAME_BYTES + (known ?? 0), needed = Math.ceil(bytes / 3) * 4;
  if (known === null || chars.length < Math.ceil(bytes * 4 / 3)) throw cutOff(chars.length, known === null ? null : needed, stop);
  const all = decode(chars.slice(0, needed)).subarray(0, bytes), framed = all.subarray(0, -CHECK_BYTES);
  const right = await check(framed);
  if (!right.every((byte, i) => byte === all[framed.length + i])) {
    throw new Refusal("damaged", "A character of this block was changed on its way. Copy it again from where you kept it.");
  }
  return { slug, sealed: framed.slice(HEADER.length + LENGTH_BYTES) };
}

/** Where it ends too early, counted in the lines that the block was made with. @param {number} have @param {number | null} needed @param {string} stop */
function cutOff(have, needed, stop) {
  const line = LINES_BEFORE + Math.floor(have / COLUMNS) + 1;
  const of = needed === null ? "" : ` of ${LINES_BEFORE + Math.ceil(needed / COLUMNS) + 1}`;
  if (stop && !/[\p{Pd}\u2212]/u.test(stop)) {
    return new Refusal("damaged", `Line ${line}${of} has the character “${stop}”, which no block has. Copy the block again from where you kept it.`, { line });
  }
  if (stop) {
    const missing = needed === null ? "most" : `${needed - have} of the ${needed}`;
    return new Refusal("cut-off", `Inside this block ${missing} characters are missing. Copy it again from where you kept it.`);
  }
  return new Refusal("cut-off", `The block is cut off at line ${line}${of}. Copy it again from where you kept it, down to its last line.`, { line });
}

/** @param {string} chars */
function decode(chars) {
  const whole = chars.padEnd(Math.ceil(chars.length / 4) * 4, "=");
  try {
    return Uint8Array.from(atob(whole), char => char.charCodeAt(0));
  } catch {
    throw new Refusal("damaged", "A character of this block is missing or was changed. Copy it again from where you kept it.");
  }
}
