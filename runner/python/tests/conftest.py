"""What the tests share: the installed package is what is tested, real runtimes, and fake workers that misbehave."""

from __future__ import annotations

import gc
import os
import signal
import stat
import sys
import sysconfig
import textwrap
from pathlib import Path

import pytest
from hypothesis import settings

import small_python
from small_python import Runtime, _runtime

sys.path.insert(0, str(Path(__file__).parent))
from support import FAKE, children, descriptors  # noqa: E402

settings.register_profile("suite", deadline=None, database=None, derandomize="CI" in os.environ)
settings.load_profile("suite")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "once: says little more in a second version of CPython; `-m 'not once'` leaves it out")
    # A shell's background job ignores Ctrl-C, and so would every program that is started here.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    home = Path(small_python.__file__).resolve()
    if Path(sysconfig.get_path("purelib")).resolve() not in home.parents:
        raise pytest.UsageError(f"the tests are for the installed package, not for {home}")


@pytest.fixture(autouse=True)
def _nothing_left():  # type: ignore[no-untyped-def]
    """After every test: no worker, no zombie and no descriptor more than before."""
    gc.collect()
    before = descriptors()
    yield
    Runtime.prepare(0)
    gc.collect()
    if children():
        # A traceback that pytest keeps may hold the runtime: what counts is that it can be let go.
        sys.last_value = sys.last_traceback = None
        gc.collect()
    assert children() == []
    assert descriptors() <= before


@pytest.fixture
def rt():  # type: ignore[no-untyped-def]
    """A runtime that gives up on a test that hangs."""
    with Runtime(timeout=20) as runtime:
        yield runtime


@pytest.fixture
def fake(tmp_path, monkeypatch):  # type: ignore[no-untyped-def]
    """Makes the next runtimes start a script, which has read(), send(), raw(), text() and ready(), as their worker."""

    def install(script: str) -> None:
        path = tmp_path / "spy-worker"
        path.write_text(FAKE.format(python=sys.executable) + textwrap.dedent(script))
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setattr(_runtime, "_WORKER", path)

    return install
