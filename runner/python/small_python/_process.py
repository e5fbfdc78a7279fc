"""The worker's process: starting it, the two pipes to it, its end. Section 9 and the streams of section 3.

`_runtime` owns each `Worker`. This file knows frames only as a length and bytes, and decides nothing about their content.
"""

from __future__ import annotations

import atexit
import os
import select
import signal
import weakref
from collections import deque
from functools import partial
from itertools import chain, repeat, starmap
from math import ceil
from struct import Struct
from time import monotonic, sleep

from ._wire import Violation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

CHUNK = 65_536
"""Bytes asked of a pipe at once: what a pipe of Linux holds."""

LINGER_SECONDS = 1.0
"""How long a worker may live on after it closed its output."""

try:
    # signal.getsignal makes an enum of it, which takes as long as the write that asks for it.
    from _signal import getsignal as _getsignal  # type: ignore[import-not-found]
except ImportError:
    _getsignal = signal.getsignal

_U32 = Struct("<I")
_read = os.read
_write = os.write


class Late(Exception):
    """The time that the operation may take has run out."""


class Ended(Exception):
    """The worker's output ended, or its input took no more. `partial`: within a frame."""

    def __init__(self, partial: bool) -> None:
        self.partial = partial


class Worker:
    """A worker process that this process started.

    `left` holds the seconds that the current operation may still take, or None. The time runs from `resume` to `pause`.

    What the kernel hands out is stored, and given back, within one call of C code (`extend`, `map`): between those no
    signal handler runs, so a KeyboardInterrupt never leaves a descriptor or a process behind.
    """

    __slots__ = (
        "__weakref__", "_fds", "_parent", "_pidfds", "_pids", "_reaped", "_to_read", "_to_write",
        "early", "left", "returncode", "stdin", "stdout", "until",
    )  # fmt: skip

    def __init__(self, path: str) -> None:
        """Starts the executable at `path`; `OSError` when it cannot."""
        self._fds: list[int] = []
        self._pids: list[int] = []
        self._pidfds: list[int] = []
        self._reaped = False
        self._parent = os.getpid()
        self.returncode: int | None = None
        self.left: float | None = None
        self.until = 0.0
        self.early = b""
        self._start(path)
        _workers.add(self)

    def _start(self, path: str) -> None:
        fds = self._fds
        fds.extend(chain.from_iterable(starmap(os.pipe, ((), ()))))
        for place, fd in enumerate(fds):
            if fd <= 2:
                fds[place] = _past_standard(fd)
        stdin, self.stdin, self.stdout, stdout = fds
        spawn = partial(
            os.posix_spawn,
            file_actions=[
                (os.POSIX_SPAWN_DUP2, stdin, 0),
                (os.POSIX_SPAWN_DUP2, stdout, 1),
                (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
            ],
            setpgroup=0,
            setsigmask=[],
            setsigdef=[signal.SIGPIPE, signal.SIGINT],
        )
        self._pids.extend(starmap(spawn, ((path, [os.path.basename(path)], {}),)))
        _close(fds, 3, 0)
        if hasattr(os, "pidfd_open"):
            try:
                self._pidfds.extend(starmap(os.pidfd_open, ((self.pid,),)))
            except OSError:
                pass  # a kernel before 5.3
        self._to_read = _poller(self.stdout, select.POLLIN)
        self._to_write = _poller(self.stdin, select.POLLOUT)

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._pids[0]

    @property
    def foreign(self) -> bool:
        """Whether another process started it: this one is a fork of that."""
        return self._parent != os.getpid()

    def limit_time(self) -> None:
        """Makes writes give way to a limit of time, too."""
        os.set_blocking(self.stdin, False)

    def send(self, frame: bytearray) -> None:
        """Writes a frame. `Ended` when the worker takes no more, `Late` when time runs out."""
        if _getsignal(signal.SIGPIPE) == signal.SIG_DFL:
            sent = _without_sigpipe(partial(self._put, frame))
        else:
            sent = self._put(frame)
        if not sent:
            raise Ended(partial=False)

    def _put(self, frame: bytearray) -> bool:
        """Whether the worker took it all. The write end blocks only where there is no limit of time."""
        try:
            done = _write(self.stdin, frame)
        except BlockingIOError:
            done = 0
        except BrokenPipeError:
            return False
        while done < len(frame):
            if self.left is not None:
                self._wait(self._to_write)
            try:
                with memoryview(frame) as view:
                    done += _write(self.stdin, view[done:])
            except BlockingIOError:
                continue
            except BrokenPipeError:
                return False
        return True

    def receive(self, limit: int) -> bytes:
        """Reads a frame, its length first, of at most `limit` bytes after that.

        `Ended` at the end of the stream, `Late` when time runs out, `Violation` for a length out of range.
        """
        if self.left is not None:
            self._wait(self._to_read)
        data = _read(self.stdout, CHUNK)
        if len(data) > 4 and len(data) - 4 == _U32.unpack_from(data)[0] <= limit:
            return data
        return self._receive_more(data, limit)

    def _receive_more(self, data: bytes, limit: int) -> bytes:
        parts = [data]
        have = len(data)
        size = -1
        while True:
            if size < 0 and have >= 4:
                parts = [b"".join(parts)]
                size = 4 + _U32.unpack_from(parts[0])[0]
                if not 4 < size <= 4 + limit:
                    raise Violation(f"a length of {size - 4} bytes, from 1 to {limit} are allowed")
            if 0 <= size <= have:
                break
            if not data:
                raise Ended(partial=have > 0)
            if self.left is not None:
                self._wait(self._to_read)
            data = _read(self.stdout, min(CHUNK, size - have) if size > 0 else CHUNK)
            parts.append(data)
            have += len(data)
        frame = b"".join(parts)
        if have > size:
            self.early = frame[size:]
            frame = frame[:size]
        return frame

    def resume(self) -> None:
        """Lets the operation's time run: from here on the worker has the turn."""
        if self.left is not None:
            self.until = monotonic() + self.left

    def pause(self) -> None:
        """Stops the operation's time: from here on it is the host that takes it."""
        if self.left is not None:
            self.left = self.until - monotonic()

    def _wait(self, poll: Callable[[float], list[Any]]) -> None:
        """Waits until a pipe is ready, on the operation's time. What comes too late is late, though it is there."""
        while True:
            left = self.until - monotonic()
            if left <= 0:
                raise Late
            if poll(ceil(min(left, 3600.0) * 1000)):
                return

    def exited(self, seconds: float) -> bool:
        """Whether it exits by itself within `seconds`; then it is reaped and `returncode` is set."""
        if self._reaped:
            return True
        if self._pidfds:
            poll = _poller(self._pidfds[0], select.POLLIN)
            return bool(poll(ceil(seconds * 1000))) and self._reap(0)
        until = monotonic() + seconds
        while not self._reap(os.WNOHANG):
            if monotonic() >= until:
                return False
            sleep(0.005)
        return True

    def _reap(self, options: int) -> bool:
        try:
            pid, status = os.waitpid(self.pid, options)
        except ChildProcessError:
            # Something else in this process waits for every child: the status is lost.
            self._reaped = True
            return True
        if pid == 0:
            return False
        self.returncode = os.waitstatus_to_exitcode(status)
        self._reaped = True
        return True

    def kill(self) -> None:
        """Ends it and reaps it. Idempotent; nothing happens in a process that did not start it."""
        if self._reaped or not self._pids or self.foreign:
            return
        try:
            if self._pidfds:
                signal.pidfd_send_signal(self._pidfds[0], signal.SIGKILL)
            else:
                os.kill(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self._reap(0)

    def close(self) -> None:
        """Ends it and gives back its descriptors. Idempotent."""
        try:
            self.kill()
        finally:
            _close(self._fds, *repeat(-1, len(self._fds)))
            _close(self._pidfds, *repeat(-1, len(self._pidfds)))

    def __del__(self) -> None:
        try:
            self.close()
        except AttributeError:
            pass  # interrupted before it had anything


def _close(fds: list[int], *places: int) -> None:
    """Takes descriptors out of `fds`, and closes each."""
    any(map(os.close, map(fds.pop, places)))


def _past_standard(fd: int) -> int:
    """The descriptor of a host without standard streams, moved to where it can be passed on as one."""
    import fcntl

    moved = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3)
    os.close(fd)
    return moved


def _poller(fd: int, event: int) -> Callable[[float], list[Any]]:
    poller = select.poll()
    poller.register(fd, event)
    return poller.poll


def _without_sigpipe(write: Callable[[], bool]) -> bool:
    """Runs `write` in a host that dies of SIGPIPE, as many command line programs choose to: here it must not."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGPIPE])
    try:
        return write()
    finally:
        if signal.SIGPIPE not in before:
            if signal.SIGPIPE in signal.sigpending():
                signal.sigwait([signal.SIGPIPE])
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


start: Callable[[str], Worker] = Worker
"""What starts a worker here; `_windows` has another."""

_spares: deque[Worker] = deque()


def prepare(path: str, count: int) -> None:
    """Has `count` workers started that have never run code, not one more; `OSError` when one cannot start."""
    kept = [worker for worker in _drain() if not worker.foreign and not worker.exited(0)]
    while len(kept) < count:
        kept.append(start(path))
    _spares.extend(kept[:count])
    for worker in kept[count:]:
        worker.close()


def take(path: str) -> Worker:
    """A worker that has never run code: a spare if there is one, or else a new one."""
    for worker in _drain(1):
        if not worker.foreign and not worker.exited(0):
            return worker
    return start(path)


def _drain(most: int | None = None) -> list[Worker]:
    taken: list[Worker] = []
    while most is None or len(taken) < most:
        try:
            taken.append(_spares.popleft())
        except IndexError:
            break
    return taken


_workers: weakref.WeakSet[Worker] = weakref.WeakSet()


@atexit.register
def _end_all() -> None:
    """No worker outlives the interpreter, and none is left for someone else to reap."""
    for worker in list(_workers):
        worker.kill()
