"""Host functions, the loader, output, and exceptions on their way through both sides. Sections 3.4 and 3.5."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest

from small_python import Error, Runtime, WorkerError


def test_host_functions_get_converted_arguments_and_return_values(rt: Runtime) -> None:
    seen: list[object] = []

    @rt.function
    def host(*args: object, **kwargs: object) -> object:
        seen.append((args, kwargs))
        return {"args": list(args)}

    assert rt.eval("host(1, 'a', [None], k=(2,))") == {"args": [1, "a", [None]]}
    assert seen == [((1, "a", [None]), {"k": (2,)})]


def test_a_result_that_does_not_convert_is_a_type_error_in_the_engine(rt: Runtime) -> None:
    rt.define("bad", lambda: object())
    assert rt.eval("try:\n    bad()\nexcept TypeError as e:\n    t = str(e)\nt") == (
        "a value of type object cannot be passed to the engine"
    )
    with pytest.raises(Error) as caught:
        rt.eval("bad()")
    assert isinstance(caught.value.__cause__, TypeError)
    deep: list[object] = []
    deep.append(deep)
    rt.define("deep", lambda: deep)
    with pytest.raises(Error, match="RecursionError"):
        rt.eval("deep()")
    with Runtime(timeout=20) as other:
        foreign = other["len"]
        rt.define("foreign", lambda: foreign)
        with pytest.raises(Error, match="ValueError"):
            rt.eval("foreign()")
    assert rt.eval("1") == 1


class Broken(KeyError):
    """Not a builtin: the nearest one is KeyError."""


def raiser(error: BaseException | type[BaseException]) -> Callable[[], None]:
    def function() -> None:
        raise error

    return function


@pytest.mark.parametrize(
    "error, name, args",
    [
        (ValueError("x", 1), "ValueError", ("x", 1)),
        (Broken("k"), "KeyError", ("k",)),
        (KeyError(("a", 2)), "KeyError", (("a", 2),)),
        (ZeroDivisionError(), "ZeroDivisionError", ()),
        (OSError(2, "gone"), "FileNotFoundError", (2, "gone")),
        (ValueError(object), "ValueError", None),
        (ValueError(range(3)), "ValueError", ("range(0, 3)",)),
        (UnicodeDecodeError("utf-8", b"x", 0, 1, "bad"), "UnicodeDecodeError", ("utf-8", b"x", 0, 1, "bad")),
        (StopIteration(3), "StopIteration", (3,)),
        (GeneratorExit(), "GeneratorExit", ()),
        (type("Own", (Exception,), {})("own"), "Exception", ("own",)),
        (type("Base", (BaseException,), {})("own"), "BaseException", ("own",)),
        (ExceptionGroup("g", [ValueError(1)]) if sys.version_info >= (3, 11) else LookupError("g"), None, None),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_exception_becomes_the_nearest_builtin_class(
    rt: Runtime, error: BaseException, name: str | None, args: tuple[object, ...] | None
) -> None:
    rt.define("host", raiser(error))
    found = rt.eval("try:\n    host()\nexcept BaseException as e:\n    found = type(e).__name__, e.args\nfound")
    if name is None:
        return
    assert found[0] == name
    if args is not None:
        assert found[1] == args


def test_an_unhandled_exception_is_the_cause_of_the_error(rt: Runtime) -> None:
    error = Broken("k")
    rt.define("host", raiser(error))
    with pytest.raises(Error) as caught:
        rt.eval("host()")
    assert caught.value.type == "KeyError"
    assert caught.value.__cause__ is error
    # One that was handled is not.
    rt.exec("try:\n    host()\nexcept KeyError:\n    pass")
    with pytest.raises(Error) as caught:
        rt.exec("try:\n    host()\nexcept KeyError:\n    pass\n1/0")
    assert caught.value.__cause__ is None
    # One that was raised again is.
    with pytest.raises(Error) as caught:
        rt.exec("try:\n    host()\nexcept KeyError as e:\n    kept = e\nraise kept")
    assert caught.value.__cause__ is error
    # Across top-level requests nothing is remembered.
    with pytest.raises(Error) as caught:
        rt.exec("raise kept")
    assert caught.value.__cause__ is None
    assert not rt._raised


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_a_base_exception_is_raised_again_itself(rt: Runtime, kind: type[BaseException]) -> None:
    error = kind("stop")
    rt.define("host", raiser(error))
    with pytest.raises(kind) as caught:
        rt.eval("host()")
    assert caught.value is error
    assert rt.eval("1") == 1
    # The engine may handle it.
    assert rt.eval(f"try:\n    host()\nexcept {kind.__name__}:\n    found = 5\nfound") == 5
    # And its own ones are Errors.
    with pytest.raises(Error) as engine:
        rt.exec(f"raise {kind.__name__}('own')")
    assert engine.value.type == kind.__name__


def test_strange_exceptions_are_raised_as_well_as_can_be(rt: Runtime) -> None:
    class Mute(ValueError):
        def __str__(self) -> str:
            raise ZeroDivisionError

    deep = type("Deep0", (ValueError,), {})
    for number in range(100):
        deep = type(f"Deep{number}", (deep,), {})
    for error in (Mute(object()), ValueError("x" * (1 << 20)), ValueError(*range(1000)), type("N" * 5000, (ValueError,), {})("x")):
        rt.define("host", raiser(error))
        assert rt.eval("try:\n    host()\nexcept ValueError:\n    found = 'ValueError'\nfound") == "ValueError"
    rt.define("host", raiser(deep("x")))
    with pytest.raises(Error) as caught:
        rt.eval("host()")
    assert caught.value.type in ("ValueError", "RuntimeError")
    with Runtime(message_limit=1024, timeout=20) as small:
        small.define("host", raiser(deep("x" * 5000)))
        with pytest.raises(Error) as caught:
            small.eval("host()")
        assert caught.value.type in ("ValueError", "RuntimeError")
        assert small.eval("1") == 1


def test_many_exceptions_are_not_all_remembered(rt: Runtime) -> None:
    error = ValueError("x")
    rt.define("host", raiser(error))
    remembered: list[int] = []
    rt.define("look", lambda: remembered.append(len(rt._raised)))
    with pytest.raises(Error) as caught:
        rt.exec("for _ in range(2000):\n    try:\n        host()\n    except ValueError:\n        pass\nlook()\nhost()")
    assert caught.value.__cause__ is error
    assert remembered == [256]


def test_an_escaping_error_raises_the_original_again(rt: Runtime) -> None:
    rt.exec("class Own(Exception): pass\noriginal = Own('x')\ndef fail(): raise original")
    rt.define("through", lambda: rt.call("fail"))
    assert rt.eval("try:\n    through()\nexcept Own as e:\n    found = e is original\nfound") is True
    with pytest.raises(Error) as caught:
        rt.eval("through()")
    assert caught.value.type == "Own"
    # Down to the exception of the host function at the very bottom.
    error = LookupError("bottom")
    rt.define("bottom", raiser(error))
    rt.define("middle", lambda: rt.call("bottom"))
    with pytest.raises(Error) as caught:
        rt.eval("middle()")
    assert caught.value.__cause__ is error
    stop = KeyboardInterrupt()
    rt.define("bottom", raiser(stop))
    with pytest.raises(KeyboardInterrupt) as stopped:
        rt.eval("middle()")
    assert stopped.value is stop


def test_an_error_of_another_runtime_is_an_exception_like_others(rt: Runtime) -> None:
    with Runtime(timeout=20) as other:
        rt.define("host", lambda: other.exec("raise ValueError('there')"))
        with pytest.raises(Error) as caught:
            rt.eval("host()")
        assert isinstance(caught.value.__cause__, Error)
        assert caught.value.__cause__.type == "ValueError"


# Nested requests.


def test_nested_requests_go_several_levels_deep_in_both_directions(rt: Runtime) -> None:
    rt.exec("def down(n): return n if n == 0 else host(n - 1) + 1")
    rt.define("host", lambda n: rt.call("down", n))
    assert rt.call("down", 30) == 30
    # In each level everything but eval, exec and close.
    rt.exec("class Thing: pass\nthing = Thing()\nthing.n = 0")

    def host(n: int) -> int:
        rt["level"] = n
        thing = rt["thing"]
        thing.n += 1
        assert rt["level"] == n
        rt.define(f"f{n}", lambda: n)
        assert rt.call(f"f{n}") == n
        rt.register_module(f"m{n}", {"n": n})
        rt.collect()
        return int(rt.call("down", n))

    rt.define("host", host)
    assert rt.call("down", 10) == 10
    assert rt["thing"].n == 10
    assert rt.eval("import m3\nm3.n") == 3


def test_eval_exec_and_close_are_refused_inside_a_callback(rt: Runtime) -> None:
    for use in (lambda: rt.eval("1"), lambda: rt.exec("1"), rt.close, lambda: rt.__exit__()):
        rt.define("host", use)
        with pytest.raises(Error, match="RuntimeError") as caught:
            rt.eval("host()")
        assert isinstance(caught.value.__cause__, RuntimeError)
        assert "inside a callback" in str(caught.value.__cause__)
        assert not rt.closed
    assert rt.eval("1") == 1


def test_endless_recursion_through_both_sides_ends_as_a_recursion_error(rt: Runtime) -> None:
    rt.exec("def down(): return host()")
    rt.define("host", lambda: rt.call("down"))
    with pytest.raises(Error, match="RecursionError"):
        rt.call("down")
    assert rt.eval("1") == 1


def test_a_host_function_that_recurses_by_itself_raises_in_the_engine(rt: Runtime) -> None:
    def host() -> object:
        return host()

    rt.define("host", host)
    assert rt.eval("try:\n    host()\nexcept RecursionError:\n    found = 1\nfound") == 1
    assert rt.eval("1") == 1


def test_a_callback_that_loses_the_worker_cannot_hide_it(rt: Runtime) -> None:
    import os
    import signal

    def kill() -> int:
        os.kill(rt.pid, signal.SIGKILL)
        try:
            rt["x"] = 1
        except WorkerError:
            pass
        return 1

    rt.define("kill", kill)
    with pytest.raises(WorkerError, match="SIGKILL"):
        rt.eval("kill()")
    assert rt.closed


# The loader.


def test_a_plain_dict_is_a_loader() -> None:
    sources = {
        "single": "x = 1",
        "pkg": "never = 1",
        "pkg.mod": "y = 2",
        "full.__init__": "z = 3",
        "full.sub": "from . import z; w = z + 1",
        "space.__namespace__": "",
        "space.inner": "v = 5",
    }
    with Runtime(loader=sources.get, timeout=20) as rt:
        assert rt.eval("import single\nsingle.x") == 1
        assert rt.eval("import full.sub\nfull.z, full.sub.w") == (3, 4)
        assert rt.eval("import space.inner\nspace.inner.v") == 5
        with pytest.raises(Error, match="ModuleNotFoundError"):
            rt.exec("import nothing")
        with pytest.raises(Error, match="ModuleNotFoundError"):
            rt.exec("import pkg.mod")  # pkg is no package


def test_the_loader_is_asked_by_the_names_of_the_probes() -> None:
    asked: list[str] = []

    def loader(name: str) -> str | None:
        asked.append(name)
        return {"pkg.__init__": "", "pkg.mod": "x = 1"}.get(name)

    with Runtime(loader=loader, timeout=20) as rt:
        rt.exec("import pkg.mod")
        assert asked == ["pkg.__init__", "pkg.mod.__init__", "pkg.mod"]
        asked.clear()
        with pytest.raises(Error, match="ModuleNotFoundError"):
            rt.exec("import none")
        assert asked == ["none.__init__", "none", "none.__namespace__"]
        asked.clear()
        rt.exec("import sys, gc")  # what the engine has it does not ask for
        assert asked == []


def test_the_loader_follows_the_rules_of_host_functions() -> None:
    error = LookupError("store is down")
    answers: list[Any] = [error, b"bytes", 5, "x ="]

    def loader(name: str) -> Any:
        answer = answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    with Runtime(loader=loader, timeout=20) as rt:
        with pytest.raises(Error) as caught:
            rt.exec("import m1")
        assert (caught.value.type, caught.value.__cause__) == ("LookupError", error)
        for answer in answers[1:3]:
            answers[0] = answer
            with pytest.raises(Error, match="TypeError: the loader must return a str or None"):
                rt.exec("import m2")
        answers[0] = answers[3]
        with pytest.raises(Error, match="SyntaxError"):
            rt.exec("import m3")
        answers[0] = None
        with pytest.raises(Error, match="ModuleNotFoundError"):
            rt.exec("import m4")


# Output.


def test_an_exception_of_output_is_reported_and_print_raises_oserror(monkeypatch: pytest.MonkeyPatch) -> None:
    reports: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", reports.append)
    error = ValueError("full")

    def output(text: str) -> None:
        raise error

    with Runtime(output=output, timeout=20) as rt:
        assert rt.eval("try:\n    print('x')\nexcept OSError as e:\n    found = type(e).__name__\nfound") == "OSError"
        assert [report.exc_value for report in reports] == [error]
        assert "output" in repr(reports[0].object)
        with pytest.raises(Error, match="OSError"):
            rt.exec("print('x')")
        assert rt.eval("1") == 1
    reports.clear()


def test_an_interrupt_in_output_is_raised_itself() -> None:
    stop = KeyboardInterrupt()

    def output(text: str) -> None:
        raise stop

    with Runtime(output=output, timeout=20) as rt:
        with pytest.raises(KeyboardInterrupt) as caught:
            rt.exec("print('x')")
        assert caught.value is stop
        assert rt.eval("1") == 1


def test_output_may_use_the_runtime() -> None:
    with Runtime(output=lambda text: seen.append((text, rt["x"])), timeout=20) as rt:
        seen: list[object] = []
        rt.exec("x = 7\nprint('a')")
        assert seen == [("a\n", 7)]


# Threads.


def test_a_busy_runtime_refuses_other_threads(rt: Runtime) -> None:
    refused: list[object] = []

    def other() -> None:
        for use in (lambda: rt.eval("1"), lambda: rt["x"], lambda: rt.call("len", ""), rt.close, lambda: kept.x):
            try:
                use()
            except RuntimeError as error:
                refused.append(str(error))

    def host() -> None:
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()

    rt.exec("class T: x = 1")
    kept = rt["T"]
    rt.define("host", host)
    rt.eval("host()")
    assert refused == ["the runtime is in use by another thread"] * 5
    assert rt.eval("1") == 1


def test_a_runtime_goes_from_thread_to_thread() -> None:
    made: list[Runtime] = []

    def start() -> None:
        made.append(Runtime(timeout=20))
        made[0].exec("x = 1")

    def use() -> None:
        results.append(made[0].eval("x"))

    results: list[int] = []
    for target in (start, use, use):
        thread = threading.Thread(target=target)
        thread.start()
        thread.join()
    with made.pop() as rt:
        assert rt.eval("x + 1") == 2
    assert results == [1, 1]


def test_runtimes_in_different_threads_are_independent() -> None:
    results: dict[int, int] = {}

    def work(number: int) -> None:
        with Runtime(timeout=60) as rt:
            rt.define("host", lambda x: x + number)
            results[number] = sum(rt.call("host", n) for n in range(200))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {number: sum(range(200)) + 200 * number for number in range(8)}


def test_racing_threads_either_work_or_are_refused() -> None:
    with Runtime(timeout=60) as rt:
        rt.exec("n = 0\ndef step():\n    global n\n    n += 1\n    return n")
        done: list[int] = []

        def work() -> None:
            for _ in range(300):
                try:
                    done.append(rt.call("step"))
                except RuntimeError as error:
                    assert "another thread" in str(error)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(done) == list(range(1, len(done) + 1))
        assert rt.eval("n") == len(done)


def test_a_host_function_called_from_another_thread_of_the_host(rt: Runtime) -> None:
    """What it does outside of a request of the engine is a request like any other."""

    @rt.function
    def host() -> int:
        return int(rt.call("len", [1, 2]))

    results: list[int] = []
    thread = threading.Thread(target=lambda: results.append(host()))
    thread.start()
    thread.join()
    assert results == [2]
    assert rt.eval("host()") == 2


def test_a_host_function_that_waits_for_another_runtime(rt: Runtime) -> None:
    with Runtime(timeout=20) as inner:
        rt.define("ask", lambda source: inner.eval(source))
        inner.define("back", lambda: rt.call("len", "abc"))
        assert rt.eval("ask('back() + 1')") == 4
