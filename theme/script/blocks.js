// Blocks of text as a player makes and opens them: under a passphrase, or under the code of a save.

import { readBlock, writeBlock } from "./block.js";
import { readCode } from "./code.js";
import { saves } from "./policy.js";
import { Refusal } from "./refusal.js";
import { openWithCode, openWithPassphrase, openedWith, sealWithCode, sealWithPassphrase } from "./seal.js";

/** What the block in a text is opened with. @param {string} work creator/work @param {string} text */
export async function look(work, text) {
  const { slug, sealed } = await readBlock(text);
  if (slug && slug !== work) throw new Refusal("other-work", `This block is a save of ${slug}. Open it on the page of that work.`);
  return { sealed, needs: openedWith(sealed) };
}

/** @param {string} work @param {string} text @param {string} secret its passphrase or code @returns {Promise<{json: string, code: string | null}>} */
export async function openBlock(work, text, secret) {
  const { sealed, needs } = await look(work, text);
  if (needs === "passphrase") return { json: await openWithPassphrase(work, secret, sealed, saves.passphraseRounds), code: null };
  const code = readCode(secret);
  return { json: await openWithCode(work, code, sealed), code };
}

/** @param {string} work @param {string} json @param {{passphrase: string} | {code: string}} secret */
export async function makeBlock(work, json, secret) {
  const sealed = "code" in secret ? sealWithCode(work, secret.code, json)
    : sealWithPassphrase(work, secret.passphrase, json, saves.passphraseRounds);
  return writeBlock(work, await sealed);
}
