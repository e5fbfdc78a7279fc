"""`_process.Worker` for Windows, which has neither poll nor signals. Nobody has run this yet: there is no worker for Windows.

It looks whether a pipe holds something instead of waiting for it, so that Ctrl-C and a limit of time get through; that
costs up to a millisecond per message.
"""

from __future__ import annotations

import os
import subprocess
import sys
from threading import Timer
from time import monotonic, sleep

from . import _process
from ._process import LINGER_SECONDS, Ended, Late, prepare, take

__all__ = ["LINGER_SECONDS", "Ended", "Late", "Worker", "prepare", "take"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

if sys.platform == "win32":
    import _winapi
    import msvcrt

    class Worker(_process.Worker):
        """A worker process on Windows."""

        _process: subprocess.Popen[bytes] | None = None

        def _start(self, path: str) -> None:
            self._process = process = subprocess.Popen(
                [path],
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env={"SYSTEMROOT": os.environ["SYSTEMROOT"]},  # no program starts without it
                creationflags=subprocess.CREATE_NEW_PROCESS_GROUP,
            )
            assert process.stdin and process.stdout
            self.stdin, self.stdout = process.stdin.fileno(), process.stdout.fileno()
            self._to_read = self._look
            self._pids.append(process.pid)

        def limit_time(self) -> None:
            """Writes are limited by a timer."""

        def send(self, frame: bytearray) -> None:
            """Writes a frame. A worker that does not take it in time is ended, which ends the write."""
            if self.left is None:
                done = self._put(frame)
            else:
                timer = Timer(max(self.until - monotonic(), 0), self.kill)
                timer.start()
                try:
                    left, self.left = self.left, None
                    done = self._put(frame)
                    self.left = left
                finally:
                    timer.cancel()
                if self.until <= monotonic():
                    raise Late
            if not done:
                raise Ended(partial=False)

        def _look(self, milliseconds: float) -> list[Any]:
            """Whether there is something to read within the time."""
            until = monotonic() + milliseconds / 1000
            handle = msvcrt.get_osfhandle(self.stdout)
            while True:
                try:
                    ready = int(_winapi.PeekNamedPipe(handle, 0)[0]) > 0
                except OSError:
                    ready = True  # its end: reading will tell
                if ready or monotonic() >= until:
                    return [self.stdout] if ready else []
                sleep(0.0005)

        def receive(self, limit: int) -> bytes:
            """Reads a frame; without a limit of time, too, in a way that Ctrl-C can interrupt."""
            if self.left is None:
                while not self._look(1000):
                    pass
            return super().receive(limit)

        def exited(self, seconds: float) -> bool:
            """Whether it exits by itself within `seconds`."""
            assert self._process
            try:
                self.returncode = self._process.wait(seconds)
            except subprocess.TimeoutExpired:
                return False
            self._reaped = True
            return True

        def kill(self) -> None:
            """Ends it."""
            if self._process and not self._reaped:
                self._process.kill()
                self._process.wait()
                self._reaped = True

        def close(self) -> None:
            """Ends it and gives back its pipes."""
            self.kill()
            if self._process:
                for stream in self._process.stdin, self._process.stdout:
                    if stream:
                        stream.close()

    start: Callable[[str], _process.Worker] = Worker
    _process.start = start
else:
    Worker = _process.Worker
