"""The names of `Runtime`, against the real worker. Sections 3.1 and 3.4 of the specification."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import small_python
from small_python import Error, Object, Runtime, Timeout, WorkerError, _runtime


# Starting.


@pytest.mark.parametrize(
    "arguments, kind",
    [
        ({"step_limit": -1}, ValueError),
        ({"step_limit": 1 << 64}, ValueError),
        ({"step_limit": 1.5}, TypeError),
        ({"memory_limit": -1}, ValueError),
        ({"memory_limit": "1M"}, TypeError),
        ({"timeout": 0}, ValueError),
        ({"timeout": -0.5}, ValueError),
        ({"timeout": float("nan")}, ValueError),
        ({"timeout": "1"}, TypeError),
        ({"message_limit": -1}, ValueError),
        ({"message_limit": 1023}, ValueError),
        ({"message_limit": 1 << 31}, ValueError),
        ({"output": "stdout"}, TypeError),
        ({"loader": {}}, TypeError),
    ],
)
def test_bad_arguments_are_refused_before_the_worker_starts(
    arguments: dict[str, Any], kind: type[Exception], fake: Any
) -> None:
    fake("open('started', 'w')")
    with pytest.raises(kind, match=next(iter(arguments))):
        Runtime(**arguments)
    assert not Path("started").exists()


def test_arguments_are_keyword_only_and_have_defaults() -> None:
    with pytest.raises(TypeError):
        Runtime(True)  # type: ignore[misc]
    with Runtime() as rt:
        assert rt._message_limit == 64 << 20
        assert rt._timeout is None
    with Runtime(timeout=float("inf"), message_limit=1024, step_limit=(1 << 64) - 1) as rt:
        assert rt.eval("1") == 1


def test_a_worker_that_cannot_start_is_a_worker_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(_runtime, "_WORKER", tmp_path / "none")
    with pytest.raises(WorkerError, match="cannot start: No such file"):
        Runtime()
    with pytest.raises(WorkerError, match="cannot start: No such file"):
        Runtime.prepare(1)
    (tmp_path / "none").write_text("not executable")
    with pytest.raises(WorkerError, match="cannot start: Permission denied"):
        Runtime()


def test_the_versions() -> None:
    assert small_python.__version__ == "0.1.0"
    assert small_python.SPY_VERSION == "0.1.0"
    with pytest.raises(AttributeError, match="SPY"):
        small_python.SPY  # type: ignore[attr-defined]
    code = "import small_python, sys; assert 'SPY_VERSION' not in vars(small_python); small_python.SPY_VERSION; " \
        "assert 'SPY_VERSION' in vars(small_python)"  # fmt: skip
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_layout_of_the_package() -> None:
    home = Path(small_python.__file__).parent
    for name in ("__init__.py", "_wire.py", "_runtime.py", "_runtime.pyi", "py.typed", "spy-worker"):
        assert (home / name).is_file(), name
    assert os.access(home / "spy-worker", os.X_OK)
    assert set(small_python.__all__) >= {"Runtime", "Object", "Error", "WorkerError", "Timeout", "SPY_VERSION"}


def test_the_package_is_pure_and_has_no_dependency() -> None:
    home = Path(small_python.__file__).parent
    assert not [path for path in home.iterdir() if path.suffix in (".so", ".pyd")]
    code = "import sys; before = set(sys.modules); import small_python; " \
        "print({name.partition('.')[0] for name in set(sys.modules) - before} - set(sys.stdlib_module_names))"  # fmt: skip
    done = subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.PIPE, text=True)
    assert done.stdout.strip() == "{'small_python'}"


def test_the_wheel_is_for_every_python() -> None:
    from importlib import metadata

    installed = metadata.distribution("small-python")
    wheel = (installed.read_text("WHEEL") or "").splitlines()
    tags = [line.removeprefix("Tag: ") for line in wheel if line.startswith("Tag: ")]
    assert tags
    assert all(tag.startswith("py3-none-") and not tag.endswith("-any") for tag in tags)
    assert "Root-Is-Purelib: false" in wheel
    assert installed.metadata["Requires-Python"] == ">=3.10"
    assert not installed.requires
    assert installed.version == small_python.__version__


def test_std_grants_sys_and_gc_and_nothing_else() -> None:
    with Runtime() as rt:
        assert rt.eval("import sys, gc; gc.collect() >= 0")
    with Runtime(std=False) as rt:
        for name in ("sys", "gc"):
            with pytest.raises(Error) as caught:
                rt.exec(f"import {name}")
            assert caught.value.type == "ModuleNotFoundError"
    for std in (True, False):
        with Runtime(std=std) as rt:
            for name in ("os", "posix", "socket", "ctypes", "subprocess", "_thread", "importlib", "io", "builtins_"):
                with pytest.raises(Error) as caught:
                    rt.exec(f"import {name}")
                assert caught.value._builtin in ("ImportError", "ModuleNotFoundError")


# Running code.


def test_eval_returns_the_last_expression(rt: Runtime) -> None:
    assert rt.eval("1 + 1") == 2
    assert rt.eval("x = 3\nx * 2") == 6
    assert rt.eval("x = 3") is None
    assert rt.eval("5\nif True: 7") is None
    assert rt.eval("") is None
    assert rt.eval("'a'; 'b'") == "b"


def test_exec_returns_none(rt: Runtime) -> None:
    assert rt.exec("1 + 1") is None  # type: ignore[func-returns-value]
    rt.exec("y = 4")
    assert rt.eval("y") == 4


def test_the_filename_is_where_errors_are(rt: Runtime) -> None:
    for run in rt.eval, rt.exec:
        with pytest.raises(Error) as caught:
            run("\n\n1/0", "rules.py")
        assert (caught.value.filename, caught.value.lineno) == ("rules.py", 3)
    with pytest.raises(Error) as caught:
        rt.eval("1/0")
    assert (caught.value.filename, caught.value.lineno) == ("<string>", 1)
    with pytest.raises(Error) as caught:
        rt.exec("x = 1\nx = = 2", "broken.py")
    assert (caught.value.type, caught.value.filename, caught.value.lineno) == ("SyntaxError", "broken.py", 2)


def test_source_must_be_text(rt: Runtime) -> None:
    for bad in (b"1", 1, None):
        with pytest.raises(TypeError, match="must be a str"):
            rt.eval(bad)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="must be a str"):
            rt.exec("1", bad)  # type: ignore[arg-type]
    assert rt.eval("1") == 1


def test_call_takes_a_name_an_object_or_a_callable(rt: Runtime) -> None:
    rt.exec("def add(a, b=10, *, c=100): return a + b + c")
    assert rt.call("add", 1) == 111
    assert rt.call("add", 1, 2, c=3) == 6
    assert rt.call("len", [1, 2]) == 2  # a builtin
    assert rt.call(rt["add"], 1, b=2) == 103
    assert rt.call(lambda a, b: a * b, 6, b=7) == 42
    rt.exec("def named(function, self): return function, self")
    assert rt.call("named", function=1, self=2) == (1, 2)
    with pytest.raises(Error) as caught:
        rt.call("nothing")
    assert caught.value.type == "NameError"
    with pytest.raises(TypeError, match="not int"):
        rt.call(5)  # type: ignore[arg-type]


# Globals.


def test_globals_are_read_set_and_deleted(rt: Runtime) -> None:
    rt["x"] = [1, 2]
    assert rt["x"] == [1, 2]
    assert rt.eval("x.append(3); x") == [1, 2, 3]
    assert rt["x"] == [1, 2, 3]
    del rt["x"]
    with pytest.raises(KeyError) as caught:
        rt["x"]
    assert caught.value.args == ("x",)
    with pytest.raises(KeyError) as caught:
        del rt["x"]
    assert caught.value.args == ("x",)
    assert rt.call(rt["len"], "abc") == 3  # falls back to builtins
    with pytest.raises(KeyError):
        del rt["len"]
    with pytest.raises(TypeError, match="type object cannot be passed"):
        rt["x"] = object()
    for bad in (1, None, b"x"):
        with pytest.raises(TypeError, match="must be a str"):
            rt[bad]  # type: ignore[index]


# Granting.


def test_define_binds_and_returns_the_function(rt: Runtime) -> None:
    def double(x: int) -> int:
        return 2 * x

    assert rt.define("twice", double) is double
    assert rt.eval("twice(21)") == 42
    with pytest.raises(TypeError, match="takes a callable"):
        rt.define("five", 5)  # type: ignore[type-var]


def test_the_function_decorator_has_both_forms(rt: Runtime) -> None:
    @rt.function
    def one() -> int:
        return 1

    @rt.function(name="two")
    def anything() -> int:
        return 2

    @rt.function()
    def three() -> int:
        return 3

    assert (one(), anything(), three()) == (1, 2, 3)
    assert rt.eval("one(), two(), three()") == (1, 2, 3)


def test_register_module_makes_attributes_and_runs_source(rt: Runtime) -> None:
    rt.register_module("shop", {"vat": 0.25, "log": lambda x: x}, "def gross(net): return log(net) * (1 + vat)\nruns = 1")
    assert rt.eval("import shop\nshop.gross(100)") == 125.0
    assert rt.eval("from shop import vat, runs\nvat, runs") == (0.25, 1)
    rt.register_module("empty")
    assert rt.eval("import empty\nempty.__name__") == "empty"
    rt.register_module("a.b.c", {"x": 1})
    assert rt.eval("import a.b.c\na.b.c.x") == 1
    rt.register_module("bad", source="1/0")
    with pytest.raises(Error, match="ZeroDivisionError"):
        rt.exec("import bad")


def test_register_module_converts_when_called(rt: Runtime) -> None:
    with pytest.raises(TypeError, match="cannot be passed"):
        rt.register_module("m", {"x": object()})
    with pytest.raises(TypeError, match="name of a member"):
        rt.register_module("m", {1: 1})  # type: ignore[dict-item]
    with pytest.raises(TypeError, match="source"):
        rt.register_module("m", None, b"")  # type: ignore[arg-type]
    with pytest.raises(Error, match="ModuleNotFoundError"):
        rt.exec("import m")


def test_mount_lets_open_reach_a_directory(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("hello")
    with Runtime(timeout=20) as rt:
        rt.mount(tmp_path, "/data")
        assert rt.eval("open('/data/in.txt').read()") == "hello"
        rt.exec("with open('/data/out.txt', 'w') as f: f.write('bye')")
        for path in ("/etc/passwd", str(tmp_path / "in.txt"), "/data/../etc/passwd", "in.txt"):
            with pytest.raises(Error) as caught:
                rt.call("open", path)
            assert caught.value._builtin in ("FileNotFoundError", "PermissionError", "OSError"), path
    assert (tmp_path / "out.txt").read_text() == "bye"


def test_mount_defaults_to_the_resolved_path(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "f").write_text("1")
    (tmp_path / "link").symlink_to("real")
    with Runtime(timeout=20) as rt:
        rt.mount(str(tmp_path / "link"))
        assert rt.call("open", str((tmp_path / "real" / "f").resolve())).read() == "1"


def test_mount_read_only(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("1")
    with Runtime(timeout=20) as rt:
        rt.mount(tmp_path, "/data", read_only=True)
        assert rt.eval("open('/data/f').read()") == "1"
        for mode in ("w", "a", "r+", "x"):
            with pytest.raises(Error):
                rt.call("open", "/data/g" if mode == "x" else "/data/f", mode)
    assert (tmp_path / "f").read_text() == "1"
    assert not (tmp_path / "g").exists()


def test_mount_refuses_what_is_no_directory(rt: Runtime, tmp_path: Path) -> None:
    with pytest.raises(Error) as caught:
        rt.mount(tmp_path / "none")
    assert caught.value.type == "FileNotFoundError"
    (tmp_path / "file").write_text("")
    with pytest.raises(Error) as caught:
        rt.mount(tmp_path / "file")
    assert caught.value.type == "NotADirectoryError"
    for path in ("relative", "", "/a\0b"):
        with pytest.raises(ValueError, match="absolute"):
            rt.mount(tmp_path, path)
    assert rt.eval("1") == 1


def test_without_a_mount_nothing_opens(rt: Runtime) -> None:
    for path in ("/etc/passwd", "/proc/self/maps", "/dev/null", "x"):
        with pytest.raises(Error):
            rt.call("open", path)


def test_print_goes_to_output_or_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    texts: list[str] = []
    with Runtime(output=texts.append, timeout=20) as rt:
        rt.exec("print('a', 1); print('b', end='')")
    assert texts == ["a 1\n", "b"]
    with Runtime(timeout=20) as rt:
        rt.exec("print('to stdout')")
    assert capsys.readouterr().out == "to stdout\n"


# Lifetime.


def test_collect_returns_how_many_were_freed(rt: Runtime) -> None:
    rt.collect()
    rt.exec("import gc\ngc.disable()\nfor _ in range(10):\n    x = []; x.append(x)\ndel x")
    assert rt.collect() >= 10
    assert rt.collect() == 0


def test_close_is_idempotent_and_drops_what_it_held() -> None:
    import weakref

    class Host:
        def __call__(self) -> int:
            return 1

    host = Host()
    gone = weakref.ref(host)
    rt = Runtime(timeout=20)
    rt.define("host", host)
    del host
    assert gone() is not None
    assert not rt.closed
    rt.close()
    assert rt.closed
    assert gone() is None
    rt.close()
    for use in (lambda: rt.eval("1"), lambda: rt["x"], lambda: rt.collect(), lambda: rt.define("x", len), rt.__enter__):
        with pytest.raises(RuntimeError, match="closed"):
            use()


def test_the_context_manager_closes() -> None:
    with Runtime(timeout=20) as rt:
        assert rt.eval("1") == 1
    assert rt.closed
    with pytest.raises(ZeroDivisionError):
        with Runtime(timeout=20) as rt:
            raise ZeroDivisionError
    assert rt.closed


def test_a_forgotten_runtime_ends_its_worker() -> None:
    rt = Runtime(timeout=20)
    pid = rt.pid
    os.kill(pid, 0)
    del rt
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_prepared_workers_are_taken_and_ended() -> None:
    from support import children

    Runtime.prepare(2)
    spares = set(children())
    assert len(spares) == 2
    with Runtime(timeout=20) as one, Runtime(timeout=20) as two, Runtime(timeout=20) as three:
        assert {str(one.pid), str(two.pid)} == spares
        assert str(three.pid) not in spares
        assert one.eval("1") == two.eval("1") == three.eval("1") == 1
    Runtime.prepare(3)
    Runtime.prepare(1)
    assert len(children()) == 1
    # One that died meanwhile is not handed out.
    spare = int(children()[0])
    os.kill(spare, 9)
    os.waitid(os.P_PID, spare, os.WEXITED | os.WNOWAIT)
    with Runtime(timeout=20) as rt:
        assert rt.eval("1") == 1
    Runtime.prepare(0)
    assert children() == []
    with pytest.raises(ValueError, match="count"):
        Runtime.prepare(-1)


# Errors.


def test_error_says_type_and_message(rt: Runtime) -> None:
    with pytest.raises(Error) as caught:
        rt.exec("class Odd(ValueError): pass\nraise Odd('seven')")
    error = caught.value
    assert (error.type, error.message, str(error)) == ("Odd", "seven", "Odd: seven")
    assert (error.filename, error.lineno) == ("<string>", 2)
    assert isinstance(error.exception, Object)
    assert error.exception.args == ("seven",)
    assert error.__cause__ is None
    assert isinstance(error, Exception)
    assert not isinstance(error, (RuntimeError, ValueError))


def test_errors_can_be_pickled_without_their_object(rt: Runtime) -> None:
    import pickle

    with pytest.raises(Error) as caught:
        rt.exec("1/0")
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (copy.type, copy.message, copy.lineno, copy.exception) == ("ZeroDivisionError", "division by zero", 1, None)
    lost = pickle.loads(pickle.dumps(Timeout("late")))
    assert (type(lost), str(lost), lost.returncode) == (Timeout, "late", None)
    lost = pickle.loads(pickle.dumps(WorkerError("gone", -9)))
    assert (str(lost), lost.returncode) == ("gone", -9)


def test_the_kinds_of_errors() -> None:
    assert issubclass(WorkerError, RuntimeError)
    assert issubclass(Timeout, WorkerError)
    assert issubclass(Timeout, TimeoutError)
    assert issubclass(Error, Exception)
    assert not issubclass(Error, RuntimeError)


def test_limits_of_steps(rt: Runtime) -> None:
    with Runtime(step_limit=30_000, timeout=20) as limited:
        with pytest.raises(Error) as caught:
            limited.exec("while True: pass")
        assert caught.value.type == "RuntimeError"
        # Each operation starts from 0.
        for _ in range(5):
            assert limited.eval("n = 0\nfor i in range(1000): n += i\nn") == 499_500
        with pytest.raises(Error, match="RuntimeError"):
            limited.eval("def f():\n    while True: pass\nf()")
    assert rt.eval("n = 0\nfor i in range(20_000): n += i\nn") == 199_990_000
