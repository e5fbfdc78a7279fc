// A member's key: made here, kept for this tab, backed up as a file, and used to sign the token of a request. It is never
// sent anywhere. Nothing here touches the page.

const STORED = "tinyfiles-key";
const ALGORITHM = { name: "ECDSA", namedCurve: "P-256" };
/** Half the order of P-256: of the two forms of a signature, the server takes the one whose second number is below. */
const ORDER = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;
const TOKEN_SECONDS = 300;

/** @typedef {{kty: "EC", crv: "P-256", x: string, y: string}} PublicKey */
/** @typedef {PublicKey & {d: string}} PrivateKey */

export class Member {
  /** @param {PrivateKey} key @param {string} pseudonym */
  constructor(key, pseudonym) {
    this.key = key;
    this.pseudonym = pseudonym;
  }

  /** A new key, not claimed yet. */
  static async make() {
    const pair = await crypto.subtle.generateKey(ALGORITHM, true, ["sign"]);
    const { kty, crv, x, y, d } = await crypto.subtle.exportKey("jwk", pair.privateKey);
    return new Member(/** @type {PrivateKey} */ ({ kty, crv, x, y, d }), "");
  }

  /** The key of this tab, if there is one. */
  static kept() {
    try {
      return Member.read(sessionStorage.getItem(STORED) ?? "");
    } catch {
      return null;
    }
  }

  /** Reads a backup. Throws a sentence for people. @param {string} text */
  static read(text) {
    let file;
    try {
      file = JSON.parse(text);
    } catch {
      throw new Error("This file is not a key: it is not JSON.");
    }
    const { key, pseudonym } = file ?? {};
    const parts = key?.kty === "EC" && key.crv === "P-256" ? [key.x, key.y, key.d] : [];
    if (parts.length !== 3 || parts.some(p => typeof p !== "string" || !/^[\w-]{43}$/.test(p)) || typeof pseudonym !== "string") {
      throw new Error("This file is not a key of a member of this site.");
    }
    const { x, y, d } = key;
    return new Member({ kty: "EC", crv: "P-256", x, y, d }, pseudonym);
  }

  /** The backup, which is all there is. */
  written() {
    const what = `Private key of ${this.pseudonym} on ${location.host}. Whoever has this file can submit as ${this.pseudonym}.`;
    return JSON.stringify({ what, pseudonym: this.pseudonym, key: this.key }, null, 2) + "\n";
  }

  keep() {
    sessionStorage.setItem(STORED, this.written());
  }

  static forget() {
    sessionStorage.removeItem(STORED);
  }

  /** @returns {PublicKey} */
  publicKey() {
    const { kty, crv, x, y } = this.key;
    return { kty, crv, x, y };
  }

  /** A token for requests to `audience`. @param {string} audience @param {number} [now] milliseconds since 1970 */
  async token(audience, now = Date.now()) {
    const iat = Math.floor(now / 1000);
    const { crv, kty, x, y } = this.key;
    const kid = encode(new Uint8Array(await crypto.subtle.digest("SHA-256", utf8(JSON.stringify({ crv, kty, x, y })))));
    const words = [{ alg: "ES256", typ: "JWT", kid }, { aud: audience, iat, exp: iat + TOKEN_SECONDS }]
      .map(part => encode(utf8(JSON.stringify(part)))).join(".");
    const key = await crypto.subtle.importKey("jwk", this.key, ALGORITHM, false, ["sign"]);
    const signature = await crypto.subtle.sign({ name: "ECDSA", hash: "SHA-256" }, key, utf8(words));
    return `${words}.${encode(lowered(new Uint8Array(signature)))}`;
  }
}

/** The one of the two forms of a signature whose `s` is in the lower half. @param {Uint8Array} signature */
export function lowered(signature) {
  let s = 0n;
  for (const byte of signature.subarray(32)) s = s << 8n | BigInt(byte);
  if (s > ORDER / 2n) s = ORDER - s;
  const low = signature.slice();
  for (let i = 63; i >= 32; i--, s >>= 8n) low[i] = Number(s & 255n);
  return low;
}

/** @param {string} text */
const utf8 = text => new TextEncoder().encode(text);

/** base64url without padding. @param {Uint8Array} bytes */
function encode(bytes) {
  return btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}
