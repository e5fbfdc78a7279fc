// The formats of saves, held to vectors that another implementation wrote (tests/vectors/saves.py).

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";

import { readBlock, writeBlock } from "../script/block.js";
import { drawCode, keyOf, readCode } from "../script/code.js";
import { SEAL_BYTES_MAX, openWithCode, openWithPassphrase, openedWith, sealWithCode, sealWithPassphrase } from "../script/seal.js";

const vectors = JSON.parse(readFileSync(new URL("../../tests/vectors/saves.json", import.meta.url), "utf8"));
const limits = readFileSync(new URL("../../policy/data/limits.toml", import.meta.url), "utf8");
const bytes = hex => Uint8Array.from(hex.match(/../g), pair => parseInt(pair, 16));
const hex = data => Buffer.from(data).toString("hex");
const refused = type => error => error.type === type && error.message.length > 20;

test("every accepted spelling of a code gives one key", async () => {
  const keys = await Promise.all(vectors.code_spellings.map(written => keyOf("a/b", readCode(written))));
  assert.ok(keys.length >= 10);
  assert.equal(new Set(keys).size, 1);
  for (const written of vectors.code_refused) assert.throws(() => readCode(written), refused("bad-code"), written);
  for (const { slug, code, key } of vectors.keys) assert.equal(await keyOf(slug, code), key);
});

test("codes have the promised shape and use the whole alphabet, evenly", () => {
  assert.match(limits, /^code_symbols = 16$/m);
  const counts = new Map([...vectors.code_alphabet].map(symbol => [symbol, 0])), draws = 4000;
  for (let i = 0; i < draws; i++) {
    const code = drawCode();
    assert.match(code, /^[A-Z2-9]{4}(-[A-Z2-9]{4}){3}$/);
    assert.equal(readCode(code), code);
    for (const symbol of code.replaceAll("-", "")) counts.set(symbol, counts.get(symbol) + 1);
  }
  const expected = draws * 16 / counts.size;
  const chi = [...counts.values()].reduce((sum, count) => sum + (count - expected) ** 2 / expected, 0);
  // 30 degrees of freedom: by chance once in a thousand million runs. Bytes taken modulo 31 give about 300.
  assert.ok(counts.size === 31 && chi < 104, `chi square ${chi}`);
});

test("a save under a code is sealed byte for byte as described", async () => {
  for (const { slug, code, state, nonce, sealed } of vectors.sealed_with_code) {
    assert.equal(hex(await sealWithCode(slug, code, state, bytes(nonce))), sealed);
    assert.equal(await openWithCode(slug, code, bytes(sealed)), state);
    const fresh = await sealWithCode(slug, code, state);
    assert.notEqual(hex(fresh), sealed);
    assert.ok(fresh.length <= Buffer.byteLength(state) + SEAL_BYTES_MAX);
    await assert.rejects(openWithCode("other/work", code, fresh), refused("wrong-code"));
    await assert.rejects(openWithCode(slug, "AAAA-AAAA-AAAA-AAAA", fresh), refused("wrong-code"));
    for (const at of [3, 4, 20, fresh.length - 1]) {
      const changed = fresh.slice();
      changed[at] ^= 1;
      await assert.rejects(openWithCode(slug, code, changed), error => ["wrong-code", "damaged"].includes(error.type), `byte ${at}`);
    }
  }
});

test("a save under a passphrase is sealed byte for byte as described", async () => {
  const usual = Number(/passphrase_rounds = ([\d_]+)/.exec(limits)[1].replaceAll("_", ""));
  for (const { slug, passphrase, rounds, state, salt, nonce, sealed } of vectors.sealed_with_passphrase) {
    assert.equal(hex(await sealWithPassphrase(slug, passphrase, state, rounds, { salt: bytes(salt), nonce: bytes(nonce) })), sealed);
    assert.equal(await openWithPassphrase(slug, passphrase, bytes(sealed), usual), state);
    await assert.rejects(openWithPassphrase(slug, `${passphrase}!`, bytes(sealed), usual), refused("wrong-passphrase"));
    await assert.rejects(openWithPassphrase("other/work", passphrase, bytes(sealed), usual), refused("wrong-passphrase"));
    assert.equal(openedWith(bytes(sealed)), "passphrase");
  }
  const [{ slug, passphrase, sealed }] = vectors.sealed_with_passphrase, absurd = bytes(sealed);
  absurd[4] = 0xff; // rounds for a year
  await assert.rejects(openWithPassphrase(slug, passphrase, absurd, usual), refused("damaged"));
  // The same letters, typed on a machine that takes them apart.
  const [, typed] = vectors.sealed_with_passphrase;
  assert.equal(await openWithPassphrase(typed.slug, typed.passphrase.normalize("NFD"), bytes(typed.sealed), usual), typed.state);
});

test("a block survives what mail and word processors do to it", async () => {
  for (const { slug, sealed, text } of vectors.blocks) {
    assert.equal(await writeBlock(slug, bytes(sealed)), text);
    const read = await readBlock(text);
    assert.deepEqual([read.slug, hex(read.sealed)], [slug, sealed]);
  }
  const { slug, sealed, texts } = vectors.blocks_tolerated;
  for (const { what, text } of texts) {
    const read = await readBlock(text);
    assert.deepEqual([read.slug, hex(read.sealed)], [slug, sealed], what);
  }
});

test("a damaged block says where", async () => {
  for (const { what, text, type, line } of vectors.blocks_damaged) {
    await assert.rejects(readBlock(text), error => {
      assert.equal(error.type, type, what);
      assert.equal(error.details.line ?? null, line, what);
      return line === null || error.message.includes(`line ${line}`) || error.message.includes(`Line ${line}`);
    }, what);
  }
  const { text } = vectors.blocks[2];
  for (let end = text.indexOf("VEZ"); end < text.lastIndexOf("=") - 2; end += 97) {
    await assert.rejects(readBlock(text.slice(0, end)), error => ["cut-off", "no-block"].includes(error.type), `at ${end}`);
  }
});
