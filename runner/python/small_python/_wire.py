"""Values and frames as bytes: sections 3 and 4 of the worker protocol.

`_runtime` writes messages with `Writer` and reads them with `Reader`. Nothing here knows about processes, turns or
handles: what an engine object or a host function becomes is asked of the callables that the caller hands in. A `Reader`
takes bytes that an attacker chose; every rule that they break raises `Violation`, and nothing else.
"""

from __future__ import annotations

from collections import OrderedDict
from struct import Struct, error as StructError, pack, unpack_from

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

DEPTH_MAX = 200
"""Containers nest at most this deep."""

COLLISIONS_MAX = 1_000
"""Keys of one dict or set from the worker whose hashes may collide: comparing them costs at most half the square of it."""

_U32 = Struct("<I")
_U64 = Struct("<Q")
_I64 = Struct("<q")
_F64 = Struct("<d")
_TAG_U32 = Struct("<cI")
_TAG_I64 = Struct("<cq")
_TAG_U64 = Struct("<cQ")
_TAG_F64 = Struct("<cd")
_TAG_COMPLEX = Struct("<cdd")

# A length, a kind, no releases.
_EMPTY = bytes(9)

_INTS = {int}
_FLOATS = {float}

_INT, _STR, _LIST, _TUPLE, _DICT, _SET, _FROZENSET = b"isltdez"
_CONTAINERS = frozenset(b"ltdez")
_HASHABLE = frozenset(b"tz")


class Violation(Exception):
    """Bytes from the worker broke a rule of the protocol; the text says which."""


def too_long(size: int, limit: int) -> ValueError:
    """The error for a message of `size` bytes (or more) that `limit` does not let out."""
    return ValueError(f"the message would take {size} bytes or more, message_limit is {limit}")


class Writer:
    """One message on its way to the worker.

    `limit` bounds the message in bytes; `refer` turns an engine object or a host callable into its encoding and raises
    `TypeError` for anything else.
    """

    __slots__ = ("limit", "out", "refer")

    def __init__(self, kind: int, limit: int, refer: Callable[[object], bytes]) -> None:
        self.limit = limit
        self.refer = refer
        self.out = out = bytearray(_EMPTY)
        out[4] = kind

    def fit(self) -> None:
        """`ValueError` when the message is longer than its limit."""
        if self.room() < 0:
            raise too_long(len(self.out) - 4, self.limit)

    def room(self) -> int:
        """How many bytes may still follow, below 0 when there are too many already."""
        return self.limit + 4 - len(self.out)

    def frame(self, releases: Sequence[int] = ()) -> bytearray:
        """The finished frame of a message that fits, with the handles to release for which there is room."""
        out = self.out
        if releases:
            out[5:9] = pack(f"<I{len(releases)}Q", len(releases), *releases)
        _U32.pack_into(out, 0, len(out) - 4)
        return out

    def u8(self, number: int) -> None:
        """Appends one byte."""
        self.out.append(number)

    def u32(self, number: int) -> None:
        """Appends a `u32`."""
        self.out += _U32.pack(number)

    def u64(self, number: int) -> None:
        """Appends a `u64`."""
        self.out += _U64.pack(number)

    def text(self, text: str) -> None:
        """Appends a text without a tag."""
        self.blob(text.encode("utf-8", "surrogatepass"))

    def blob(self, data: bytes) -> None:
        """Appends bytes without a tag."""
        size = len(data)
        if size > self.limit - len(self.out):
            self._room(size)
        self.out += _U32.pack(size)
        self.out += data

    def value(self, value: object, depth: int = 0, key: bool = False) -> None:
        """Appends a value; `key` when it stands, at any depth, in a key or in a member of a set.

        Raises `TypeError` for what does not convert, `RecursionError` past 200 levels and `ValueError` for a message
        that is already too long. Runs no method that a subclass overrides.
        """
        put = _PUT.get(type(value))
        if put is None:
            for base in type(value).__mro__:
                plain = _PLAIN.get(base)
                if plain is not None:
                    value = plain(value)
                    put = _PUT[type(value)]
                    break
            else:
                self.out += self.refer(value)
                return
        put(self, value, depth, key)

    def _none(self, value: None, depth: int, key: bool) -> None:
        self.out += b"N"

    def _bool(self, value: bool, depth: int, key: bool) -> None:
        self.out += b"T" if value else b"F"

    def _int(self, value: int, depth: int, key: bool) -> None:
        try:
            self.out += _TAG_I64.pack(b"i", value)
        except StructError:
            # One bit more for the sign; of a negative number the bits of its complement count.
            size = (value if value >= 0 else ~value).bit_length() // 8 + 1
            self._room(size)
            self.out += _TAG_U32.pack(b"I", size)
            self.out += value.to_bytes(size, "little", signed=True)

    def _float(self, value: float, depth: int, key: bool) -> None:
        self.out += _TAG_F64.pack(b"f", value)

    def _complex(self, value: complex, depth: int, key: bool) -> None:
        self.out += _TAG_COMPLEX.pack(b"c", value.real, value.imag)

    def _str(self, value: str, depth: int, key: bool) -> None:
        self._sized(b"s", value.encode("utf-8", "surrogatepass"))

    def _bytes(self, value: bytes, depth: int, key: bool) -> None:
        self._sized(b"b", value)

    def _bytearray(self, value: bytearray, depth: int, key: bool) -> None:
        if key:
            raise unhashable("bytearray")
        self._sized(b"B", value)

    def _sized(self, tag: bytes, data: bytes | bytearray) -> None:
        size = len(data)
        self._room(size)
        self.out += _TAG_U32.pack(tag, size)
        self.out += data

    def _list(self, value: list[object], depth: int, key: bool) -> None:
        if key:
            raise unhashable("list")
        # A copy, so that another thread can change the list meanwhile.
        items = value[:]
        kinds = set(map(type, items))
        if kinds == _INTS:
            self._room(8 * len(items), depth)
            try:
                self.out += pack(f"<cI{len(items)}q", b"q", len(items), *items)
                return
            except StructError:
                pass  # at least one needs more than 64 bits
        elif kinds == _FLOATS:
            self._room(8 * len(items), depth)
            self.out += pack(f"<cI{len(items)}d", b"x", len(items), *items)
            return
        self._items(b"l", items, depth, key)

    def _tuple(self, value: tuple[object, ...], depth: int, key: bool) -> None:
        self._items(b"t", value, depth, key)

    def _set(self, value: set[object], depth: int, key: bool) -> None:
        if key:
            raise unhashable("set")
        self._items(b"e", tuple(value), depth, True)

    def _frozenset(self, value: frozenset[object], depth: int, key: bool) -> None:
        self._items(b"z", tuple(value), depth, True)

    def _dict(self, value: dict[object, object], depth: int, key: bool) -> None:
        if key:
            raise unhashable("dict")
        items = tuple(value.items())
        self._room(2 * len(items), depth)
        self.out += _TAG_U32.pack(b"d", len(items))
        depth += 1
        for name, item in items:
            self.value(name, depth, True)
            self.value(item, depth)

    def _items(self, tag: bytes, items: Sequence[object], depth: int, key: bool) -> None:
        self._room(len(items), depth)
        self.out += _TAG_U32.pack(tag, len(items))
        depth += 1
        for item in items:
            self.value(item, depth, key)

    def _room(self, size: int, depth: int = 0) -> None:
        """Whether `size` bytes, or a container of at least as many within `depth` others, may still follow."""
        if depth >= DEPTH_MAX:
            raise RecursionError(f"the value nests more than {DEPTH_MAX} levels deep")
        size += len(self.out) - 4
        if size > self.limit:
            raise too_long(size, self.limit)


def unhashable(name: str) -> TypeError:
    """The error for a mutable container where the engine will need a hash."""
    return TypeError(f"unhashable type: '{name}'")


_PUT: dict[type, Callable[[Writer, Any, int, bool], None]] = {
    type(None): Writer._none,
    bool: Writer._bool,
    int: Writer._int,
    float: Writer._float,
    complex: Writer._complex,
    str: Writer._str,
    bytes: Writer._bytes,
    bytearray: Writer._bytearray,
    list: Writer._list,
    tuple: Writer._tuple,
    dict: Writer._dict,
    set: Writer._set,
    frozenset: Writer._frozenset,
}

def _whole(base: Any) -> Callable[[Any], object]:
    return lambda value: base.__getitem__(value, slice(None))


def _through(base: Any, method: str, into: Any) -> Callable[[Any], object]:
    members = getattr(base, method)
    return lambda value: into(members(value))


# An instance of a subclass as its base type, by the base's own methods: what the subclass overrides is not asked.
_PLAIN: dict[type, Callable[[Any], object]] = {
    int: int.__index__,
    float: float.__float__,
    complex: complex.__pos__,
    str: str.__str__,
    bytes: _whole(bytes),
    bytearray: _whole(bytearray),
    list: _whole(list),
    tuple: _whole(tuple),
    # Before dict, which comes later in the method resolution order: its own order is not that of its dict.
    OrderedDict: _through(OrderedDict, "items", dict),
    dict: _through(dict, "items", dict),
    set: _through(set, "__iter__", set),
    frozenset: _through(frozenset, "__iter__", frozenset),
}


class Reader:
    """A message of the worker, being read from `pos`.

    `adopt` turns a handle into what stands for the engine object, or raises `Violation`.
    """

    __slots__ = ("adopt", "data", "end", "pos")

    def __init__(self, data: bytes, pos: int, adopt: Callable[[int], object]) -> None:
        self.data = data
        self.pos = pos
        self.end = len(data)
        self.adopt = adopt

    def finish(self) -> None:
        """The message must end here."""
        if self.pos != self.end:
            raise Violation(f"{self.end - self.pos} trailing bytes after a message")

    def u64(self) -> int:
        """Reads a `u64`."""
        start = self._take(8)
        number: int = _U64.unpack_from(self.data, start)[0]
        return number

    def text(self, limit: int | None = None) -> str:
        """Reads a text without a tag, of at most `limit` bytes."""
        start = self._take(4)
        size: int = _U32.unpack_from(self.data, start)[0]
        if limit is not None and size > limit:
            raise Violation(f"a text of {size} bytes where at most {limit} are allowed")
        start = self._take(size)
        try:
            return self.data[start : self.pos].decode("utf-8", "surrogatepass")
        except UnicodeDecodeError as error:
            raise Violation(f"invalid UTF-8: {error.reason}") from None

    def last(self) -> object:
        """Reads a value, which must fill the message."""
        value = self.value()
        if self.pos != self.end:
            self.finish()
        return value

    def value(self) -> object:
        """Reads a value. Open containers stand in a list, so that depth costs no stack of the interpreter."""
        data = self.data
        open_: list[tuple[int, int, list[object], bool]] = []  # tag, values to come in all, values, within a key
        key = False
        while True:
            pos = self.pos
            if pos >= self.end:
                raise Violation("truncated: a value is missing")
            tag = data[pos]
            self.pos = pos + 1
            value: object
            if tag == _INT:
                value = _I64.unpack_from(data, self._take(8))[0]
            elif tag == _STR:
                value = self.text()
            elif tag in _CONTAINERS:
                size = self._open(tag, len(open_), key)
                if size:
                    key = key if tag == _TUPLE else tag != _LIST
                    open_.append((tag, size, [], key))
                    continue
                value = _built(tag, [])
            else:
                get = _GET.get(tag)
                if get is None:
                    raise Violation(f"unknown tag {tag:#04x}")
                value = get(self, len(open_), key)
            while open_:
                tag, size, items, key = open_[-1]
                items.append(value)
                if len(items) < size:
                    if tag == _DICT and len(items) % 2:
                        key = False
                    break
                open_.pop()
                value = _built(tag, items)
            else:
                return value

    def _open(self, tag: int, depth: int, key: bool) -> int:
        """How many values the container that begins here holds."""
        if key and tag not in _HASHABLE:
            raise Violation("an unhashable container within a key")
        if depth >= DEPTH_MAX:
            raise Violation(f"containers nest more than {DEPTH_MAX} levels deep")
        count: int = _U32.unpack_from(self.data, self._take(4))[0]
        size = 2 * count if tag == _DICT else count
        if size > self.end - self.pos:
            raise Violation(f"a count of {count} elements in {self.end - self.pos} bytes")
        return size

    def _take(self, size: int) -> int:
        """Where the next `size` bytes start; they must be there."""
        start = self.pos
        pos = start + size
        if pos > self.end:
            raise Violation(f"truncated: {size} bytes announced, {self.end - start} left")
        self.pos = pos
        return start

    def _none(self, depth: int, key: bool) -> None:
        return None

    def _true(self, depth: int, key: bool) -> bool:
        return True

    def _false(self, depth: int, key: bool) -> bool:
        return False

    def _float(self, depth: int, key: bool) -> float:
        number: float = _F64.unpack_from(self.data, self._take(8))[0]
        return number

    def _complex(self, depth: int, key: bool) -> complex:
        real, imag = unpack_from("<dd", self.data, self._take(16))
        return complex(real, imag)

    def _big(self, depth: int, key: bool) -> int:
        data = self._bytes(depth, key)
        if len(data) < 9:
            raise Violation("a non-canonical I: it has less than 9 bytes")
        if data[-1] == (0xFF if data[-2] & 0x80 else 0):
            raise Violation("a non-canonical I: its last byte repeats the sign")
        return int.from_bytes(data, "little", signed=True)

    def _bytes(self, depth: int, key: bool) -> bytes:
        size: int = _U32.unpack_from(self.data, self._take(4))[0]
        start = self._take(size)
        return self.data[start : self.pos]

    def _bytearray(self, depth: int, key: bool) -> bytearray:
        if key:
            raise Violation("an unhashable bytearray within a key")
        return bytearray(self._bytes(depth, key))

    def _ints(self, depth: int, key: bool) -> list[int]:
        count = self._open(_LIST, depth, key)
        return list(unpack_from(f"<{count}q", self.data, self._numbers(count)))

    def _floats(self, depth: int, key: bool) -> list[float]:
        count = self._open(_LIST, depth, key)
        return list(unpack_from(f"<{count}d", self.data, self._numbers(count)))

    def _numbers(self, count: int) -> int:
        """Where `count` numbers of 8 bytes start."""
        if count == 0 or 8 * count > self.end - self.pos:
            raise Violation(f"a count of {count} numbers in {self.end - self.pos} bytes")
        return self._take(8 * count)

    def _object(self, depth: int, key: bool) -> object:
        if key:
            raise Violation("an object of the engine within a key")
        return self.adopt(self.u64())

    def _host(self, depth: int, key: bool) -> object:
        raise Violation("the tag H, which only the parent may send")


def _built(tag: int, items: list[object]) -> object:
    """The container that `items` fill."""
    if tag == _LIST:
        return items
    if tag == _TUPLE:
        return tuple(items)
    if tag == _DICT:
        names = items[::2]
        _check_hashes(names)
        pairs = dict(zip(names, items[1::2]))
        if len(pairs) != len(names):
            raise Violation("two equal keys of a dict")
        return pairs
    _check_hashes(items)
    members = set(items) if tag == _SET else frozenset(items)
    if len(members) != len(items):
        raise Violation("two equal members of a set")
    return members


def _check_hashes(keys: list[object]) -> None:
    """Refuses keys that were chosen to collide: building a dict of them would take the square of their number."""
    if len(keys) > COLLISIONS_MAX and len(keys) - len(set(map(hash, keys))) > COLLISIONS_MAX:
        raise Violation(f"more than {COLLISIONS_MAX} keys with colliding hashes")


_GET: dict[int, Callable[[Reader, int, bool], object]] = {
    ord("N"): Reader._none,
    ord("T"): Reader._true,
    ord("F"): Reader._false,
    ord("I"): Reader._big,
    ord("f"): Reader._float,
    ord("c"): Reader._complex,
    ord("b"): Reader._bytes,
    ord("B"): Reader._bytearray,
    ord("q"): Reader._ints,
    ord("x"): Reader._floats,
    ord("O"): Reader._object,
    ord("H"): Reader._host,
}
