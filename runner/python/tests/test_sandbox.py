"""What the kernel holds against code that has got around everything else. Section 4, group 9."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from small_python import Error, Runtime, WorkerError, _runtime

pytestmark = pytest.mark.once

REACH = """
importer = next(c for c in object.__subclasses__() if c.__name__ == "BuiltinImporter")
posix = importer.load_module("posix")
"""


def status(rt: Runtime, task: int | None = None) -> dict[str, str]:
    path = f"/proc/{rt.pid}/status" if task is None else f"/proc/{rt.pid}/task/{task}/status"
    lines = Path(path).read_text().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def test_the_worker_is_sandboxed_once_code_has_run() -> None:
    with Runtime(timeout=20) as rt:
        before = status(rt)
        assert (before["NoNewPrivs"], before["Seccomp"]) == ("0", "0")
        rt["x"] = 1  # runs no code
        assert status(rt)["Seccomp"] == "0"
        assert rt.eval("x") == 1
        for task in os.listdir(f"/proc/{rt.pid}/task"):
            after = status(rt, int(task))
            assert (after["NoNewPrivs"], after["Seccomp"], int(after["CapEff"], 16)) == ("1", "2", 0)


@pytest.mark.parametrize("first", ["eval", "exec", "call", "op"])
def test_each_request_that_runs_code_confines_first(first: str) -> None:
    with Runtime(timeout=20) as rt:
        thing = rt["len"]
        if first == "op":
            repr(thing)
        elif first == "call":
            rt.call("len", "")
        else:
            getattr(rt, first)("1")
        assert status(rt)["Seccomp"] == "2"


def test_mount_is_refused_after_code_has_run(tmp_path: Path) -> None:
    with Runtime(timeout=20) as rt:
        rt.mount(tmp_path, "/before")
        rt.eval("1")
        with pytest.raises(Error) as caught:
            rt.mount(tmp_path, "/after")
        assert caught.value.type == "PermissionError"
        assert rt.eval("1") == 1


def test_the_layers_say_what_this_kernel_has() -> None:
    with Runtime(timeout=20) as rt:
        assert set(rt.layers) == {"no_new_privs", "landlock", "seccomp"}
        assert all(version >= 1 for version in rt.layers.values())


def test_the_worker_starts_with_nothing_of_the_host(tmp_path: Path) -> None:
    held = os.open(tmp_path, os.O_RDONLY)
    os.set_inheritable(held, True)
    os.environ["SECRET"] = "known"
    try:
        with Runtime(timeout=20) as rt:
            home = Path(f"/proc/{rt.pid}")
            assert (home / "environ").read_bytes() == b""
            assert os.readlink(home / "cwd") == "/"
            fds = {name: os.readlink(home / "fd" / name) for name in os.listdir(home / "fd")}
            assert fds["0"].startswith("pipe:")
            assert fds["1"].startswith("pipe:")
            assert fds["2"] == "/dev/null"
            assert str(tmp_path) not in fds.values()
            assert os.getpgid(rt.pid) == rt.pid
            assert rt.eval("import sys\nsys.argv if hasattr(sys, 'argv') else []") in ([], [""], ["spy-worker"])
    finally:
        del os.environ["SECRET"]
        os.close(held)


ATTACKS = {
    "read a file": "posix.open('{file}', 0) >= 0",
    "read the passwords": "posix.open('/etc/passwd', 0) >= 0",
    "list a directory": "len(posix.listdir('/')) > 0",
    "write a file": "posix.open('{folder}/new', 0o102, 0o600) >= 0",
    "make a directory": "posix.mkdir('{folder}/dir') is None",
    "remove a file": "posix.unlink('{file}') is None",
    "read the memory map of itself": "posix.open('/proc/self/maps', 0) >= 0",
    "run a program": "posix.system('true') == 0",
    "replace itself": "posix.execv('/bin/sh', ['sh', '-c', 'echo True'])",
    "spawn": "posix.posix_spawn('/bin/true', ['true'], {{}}) > 0",
    "fork": "(lambda pid: posix._exit(0) if pid == 0 else pid > 0)(posix.fork())",
    "signal its parent": "posix.kill(posix.getppid(), 0) is None",
    "signal everybody": "posix.kill(-1, 0) is None",
    "change its user": "posix.setuid(65534) is None",
    "change its root": "posix.chroot('/') is None",
    "change its directory": "posix.chdir('/tmp') is None",
    "make a fifo": "posix.mkfifo('{folder}/fifo') is None",
    "make a link": "posix.symlink('/etc', '{folder}/link') is None",
    "learn about the kernel": "posix.uname().sysname == 'Linux'",
    "look at a file": "posix.stat('{file}').st_size > 0",
    "make a memory file": "posix.memfd_create('x') >= 0",
    "open a terminal": "len(posix.openpty()) == 2",
    "lower the priority of the host": "posix.setpriority(0, posix.getppid(), posix.getpriority(0, posix.getppid())) is None",
}


@pytest.fixture
def target() -> Iterator[dict[str, str]]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "file"
        file.write_text("token")
        yield {"folder": folder, "file": str(file)}


@pytest.mark.parametrize("name", ATTACKS)
def test_the_kernel_blocks(name: str, target: dict[str, str]) -> None:
    attack = ATTACKS[name].format(**target)
    with Runtime(timeout=20) as rt:
        rt.exec(REACH)  # the language does not hold it: this is the point
        try:
            assert not rt.eval(f"bool({attack})"), name
        except (Error, WorkerError) as error:
            assert not isinstance(error, Error) or error.type in ("PermissionError", "FileNotFoundError", "OSError"), error
    # The control: outside, the same line succeeds.
    control = f"import posix\nprint(bool({attack}))"
    done = subprocess.run([sys.executable, "-c", control], stdout=subprocess.PIPE, text=True, check=True)
    assert done.stdout == "True\n"


def test_the_kernel_blocks_the_network() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        attack = f"s = _socket.socket(2, 1, 0)\ns.connect(('127.0.0.1', {port}))\nconnected = True"
        with Runtime(timeout=20) as rt:
            rt.exec(REACH)
            with pytest.raises(Error):
                rt.exec("_socket = importer.load_module('_socket')\n" + attack)
        done = subprocess.run(
            [sys.executable, "-c", f"import _socket\n{attack}\nprint(connected)"], stdout=subprocess.PIPE, text=True, check=True
        )
        assert done.stdout == "True\n"


def test_mounts_reach_no_further_than_their_directory(target: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    (tmp_path / "out").symlink_to(target["file"])
    with Runtime(timeout=20) as rt:
        rt.mount(tmp_path, "/data", read_only=True)
        rt.exec(REACH)
        assert rt.eval("open('/data/mine').read()") == "mine"
        for attack in (
            "open('/data/out').read()",
            f"posix.open({target['file']!r}, 0)",
            f"posix.open({str(tmp_path / 'mine')!r}, 2)",
            f"posix.open({str(tmp_path / 'new')!r}, 0o102)",
            f"posix.unlink({str(tmp_path / 'mine')!r})",
            f"posix.rename({str(tmp_path / 'mine')!r}, {str(tmp_path / 'other')!r})",
            f"posix.chmod({str(tmp_path / 'mine')!r}, 0o777)",
            f"posix.symlink('/etc', {str(tmp_path / 'etc')!r})",
            f"posix.execv({str(tmp_path / 'mine')!r}, [''])",
            "open('/data/../../etc/passwd').read()",
        ):
            with pytest.raises(Error):
                rt.eval(attack)
    assert sorted(os.listdir(tmp_path)) == ["mine", "out"]


def test_without_its_layers_the_worker_is_open(monkeypatch: pytest.MonkeyPatch, target: dict[str, str]) -> None:
    """The control of this file: what the tests above see is the layers' doing."""
    monkeypatch.setattr(_runtime, "_UNCONFINED", True)
    with Runtime(timeout=20) as rt:
        rt.exec(REACH)
        assert rt.eval(f"posix.open({target['file']!r}, 0) >= 0") is True
        assert status(rt)["Seccomp"] == "0"


def test_a_worker_cannot_make_its_host_read_or_run_anything() -> None:
    """The package evaluates, imports and unpickles nothing: none of the names for that stands in its source."""
    import ast

    import small_python

    home = Path(small_python.__file__).parent
    for path in home.glob("*.py"):
        if path.name == "__main__.py":
            continue  # a program for people, it compiles what they type
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in ("eval", "exec", "compile", "__import__", "open"), path.name
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                names = [alias.name for alias in node.names] + [getattr(node, "module", None) or ""]
                assert not {"pickle", "marshal", "importlib", "runpy", "ctypes"} & set(names), path.name
