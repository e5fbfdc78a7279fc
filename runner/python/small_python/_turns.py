"""The parent's side of a conversation with a worker: turns, handles, host functions, the end. Sections 5 to 8.

`Runtime` is a `Turns` with names that people use. A top-level request claims the runtime for its thread; while host code
runs on behalf of the engine, that thread may make nested requests. An exception that comes between the first byte of a
request and its reply leaves the two sides unsure of each other, so it costs the worker: `_exchange` decides that.
"""

from __future__ import annotations

import signal
import sys
import weakref
from collections import deque
from os import getpid
from struct import pack
from threading import get_ident
from types import BuiltinFunctionType, MethodType

from . import _messages as m
from ._errors import Error, Timeout, WorkerError
from ._object import EQ, NE, Object, expected, make
from ._wire import Reader, Violation, Writer

if sys.platform == "win32":
    from ._windows import LINGER_SECONDS, Ended, Late, Worker
else:
    from ._process import LINGER_SECONDS, Ended, Late, Worker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

_CALLOUTS_MAX = 64
_TOKENS_MAX = 256
_NAMES_MAX = 64

_VALUE = m.VALUE
_ANY = frozenset({m.EVAL, m.CALL, m.GET})  # requests that may be answered with any value

_STATUSES = {
    64: "it was started with a wrong command line",
    65: "it says that this package broke the protocol",
    70: "the kernel refused a part of its sandbox",
    71: "its interpreter did not start",
}


class Turns:
    """One worker, and whose turn it is."""

    _output: Callable[..., object] | None
    _loader: Callable[..., object] | None

    def __init__(self, worker: Worker, message_limit: int, timeout: float | None) -> None:
        self._worker = worker
        self._pid = getpid()  # the process that has the worker
        self._message_limit = message_limit
        self._timeout = timeout
        self._output = self._loader = None
        self._dropped: deque[int] = deque()  # handles whose Objects are gone
        self._held: set[int] = set()  # handles that the worker keeps for this side
        self._functions: dict[int, Callable[..., object]] = {}
        self._function_ids: dict[tuple[object, ...], int] = {}
        self._raised: dict[int, BaseException] = {}  # exceptions of host functions, by token
        self._tokens = 0
        self._claim: dict[str, list[int]] = {}  # the open top-level request, as the id of its thread
        self._ours = True  # whether this side has the turn
        self._callouts = 0
        self._closed = False
        self._lost: tuple[str, int | None] | None = None

    # Requests.

    def _ask(
        self, kind: int, put: Callable[..., None], fields: tuple[Any, ...], alone: str | None = None
    ) -> Any:
        """Makes a request, top-level or nested, and returns the value of its reply. `alone`: never nested."""
        if self._closed or self._pid != getpid():
            self._check()
        turn = [get_ident()]
        claim = self._claim
        try:
            try:
                holder = claim.setdefault("thread", turn)
                if holder is turn:
                    if not self._ours:
                        raise self._lose("an operation was interrupted")
                    self._worker.left = self._timeout
                else:
                    self._nested(holder, alone)
                return self._exchange(kind, put, fields)
            finally:
                if claim.get("thread") is turn:
                    if self._raised:
                        self._raised.clear()
                    claim.clear()
        except BaseException:
            # A signal may have come just before the claim was given up.
            if claim.get("thread") is turn:
                claim.clear()
            raise

    def _nested(self, holder: list[int], alone: str | None) -> None:
        """Whether the open request leaves room for another one."""
        if holder[0] != get_ident():
            raise RuntimeError("the runtime is in use by another thread")
        if not self._ours:
            raise RuntimeError("the runtime is waiting for its worker")
        if alone:
            raise RuntimeError(f"{alone}() cannot be used inside a callback of the same runtime")

    def _check(self) -> None:
        """Whether there is a worker to talk to."""
        if self._lost:
            raise WorkerError(*self._lost)
        if self._closed:
            raise RuntimeError("the runtime is closed")
        if self._pid != getpid():
            raise WorkerError("the worker belongs to another process, of which this one is a fork")

    def _exchange(self, kind: int, put: Callable[..., None], fields: tuple[Any, ...]) -> Any:
        """Sends a request, serves what the worker asks meanwhile, and returns the value of the reply."""
        worker = self._worker
        limit = self._message_limit
        dropped = len(self._dropped)  # those that come later may stand in this very message
        try:
            self._ours = False
            writer = Writer(kind, limit, self._refer)
            put(writer, *fields)
            if len(writer.out) - 4 > limit:
                writer.fit()
        except BaseException:
            self._ours = True
            raise
        failure: BaseException | None = None
        value: object = None
        try:
            if worker.early:
                self._read_early()
            if worker.left is not None:
                worker.resume()
            worker.send(writer.frame(self._releases(dropped, writer) if dropped else ()))
            while True:
                data = worker.receive(limit)
                reply = data[4]
                if reply == _VALUE:
                    value = Reader(data, 5, self._adopt).last()
                    if kind not in _ANY:
                        m.check_answer(kind, fields, value)
                elif reply == m.ERROR and kind != m.INIT:
                    failure = self._failure(*m.read_error(Reader(data, 5, self._adopt)))
                elif reply == m.READY and kind == m.INIT:
                    value = m.read_ready(Reader(data, 5, self._adopt))
                else:
                    self._serve(reply, data)
                    continue
                if worker.left is not None:
                    worker.pause()
                self._ours = True
                break
        except (Violation, Ended, Late) as error:
            raise self._broken(error) from None
        except BaseException as error:
            if not self._lost:
                self._lose(f"{type(error).__name__} interrupted an operation")
            raise
        if failure is not None:
            raise _as_python(kind, fields, failure)
        return value

    def _serve(self, kind: int, data: bytes) -> None:
        """Answers a request of the worker, by running host code."""
        reader = Reader(data, 5, self._adopt)
        args: tuple[Any, ...]
        kwargs: dict[str, object] = {}
        function: Callable[..., Any] | None
        if kind == m.CALLBACK:
            function = self._functions.get(reader.u64())
            args, kwargs = m.read_arguments(reader)
        elif kind == m.LOAD:
            function, args = self._loader, (reader.text(),)
        elif kind == m.OUTPUT:
            function, args = (self._output or _print), (reader.text(),)
        elif kind == m.FATAL:
            raise self._given_up(reader)
        else:
            raise Violation(f"an unknown or unexpected message of kind {kind:#04x}")
        reader.finish()
        if function is None:
            raise Violation("a call of a host function that was never given")
        if self._callouts >= _CALLOUTS_MAX:
            raise Violation(f"more than {_CALLOUTS_MAX} host functions within each other")
        self._callouts += 1
        self._worker.pause()
        try:
            try:
                self._ours = True
                result: object = function(*args, **kwargs)
                self._ours = False
                writer, dropped = self._answer(kind, result)
            except BaseException as error:
                self._ours = False
                if self._lost:
                    raise
                writer, dropped = self._raise(kind, error)
        finally:
            self._callouts -= 1
        self._check()
        self._worker.resume()
        self._worker.send(writer.frame(self._releases(dropped, writer) if dropped else ()))

    def _answer(self, kind: int, result: object) -> tuple[Writer, int]:
        """The RETURN that carries the result of a host function."""
        dropped = len(self._dropped)
        writer = Writer(m.RETURN, self._message_limit, self._refer)
        if kind == m.LOAD and not (result is None or isinstance(result, str)):
            raise TypeError(f"the loader must return a str or None, not {type(result).__name__}")
        writer.value(None if kind == m.OUTPUT else result)
        writer.fit()
        return writer, dropped

    def _raise(self, kind: int, error: BaseException) -> tuple[Writer, int]:
        """The RAISE that carries an exception of a host function."""
        names = [_cut(base.__name__) for base in type(error).__mro__[:_NAMES_MAX]]
        attempts: list[tuple[list[str], tuple[object, ...]]]
        dropped = len(self._dropped)
        writer = Writer(m.RAISE, self._message_limit, self._refer)
        if kind == m.OUTPUT and isinstance(error, Exception):
            _Unraisable(error, self._output or _print)
            attempts = [(["OSError"], ("the host could not take the output",))]
        elif isinstance(error, Error) and error._home is self:
            if error.exception is not None and error.exception._spy_handle:
                writer.u8(0)
                writer.u64(error.exception._spy_handle)
                return writer, dropped
            attempts = [([error.type, error._builtin], (error.message,))]
        else:
            attempts = [(names, error.args), (names, _message(error)), (names, ())]
        self._tokens += 1
        self._raised[self._tokens] = error
        while len(self._raised) > _TOKENS_MAX:
            del self._raised[next(iter(self._raised))]
        for names, args in attempts:
            dropped = len(self._dropped)
            writer = Writer(m.RAISE, self._message_limit, self._refer)
            try:
                m.put_raise(writer, self._tokens, names, args)
                writer.fit()
                return writer, dropped
            except (TypeError, ValueError, RecursionError):
                continue
        # Even the names are too long for the message.
        writer = Writer(m.RAISE, self._message_limit, self._refer)
        m.put_raise(writer, self._tokens, ["RuntimeError"], ())
        return writer, 0

    def _failure(self, error: Error, token: int) -> BaseException:
        """What to raise for an ERROR."""
        error._home = self
        if token == 0:
            return error
        cause = self._raised.get(token)
        if cause is None:
            raise Violation(f"a malformed error: its cause {token} is unknown")
        if not isinstance(cause, Exception):
            return cause
        error.__cause__ = cause
        return error

    # Handles and functions.

    def _adopt(self, handle: int) -> Object:
        held = self._held
        if handle == 0 or handle in held:
            raise Violation(f"handle {handle}, which is 0 or already given")
        held.add(handle)
        return make(self, handle)

    def _releases(self, dropped: int, writer: Writer) -> list[int]:
        """Handles to release with a message: of the first `dropped` as many as it has room for."""
        count = min(dropped, writer.room() // 8)
        handles = [self._dropped.popleft() for _ in range(count)]
        self._held.difference_update(handles)
        return handles

    def _refer(self, value: object) -> bytes:
        """An `Object` or a callable as a value of the protocol."""
        if isinstance(value, Object):
            if value._spy_runtime is not self:
                raise ValueError("an Object of another runtime cannot be passed")
            return pack("<cQ", b"O", _handle(value))
        if not callable(value):
            raise TypeError(f"a value of type {type(value).__name__} cannot be passed to the engine")
        key: tuple[object, ...]
        # A bound method is a new object each time.
        if isinstance(value, MethodType):
            key = id(value.__self__), id(value.__func__)
        elif isinstance(value, BuiltinFunctionType) and value.__self__ is not None:
            key = id(value.__self__), value.__qualname__
        else:
            key = (id(value),)
        number = self._function_ids.get(key)
        if number is None:
            number = len(self._functions) + 1
            self._functions[number] = value
            self._function_ids[key] = number
        text = _label(value).encode("utf-8", "surrogatepass")
        return pack("<cQI", b"H", number, len(text)) + text

    def _call(self, function: object, args: tuple[object, ...], kwargs: dict[str, object]) -> Any:
        """One CALL."""
        return self._ask(m.CALL, m.put_call, (function, args, kwargs))

    def _operate(self, target: Object, operation: int, operands: tuple[object, ...]) -> Any:
        """One operation on an `Object`."""
        return self._ask(m.OP, m.put_operation, (operation, _handle(target), operands))

    def _compare(self, target: Object, operation: int, other: object) -> Any:
        """One comparison of an `Object`."""
        self._check()
        if isinstance(other, Object) and other._spy_runtime is not self:
            if operation not in (EQ, NE):
                raise TypeError("Objects of different runtimes have no order")
            return operation == NE
        try:
            return self._operate(target, operation, (other,))
        except TypeError as error:
            # With a cause it is the engine's, without one `other` does not convert.
            if operation in (EQ, NE) and error.__cause__ is None:
                return operation == NE
            raise

    # The end.

    def _read_early(self) -> NoReturn:
        """Fails over bytes that the worker sent while it was not its turn."""
        data = self._worker.early
        if len(data) > 4 and data[4] == m.FATAL and int.from_bytes(data[:4], "little") == len(data) - 4:
            raise self._given_up(Reader(data, 5, self._adopt))
        raise Violation("a message while it was not the worker's turn")

    def _given_up(self, reader: Reader) -> WorkerError:
        """FATAL: the worker says why, and ends."""
        why = reader.text(m.TEXT_BYTES_MAX)
        reader.finish()
        self._worker.exited(LINGER_SECONDS)
        return self._lose(f"the worker gave up: {why}", self._worker.returncode)

    def _broken(self, error: Violation | Ended | Late) -> WorkerError:
        """Ends the worker over `error`; returns what to raise."""
        if isinstance(error, Violation):
            return self._lose(f"the worker broke the protocol: {error}")
        if isinstance(error, Late):
            return self._lose(f"the worker took longer than {self._timeout} seconds", late=True)
        return self._ended(error)

    def _ended(self, ended: Ended) -> WorkerError:
        """Its streams have ended: did it say why, did it exit, and how?"""
        worker = self._worker
        worker.left = LINGER_SECONDS
        worker.resume()
        try:
            data = worker.receive(self._message_limit)
            if data[4] == m.FATAL:
                return self._given_up(Reader(data, 5, self._adopt))
        except (Violation, Ended, Late):
            pass
        where = " in the middle of a message" if ended.partial else ""
        if not worker.exited(LINGER_SECONDS):
            return self._lose(f"the worker closed its output{where}")
        status = worker.returncode
        if status is None:
            how = "and something else took its exit status"
        elif status < 0:
            how = f"killed by {_signal_name(-status)}"
        else:
            how = f"with exit status {status}" + (f": {_STATUSES[status]}" if status in _STATUSES else "")
        return self._lose(f"the worker ended{where}, {how}", status)

    def _end(self) -> None:
        """Closes, at a moment when nobody uses it."""
        turn = [get_ident()]
        claim = self._claim
        try:
            holder = claim.setdefault("thread", turn)
            if holder is not turn:
                if self._closed:
                    return
                self._nested(holder, "close")
            self._closed = True
            self._worker.close()
            self._forget()
        finally:
            if claim.get("thread") is turn:
                claim.clear()

    def _lose(self, message: str, returncode: int | None = None, late: bool = False) -> WorkerError:
        """Ends the worker for good; returns what to raise."""
        self._lost = message, returncode
        self._closed = True
        self._worker.close()
        self._forget()
        return (Timeout if late else WorkerError)(message, returncode)

    def _forget(self) -> None:
        """Lets go of everything of the host's."""
        self._functions.clear()
        self._function_ids.clear()
        self._output = self._loader = None


def _as_python(kind: int, fields: tuple[Any, ...], failure: BaseException) -> BaseException:
    """The exception that Python has for a failed lookup or operation, caused by the engine's; or that one itself."""
    if not isinstance(failure, Error):
        return failure
    better: Exception | None = None
    if kind == m.OP:
        better = expected(fields[0], fields[2], failure)
    elif kind in (m.GET, m.DEL) and failure._builtin == "KeyError":
        better = KeyError(fields[0])
    if better is None:
        return failure
    better.__cause__ = failure
    return better


def _handle(target: Object) -> int:
    handle = target._spy_handle
    if handle == 0:
        raise RuntimeError("this Object was collected and has let go of its value")
    return handle


def _print(text: Any) -> None:
    sys.stdout.write(text)


class _Unraisable:
    """An exception of `function` that cannot be raised any further, for sys.unraisablehook to be told of it.

    Only the interpreter can make that hook's argument; it does so where the callback of a weak reference fails.
    """

    def __init__(self, error: Exception, function: object) -> None:
        self.error = error
        self.function = function
        target: set[object] | None = set()
        ref = weakref.ref(target, self)
        target = None  # here the callback runs
        del ref

    def __call__(self, ref: object) -> None:
        raise self.error

    def __repr__(self) -> str:
        return repr(self.function)


def _message(error: BaseException) -> tuple[object, ...]:
    """``str(error)`` as the one argument, or none when that fails."""
    try:
        return (str.__str__(str(error)),)
    except Exception:
        return ()


def _label(function: object) -> str:
    """What a callable is called, for people."""
    try:
        name: object = getattr(function, "__name__", None)
    except Exception:
        name = None
    return _cut(name if isinstance(name, str) else type(function).__name__)


def _cut(name: str) -> str:
    """As much of a name as people need."""
    return name[:100]


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
