"""A layer that the kernel lacks is skipped and reported; one that it refuses ends the worker.

The kernels for that are made by a filter of system calls that the worker is born with.
"""

from __future__ import annotations

import errno
import stat
import sys
from pathlib import Path

import pytest
from small_python import Runtime, WorkerError, _runtime

pytestmark = pytest.mark.once

BORN_WITH = """\
#!{python} -ISs
import ctypes, os, struct

def row(code, yes, no, value):
    return struct.pack("HBBI", code, yes, no, value)

# One call fails with one errno, every other is allowed.
rows = row(0x20, 0, 0, 0) + row(0x15, 0, 1, {call}) + row(0x06, 0, 0, 0x50000 | {errno}) + row(0x06, 0, 0, 0x7FFF0000)
program = ctypes.create_string_buffer(rows, len(rows))
head = struct.pack("HxxxxxxP", len(rows) // 8, ctypes.addressof(program))
libc = ctypes.CDLL(None)
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, head) == 0
os.execv({worker!r}, ["spy-worker"])
"""
LANDLOCK_CREATE_RULESET, SECCOMP = 444, 317


def on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: int, number: int) -> None:
    path = tmp_path / "spy-worker"
    path.write_text(BORN_WITH.format(python=sys.executable, worker=str(_runtime._WORKER), call=call, errno=number))
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr(_runtime, "_WORKER", path)


@pytest.mark.parametrize("lacking", [errno.ENOSYS, errno.EOPNOTSUPP])
def test_a_layer_that_the_kernel_lacks_is_skipped_and_reported(
    lacking: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Runtime(timeout=20) as rt:
        assert rt.layers["landlock"] > 0, "the control"
    on(tmp_path, monkeypatch, LANDLOCK_CREATE_RULESET, lacking)
    with Runtime(timeout=20) as rt:
        assert rt.layers["landlock"] == 0
        assert rt.layers["seccomp"] == 1
        assert rt.eval("1") == 1
        # The others hold all the same.
        assert "Seccomp_filters:\t2" in Path(f"/proc/{rt.pid}/status").read_text()
        # And open() keeps to the mounts by itself.
        with pytest.raises(Exception, match="Permission denied"):
            rt.eval(f"open({str(tmp_path / 'spy-worker')!r})")


@pytest.mark.parametrize(("call", "layer"), [(LANDLOCK_CREATE_RULESET, "landlock"), (SECCOMP, "seccomp")])
def test_a_layer_that_the_kernel_refuses_ends_the_worker(
    call: int, layer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    on(tmp_path, monkeypatch, call, errno.EPERM)
    with Runtime(timeout=20) as rt:
        assert rt.layers[layer] > 0
        with pytest.raises(WorkerError, match=layer) as caught:
            rt.eval("1")
        assert caught.value.returncode in (70, None)
        assert rt.closed
