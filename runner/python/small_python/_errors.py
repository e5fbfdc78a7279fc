"""What goes wrong, as exceptions."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ._object import Object
    from ._turns import Turns


class Error(Exception):
    """An exception of the engine that escaped from the code that ran there.

    Attributes:
        type: The name of the exception's class, such as ``"ValueError"``.
        message: ``str()`` of the exception, at most 64 KiB of it.
        exception: The exception itself as an `Object`, or None where nothing is left to hold on to.
        filename: Where it was raised, or None when that is not known.
        lineno: The line there, from 1, or None when that is not known.

    ``str(error)`` is ``"type: message"``. When it came from an exception of a host function, that is its ``__cause__``.

    >>> try:
    ...     rt.eval("{}['key']")
    ... except Error as error:
    ...     print(error.type, error.lineno, error)
    KeyError 1 KeyError: 'key'
    """

    type: str
    message: str
    exception: Object | None
    filename: str | None
    lineno: int | None
    _builtin: str  # the nearest builtin class, and
    _home: Turns | None  # the runtime where it escaped: for raising it there again

    def __init__(
        self,
        type: str,
        message: str,
        exception: Object | None = None,
        filename: str | None = None,
        lineno: int | None = None,
    ) -> None:
        super().__init__(type, message)
        self.type = type
        self.message = message
        self.exception = exception
        self.filename = filename
        self.lineno = lineno
        self._builtin = type
        self._home = None

    def __str__(self) -> str:
        return f"{self.type}: {self.message}"

    def __reduce__(self) -> tuple[Any, ...]:
        # The engine's object stays where it is.
        return Error, (self.type, self.message, None, self.filename, self.lineno)


class WorkerError(RuntimeError):
    """The worker is lost: it crashed, broke the protocol or was ended. Every later use of the runtime raises this too.

    Attributes:
        returncode: The exit status, minus the number of the signal that ended it, or None when this process ended it.

    >>> try:
    ...     rt.eval("1")
    ... except WorkerError as error:
    ...     print(error.returncode)
    -9
    """

    returncode: int | None

    def __init__(self, message: str, returncode: int | None = None) -> None:
        super().__init__(message)
        self.returncode = returncode


class Timeout(WorkerError, TimeoutError):
    """An operation took longer than the runtime's ``timeout``; the worker was ended.

    >>> with Runtime(timeout=0.5) as rt:
    ...     try:
    ...         rt.exec("while True: pass")
    ...     except Timeout:
    ...         print("too slow")
    too slow
    """
