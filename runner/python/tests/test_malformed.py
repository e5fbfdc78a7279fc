"""Fake workers that break the protocol, and what the parent makes of it. Group 2 of the specification's tests."""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support import VECTORS
from test_wire import unhex, vectors

from small_python import Error, Runtime, Timeout, WorkerError, _runtime

Fake = Callable[[str], None]

ERROR = "b'\\x83' + text('T') + text('m') + text('T')"

MALFORMED = {
    "unknown kind": ("send(b'\\x42')", "unknown or unexpected message of kind 0x42"),
    "a kind of the parent": ("send(b'\\x02\\0\\0\\0\\0')", "kind 0x02"),
    "a second READY": ("send(b'\\x81' + text('0') + text('3') + b'd\\0\\0\\0\\0')", "kind 0x81"),
    "unknown tag": ("send(b'\\x82u')", "unknown tag 0x75"),
    "truncated value": ("send(b'\\x82i\\0\\0')", "truncated: 8 bytes announced, 2 left"),
    "no value": ("send(b'\\x82')", "truncated: a value is missing"),
    "trailing bytes": ("send(b'\\x82NN')", "1 trailing bytes"),
    "length 0": ("raw(b'\\0\\0\\0\\0')", "a length of 0 bytes"),
    "length past the limit": ("raw(struct.pack('<I', 70 << 20))", "a length of 73400320 bytes"),
    "length of all ones": ("raw(b'\\xff\\xff\\xff\\xff')", "a length of 4294967295 bytes"),
    "a count beyond the message": ("send(b'\\x82l' + struct.pack('<I', 1000) + b'N')", "a count of 1000 elements in 1 bytes"),
    "a count of numbers beyond it": ("send(b'\\x82q' + struct.pack('<I', 1 << 31) + b'N')", "a count of 2147483648"),
    "deep nesting": ("send(b'\\x82' + b't\\1\\0\\0\\0' * 201 + b'N')", "more than 200 levels"),
    "very deep nesting": ("send(b'\\x82' + b'l\\1\\0\\0\\0' * 100_000 + b'N')", "more than 200 levels"),
    "invalid UTF-8": ("send(b'\\x82s\\2\\0\\0\\0\\xc0\\x80')", "invalid UTF-8"),
    "non-canonical I, short": ("send(b'\\x82I\\1\\0\\0\\0\\1')", "non-canonical I"),
    "non-canonical I, padded": ("send(b'\\x82I\\x0a\\0\\0\\0' + b'\\1' * 9 + b'\\0')", "non-canonical I"),
    "an unknown function id": ("send(b'\\x90' + struct.pack('<Q', 99) + b't\\0\\0\\0\\0d\\0\\0\\0\\0')", "never given"),
    "a parent-only tag": ("send(b'\\x82H' + struct.pack('<Q', 1) + text('f'))", "only the parent"),
    "a parent-only tag, nested": ("send(b'\\x82l\\1\\0\\0\\0H' + struct.pack('<Q', 1) + text('f'))", "only the parent"),
    "handle 0": ("send(b'\\x82O' + bytes(8))", "handle 0"),
    "a handle twice": ("send(b'\\x82l\\2\\0\\0\\0' + (b'O' + struct.pack('<Q', 5)) * 2)", "handle 5"),
    "an object in a key": ("send(b'\\x82e\\1\\0\\0\\0O' + struct.pack('<Q', 5))", "within a key"),
    "equal keys": ("send(b'\\x82d\\2\\0\\0\\0NNNN')", "equal keys"),
    "equal members": ("send(b'\\x82e\\2\\0\\0\\0NN')", "equal members"),
    "an error that is cut off": (f"send(({ERROR})[:-2])", "truncated"),
    "an error without a cause": (f"send({ERROR} + b'NNN')", "truncated"),
    "an error whose exception is a str": (f"send({ERROR} + b's' + text('x') + b'NN' + bytes(8))", "malformed error"),
    "an error whose filename is an int": (f"send({ERROR} + b'Ni' + bytes(8) + b'N' + bytes(8))", "malformed error"),
    "an error with a long filename": (f"send({ERROR} + b'Ns' + text('x' * 257) + b'N' + bytes(8))", "malformed error"),
    "an error whose line is a str": (f"send({ERROR} + b'NNs' + text('x') + bytes(8))", "malformed error"),
    "an error in line -1": (f"send({ERROR} + b'NNi' + b'\\xff' * 8 + bytes(8))", "malformed error"),
    "an error in line 2**70": (f"send({ERROR} + b'NNI' + text('12345678\\1') + bytes(8))", "malformed error"),
    "an error with an unknown cause": (f"send({ERROR} + b'NNN' + struct.pack('<Q', 7))", "cause 7 is unknown"),
    "an error with a long type": ("send(b'\\x83' + text('T' * 129) + text('m') + text('T') + b'NNN' + bytes(8))", "at most 128"),
    "an error with a long message": ("send(b'\\x83' + text('T') + text('m' * 65537) + text('T') + b'NNN' + bytes(8))", "at most 65536"),
    "an error with bytes to spare": (f"send({ERROR} + b'NNN' + bytes(9))", "1 trailing bytes"),
    "arguments that are a list": ("send(b'\\x90' + struct.pack('<Q', 1) + b'l\\0\\0\\0\\0d\\0\\0\\0\\0')", "malformed arguments"),
    "names that are ints": ("send(b'\\x90' + struct.pack('<Q', 1) + b't\\0\\0\\0\\0d\\1\\0\\0\\0NN')", "malformed arguments"),
    "LOAD without a loader": ("send(b'\\x91' + text('m'))", "never given"),
    "OUTPUT with bytes to spare": ("send(b'\\x92' + text('m') + b'x')", "1 trailing bytes"),
    "an ended stream": ("os.close(1)", "closed its output"),
    "a stream that ends in a length": ("raw(b'\\5\\0')", "in the middle of a message"),
    "a stream that ends in a message": ("raw(b'\\5\\0\\0\\0\\x82i')", "in the middle of a message"),
    "FATAL": ("send(b'\\x9f' + text('out of luck')); os._exit(65)", "gave up: out of luck"),
    "FATAL that is malformed": ("send(b'\\x9f\\xff')", "truncated"),
}  # fmt: skip


@pytest.mark.parametrize("script, message", MALFORMED.values(), ids=MALFORMED)
def test_a_violation_ends_the_worker_and_is_named(fake: Fake, script: str, message: str) -> None:
    ending = "" if "stream" in message or "middle" in message or "gave up" in message else "time.sleep(60)"
    if "closed its output" in message:
        ending = "time.sleep(60)"
    fake(f"ready()\nread()\n{script}\n{ending}\n")
    rt = Runtime()
    rt._functions[1] = lambda: None
    pid = rt.pid
    with pytest.raises(WorkerError, match=message) as caught:
        rt.eval("1")
    assert type(caught.value) is WorkerError
    assert rt.closed
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    # It stays lost, for everything.
    for use in (lambda: rt.eval("1"), lambda: rt["x"], lambda: rt.collect(), lambda: rt.mount("/")):
        with pytest.raises(WorkerError, match=message):
            use()
    rt.close()
    assert rt.closed


@pytest.mark.once
@pytest.mark.parametrize("data, rule", vectors("refused.tsv") + vectors("refused_by_parent.tsv"), ids=lambda t: t[:24])
def test_the_refused_vectors_end_the_worker(fake: Fake, tmp_path: Path, data: str, rule: str) -> None:
    (tmp_path / "data").write_bytes(unhex(data))
    fake(f"ready()\nread()\nsend(b'\\x82' + open({str(tmp_path / 'data')!r}, 'rb').read())\ntime.sleep(60)")
    with Runtime() as rt:
        with pytest.raises(WorkerError, match="broke the protocol"):
            rt.eval("1")


WRONG_ANSWERS = {
    "exec": ("T", lambda rt, thing: rt.exec("1")),
    "set": ("T", lambda rt, thing: rt.__setitem__("x", 1)),
    "del": ("T", lambda rt, thing: rt.__delitem__("x")),
    "module": ("T", lambda rt, thing: rt.register_module("m")),
    "mount": ("T", lambda rt, thing: rt.mount("/")),
    "collect": ("N", lambda rt, thing: rt.collect()),
    "collect, negative": ("i" + "\xff" * 8, lambda rt, thing: rt.collect()),
    "setattr": ("T", lambda rt, thing: setattr(thing, "x", 1)),
    "setitem": ("T", lambda rt, thing: thing.__setitem__("x", 1)),
    "len": ("T", lambda rt, thing: len(thing)),
    "len, negative": ("i" + "\xff" * 8, lambda rt, thing: len(thing)),
    "contains": ("N", lambda rt, thing: 1 in thing),
    "iter": ("N", lambda rt, thing: iter(thing)),
    "bool": ("N", lambda rt, thing: bool(thing)),
    "hash": ("N", lambda rt, thing: hash(thing)),
    "hash, long": ("I\x09\0\0\0" + "\0" * 8 + "\1", lambda rt, thing: hash(thing)),
    "eq": ("N", lambda rt, thing: thing == 1),
    "lt": ("i" + "\0" * 8, lambda rt, thing: thing < 1),
    "repr": ("N", lambda rt, thing: repr(thing)),
    "str": ("b\0\0\0\0", lambda rt, thing: str(thing)),
    "dir": ("l\1\0\0\0N", lambda rt, thing: dir(thing)),
}


@pytest.mark.parametrize("answer, use", WRONG_ANSWERS.values(), ids=WRONG_ANSWERS)
def test_an_answer_of_the_wrong_type_is_a_violation(
    fake: Fake, answer: str, use: Callable[[Runtime, Any], object]
) -> None:
    fake(f"""
        ready()
        read()
        send(b'\\x82O' + struct.pack('<Q', 1))
        read()
        send(b'\\x82' + {answer.encode('latin-1')!r})
        time.sleep(60)
    """)
    with Runtime() as rt:
        thing = rt.eval("thing")
        with pytest.raises(WorkerError, match="an answer of type|READY"):
            use(rt, thing)


NOT_READY = {
    "VALUE": "send(b'\\x82N')",
    "ERROR with a cause": f"send({ERROR} + b'NNN' + struct.pack('<Q', 7))",
    "layers that are a list": "send(b'\\x81' + text('0') + text('3') + b'l\\0\\0\\0\\0')",
    "layers of str": "send(b'\\x81' + text('0') + text('3') + b'd\\1\\0\\0\\0' + b's' + text('x') + b'N')",
    "a long version": "send(b'\\x81' + text('0' * 200) + text('3') + b'd\\0\\0\\0\\0')",
    "OUTPUT that is cut off": "send(b'\\x92\\xff\\0\\0\\0')",
}


@pytest.mark.parametrize("script", NOT_READY.values(), ids=NOT_READY)
def test_a_worker_that_is_not_ready_fails_the_constructor(fake: Fake, script: str) -> None:
    fake(f"read()\n{script}\ntime.sleep(60)")
    with pytest.raises(WorkerError, match="broke the protocol"):
        Runtime()


def test_an_error_in_place_of_ready_fails_the_constructor(fake: Fake) -> None:
    fake(f"read()\nsend({ERROR} + b'NNN' + bytes(8))\ntime.sleep(60)")
    with pytest.raises(WorkerError, match="kind 0x83"):
        Runtime()


def test_a_worker_that_exits_at_once_fails_the_constructor(fake: Fake) -> None:
    for status, words in ((70, "exit status 70: the kernel refused"), (71, "exit status 71"), (0, "exit status 0"), (3, "status 3$")):
        fake(f"os._exit({status})")
        with pytest.raises(WorkerError, match=words) as caught:
            Runtime()
        assert caught.value.returncode == status


def test_a_silent_worker_times_out(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    fake("ready()\nread()\ntime.sleep(60)")
    rt = Runtime(timeout=0.2)
    with pytest.raises(Timeout, match=r"longer than 0\.2 seconds") as caught:
        rt.eval("1")
    assert caught.value.returncode is None
    with pytest.raises(WorkerError, match="longer than"):
        rt.eval("1")
    # In the middle of a message it is late all the same.
    fake("ready()\nread()\nraw(b'\\x05\\0\\0\\0\\x82')\ntime.sleep(60)")
    with Runtime(timeout=0.2) as rt, pytest.raises(Timeout):
        rt.eval("1")
    # And one byte at a time does not help.
    fake("ready()\nread()\nraw(struct.pack('<I', 9999))\nwhile True:\n    raw(b'x')\n    time.sleep(0.01)")
    with Runtime(timeout=0.2) as rt, pytest.raises(Timeout):
        rt.eval("1")
    monkeypatch.setattr(_runtime, "_START_SECONDS", 0.2)
    fake("time.sleep(60)")
    with pytest.raises(WorkerError, match=r"not ready within 0\.2 seconds"):
        Runtime()


def test_a_worker_that_does_not_read_times_out(fake: Fake, tmp_path: Path) -> None:
    fake(f"ready()\ntime.sleep(20)\nopen({str(tmp_path / 'lived')!r}, 'w')")
    with Runtime(timeout=0.2) as rt:
        with pytest.raises(Timeout):
            rt["x"] = b"x" * (8 << 20)
    assert not (tmp_path / "lived").exists()


def test_a_big_message_goes_through_with_and_without_a_timeout(fake: Fake) -> None:
    fake("ready()\nwhile True:\n    data = read()\n    time.sleep(0.01)\n    send(b'\\x82' + data[5:])")
    blob = b"x" * (3 << 20)
    for timeout in (None, 30.0):
        with Runtime(timeout=timeout) as rt:
            assert rt._ask(5, lambda writer: writer.value(blob), ()) == blob


def test_messages_out_of_turn_are_violations(fake: Fake) -> None:
    fake("ready()\nread()\nraw(struct.pack('<I', 2) + b'\\x82N' + struct.pack('<I', 2) + b'\\x82T')\ntime.sleep(60)")
    with Runtime() as rt:
        assert rt.eval("1") is None
        with pytest.raises(WorkerError, match="not the worker's turn"):
            rt.eval("1")
    fake("ready()\nread()\nraw(struct.pack('<I', 2) + b'\\x82N' + struct.pack('<I', 9) + b'\\x9f' + text('late'))\ntime.sleep(60)")
    with Runtime() as rt:
        assert rt.eval("1") is None
        with pytest.raises(WorkerError, match="gave up: late"):
            rt.eval("1")


def test_a_fatal_before_a_closed_input_is_told(fake: Fake) -> None:
    fake("ready()\nos.close(0)\nsend(b'\\x9f' + text('the end'))\nos._exit(65)")
    with Runtime() as rt:
        os.waitid(os.P_PID, rt.pid, os.WEXITED | os.WNOWAIT)
        with pytest.raises(WorkerError, match="gave up: the end") as caught:
            rt.eval("1")
        assert caught.value.returncode == 65


@pytest.mark.once
def test_a_worker_killed_between_any_two_bytes_is_lost(fake: Fake) -> None:
    """Of a reply, each beginning of it."""
    reply = struct.pack("<I", 19) + b"\x82l" + struct.pack("<I", 3) + b"Ni" + struct.pack("<q", 7) + b"s\0"
    for count in range(len(reply)):
        fake(f"ready()\nread()\nraw({reply[:count]!r})\nos.kill(os.getpid(), signal.SIGKILL)")
        with Runtime() as rt:
            with pytest.raises(WorkerError, match="SIGKILL") as caught:
                rt.eval("1")
            assert caught.value.returncode == -9


def test_65_callouts_within_each_other_are_a_violation(fake: Fake) -> None:
    fake("""
        ready()
        while True:
            read()
            send(b'\\x90' + struct.pack('<Q', 1) + b't\\0\\0\\0\\0d\\0\\0\\0\\0')
    """)
    with Runtime(timeout=20) as rt:
        rt._functions[1] = lambda: rt["x"]
        with pytest.raises(WorkerError, match="more than 64"):
            rt["x"]


def test_an_operating_worker_that_floods_is_bounded(fake: Fake) -> None:
    fake("ready()\nread()\nraw(struct.pack('<I', 64 << 20) + b'\\x82')\nwhile True: raw(b'x' * 65536)")
    with Runtime(timeout=20) as rt:
        with pytest.raises(WorkerError, match="broke the protocol"):
            rt.eval("1")


def test_the_messages_of_the_vectors_are_what_is_sent_and_read(fake: Fake, tmp_path: Path) -> None:
    """Each message of the worker in the vectors is understood; each of the parent's kinds is written as there."""
    lines = [line.split("\t") for line in (VECTORS / "messages.tsv").read_text().splitlines() if line[0] != "#"]
    worker = {name: bytes.fromhex(data) for who, name, data, _ in lines if who == "worker"}
    record = tmp_path / "record"
    script = f"""
        record = open({str(record)!r}, 'wb', buffering=0)
        def note():
            data = read()
            record.write(struct.pack('<I', len(data)) + data)
        note()
        raw({worker['READY']!r})
        note()
        raw({worker['CALLBACK']!r})
        note()
        raw({worker['OUTPUT']!r})
        note()
        raw({worker['LOAD']!r})
        note()
        raw({worker['VALUE']!r})
        note()
        raw({worker['ERROR']!r})
        note()
        raw({worker['FATAL']!r})
    """
    fake(script)
    texts: list[str] = []
    with Runtime(output=texts.append, loader=lambda name: f"# {name}", timeout=20) as rt:
        assert rt.layers == {"no_new_privs": 1, "landlock": 7, "seccomp": 1}
        rt._functions[1] = lambda *args, **kwargs: {"a": [1]} if (args, kwargs) == ((1,), {"k": 2}) else None
        assert rt.eval("1 + 1") == 2
        assert texts == ["hi\n"]
        with pytest.raises(Error) as caught:
            rt.exec("x = 1", "a.py")
        assert caught.value.type in ("KeyError", "MemoryError")
        with pytest.raises(WorkerError, match="gave up: protocol 2"):
            rt.collect()
    sent = record.read_bytes()
    parent = [bytes.fromhex(data) for who, name, data, _ in lines if who == "parent" and name in ("EVAL", "RETURN")]
    for frame in parent:
        assert frame in sent


def test_the_time_that_reading_takes_counts(fake: Fake) -> None:
    """Messages that are quick to send and slow to read do not hold the host for longer than its timeout allows."""
    fake("""
        ready()
        read()
        message = b'\\x90' + struct.pack('<Q', 1) + b't\\1\\0\\0\\0l' + struct.pack('<I', 1 << 20) + b'N' * (1 << 20) + b'd\\0\\0\\0\\0'
        while True:
            send(message)
            read()
    """)
    with Runtime(timeout=0.5) as rt:
        calls: list[int] = []
        rt._functions[1] = lambda values: calls.append(len(values))
        with pytest.raises(Timeout):
            rt.eval("1")
        # Each takes far longer to read than to send: if only waiting counted, there would be dozens.
        assert len(calls) <= 10


def test_time_of_the_host_does_not_count(fake: Fake) -> None:
    fake("ready()\nread()\nfor _ in range(3):\n    send(b'\\x92' + text('x'))\n    read()\nsend(b'\\x82N')")
    with Runtime(timeout=1.0, output=lambda text: time.sleep(0.5)) as rt:
        assert rt.eval("1") is None
