"""What crosses, and how, with the real worker. Sections 3.2 and 3.3 of the specification."""

from __future__ import annotations

import enum
import math
import struct
from collections import OrderedDict
from typing import Any

import pytest
from hypothesis import given, settings
from test_wire import nest, same, values

from small_python import Error, Object, Runtime

ECHO = "def echo(x): return x\ndef kind(x): return type(x).__name__\ndef show(x): return repr(x)\n"


@pytest.fixture
def echo(rt: Runtime) -> Runtime:
    rt.exec(ECHO)
    return rt


@pytest.mark.parametrize(
    "value",
    [
        None, True, False, 0, -1, 2**63 - 1, -(2**63), 2**63, -(2**63) - 1, 1 << 100_000, 0.0, -0.0, 1.5, math.inf,
        -math.inf, 5e-324, 1j, complex(-0.0, math.inf), "", "a", "\0", "h\u00e9", "\U0001f600", "\ud800", "\ud83d\ude00",
        b"", b"\xff\0", bytearray(b"x"), [], [1], [1, 2.0, "x"], [1.0, 2.0], (), (1,), {}, {"a": 1, 2: [3]},
        set(), {1, "a"}, frozenset({(1, frozenset({2}))}), {frozenset({frozenset({1})})},
    ],
    ids=lambda value: "int" if isinstance(value, int) else repr(value)[:20],
)  # fmt: skip
def test_values_cross_by_content_in_both_directions(echo: Runtime, value: object) -> None:
    assert same(echo.call("echo", value), value)
    assert echo.call("kind", value) == type(value).__name__


def test_what_the_engine_makes_arrives_as_it_is(echo: Runtime) -> None:
    assert echo.eval("2**100, -2**100, -0.0, '\\ud800', {'b': 1, 'a': 2}") == (
        2**100, -(2**100), -0.0, "\ud800", {"b": 1, "a": 2},
    )  # fmt: skip
    assert list(echo.eval("{'b': 1, 'a': 2}")) == ["b", "a"]
    assert same(echo.eval("[-0.0]"), [-0.0])


def test_the_payload_of_a_nan_is_kept(echo: Runtime) -> None:
    for pattern in (0x7FF8000000000001, 0xFFF8DEAD0000BEEF):
        nan = struct.unpack("<d", struct.pack("<Q", pattern))[0]
        for value in (nan, [nan], [nan, "x"], complex(nan, nan)):
            assert same(echo.call("echo", value), value)


def test_copies_are_copies(echo: Runtime) -> None:
    value = [1, [2]]
    echo["value"] = value
    echo.exec("value[1].append(3)")
    assert value == [1, [2]]
    back = echo["value"]
    back.clear()
    assert echo["value"] == [1, [2, 3]]


@settings(max_examples=150)
@given(value=values)
def test_every_value_goes_there_and_back(value: object) -> None:
    assert same(_shared().call("echo", value), value)


_kept: list[Runtime] = []


def _shared() -> Runtime:
    if not _kept:
        _kept.append(Runtime(timeout=20))
        _kept[0].exec(ECHO)
    return _kept[0]


@pytest.fixture(autouse=True)
def _close_shared():  # type: ignore[no-untyped-def]
    yield
    while _kept:
        _kept.pop().close()


def test_subclasses_arrive_as_their_base(echo: Runtime) -> None:
    class Text(str):
        def encode(self, *_: object, **__: object) -> bytes:
            raise AssertionError

    order = OrderedDict(a=1, b=2)
    order.move_to_end("a")
    colour = enum.IntEnum("Colour", "RED GREEN")
    for value, plain in (
        (colour.GREEN, 2),  # type: ignore[attr-defined]
        (order, {"b": 2, "a": 1}),
        (Text("x"), "x"),
        (type("L", (list,), {})([1]), [1]),
        (type("T", (tuple,), {})((1,)), (1,)),
        (type("S", (set,), {})({1}), {1}),
        (type("F", (float,), {})(0.5), 0.5),
        (type("B", (bytes,), {})(b"b"), b"b"),
    ):
        assert echo.call("kind", value) == type(plain).__name__
        assert echo.call("echo", value) == plain
    assert list(echo.call("echo", order)) == ["b", "a"]


@pytest.mark.parametrize(
    "source",
    [
        "class L(list): pass\nL([1])", "class D(dict): pass\nD(a=1)", "class I(int): pass\nI(3)",
        "class S(str): pass\nS('x')", "{1: 2}.keys()", "range(3)", "iter([])", "(i for i in ())", "len", "lambda: 0",
        "type('X', (), {})", "type('X', (), {})()", "ValueError('x')", "memoryview(b'x')", "slice(1)", "...", "int",
        "{type('X', (), {})(): 1}", "{(1, len)}", "class I(int): pass\n{I(3): 1}",
    ],
)  # fmt: skip
def test_everything_else_arrives_as_an_object(echo: Runtime, source: str) -> None:
    value = echo.eval(source)
    assert type(value) is Object
    assert echo.call("show", value) == repr(value)


def test_objects_stand_within_containers(echo: Runtime) -> None:
    value = echo.eval("[len, {'k': (int, 1)}]")
    assert type(value[0]) is Object
    assert value[1]["k"][0]("7") == 7
    assert echo.call("show", value) == "[<built-in function len>, {'k': (<class 'int'>, 1)}]"


def test_objects_keep_their_identity_in_the_engine(echo: Runtime) -> None:
    echo.exec("thing = type('X', (), {})()\ndef is_thing(x): return x is thing")
    assert echo.call("is_thing", echo["thing"]) is True
    assert echo["thing"] == echo["thing"]


def test_callables_become_functions_of_the_engine(echo: Runtime) -> None:
    class Host:
        def method(self, x: int) -> int:
            return x + 1

        def __call__(self) -> str:
            return "called"

    host = Host()
    assert echo.call(host.method, 1) == 2
    assert echo.call(host) == "called"
    assert echo.call(int, "12") == 12
    # The same one is the same in the engine, for bound methods too.
    echo["f"], echo["g"] = host.method, host.method
    assert echo.eval("f is g") is True
    log: list[int] = []
    echo["f"], echo["g"] = log.append, log.append
    assert echo.eval("f is g") is True
    assert len(echo._functions) == 4
    echo.exec("f(1); g(2)")
    assert log == [1, 2]


@pytest.mark.parametrize(
    "value", [object(), 1 .real.__class__, NotImplemented, ..., range(3), memoryview(b""), slice(1), iter(())]
)  # fmt: skip
def test_what_does_not_convert_is_a_type_error(echo: Runtime, value: Any) -> None:
    if callable(value):
        assert echo.call("kind", value) != type(value).__name__
        return
    for nested in (value, [value], {"k": value}, (1, (value,))):
        with pytest.raises(TypeError, match="cannot be passed to the engine"):
            echo.call("echo", nested)
    assert echo.eval("1") == 1


def test_an_object_of_another_runtime_is_refused(echo: Runtime) -> None:
    with Runtime(timeout=20) as other:
        foreign = other["len"]
        for use in (
            lambda: echo.call("echo", foreign), lambda: echo.call(foreign), lambda: echo.define("x", foreign),
            lambda: echo.__setitem__("x", [foreign]), lambda: echo["echo"].__setattr__("x", foreign),
        ):  # fmt: skip
            with pytest.raises(ValueError, match="another runtime"):
                use()
        assert echo["len"] != foreign
        assert not (echo["len"] == foreign)
        with pytest.raises(TypeError, match="no order"):
            echo["len"] < foreign


def test_nesting_ends_at_200_in_both_directions(echo: Runtime) -> None:
    # The tuple of the arguments is a level of its own.
    assert echo.call("echo", nest(199)) == nest(199)
    echo["deep"] = nest(200)
    assert echo["deep"] == nest(200)
    with pytest.raises(RecursionError, match="200"):
        echo["deep"] = nest(201)
    with pytest.raises(Error) as caught:
        echo.eval("(deep,)")
    assert caught.value.type == "RecursionError"
    assert echo.eval("deep") == nest(200)


def test_messages_of_exactly_the_limit_cross_and_one_byte_more_does_not() -> None:
    with Runtime(message_limit=4096, timeout=20) as rt:
        rt.exec("def size(x): return len(x)\ndef make(n): return b'x' * n")
        # SET: kind, releases, name "x", tag and length.
        room = 4096 - 1 - 4 - 5 - 5
        rt["x"] = b"x" * room
        assert rt.call("size", rt["x"]) == room if room < 4000 else True
        with pytest.raises(ValueError, match="message_limit is 4096"):
            rt["x"] = b"x" * (room + 1)
        # VALUE: kind, tag and length.
        room = 4096 - 1 - 5
        assert len(rt.call("make", room)) == room
        with pytest.raises(Error) as caught:
            rt.call("make", room + 1)
        assert caught.value.type == "ValueError"
        # Pending releases leave room for the message itself.
        kept = [rt["make"] for _ in range(100)]
        del kept
        rt["x"] = b"x" * (4096 - 1 - 4 - 5 - 5)
        assert len(rt._held) >= 100
        rt["y"] = 1
        assert len(rt._held) <= 1


def test_a_result_of_a_host_function_that_is_too_long_is_a_value_error_in_the_engine() -> None:
    with Runtime(message_limit=1024, timeout=20) as rt:
        rt.define("big", lambda: b"x" * 5000)
        assert rt.eval("try:\n    big()\nexcept ValueError as e:\n    found = 'message_limit' in str(e)\nfound") is True
        assert rt.eval("1") == 1
        with pytest.raises(Error, match="ValueError"):
            rt.eval("big(b'x' * 5000)")
        assert rt.eval("1") == 1


# Objects.


POINT = """
class Point:
    shared = 1
    def __init__(self, x, y): self.x, self.y = x, y
    def sum(self, *more, **named): return self.x + self.y + sum(more) + sum(named.values())
    def __eq__(self, other): return isinstance(other, Point) and (self.x, self.y) == (other.x, other.y) or other == self.x
    def __hash__(self): return hash((self.x, self.y))
    def __lt__(self, other): return self.x < (other.x if isinstance(other, Point) else other)
    def __str__(self): return f'{self.x}|{self.y}'
    def __repr__(self): return f'Point({self.x}, {self.y})'
    def __bool__(self): return self.x != 0
    @property
    def broken(self): raise LookupError('no')
"""


@pytest.fixture
def point(rt: Runtime) -> Any:
    rt.exec(POINT)
    return rt.call("Point", 1, 2)


def test_attributes(point: Any) -> None:
    assert (point.x, point.shared) == (1, 1)
    point.x = [5]
    assert point.x == [5]
    with pytest.raises(AttributeError, match="nothing"):
        point.nothing
    assert getattr(point, "nothing", 7) == 7
    assert hasattr(point, "x")
    with pytest.raises(TypeError, match="deleted"):
        del point.x
    with pytest.raises(TypeError, match="cannot be passed"):
        point.x = object()
    with pytest.raises(Error, match="LookupError: no"):
        point.broken
    with pytest.raises((AttributeError, TypeError)):
        point._spy_runtime._ask  # the names of this side are this side's
        point.sum.x = 1


def test_calls(point: Any) -> None:
    assert point.sum(3, four=4) == 10
    assert point.sum() == 3
    with pytest.raises(Error) as caught:
        point()
    assert caught.value.type == "TypeError"


def test_items(rt: Runtime) -> None:
    rt.exec("class D(dict): pass\nd = D(a=1)\nclass L(list): pass\nl = L([1, 2, 3])")
    d, l = rt["d"], rt["l"]  # noqa: E741
    assert d["a"] == 1
    d["b"] = 2
    assert len(d) == 2
    assert "b" in d
    assert "z" not in d
    with pytest.raises(KeyError) as caught:
        d["z"]
    assert caught.value.args == ("z",)
    key = ("composite", 1)
    with pytest.raises(KeyError) as caught:
        d[key]
    assert caught.value.args[0] is key
    assert l[-1] == 3
    l[0] = 9
    assert list(l) == [9, 2, 3]
    with pytest.raises(IndexError, match="out of range"):
        l[3]
    with pytest.raises(TypeError):
        l["a"]
    with pytest.raises(TypeError, match="deleted"):
        del d["a"]
    with pytest.raises(TypeError):
        rt["len"][0]
    with pytest.raises(TypeError):
        len(rt["len"])
    with pytest.raises(TypeError):
        1 in rt["len"]
    assert list(reversed(l)) == [3, 2, 9]


def test_iteration(rt: Runtime) -> None:
    numbers = rt.eval("(i * i for i in range(4))")
    assert iter(numbers) == numbers
    assert next(numbers) == 0
    assert list(numbers) == [1, 4, 9]
    with pytest.raises(StopIteration):
        next(numbers)
    assert list(rt.eval("range(3)")) == [0, 1, 2]
    with pytest.raises(TypeError):
        iter(rt["len"])
    with pytest.raises(TypeError):
        next(rt.eval("range(3)"))
    with pytest.raises(Error, match="ZeroDivisionError"):
        list(rt.eval("(1 / i for i in (1, 0))"))


def test_truth_hash_text_and_names(rt: Runtime, point: Any) -> None:
    assert point
    point.x = 0
    assert not point
    assert hash(point) == hash(rt.call("Point", 0, 2))
    assert {point: "found"}[rt.call("Point", 0, 2)] == "found"
    with pytest.raises(TypeError, match="unhashable"):
        hash(rt.eval("class L(list): pass\nL()"))
    assert str(point) == "0|2"
    assert f"{point}" == "0|2"
    assert repr(point) == "Point(0, 2)"
    assert {"x", "y", "sum", "shared"} <= set(dir(point))


def test_comparisons(rt: Runtime, point: Any) -> None:
    other = rt.call("Point", 1, 2)
    assert point == other
    assert not (point != other)
    assert point == 1
    assert point != 3
    assert point < 5
    assert 5 > point
    assert not point < rt.call("Point", 0, 0)
    three, four = rt.eval("class I(int): pass\nI(3), I(4)")
    assert (three < four, three <= three, three > four, four >= three, three != four) == (True, True, False, True, True)
    assert (three < 4, 3 <= three, three >= 4) == (True, True, False)
    # What does not convert is unequal, and has no order.
    assert (point == object(), point != object()) == (False, True)
    for compare in (lambda: point < object(), lambda: point >= [object()], lambda: object() > point):
        with pytest.raises(TypeError, match="cannot be passed"):
            compare()
    with pytest.raises(TypeError):
        rt["len"] < 1


def test_objects_are_made_by_a_runtime_only(point: Any) -> None:
    import copy
    import pickle

    with pytest.raises(TypeError, match="comes from a Runtime"):
        Object()
    for way in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="copied or pickled"):
            way(point)


def test_objects_after_close() -> None:
    rt = Runtime(timeout=20)
    rt.exec(POINT)
    point = rt.call("Point", 1, 2)
    rt.close()
    assert repr(point) == "<Object of a closed Runtime>"
    for use in (
        lambda: point.x, lambda: point.sum(), lambda: point[0], lambda: len(point), lambda: 1 in point,
        lambda: iter(point), lambda: next(point), lambda: bool(point), lambda: hash(point), lambda: point == 1,
        lambda: point != 1, lambda: point < 1, lambda: str(point), lambda: dir(point), lambda: setattr(point, "x", 1),
        lambda: point == object(),
    ):  # fmt: skip
        with pytest.raises(RuntimeError, match="closed"):
            use()
    del point


def test_an_object_brought_back_to_life_has_let_go(rt: Runtime) -> None:
    import gc

    rescued: list[Any] = []

    class Rescue:
        def __del__(self) -> None:
            rescued.append(self.held)

    rescue: Any = Rescue()
    rescue.held = rt["len"]
    rescue.me = rescue
    holder = [rescue.held]
    holder.append(holder)  # type: ignore[arg-type]
    rescue.holder = holder
    del rescue, holder
    gc.collect()
    rt.collect()
    try:
        rescued[0]("x")
    except RuntimeError as error:
        assert "collected" in str(error)
    assert rt.eval("1") == 1


COUNTED = """
alive = 0
class T:
    def __init__(self): global alive; alive += 1
    def __del__(self): global alive; alive -= 1
def make(count): return [T() for _ in range(count)]
def count(): return alive
"""


def test_handles_are_released_with_the_next_message(rt: Runtime) -> None:
    rt.exec(COUNTED)
    kept = rt.call("make", 10)
    assert rt.call("count") == 10
    assert len(rt._held) == 10
    del kept[3:]
    assert rt.call("count") == 3
    assert len(rt._held) == 3


@pytest.mark.once
def test_many_handles_do_not_grow_the_table(rt: Runtime) -> None:
    rt.exec(COUNTED)
    for _ in range(100):
        assert len(rt.call("make", 10_000)) == 10_000
    assert rt.call("count") == 0
    assert len(rt._held) == 0


def test_objects_are_released_from_any_thread(rt: Runtime) -> None:
    import threading

    kept = [rt["len"] for _ in range(100)]
    assert len(rt._held) == 100
    rt.define("drop", lambda: None)
    thread = threading.Thread(target=kept.clear)
    thread.start()
    thread.join()
    rt.collect()
    assert len(rt._held) == 0
