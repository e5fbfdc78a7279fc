"""Nothing is left behind, however many: runtimes, handles, functions."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest
from small_python import Runtime
from support import children, descriptors

pytestmark = pytest.mark.once


def resident() -> int:
    """Pages of this process in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1])


def test_ten_thousand_runtimes_leave_nothing() -> None:
    def several(count: int) -> None:
        for _ in range(count):
            with Runtime(timeout=60) as rt:
                assert rt.call(lambda x: x, rt.eval("object()")) is not None

    several(100)
    gc.collect()
    before = resident(), descriptors()
    several(10_000)
    gc.collect()
    assert children() == []
    assert descriptors() == before[1]
    assert resident() - before[0] < 1_000, "host memory, in pages"


def test_a_million_handles_leave_nothing() -> None:
    with Runtime() as rt:
        rt.exec("def make(n): return [object() for _ in range(n)]")
        rt.call("make", 10_000)

        def held() -> int:
            status = Path(f"/proc/{rt.pid}/status").read_text()
            return int(status.split("VmRSS:")[1].split()[0])

        before = held()
        for _ in range(100):
            assert len(rt.call("make", 10_000)) == 10_000
        assert held() - before < 10_000, "worker memory, in KiB"
