"""A member outside a browser, for `steps`: standard library, and openssl and curl as programs.

    member.py NAME claim
    member.py NAME submit FOLDER      waits for the verdict of the gates and prints the job
    member.py NAME approve WORK       the version of WORK that waits

The key is made on first use and kept as NAME.pem in the working folder.
"""

import base64
import hashlib
import json
import pathlib
import subprocess
import sys
import time

SITE = "https://tinyfiles.tv"


def run(*command: str, stdin: bytes = b"") -> bytes:
    return subprocess.run(command, input=stdin, stdout=subprocess.PIPE, check=True).stdout


def b64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class Member:
    def __init__(self, name: str):
        self.name, self.pem = name, f"{name}.pem"
        if not pathlib.Path(self.pem).exists():
            run("openssl", "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", self.pem)
        # The last 64 bytes of the public key's DER are its two coordinates.
        point = run("openssl", "ec", "-in", self.pem, "-pubout", "-outform", "DER")[-64:]
        self.jwk = {"crv": "P-256", "kty": "EC", "x": b64(point[:32]), "y": b64(point[32:])}

    def token(self) -> str:
        thumbprint = hashlib.sha256(json.dumps(self.jwk, separators=(",", ":")).encode()).digest()
        now = int(time.time())
        parts = {"alg": "ES256", "typ": "JWT", "kid": b64(thumbprint)}, {"aud": SITE, "iat": now, "exp": now + 300}
        signed = ".".join(b64(json.dumps(part).encode()) for part in parts)
        der = run("openssl", "dgst", "-sha256", "-sign", self.pem, stdin=signed.encode())
        r, s = numbers(der)
        # The second form of a signature is refused: s is in the lower half of the order of the curve.
        order = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
        s = min(s, order - s)
        return signed + "." + b64(r.to_bytes(32, "big") + s.to_bytes(32, "big"))

    def ask(self, method: str, path: str, *more: str):
        head = ["curl", "-sS", "--fail-with-body", "-X", method, "-H", f"Authorization: Bearer {self.token()}"]
        return json.loads(run(*head, *more, SITE + path) or b"null")

    def post(self, path: str, body: object):
        return self.ask("POST", path, "--json", json.dumps(body))

    def claim(self):
        return self.post("/api/members", {"pseudonym": self.name, "key": self.jwk})

    def submit(self, folder: str):
        fields = {"index.html": "payload", "work.json": "sidecar", ".py": "python", ".png": "cover"}
        files = [
            f"{field}=@{path}"
            for path in sorted(pathlib.Path(folder).iterdir())
            for end, field in fields.items()
            if path.name.endswith(end)
        ]
        job = self.ask("POST", "/api/submissions", *(word for file in files for word in ("-F", file)))["jobId"]
        end = time.monotonic() + 300
        while time.monotonic() < end:
            state = self.ask("GET", f"/api/jobs/{job}")
            if state["state"] in ("pending_review", "rejected", "failed"):
                break
            time.sleep(0.5)
        if state["state"] != "pending_review":
            sys.exit(f"the submission is not pending: {json.dumps(state, indent=1)}")
        return job

    def approve(self, work: str):
        waiting = self.ask("GET", "/api/review")["pending"]
        version = next(row for row in waiting if work in json.dumps(row))
        return self.post(f"/api/review/{version['id']}/decision", {"decision": "approve", "reason": ""})


def numbers(der: bytes):
    """The two integers of an ECDSA signature."""
    at, found = 2, []
    for _ in range(2):
        length = der[at + 1]
        found.append(int.from_bytes(der[at + 2 : at + 2 + length], "big"))
        at += 2 + length
    return found


if __name__ == "__main__":
    name, what, *arguments = sys.argv[1:]
    print(json.dumps(getattr(Member(name), what)(*arguments)))
