"""Reads and writes the frames of `runner/src/wire.rs` a second time, from its description alone, against the vectors.

Run by `tests/it/frames.rs` as `python3 frames.py FRAMES REFUSED`; needs nothing but Python. It prints how many rows held
and ends with 1 at the first that does not. It is no client: nothing speaks to a child but the supervisor.
"""

from __future__ import annotations

import json
import struct
import sys

FRAMES_MAX, TEXT_MAX = 16, 2000
STEPS = range(14)

# Who reads a kind, its number, and its fields: `all` is the whole payload, `bytes` and `text` have a length before them.
KINDS: dict[str, tuple[str, int, list[tuple[str, str]]]] = {
    "compile": ("request", 1, [("source", "all text")]),
    "run": ("request", 2, [("code", "bytes"), ("inputs", "bytes text")]),
    "lint": ("request", 3, [("source", "all text")]),
    "confined": ("hello", 16, [("steps", "u16"), ("listener", "i32 or none")]),
    "refused": ("hello", 17, [("step", "u16 step"), ("errno", "i32")]),
    "answer": ("reply", 32, [("json", "all text")]),
    "raised": ("reply", 33, [("kind", "text"), ("message", "text"), ("line", "u32"), ("frames", "frames")]),
    "bad_answer": ("reply", 34, [("path", "text"), ("why", "text")]),
    "compiled": ("reply", 35, [("code", "all")]),
}
PACKED = {"u16": "<H", "i32": "<i", "u32": "<I"}


class Refused(Exception):
    """The bytes are no frame for this reader; the argument is the rule."""


class Payload:
    def __init__(self, data: bytes) -> None:
        self.data = data

    def take(self, count: int) -> bytes:
        if count > len(self.data):
            raise Refused("malformed")
        part, self.data = self.data[:count], self.data[count:]
        return part

    def number(self, kind: str) -> int:
        (value,) = struct.unpack(PACKED[kind], self.take(struct.calcsize(PACKED[kind])))
        return int(value)

    def text(self) -> str:
        try:
            text = self.take(self.number("u32")).decode("utf-8")
        except UnicodeDecodeError:
            raise Refused("malformed") from None
        if len(text) > TEXT_MAX:
            raise Refused("malformed")
        return text

    def field(self, form: str) -> object:
        form, _, note = form.partition(" ")
        if form in ("all", "bytes"):
            part = self.take(len(self.data) if form == "all" else self.number("u32"))
            return part.decode("utf-8") if note == "text" else part.hex()
        if form == "text":
            return self.text()
        if form == "frames":
            count = self.number("u32")
            if count > FRAMES_MAX:
                raise Refused("malformed")
            return [[self.number("u32"), self.text()] for _ in range(count)]
        value = self.number(form)
        if note == "step" and value not in STEPS:
            raise Refused("malformed")
        return None if note == "or none" and value < 0 else value


def read(reader: str, frame: bytes) -> tuple[str, dict[str, object]]:
    """The name and the fields of exactly one frame."""
    if len(frame) < 5 or len(frame) - 5 < struct.unpack("<I", frame[1:5])[0]:
        raise Refused("short")
    kind, length = struct.unpack("<BI", frame[:5])
    if len(frame) > 5 + length:
        raise Refused("trailing")
    names = [n for n, (who, number, _) in KINDS.items() if (who, number) == (reader, kind)]
    if not names:
        raise Refused("kind")
    payload = Payload(frame[5:])
    fields = {name: payload.field(form) for name, form in KINDS[names[0]][2]}
    if payload.data:
        raise Refused("malformed")
    return names[0], fields


def written(form: str, value: object) -> bytes:
    form, _, note = form.partition(" ")
    if form == "frames":
        assert isinstance(value, list)
        rows = [struct.pack("<I", line) + written("text", name) for line, name in value]
        return struct.pack("<I", len(rows)) + b"".join(rows)
    if form in PACKED:
        return struct.pack(PACKED[form], -1 if value is None else value)
    assert isinstance(value, str)
    part = value.encode("utf-8") if "text" in (form, note) else bytes.fromhex(value)
    return part if form == "all" else struct.pack("<I", len(part)) + part


def write(name: str, fields: dict[str, object]) -> bytes:
    _, kind, forms = KINDS[name]
    payload = b"".join(written(form, fields[field]) for field, form in forms)
    return struct.pack("<BI", kind, len(payload)) + payload


def rows(path: str) -> list[list[str]]:
    with open(path, encoding="utf-8") as file:
        return [line.rstrip("\n").split("\t") for line in file if not line.startswith("#")]


def main(frames: str, refused: str) -> int:
    good, bad = rows(frames), rows(refused)
    for name, text, fields in good:
        expected = json.loads(fields)
        found = write(name, expected).hex(), read(KINDS[name][0], bytes.fromhex(text))
        if found != (text, (name, expected)):
            print(f"{name} {text} {fields}\n  found {found}")
            return 1
    for reader, text, rule in bad:
        try:
            outcome = f"read as {read(reader, bytes.fromhex(text))}"
        except Refused as error:
            outcome = str(error)
        if outcome != rule:
            print(f"{reader} {text}: {outcome}, expected {rule}")
            return 1
    print(len(good), len(bad))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
