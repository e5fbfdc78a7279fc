"""The attacks of the function service's own suite (runner/src/python-test-suite.py), run through a Runtime.

The engine has no modules for them, so they get what native code in a worker would have: the modules that are linked into
it, taken the way an attacker takes them. What needs others (ctypes, sockets) cannot be expressed and is counted.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from small_python import Error, Runtime, WorkerError

HERE = Path(__file__).resolve().parent
PLACES = HERE.parents[2] / "runner/src", HERE.parent / "rust/runner/src"
SUITE = next(p for p in PLACES if p.is_dir()) / "python-test-suite.py"

pytestmark = pytest.mark.once

SHIM = """
import attacks
importer = [c for c in object.__subclasses__() if c.__name__ == 'BuiltinImporter'][0]
missing = []

class Os:
    def __init__(self):
        posix = importer.load_module('posix')
        self.__dict__.update(posix.__dict__)
        self.path = self
        self.sep = '/'
    def exists(self, path):
        try:
            self.stat(path)
        except OSError:
            return False
        return True

def module(name):
    if name == 'os':
        return Os()
    if name == 'sys':
        return importer.find_spec.__func__.__globals__['sys']
    for spelled in (name, '_' + name):
        try:
            return importer.load_module(spelled)
        except ImportError:
            pass
    missing.append(name)
    raise ImportError(name)

attacks.module = module
attacks.open = importer.load_module('_io').open

def attempt(name, host):
    try:
        return bool(attacks.ATTACKS[name][2](host))
    except (ImportError, AttributeError) as error:
        missing.append(str(error))
    except BaseException:
        pass
    return None if missing else False
"""


def named() -> list[str]:
    tree = ast.parse(SUITE.read_text())
    marked = (n for n in tree.body if isinstance(n, ast.FunctionDef) and n.decorator_list)
    return [n.name for n in marked if isinstance(n.decorator_list[0], ast.Call)]


# Not the worker's to stop, with the reason.
ALLOWED = {
    "find_module_files": "CPython makes them up from its version (/lib/python3.11/...): no such file was read",
    "find_the_program": "sys.prefix is / for want of a real one",
    "flood_print": "each print is a message, which the host's output callable may end with an exception",
    "return_too_much": "a megabyte is within message_limit",
}
# Up to the machine's load: a worker has the time that `timeout` gives it, and no share of a CPU is promised.
EITHER = {"take_a_whole_cpu"}


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bool | None]:
    folder = tmp_path_factory.mktemp("host")
    (folder / "file").write_text("token")
    host = {"tcp": 9, "abstract": "none", "unix": str(folder / "socket"), "file": str(folder / "file"),
            "module": str(folder / "module.py"), "folder": str(folder), "token": "token", "nonce": "1"}
    found: dict[str, bool | None] = {}
    for name in named():
        with Runtime(timeout=2, memory_limit=64 << 20, output=lambda text: None) as rt:
            rt.register_module("attacks", source=SUITE.read_text())
            rt.exec(SHIM)
            # Some of them would do harm on a machine that nothing holds back.
            assert "Seccomp:\t2" in Path(f"/proc/{rt.pid}/status").read_text()
            try:
                found[name] = rt.call("attempt", name, host)
            except (Error, WorkerError):
                found[name] = False
    assert (folder / "file").read_text() == "token"
    assert [p.name for p in folder.iterdir()] == ["file"]
    return found


def test_the_suites_attacks_do_not_succeed(outcomes: dict[str, bool | None]) -> None:
    succeeded = {name for name, outcome in outcomes.items() if outcome}
    assert succeeded - EITHER == set(ALLOWED)


def test_a_third_of_them_can_be_expressed(outcomes: dict[str, bool | None]) -> None:
    expressed = [name for name, outcome in outcomes.items() if outcome is not None]
    assert len(expressed) > 50, len(expressed)
