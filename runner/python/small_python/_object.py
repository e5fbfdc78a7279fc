"""`Object`, what the host holds of a value that stays in the engine."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, NoReturn

    from ._errors import Error
    from ._turns import Turns

# The operations of section 7.3.
GETATTR, SETATTR, GETITEM, SETITEM, LEN, CONTAINS, ITER, NEXT, BOOL, HASH = range(1, 11)
LT, LE, EQ, NE, GT, GE, REPR, STR, DIR = range(11, 20)

_LOOKUPS = frozenset({"KeyError", "IndexError", "TypeError"})
_ATTRIBUTES = frozenset({"AttributeError", "TypeError"})
_EXPECTED = {
    GETATTR: _ATTRIBUTES,
    SETATTR: _ATTRIBUTES,
    GETITEM: _LOOKUPS,
    SETITEM: _LOOKUPS,
    NEXT: frozenset({"StopIteration", "TypeError"}),
}
_TYPES = frozenset({"TypeError"})


def expected(operation: int, operands: tuple[object, ...], error: Error) -> Exception | None:
    """What Python itself raises where `operation` fails like this, or None when `error` says it better."""
    name = error._builtin
    if name not in _EXPECTED.get(operation, _TYPES):
        return None
    if name == "KeyError":
        return KeyError(operands[0])
    if name == "StopIteration":
        return StopIteration()
    if name == "IndexError":
        return IndexError(error.message)
    return AttributeError(error.message) if name == "AttributeError" else TypeError(error.message)


def is_a(kind: type, value: object) -> bool:
    """Whether a value from the worker is of this very type."""
    return type(value) is kind


def all_are(kind: type, values: Iterable[object]) -> bool:
    """Whether all values from the worker are of this very type."""
    return all(type(value) is kind for value in values)


# What each operation answers, in words and as a test of it.
ANSWERS: dict[int, tuple[str, Callable[[Any], bool]]] = {
    SETATTR: ("None", lambda value: value is None),
    SETITEM: ("None", lambda value: value is None),
    LEN: ("an int, at least 0", lambda value: is_a(int, value) and value >= 0),
    CONTAINS: ("a bool", lambda value: is_a(bool, value)),
    ITER: ("an object", lambda value: is_a(Object, value)),
    BOOL: ("a bool", lambda value: is_a(bool, value)),
    HASH: ("an int of 64 bits", lambda value: is_a(int, value) and -(1 << 63) <= value < 1 << 63),
    REPR: ("a str", lambda value: is_a(str, value)),
    STR: ("a str", lambda value: is_a(str, value)),
    DIR: ("a list of str", lambda value: is_a(list, value) and all_are(str, value)),
}
for _number in range(LT, GE + 1):
    ANSWERS[_number] = ANSWERS[BOOL]


class Object:
    """A value of the engine that has no copy here: an instance, a function, a class, a module, an iterator...

    It can be called, iterated, compared, hashed, measured and tested like the value itself; its attributes and items can
    be read and set, not deleted. Each of these asks the worker once. What cannot be done raises what Python raises:
    ``AttributeError``, ``KeyError``, ``IndexError``, ``TypeError``, ``StopIteration``; another exception of the engine
    raises `Error`. After the runtime's end everything but ``repr()`` raises ``RuntimeError``, which a lost worker's
    `WorkerError` is too.

    The engine keeps the value for as long as the ``Object`` lives. An attribute that every Python object has here,
    such as ``__class__``, is that of the ``Object``.

    >>> rt.exec("class Point:\\n    def __init__(self, x): self.x = x\\n    def double(self): return 2 * self.x")
    >>> point = rt.call("Point", 3)
    >>> point.x, point.double()
    (3, 6)
    """

    __slots__ = ("__weakref__", "_spy_handle", "_spy_runtime")
    _spy_handle: int
    _spy_runtime: Turns

    def __init__(self) -> None:
        raise TypeError("an Object comes from a Runtime, it cannot be made")

    def __del__(self) -> None:
        try:
            self._spy_runtime._dropped.append(self._spy_handle)
        except AttributeError:
            return  # interrupted while it was made
        # Should something bring this Object back to life, its handle is not to be used again.
        object.__setattr__(self, "_spy_handle", 0)

    def __call__(self, /, *args: object, **kwargs: object) -> Any:
        return self._spy_runtime._call(self, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        if name in _SLOTS:
            raise AttributeError(name)
        return self._spy_runtime._operate(self, GETATTR, (name,))

    def __setattr__(self, name: str, value: object) -> None:
        self._spy_runtime._operate(self, SETATTR, (name, value))

    def __delattr__(self, name: str) -> NoReturn:
        raise TypeError("attributes of an Object cannot be deleted")

    def __getitem__(self, key: object) -> Any:
        return self._spy_runtime._operate(self, GETITEM, (key,))

    def __setitem__(self, key: object, value: object) -> None:
        self._spy_runtime._operate(self, SETITEM, (key, value))

    def __delitem__(self, key: object) -> NoReturn:
        raise TypeError("items of an Object cannot be deleted")

    def __len__(self) -> int:
        length: int = self._spy_runtime._operate(self, LEN, ())
        return length

    def __contains__(self, item: object) -> bool:
        found: bool = self._spy_runtime._operate(self, CONTAINS, (item,))
        return found

    def __iter__(self) -> Object:
        iterator: Object = self._spy_runtime._operate(self, ITER, ())
        return iterator

    def __next__(self) -> Any:
        return self._spy_runtime._operate(self, NEXT, ())

    def __bool__(self) -> bool:
        truth: bool = self._spy_runtime._operate(self, BOOL, ())
        return truth

    def __hash__(self) -> int:
        number: int = self._spy_runtime._operate(self, HASH, ())
        return number

    def __lt__(self, other: object) -> bool:
        truth: bool = self._spy_runtime._compare(self, LT, other)
        return truth

    def __le__(self, other: object) -> bool:
        truth: bool = self._spy_runtime._compare(self, LE, other)
        return truth

    def __eq__(self, other: object) -> bool:
        truth: bool = self._spy_runtime._compare(self, EQ, other)
        return truth

    def __ne__(self, other: object) -> bool:
        truth: bool = self._spy_runtime._compare(self, NE, other)
        return truth

    def __gt__(self, other: object) -> bool:
        truth: bool = self._spy_runtime._compare(self, GT, other)
        return truth

    def __ge__(self, other: object) -> bool:
        truth: bool = self._spy_runtime._compare(self, GE, other)
        return truth

    def __repr__(self) -> str:
        runtime = self._spy_runtime
        if runtime._closed:
            return "<Object of a closed Runtime>"
        text: str = runtime._operate(self, REPR, ())
        return text

    def __str__(self) -> str:
        text: str = self._spy_runtime._operate(self, STR, ())
        return text

    def __dir__(self) -> list[str]:
        names: list[str] = self._spy_runtime._operate(self, DIR, ())
        return names

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("an Object cannot be copied or pickled, it belongs to its Runtime")


_SLOTS = frozenset(Object.__slots__)
_set_handle = Object.__dict__["_spy_handle"].__set__
_set_runtime = Object.__dict__["_spy_runtime"].__set__


def make(runtime: Turns, handle: int) -> Object:
    """The `Object` for a handle that `runtime` was given."""
    made = Object.__new__(Object)
    _set_runtime(made, runtime)
    _set_handle(made, handle)
    return made
