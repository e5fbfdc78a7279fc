"""The messages of section 7, as layouts: how a request is written, what may come back, what an error says.

Called by `_runtime`, which knows when a message may be sent. Section 7.3, the operations, is in `_object`.
"""

from __future__ import annotations

import os

from ._errors import Error
from ._object import ANSWERS, Object, all_are, is_a
from ._wire import Reader, Violation, Writer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

PROTOCOL = 1

INIT, EVAL, EXEC, CALL, GET, SET, DEL, MODULE, MOUNT, OP, COLLECT = range(0x01, 0x0C)
RETURN, RAISE = 0x20, 0x21
READY, VALUE, ERROR = 0x81, 0x82, 0x83
CALLBACK, LOAD, OUTPUT = 0x90, 0x91, 0x92
FATAL = 0x9F

STD, LOADER, UNCONFINED = 1, 2, 4

NAME_BYTES_MAX = 128
FILENAME_BYTES_MAX = 256
TEXT_BYTES_MAX = 1 << 16


def put_init(writer: Writer, flags: int, steps: int, memory: int, limit: int) -> None:
    writer.u32(PROTOCOL)
    writer.u32(flags)
    writer.u64(steps)
    writer.u64(memory)
    writer.u32(limit)
    writer.u32(os.getpid())


def put_nothing(writer: Writer) -> None:
    pass


def put_code(writer: Writer, source: str, filename: str) -> None:
    writer.text(source)
    writer.text(filename)


def put_call(writer: Writer, function: object, args: tuple[object, ...], kwargs: dict[str, object]) -> None:
    writer.value(function)
    writer.value(args)
    writer.value(kwargs)


def put_name(writer: Writer, name: str) -> None:
    writer.text(name)


def put_global(writer: Writer, name: str, value: object) -> None:
    writer.text(name)
    writer.value(value)


def put_module(writer: Writer, name: str, members: dict[str, object], source: str | None) -> None:
    writer.text(name)
    writer.value(members)
    writer.value(source)


def put_mount(writer: Writer, directory: bytes, path: str, read_only: bool) -> None:
    writer.blob(directory)
    writer.text(path)
    writer.u8(read_only)


def put_operation(writer: Writer, operation: int, handle: int, operands: tuple[object, ...]) -> None:
    writer.u8(operation)
    writer.u64(handle)
    for operand in operands:
        writer.value(operand)


def put_raise(writer: Writer, token: int, names: list[str], args: tuple[object, ...]) -> None:
    writer.u8(1)
    writer.u64(token)
    writer.u32(len(names))
    for name in names:
        writer.text(name)
    writer.value(args)


def check_answer(kind: int, fields: tuple[Any, ...], value: object) -> None:
    """Refuses a VALUE of a type that the request cannot have as its answer."""
    answer = ANSWERS.get(fields[0]) if kind == OP else _ANSWERS.get(kind)
    if answer is not None and not answer[1](value):
        raise Violation(f"an answer of type {type(value).__name__} where only {answer[0]} can be")


def _never(value: object) -> bool:
    return False


def _is_none(value: object) -> bool:
    return value is None


_ANSWERS: dict[int, tuple[str, Callable[[object], bool]]] = {
    INIT: ("READY", _never),
    EXEC: ("None", _is_none),
    SET: ("None", _is_none),
    DEL: ("None", _is_none),
    MODULE: ("None", _is_none),
    MOUNT: ("None", _is_none),
    COLLECT: ("an int, at least 0", lambda value: type(value) is int and value >= 0),
}


def read_ready(reader: Reader) -> dict[str, int]:
    """The layers that READY reports; the versions in it are for people who read the bytes."""
    reader.text(NAME_BYTES_MAX)
    reader.text(NAME_BYTES_MAX)
    layers: Any = reader.value()
    reader.finish()
    if not is_a(dict, layers) or not all_are(str, layers) or not all_are(int, layers.values()):
        raise Violation("malformed layers in READY")
    return dict(layers)


def read_error(reader: Reader) -> tuple[Error, int]:
    """The exception that ERROR tells of, and the token of its cause or 0."""
    kind = reader.text(NAME_BYTES_MAX)
    message = reader.text(TEXT_BYTES_MAX)
    builtin = reader.text(NAME_BYTES_MAX)
    exception = reader.value()
    filename = reader.value()
    lineno = reader.value()
    token = reader.u64()
    reader.finish()
    if exception is not None and not isinstance(exception, Object):
        raise Violation("a malformed error: its exception is no object")
    if filename is not None:
        if type(filename) is not str or len(filename.encode("utf-8", "surrogatepass")) > FILENAME_BYTES_MAX:
            raise Violation("a malformed error: its filename is no short str")
    if lineno is not None and (type(lineno) is not int or not 0 <= lineno < 1 << 63):
        raise Violation("a malformed error: its line number is none")
    error = Error(kind, message, exception, filename, lineno)
    error._builtin = builtin
    return error, token


def read_arguments(reader: Reader) -> tuple[tuple[object, ...], dict[str, object]]:
    """What a CALLBACK passes to its function."""
    args: Any = reader.value()
    kwargs: Any = reader.value()
    reader.finish()
    if not is_a(tuple, args) or not is_a(dict, kwargs) or not all_are(str, kwargs):
        raise Violation("malformed arguments of a host function")
    return args, kwargs
