"""`Runtime`: the names that people use for what `_turns` does, and the checks of their arguments."""

from __future__ import annotations

import os
import posixpath
import sys
from functools import partial
from math import inf
from operator import index
from pathlib import Path

from . import _messages as m
from ._errors import Error, Timeout, WorkerError
from ._object import Object
from ._turns import Turns

if sys.platform == "win32":
    from ._windows import prepare, take
else:
    from ._process import prepare, take

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

_WORKER = Path(__file__).with_name("spy-worker.exe" if sys.platform == "win32" else "spy-worker")
_UNCONFINED = False  # for measuring what the sandbox costs
_START_SECONDS = 30.0  # how long a worker may take to get ready, whatever `timeout` says


class Runtime(Turns):
    """An interpreter for code that nobody trusts, in a process of its own.

    Args:
        std: Whether the code may import ``sys`` and ``gc``.
        step_limit: Steps (instructions of the interpreter) of one operation; past them ``RuntimeError`` is raised in the
            engine. 0 is unlimited. Against hostile code rely on ``timeout`` instead.
        memory_limit: Bytes that the engine may hold; past them ``MemoryError`` is raised in the engine. 0 is unlimited.
        timeout: Seconds that one operation may keep this process waiting, not counting the time that host functions
            take; past them the worker is ended and `Timeout` raised. None is unlimited.
        output: Called with each text that the code prints. None writes to ``sys.stdout``.
        loader: Called with the name of a module that the code imports; returns its source, or None when it has none.
        message_limit: Bytes of the largest message in either direction, from 1024 to 2**31 - 1. A message that arrives
            may take up to 50 times as much memory here.

    Raises:
        ValueError: A limit is negative or out of range, or ``timeout`` is not above 0.
        TypeError: A limit is not a number, or ``output`` or ``loader`` is not callable.
        WorkerError: The worker cannot start.

    A runtime belongs to one thread at a time. Use it as a context manager, or `close` it.

    >>> with Runtime(timeout=1.0, memory_limit=64 << 20) as rt:
    ...     rt.eval("sum(range(10))")
    45
    """

    layers: dict[str, int]
    """What of its sandbox this kernel has: 0 for a layer that it lacks, else 1, or the layer's version.

    >>> sorted(rt.layers)  # on Linux
    ['landlock', 'no_new_privs', 'seccomp']
    """

    def __init__(
        self,
        *,
        std: bool = True,
        step_limit: int = 0,
        memory_limit: int = 0,
        timeout: float | None = None,
        output: Callable[[str], object] | None = None,
        loader: Callable[[str], str | None] | None = None,
        message_limit: int = 64 << 20,
    ) -> None:
        steps = _limit("step_limit", step_limit, 0, (1 << 64) - 1)
        memory = _limit("memory_limit", memory_limit, 0, (1 << 64) - 1)
        largest = _limit("message_limit", message_limit, 1 << 10, (1 << 31) - 1)
        seconds = _seconds(timeout)
        _optional("output", output)
        _optional("loader", loader)
        try:
            worker = take(str(_WORKER))
        except OSError as error:
            raise _no_start(error) from error
        super().__init__(worker, largest, seconds)
        self._output = output
        self._loader = loader
        flags = m.STD * bool(std) | m.LOADER * (loader is not None) | m.UNCONFINED * _UNCONFINED
        worker.left = _START_SECONDS
        try:
            self.layers = self._exchange(m.INIT, m.put_init, (flags, steps, memory, largest))
        except Timeout as late:
            raise WorkerError(f"the worker was not ready within {_START_SECONDS:g} seconds") from late
        if seconds is not None:
            worker.limit_time()

    @classmethod
    def prepare(cls, count: int) -> None:
        """Keeps ``count`` workers started for the next runtimes, which take one each and so start sooner.

        They have never run code, and are not replaced as they are taken: call this again. 0 ends them.

        Raises:
            ValueError: ``count`` is negative.
            WorkerError: A worker cannot start.

        >>> Runtime.prepare(2)
        """
        number = _limit("count", count, 0, 1 << 16)
        try:
            prepare(str(_WORKER), number)
        except OSError as error:
            raise _no_start(error) from error

    # Running code.

    def eval(self, source: str, filename: str = "<string>") -> Any:
        """Runs ``source`` and returns the value of its last expression statement, or None when it ends in another.

        Raises:
            Error: The code raised an exception, or is no Python.
            Timeout, WorkerError: The worker was ended, or ended.
            ValueError: ``source`` is longer than ``message_limit``.

        >>> rt.eval("x = 20; x * 2 + 2")
        42
        """
        return self._ask(m.EVAL, m.put_code, _code(source, filename), "eval")

    def exec(self, source: str, filename: str = "<string>") -> None:
        """Runs ``source``; otherwise like `eval`.

        >>> rt.exec("def double(x): return 2 * x")
        """
        self._ask(m.EXEC, m.put_code, _code(source, filename), "exec")

    def call(self, function: str | Object | Callable[..., object], /, *args: object, **kwargs: object) -> Any:
        """Calls a function in the engine and returns its result.

        ``function`` is the name of a global or builtin, an `Object`, or a Python callable, which then is called back.

        Raises:
            Error: The call raised an exception; of type ``NameError`` when there is no such name.
            TypeError: ``function`` or an argument does not convert.
            ValueError: An argument is an `Object` of another runtime, or all are longer than ``message_limit``.
            RecursionError: An argument nests more than 200 levels.

        >>> rt.call("sorted", [3, 1, 2], reverse=True)
        [3, 2, 1]
        """
        if not isinstance(function, str) and not callable(function):
            raise TypeError(f"call() takes a name, an Object or a callable, not {type(function).__name__}")
        return self._call(function, args, kwargs)

    # Globals.

    def __getitem__(self, name: str) -> Any:
        """Reads a global, or else a builtin; ``KeyError`` when there is neither."""
        return self._ask(m.GET, m.put_name, (_text("a name", name),))

    def __setitem__(self, name: str, value: object) -> None:
        """Sets a global; ``TypeError`` when ``value`` does not convert."""
        self._ask(m.SET, m.put_global, (_text("a name", name), value))

    def __delitem__(self, name: str) -> None:
        """Deletes a global; ``KeyError`` when there is none."""
        self._ask(m.DEL, m.put_name, (_text("a name", name),))

    # Granting.

    def define(self, name: str, function: Any) -> Any:
        """Binds a callable as the global ``name``, and returns it.

        The engine calls it with converted arguments, and waits. What it returns must convert; what it raises is raised
        in the engine, as the nearest builtin class.

        Raises:
            TypeError: ``function`` is not callable.

        >>> rt.define("price", {"apple": 3}.__getitem__)("apple")
        3
        >>> rt.eval("price('apple') * 2")
        6
        """
        if not callable(function):
            raise TypeError(f"define() takes a callable, not {type(function).__name__}")
        self[name] = function
        return function

    def function(self, func: Any = None, *, name: str | None = None) -> Any:
        """`define` as a decorator, under the function's own name or another.

        >>> @rt.function
        ... def add(a, b):
        ...     return a + b
        >>> @rt.function(name="mul")
        ... def _(a, b):
        ...     return a * b
        >>> rt.eval("add(2, mul(3, 4))")
        14
        """
        if func is None:
            return partial(self.function, name=name)
        return self.define(func.__name__ if name is None else name, func)

    def register_module(
        self, name: str, members: Mapping[str, object] | None = None, source: str | None = None
    ) -> None:
        """Lets ``import name`` make a module that has ``members`` as attributes, and then runs ``source`` in it.

        Raises:
            TypeError: A name is not a str, or a member does not convert.

        >>> rt.register_module("shop", {"vat": 0.2}, "def gross(net): return net * (1 + vat)")
        >>> rt.eval("import shop; shop.gross(100)")
        120.0
        """
        attributes = {_text("the name of a member", key): value for key, value in dict(members or {}).items()}
        if source is not None:
            _text("source", source)
        self._ask(m.MODULE, m.put_module, (_text("a name", name), attributes, source))

    def mount(self, directory: str | os.PathLike[str], path: str | None = None, *, read_only: bool = False) -> None:
        """Lets ``open()`` reach ``directory`` as ``path``; by default that is where it really is.

        Must come before the first operation that runs code.

        Raises:
            Error: There is no such directory; or, of type ``PermissionError``, code has run already.
            ValueError: ``path`` is not absolute.

        >>> rt.mount("/srv/rules", "/rules", read_only=True)
        >>> rt.eval("open('/rules/first.txt').read()")
        'be kind'
        """
        try:
            real = os.path.realpath(directory, strict=True)
            if not os.path.isdir(real):
                raise NotADirectoryError(None, "Not a directory")
        except OSError as error:
            raise Error(type(error).__name__, f"{error.strerror}: {os.fspath(directory)!r}") from error
        at = real if path is None else _text("path", path)
        if "\0" in at or not posixpath.isabs(at):
            raise ValueError(f"path must be absolute, not {at!r}")
        at = "/" + posixpath.normpath(at).lstrip("/")
        self._ask(m.MOUNT, m.put_mount, (os.fsencode(real), at, bool(read_only)))

    # Lifetime.

    def collect(self) -> int:
        """Runs the engine's cycle collector; returns how many objects it freed.

        >>> rt.collect()
        0
        """
        freed: int = self._ask(m.COLLECT, m.put_nothing, ())
        return freed

    def close(self) -> None:
        """Ends the worker at once and lets go of every host function. Does nothing the second time.

        A file that the code left open may lose what it had not flushed.

        Raises:
            RuntimeError: The runtime is in use.

        >>> rt = Runtime()
        >>> rt.close()
        """
        self._end()

    @property
    def closed(self) -> bool:
        """Whether it was closed, or its worker is lost.

        >>> rt.closed
        False
        """
        return self._closed

    @property
    def pid(self) -> int:
        """The worker's process id.

        >>> rt.pid in (0, 1)
        False
        """
        return self._worker.pid

    def __enter__(self) -> Runtime:
        self._check()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        worker = getattr(self, "_worker", None)
        if worker is not None:
            self._closed = True
            worker.close()

    def __repr__(self) -> str:
        return f"<Runtime {'lost' if self._lost else 'closed' if self._closed else f'pid {self.pid}'}>"


def _no_start(error: OSError) -> WorkerError:
    return WorkerError(f"the worker {_WORKER} cannot start: {error.strerror or error}")


def _limit(name: str, value: Any, least: int, most: int) -> int:
    """A checked limit."""
    try:
        number = index(value)
    except TypeError:
        raise TypeError(f"{name} must be an int, not {type(value).__name__}") from None
    if not least <= number <= most:
        raise ValueError(f"{name} must be from {least} to {most}, not {number}")
    return number


def _seconds(timeout: Any) -> float | None:
    """A checked timeout; one that never comes is none."""
    if timeout is None:
        return None
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)):
        raise TypeError(f"timeout must be a number of seconds or None, not {type(timeout).__name__}")
    if not timeout > 0:
        raise ValueError(f"timeout must be above 0, not {timeout}")
    return None if timeout == inf else float(timeout)


def _optional(name: str, function: object) -> None:
    if function is not None and not callable(function):
        raise TypeError(f"{name} must be callable or None, not {type(function).__name__}")


def _code(source: object, filename: object) -> tuple[str, str]:
    if isinstance(source, str) and isinstance(filename, str):
        return source, filename
    return _text("source", source), _text("filename", filename)


def _text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a str, not {type(value).__name__}")
    return value
