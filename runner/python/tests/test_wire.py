"""The codec against the vectors that the worker's tests read too, and against whatever hypothesis thinks of."""

from __future__ import annotations

import enum
import math
import struct
import sys
from collections import OrderedDict, namedtuple
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import VECTORS

from small_python._wire import COLLISIONS_MAX, Reader, Violation, Writer

LIMIT = 1 << 24


class O:  # noqa: E742
    """An engine object, in a vector."""

    def __init__(self, handle: int) -> None:
        self.handle = handle

    def __eq__(self, other: object) -> bool:
        return isinstance(other, O) and other.handle == self.handle


class H:
    """A host function, in a vector."""

    def __init__(self, number: int, name: str) -> None:
        self.number, self.name = number, name


def bits(pattern: int) -> float:
    number: float = struct.unpack("<d", struct.pack("<Q", pattern))[0]
    return number


def nest(depth: int) -> object:
    value: object = None
    for _ in range(depth):
        value = (value,)
    return value


NAMES = {"O": O, "H": H, "bits": bits, "nest": nest, "inf": math.inf}


def vectors(name: str) -> list[list[str]]:
    lines = (VECTORS / name).read_text("utf-8").splitlines()
    return [line.split("\t") for line in lines if not line.startswith("#")]


def unhex(text: str) -> bytes:
    """Hex, in which `ab*3+cd` stands for a repetition."""
    parts = [part.partition("*") for part in text.split("+")]
    return b"".join(bytes.fromhex(digits) * int(count or 1) for digits, _, count in parts)


def refer(value: object) -> bytes:
    if isinstance(value, O):
        return struct.pack("<cQ", b"O", value.handle)
    if isinstance(value, H):
        return struct.pack("<cQI", b"H", value.number, len(value.name)) + value.name.encode()
    raise TypeError(type(value).__name__)


def adopt(handle: int) -> O:
    if handle == 0:
        raise Violation("handle 0")
    return O(handle)


def encode(value: object, limit: int = LIMIT) -> bytes:
    writer = Writer(0, limit, refer)
    writer.value(value)
    writer.fit()
    return bytes(writer.frame()[9:])


def decode(data: bytes) -> Any:
    reader = Reader(data, 0, adopt)
    value = reader.value()
    reader.finish()
    return value


def same(one: object, other: object) -> bool:
    """Equal in type, order and every bit."""
    if type(one) is not type(other):
        return False
    if isinstance(one, float):
        return struct.pack("<d", one) == struct.pack("<d", other)
    if isinstance(one, complex) and isinstance(other, complex):
        return same(one.real, other.real) and same(one.imag, other.imag)
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return same(list(one.items()), list(other.items()))
    if isinstance(one, (set, frozenset)) and isinstance(other, (set, frozenset)):
        left = list(other)
        for member in one:
            for index, candidate in enumerate(left):
                if same(member, candidate):
                    del left[index]
                    break
            else:
                return False
        return not left
    return one == other


@pytest.mark.parametrize("data, expression", vectors("values.tsv"), ids=lambda text: text[:24])
def test_values_are_the_vectors_in_both_directions(data: str, expression: str) -> None:
    value = eval(expression, dict(NAMES))
    assert encode(value) == unhex(data)
    assert same(decode(unhex(data)), value)


@pytest.mark.parametrize("data, expression", vectors("objects.tsv"))
def test_objects_are_the_vectors_in_both_directions(data: str, expression: str) -> None:
    value = eval(expression, dict(NAMES))
    assert encode(value) == unhex(data)
    assert decode(unhex(data)) == value


@pytest.mark.parametrize("data, expression", vectors("accepted.tsv"))
def test_other_spellings_are_accepted(data: str, expression: str) -> None:
    assert same(decode(unhex(data)), eval(expression))


@pytest.mark.parametrize("data, rule", vectors("refused.tsv") + vectors("refused_by_parent.tsv"), ids=lambda t: t[:24])
def test_broken_values_are_violations(data: str, rule: str) -> None:
    words = {
        "short": "truncated|canonical|count", "tag": "unknown tag", "count": "count", "trailing": "trailing",
        "depth": "deep", "hashable": "unhashable", "O in a key": "within a key", "handle": "handle 0",
        "a value is missing": "missing", "H": "only the parent",
    }  # fmt: skip
    with pytest.raises(Violation, match=words.get(rule, rule)):
        decode(unhex(data))


scalars = (
    st.none() | st.booleans() | st.integers() | st.integers(-(1 << 300), 1 << 300) | st.floats() | st.complex_numbers()
    | st.text(st.characters()) | st.binary() | st.builds(bits, st.integers(0, (1 << 64) - 1))
)  # fmt: skip
keys = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3).map(tuple) | st.frozensets(inner, max_size=3), max_leaves=6
)
values = st.recursive(
    scalars | st.binary().map(bytearray) | st.lists(st.integers()) | st.lists(st.floats()),
    lambda inner: (
        st.lists(inner) | st.lists(inner).map(tuple) | st.dictionaries(keys, inner) | st.sets(keys, max_size=5)
    ),
    max_leaves=30,
)


@given(values)
def test_every_value_comes_back(value: object) -> None:
    assert same(decode(encode(value)), value)


@given(values, st.data())
def test_a_mutated_value_decodes_or_is_a_violation(value: object, data: st.DataObject) -> None:
    mutated = bytearray(encode(value))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(mutated)))
        mutated[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=5))
    try:
        decode(bytes(mutated))
    except Violation:
        pass


@pytest.mark.once
@settings(max_examples=2000)
@given(st.binary(max_size=64))
def test_any_bytes_decode_or_are_a_violation(data: bytes) -> None:
    try:
        value = decode(data)
    except Violation:
        return
    assert same(decode(encode(value)), value)


def test_nesting_ends_at_200() -> None:
    assert decode(encode(nest(200))) == nest(200)
    with pytest.raises(RecursionError, match="200"):
        encode(nest(201))
    loop: list[object] = []
    loop += loop, loop
    with pytest.raises(RecursionError):
        encode(loop)


def test_shared_containers_do_not_grow_past_the_limit() -> None:
    value: object = ["x" * 1000, "y" * 1000]
    for _ in range(60):
        value = [value, value]
    with pytest.raises(ValueError, match="message_limit is"):
        encode(value)


def test_the_limit_counts_every_byte() -> None:
    # Kind and releases take five bytes of the message, tag and length five more.
    for make in (lambda n: b"x" * n, lambda n: "x" * n, lambda n: [None] * n, lambda n: 1 << 8 * n - 2):
        assert len(encode(make(1014), 1024)) == 1019
        with pytest.raises(ValueError, match="message_limit is 1024"):
            encode(make(1015), 1024)


def test_big_integers_cross() -> None:
    for value in (1 << 1_000_000, -(1 << 1_000_000), (1 << 1_000_000) - 1):
        assert decode(encode(value)) == value


def test_unhashable_members_are_refused_at_the_sender() -> None:
    class Hashable(list):  # type: ignore[type-arg]
        __hash__ = object.__hash__  # type: ignore[assignment]

    for value in ({Hashable(): 1}, {(Hashable(),)}, frozenset([Hashable()])):
        with pytest.raises(TypeError, match="unhashable type: 'list'"):
            encode(value)


def test_subclasses_are_sent_as_their_base_without_asking_them() -> None:
    def never(*_: object, **__: object) -> Any:
        raise AssertionError("a method of the subclass was called")

    def subclass(base: type) -> Any:
        names = ["__iter__", "__len__", "__getitem__", "__bool__", "__str__", "__repr__", "__index__", "__int__",
                 "__float__", "__complex__", "__bytes__", "__abs__", "__neg__", "__pos__", "items", "keys", "values",
                 "copy", "encode", "bit_length", "to_bytes"]  # fmt: skip
        return type("Sub", (base,), dict.fromkeys(names, never))

    for value in (5, 1 << 70, -0.0, 2j, "s\ud800", b"b", bytearray(b"B"), [1, "a"], (1, None), {"k": [1]}, {1, 2},
                  frozenset("z")):  # fmt: skip
        assert encode(subclass(type(value))(value)) == encode(value)

    order = OrderedDict(a=1, b=2)
    order.move_to_end("a")
    assert list(decode(encode(order))) == ["b", "a"]
    assert decode(encode(enum.IntEnum("E", "A B").B)) == 2  # type: ignore[attr-defined]
    assert decode(encode(namedtuple("P", "x y")(1, 2))) == (1, 2)
    assert decode(encode([enum.IntEnum("E", "A B").B])) == [2]  # type: ignore[attr-defined]


def test_keys_that_were_chosen_to_collide_are_a_violation() -> None:
    modulus = sys.hash_info.modulus
    for count, refused in ((COLLISIONS_MAX, False), (COLLISIONS_MAX + 2, True)):
        keys = b"".join(encode(modulus * n) for n in range(1, count + 1))
        for data in (
            b"e" + struct.pack("<I", count) + keys,
            b"d" + struct.pack("<I", count) + b"".join(encode(modulus * n) + b"N" for n in range(1, count + 1)),
        ):
            if refused:
                with pytest.raises(Violation, match="colliding"):
                    decode(data)
            else:
                assert len(decode(data)) == count


def test_depth_takes_no_stack_of_the_interpreter() -> None:
    def at_depth(depth: int) -> Any:
        return decode(encode_200) if depth == 0 else at_depth(depth - 1)

    encode_200 = encode(nest(200))
    assert at_depth(sys.getrecursionlimit() - 150) == nest(200)


@pytest.mark.parametrize("limit", [0, 1, 100])
def test_a_text_has_its_own_limit(limit: int) -> None:
    data = struct.pack("<I", limit + 1) + b"x" * (limit + 1)
    assert Reader(data, 0, adopt).text(limit + 1) == "x" * (limit + 1)
    with pytest.raises(Violation, match="at most"):
        Reader(data, 0, adopt).text(limit)
