// A token as the browser makes it, looked at by Node's own cryptography.

import assert from "node:assert/strict";
import { test } from "node:test";
import { createPublicKey, verify } from "node:crypto";
import { Member, lowered } from "../script/member.js";

globalThis.location ??= /** @type {any} */ ({ host: "localhost:8080" });
const HALF = BigInt("0x7fffffff800000007fffffffffffffffde737d56d38bcf4279dce5617e3192a8");
const s = (/** @type {Uint8Array} */ signature) => BigInt("0x" + Buffer.from(signature.subarray(32)).toString("hex"));

test("a token verifies, names its key, and has its one spelling", async () => {
  const member = await Member.make();
  const key = createPublicKey({ key: member.publicKey(), format: "jwk" });
  for (let i = 0; i < 40; i++) {
    const [header, claims, signature] = (await member.token("http://localhost:8080", 1.8e12 + i)).split(".");
    const bytes = Buffer.from(signature, "base64url");
    assert.equal(bytes.length, 64);
    assert.ok(s(bytes) <= HALF);
    assert.ok(verify("sha256", Buffer.from(`${header}.${claims}`), { key, dsaEncoding: "ieee-p1363" }, bytes));
    assert.deepEqual(JSON.parse(Buffer.from(claims, "base64url").toString()), { aud: "http://localhost:8080", iat: 1.8e9, exp: 1.8e9 + 300 });
    assert.equal(JSON.parse(Buffer.from(header, "base64url").toString()).kid.length, 43);
  }
});

test("the thumbprint is that of RFC 7638", async () => {
  // The key of RFC 7515, appendix A.3; its thumbprint by coreutils.
  const member = new Member({
    kty: "EC", crv: "P-256", x: "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU", y: "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0",
    d: "jpsQnnGQmL-YBIffH1136cspYG6-0iY7X1fCE9-E9LI",
  }, "joe");
  const [header] = (await member.token("x")).split(".");
  assert.equal(JSON.parse(Buffer.from(header, "base64url").toString()).kid, "oKIywvGUpTVTyxMQ3bwIIeQUudfr_CkLMjCE19ECD-U");
});

test("the higher form of a signature becomes the lower one, and that stays", () => {
  const high = new Uint8Array(64);
  high.set([255, 255, 255, 255], 32); // just below the order
  const low = lowered(high);
  assert.ok(s(low) <= HALF);
  assert.deepEqual(lowered(low), low);
});

test("a backup is read back, and nothing else is", async () => {
  const member = await Member.make();
  member.pseudonym = "moth";
  const back = Member.read(member.written());
  assert.deepEqual([back.key, back.pseudonym], [member.key, "moth"]);
  for (const bad of ["", "null", "[]", "{}", member.written().replace("P-256", "P-384"), member.written().replace(/"d": "./, '"d": "')]) {
    assert.throws(() => Member.read(bad), /key/, bad);
  }
});
