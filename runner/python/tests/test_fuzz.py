"""Every message of a real session, mutated, in both directions."""

from __future__ import annotations

import os
import select
import struct
import subprocess
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from small_python import Error, Object, Runtime, WorkerError, _process, _runtime

pytestmark = pytest.mark.once

SETUP = """
class Thing:
    def __init__(self): self.x = 1
    def __len__(self): return 3
    def __getitem__(self, key): return {'k': 1}[key]
def make(): return Thing()
"""


def session(rt: Runtime) -> None:
    """One of everything. What a mutation makes of it may fail at any place."""
    steps: list[Callable[[], object]] = [
        lambda: rt.exec(SETUP),
        lambda: rt.eval("[1, 'a', {'k': (None, 2.5)}, {1, 2}, b'x', 2**80, [1.0, 2.0]]"),
        lambda: rt.define("host", lambda *args, **kwargs: [args, kwargs]),
        lambda: rt.eval("host(1, k=2)"),
        lambda: rt.eval("import loaded\nloaded.x"),
        lambda: rt.exec("print('hello')"),
        lambda: rt.eval("1/0"),
        lambda: rt.define("fail", lambda: 1 // 0),
        lambda: rt.eval("fail()"),
        lambda: rt.register_module("m", {"a": 1}, "b = 2"),
        lambda: rt.collect(),
    ]
    for step in steps:
        try:
            step()
        except Error:
            pass
    try:
        thing: Any = rt.call("make")
        if isinstance(thing, Object):
            uses: list[Callable[[], object]] = [
                lambda: thing.x, lambda: setattr(thing, "x", 2), lambda: thing["k"], lambda: thing["z"],
                lambda: len(thing), lambda: bool(thing), lambda: repr(thing), lambda: hash(thing), lambda: dir(thing),
                lambda: thing == 1, lambda: thing < 1, lambda: 1 in thing, lambda: iter(thing),
            ]  # fmt: skip
            for use in uses:
                try:
                    use()
                except (Error, AttributeError, KeyError, IndexError, TypeError):
                    pass
    except Error:
        pass
    del rt["host"]


class Recorder(_process.Worker):
    """A real worker that keeps what it was told and what it said."""

    sent: list[bytes] = []
    received: list[bytes] = []

    def send(self, frame: bytearray) -> None:
        self.sent.append(bytes(frame))
        super().send(frame)

    def receive(self, limit: int) -> bytes:
        data = super().receive(limit)
        self.received.append(data)
        return data


def recorded() -> tuple[list[bytes], list[bytes]]:
    """The frames of a session with a real worker."""
    if not Recorder.sent:
        patch = pytest.MonkeyPatch()
        patch.setattr(_runtime, "take", Recorder)
        with patch.context():
            with Runtime(timeout=20, output=lambda text: None, loader={"loaded": "x = 3"}.get) as rt:
                session(rt)
        patch.undo()
    return Recorder.sent, Recorder.received


class Replay(_process.Worker):
    """Says what it is told to say, whatever it is asked."""

    script = b""

    def _start(self, path: str) -> None:
        reader, writer = os.pipe()
        self._fds += [reader, os.open(os.devnull, os.O_WRONLY)]
        self.stdout, self.stdin = self._fds
        self._to_read = _process._poller(self.stdout, select.POLLIN)
        self._to_write = _process._poller(self.stdin, select.POLLOUT)
        self._reaped = True
        assert len(self.script) < 60_000  # what a pipe holds
        os.write(writer, self.script)
        os.close(writer)

    def send(self, frame: bytearray) -> None:
        """Nobody listens."""

    def receive(self, limit: int) -> bytes:
        """What was said all at once, as if each message had waited for its turn."""
        data = self.rest or os.read(self.stdout, 60_000)
        frame = self._receive_more(data, limit)
        self.rest, self.early = self.early, b""
        return frame

    rest = b""


def mutate(data: st.DataObject, frame: bytes) -> bytes:
    """Some bytes of a frame changed, taken out or put in; often its length made right again."""
    body = bytearray(frame[4:])
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(body)))
        body[at : at + data.draw(st.integers(0, 4))] = data.draw(st.binary(max_size=8))
    size = len(body) if data.draw(st.booleans()) else data.draw(st.sampled_from([0, 1, len(body) + 1, 1 << 31, len(frame)]))
    return struct.pack("<I", size) + body


quick = settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])


@settings(quick, max_examples=1500)
@given(data=st.data())
def test_any_mutated_message_of_the_worker_ends_in_its_own_errors(data: st.DataObject) -> None:
    _, frames = recorded()
    place = data.draw(st.integers(0, len(frames) - 1))
    frames = [*frames[:place], mutate(data, frames[place]), *frames[place + 1 :]]
    patch = pytest.MonkeyPatch()
    Replay.script = b"".join(frames)
    patch.setattr(_runtime, "take", Replay)
    try:
        with Runtime(timeout=20, output=lambda text: None, loader={"loaded": "x = 3"}.get) as rt:
            session(rt)
    except (Error, WorkerError):
        pass
    finally:
        patch.undo()


def drive(frames: list[bytes]) -> tuple[int, list[bytes]]:
    """Sends frames to a real worker, each after an answer to the one before or when none comes.

    Returns its exit status and what it said. The `releases` may be those of another session: handles count up alike.
    """
    said = b""
    with subprocess.Popen([_runtime._WORKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={}, bufsize=0) as worker:
        assert worker.stdin and worker.stdout
        for frame in frames:
            try:
                worker.stdin.write(frame)
            except BrokenPipeError:
                break
            if select.select([worker.stdout], [], [], 0.2)[0]:
                said += worker.stdout.read(65_536) or b""
        worker.stdin.close()
        said += worker.stdout.read()
    messages: list[bytes] = []
    while said:
        size = int.from_bytes(said[:4], "little")
        assert 1 <= size <= len(said) - 4, "the worker itself broke a frame"
        messages.append(said[4 : 4 + size])
        said = said[4 + size :]
    return worker.returncode, messages


@settings(quick, max_examples=100)
@given(data=st.data())
def test_any_mutated_message_of_the_parent_leaves_the_worker_in_order(data: st.DataObject) -> None:
    """It answers, or says FATAL and exits with 65; it never dies of a signal, and it ends with its input."""
    frames, _ = recorded()
    place = data.draw(st.integers(0, len(frames) - 1))
    mutated = mutate(data, frames[place])
    status, messages = drive([*frames[:place], mutated, *frames[place + 1 :]])
    assert status in (0, 65), (place, mutated)
    if status == 65:
        assert messages[-1][0] == 0x9F


def test_the_unmutated_sessions_go_through() -> None:
    """The control of both tests above."""
    sent, received = recorded()
    status, messages = drive(sent)
    assert status == 0
    assert [message[0] for message in messages] == [data[4] for data in received]
    patch = pytest.MonkeyPatch()
    Replay.script = b"".join(received)
    patch.setattr(_runtime, "take", Replay)
    try:
        with Runtime(timeout=20, output=lambda text: None, loader={"loaded": "x = 3"}.get) as rt:
            session(rt)
            assert not rt.closed
    finally:
        patch.undo()
