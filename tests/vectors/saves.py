"""Writes saves.json, the vectors of the save formats, with an implementation of its own: `python3 saves.py > saves.json`.

Needs the package `cryptography`. Everything that is random in a save is fixed here, so two runs give the same file.
"""

import base64
import hashlib
import json

from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

CODE, OTHER_CODE = "MTQ7-4KXB-9RWE-H2DP", "AAAA-2222-ZZZZ-9999"
SLUG, OTHER_SLUG = "quillwort/low-water", "halfpenny/paper-round"
SMALL, WIDE = '{"level":3,"lives":2}', '{"name":"Zoë 🦆","done":[true,null,1.5]}'
LONG = json.dumps({"cells": list(range(400))}, separators=(",", ":"))
ROUNDS = 600_000


def fixed(label: str, count: int) -> bytes:
    return hashlib.sha256(label.encode()).digest()[:count]


def padded(state: str) -> bytes:
    data = state.encode()
    return data + b" " * (-len(data) % 256)


def seal(key: bytes, slug: str, header: bytes, nonce: bytes, state: str) -> bytes:
    return header + nonce + AESGCM(key).encrypt(nonce, padded(state), header + slug.encode())


def under_code(slug: str, code: str, state: str) -> dict:
    nonce = fixed(f"nonce {slug} {code} {state}", 12)
    key = HKDF(SHA256(), 32, slug.encode(), b"tinyfiles save 1").derive(code.encode())
    sealed = seal(key, slug, b"TFC\x01", nonce, state)
    return {"slug": slug, "code": code, "state": state, "nonce": nonce.hex(), "key": key.hex(), "sealed": sealed.hex()}


def under_passphrase(slug: str, passphrase: str, state: str, rounds: int) -> dict:
    salt, nonce = fixed(f"salt {passphrase}", 16), fixed(f"nonce {passphrase} {state}", 12)
    key = hashlib.pbkdf2_hmac("sha256", passphrase.encode(), salt, rounds)
    sealed = seal(key, slug, b"TFP\x01" + rounds.to_bytes(4, "big") + salt, nonce, state)
    return {"slug": slug, "passphrase": passphrase, "rounds": rounds, "state": state, "salt": salt.hex(), "nonce": nonce.hex(),
            "key": key.hex(), "sealed": sealed.hex()}


def block(slug: str, sealed: str) -> dict:
    body = bytes.fromhex(sealed)
    framed = b"TFB\x01" + len(body).to_bytes(4, "big") + body
    text = base64.b64encode(framed + hashlib.sha256(framed).digest()[:4]).decode()
    lines = [text[at:at + 64] for at in range(0, len(text), 64)]
    return {"slug": slug, "sealed": sealed,
            "text": "\n".join(["-----BEGIN TINYFILES SAVE-----", f"Work: {slug}", *lines, "-----END TINYFILES SAVE-----", ""])}


def damaged_blocks(text: str) -> list:
    lines = text.splitlines()
    clipped = "\n".join([*lines[:5], "[Message clipped]"])
    changed = text.replace(lines[4], lines[4][:10] + ("A" if lines[4][10] != "A" else "B") + lines[4][11:])
    cases = [("the end is missing", "\n".join(lines[:5]), "cut-off", 6), ("cut inside a line", "\n".join(lines[:6]) + "\n" + lines[6][:20], "cut-off", 7),
             ("only the first line", lines[0] + "\n" + lines[1] + "\n" + lines[2][:8], "cut-off", 3),
             ("a line in between is missing", "\n".join(lines[:4] + lines[5:]), "cut-off", None),
             ("clipped by a mail program", clipped, "damaged", 6), ("one character changed", changed, "damaged", None),
             ("nothing of a block", "Dear Ann, where is it?", "no-block", None), ("empty", "", "no-block", None)]
    return [{"what": what, "text": text, "type": kind, "line": line} for what, text, kind, line in cases]


def tolerated(text: str) -> list:
    lines = text.splitlines()
    cases = [("trailing spaces", "  \n".join(lines) + " "), ("CR LF", "\r\n".join(lines)), ("lines joined", "".join(lines)),
             ("lines joined by spaces", " ".join(lines)), ("quoted by a mail program", "\n".join("> " + line for line in lines)),
             ("smart quotes around it", f"\u201c{text.strip()}\u201d"), ("long dashes", text.replace("-----", "\u2014\u2013")),
             ("smart quotes at each line", "\n".join(f"\u201c{line}\u201d" for line in lines)),
             ("the last line is missing", "\n".join(lines[:-1])), ("text around it", f"Hello,\n\n{text}\nBye, Ann"),
             ("the padding is missing", text.replace("=", "")), ("broken into other lines", "\n".join(text[at:at + 31] for at in range(0, len(text), 31))),
             ("no-break spaces and zero widths", text.replace("\n", "\u00a0\u200b\n"))]
    return [{"what": what, "text": text} for what, text in cases]


spellings = [CODE, CODE.lower(), CODE.replace("-", ""), "mtq7 4kxb 9rwe h2dp", "  MTQ7-4KXB\n9RWE-H2DP  ", "MTQ7\u20134KXB\u20149RWE\u2212H2DP",
             "M T Q 7 4 K X B 9 R W E H 2 D P", "mtq7.4kxb_9rwe-h2dp", "\uff2d\uff34\uff31\uff17-4KXB-9RWE-H2DP", "MTQ7\u200b-4KXB\u00ad-9RWE-H2DP\ufeff"]
refused = ["", "MTQ7", CODE + "A", "MTQ7-4KXB-9RWE-H2D0", "MTQ7-4KXB-9RWE-H2DI", "MTQ7-4KXB-9RWE-H2D\u00c4", "MTQ7/4KXB/9RWE/H2DP", "\U0001f986" * 16]
keys = [{"slug": slug, "code": code, "key": hashlib.sha256(f"{slug}:{code}".encode()).hexdigest()}
        for slug in (SLUG, OTHER_SLUG) for code in (CODE, OTHER_CODE)]
codes = [under_code(SLUG, CODE, SMALL), under_code(OTHER_SLUG, CODE, WIDE), under_code(SLUG, OTHER_CODE, LONG), under_code(SLUG, CODE, "null")]
passphrases = [under_passphrase(SLUG, "a goose at midnight", SMALL, ROUNDS), under_passphrase(SLUG, "Gänse", WIDE, 1000)]
blocks = [block(SLUG, codes[0]["sealed"]), block(OTHER_SLUG, codes[1]["sealed"]), block(SLUG, codes[2]["sealed"]), block(SLUG, passphrases[0]["sealed"])]
print(json.dumps({
    "about": "Written by saves.py; read by theme/test/saves.test.js and by api's tests. The bytes are described in content/pages/save-format.md.",
    "code_alphabet": "ABCDEFGHJKMNPQRSTUVWXYZ23456789", "code": CODE, "code_spellings": spellings, "code_refused": refused, "keys": keys,
    "sealed_with_code": codes, "sealed_with_passphrase": passphrases, "blocks": blocks,
    "blocks_tolerated": {"slug": SLUG, "sealed": codes[0]["sealed"], "texts": tolerated(blocks[0]["text"])},
    "blocks_damaged": damaged_blocks(blocks[0]["text"]),
}, indent=1, ensure_ascii=True))
