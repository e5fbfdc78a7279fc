"""The worker as a process: its death, its time, signals, forks, the interpreter's end. Sections 3.6, 3.7 and 4."""

from __future__ import annotations

import dis
import gc
import os
import select
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest
import small_python
from support import children, descriptors

from small_python import Error, Runtime, Timeout, WorkerError


def gone(pid: int) -> bool:
    """Whether the process has ended, waiting for it through a descriptor of it if need be."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([fd], [], [], 20)[0])
    finally:
        os.close(fd)


# Death.


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGABRT, signal.SIGKILL, signal.SIGSYS, signal.SIGBUS])
def test_a_killed_worker_is_a_worker_error_with_its_status(number: signal.Signals) -> None:
    with Runtime(timeout=20) as rt:
        rt.define("die", lambda: os.kill(rt.pid, number))
        with pytest.raises(WorkerError, match=number.name) as caught:
            rt.exec("die()\nwhile True: pass")
        assert caught.value.returncode == -number
        for _ in range(2):
            with pytest.raises(WorkerError, match=number.name) as caught:
                rt.eval("1")
            assert caught.value.returncode == -number
        assert rt.closed


def test_a_worker_that_dies_while_idle_is_noticed() -> None:
    with Runtime(timeout=20) as rt:
        thing = rt["len"]
        os.kill(rt.pid, signal.SIGKILL)
        os.waitid(os.P_PID, rt.pid, os.WEXITED | os.WNOWAIT)
        with pytest.raises(WorkerError, match="SIGKILL"):
            rt.eval("1")
        assert repr(thing) == "<Object of a closed Runtime>"
        with pytest.raises(WorkerError):
            thing("x")


def test_a_dead_worker_does_not_kill_a_host_with_default_sigpipe() -> None:
    code = """
        import os, signal
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        from small_python import Runtime, WorkerError
        rt = Runtime(timeout=20)
        assert rt.eval("1") == 1
        os.kill(rt.pid, signal.SIGKILL)
        os.waitid(os.P_PID, rt.pid, os.WEXITED | os.WNOWAIT)
        try:
            rt.eval("1")
        except WorkerError:
            print("alive")
        assert signal.SIGPIPE not in signal.pthread_sigmask(signal.SIG_BLOCK, [])
        assert signal.SIGPIPE not in signal.sigpending()
    """
    assert host(code).stdout == "alive\n"
    # The control: a plain write to a closed pipe kills such a host.
    control = """
        import os, signal
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        r, w = os.pipe()
        os.close(r)
        os.write(w, b"x")
    """
    assert host(control, check=False).returncode == -signal.SIGPIPE


def test_a_status_that_something_else_took_is_none() -> None:
    with Runtime(timeout=20) as rt:
        os.kill(rt.pid, signal.SIGKILL)
        os.waitpid(rt.pid, 0)
        with pytest.raises(WorkerError, match="something else took its exit status") as caught:
            rt.eval("1")
        assert caught.value.returncode is None


# Time and memory.


def test_timeout_ends_an_endless_loop() -> None:
    rt = Runtime(timeout=0.3)
    pid = rt.pid
    with pytest.raises(Timeout) as caught:
        rt.exec("while True: pass")
    assert caught.value.returncode is None
    assert gone(pid)
    with pytest.raises(WorkerError):
        rt.eval("1")
    rt.close()


def test_timeout_does_not_count_the_time_of_host_functions() -> None:
    with Runtime(timeout=1.0) as rt:
        rt.define("wait", lambda: time.sleep(0.5))
        rt.exec("for _ in range(3): wait()")
        assert rt.eval("1") == 1
        # It does count what the engine runs on their behalf.
        rt.exec("def spin():\n    while True: pass")
        rt.define("nested", lambda: rt.call("spin"))
        with pytest.raises(Timeout):
            rt.exec("nested()")


def test_many_short_nested_requests_do_not_stretch_the_timeout() -> None:
    with Runtime(timeout=0.5) as rt:
        rt.exec("def spin():\n    for _ in range(100_000): pass")
        rt.define("nested", lambda: rt.call("spin"))
        with pytest.raises(Timeout):
            rt.exec("while True: nested()")


def test_timeout_is_that_of_each_operation() -> None:
    with Runtime(timeout=2.0) as rt:
        rt.exec("def spin():\n    for _ in range(100_000): pass")
        until = time.monotonic() + 2.5
        while time.monotonic() < until:
            rt.call("spin")


def test_a_memory_error_can_be_caught_and_the_runtime_works_on() -> None:
    with Runtime(memory_limit=64 << 20, timeout=20) as rt:
        source = "try:\n    x = b'x' * (1 << 30)\nexcept MemoryError:\n    found = 'caught'\nfound"
        assert rt.eval(source) == "caught"
        with pytest.raises(Error) as caught:
            rt.exec("x = []\nwhile True: x.append('y' * 100_000)")
        assert caught.value.type == "MemoryError"
        del caught
        rt.exec("x = None")
        assert rt.eval("sum(range(10))") == 45
        assert rt.eval("len('x' * 1_000_000)") == 1_000_000
        with pytest.raises(Error, match="MemoryError"):
            rt["big"] = b"x" * (63 << 20)
            rt.eval("big + big")
        assert rt.eval("1") == 1


# The host's end.


def host(code: str, check: bool = True, **options: Any) -> subprocess.CompletedProcess[str]:
    """Another host, with the same interpreter and package."""
    command = [sys.executable, "-c", textwrap.dedent(code)]
    return subprocess.run(command, check=check, stdout=subprocess.PIPE, text=True, timeout=120, **options)


def test_the_worker_ends_when_its_host_is_killed() -> None:
    for state in ("rt.eval('1')", "rt.exec('while True: pass')", "pass"):
        code = f"""
            import os, sys, threading
            from small_python import Runtime
            rt = Runtime()
            if 'while' in {state!r}:
                rt.define("running", lambda: print(rt.pid, flush=True))
                rt.exec("running()\\nwhile True: pass")
            {state}
            print(rt.pid, flush=True)
            sys.stdin.read()
        """
        process = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(code)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        with process:
            assert process.stdout
            pid = int(process.stdout.readline())
            os.kill(pid, 0)
            process.kill()
            assert gone(pid)


def test_the_interpreter_ends_with_live_runtimes() -> None:
    code = """
        import threading
        from small_python import Runtime
        Runtime.prepare(1)
        runtimes = [Runtime() for _ in range(3)]
        kept = runtimes[0]["len"]
        runtimes[1].define("host", lambda: 1)
        cycle = [runtimes[2]]; cycle.append(cycle)
        ready = threading.Event()
        spinning = Runtime()
        spinning.define("ready", ready.set)
        threading.Thread(target=lambda: spinning.exec("ready()\\nwhile True: pass"), daemon=True).start()
        ready.wait()
        print(*[rt.pid for rt in runtimes], spinning.pid)
    """
    done = host(code, stderr=subprocess.DEVNULL)
    for pid in done.stdout.split():
        assert gone(int(pid))


def test_a_fork_cannot_touch_the_worker_of_its_parent() -> None:
    code = """
        import gc, os, sys
        from small_python import Runtime, WorkerError
        Runtime.prepare(1)
        rt = Runtime(timeout=20)
        rt.exec("x = 1")
        thing = rt["len"]
        child = os.fork()
        if child == 0:
            status = 1
            try:
                rt.eval("x")
            except WorkerError as error:
                assert "another process" in str(error), error
                status = 0
            try:
                thing("x")
                status = 2
            except WorkerError:
                pass
            with Runtime(timeout=20) as own:  # not the spare of the parent
                assert own.eval("1") == 1
            rt.close()
            del rt, thing
            gc.collect()
            os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert rt.eval("x") == 1
        # A child that ends as usual does not end it either.
        child = os.fork()
        if child == 0:
            sys.exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert rt.eval("x") == 1
        # And one that outlives its parent does not keep it.
        print(rt.pid, flush=True)
        if os.fork() == 0:
            os.close(1)
            sys.stdin.read()
            os._exit(0)
        os._exit(0)
    """
    reader, writer = os.pipe()
    try:
        done = host(code, stdin=reader)
        assert gone(int(done.stdout))
    finally:
        os.close(reader)
        os.close(writer)


def test_a_runtime_outlives_the_thread_that_started_it() -> None:
    made: list[Runtime] = []
    thread = threading.Thread(target=lambda: made.append(Runtime(timeout=20)))
    thread.start()
    thread.join()
    with made.pop() as rt:
        for _ in range(3):
            assert rt.eval("1") == 1
            time.sleep(0.05)


def test_a_host_without_standard_streams_can_start_workers() -> None:
    code = """
        import os
        from small_python import Runtime
        for closed in ([0], [1], [2], [0, 1], [0, 1, 2]):
            if os.fork() == 0:
                for fd in closed:
                    os.close(fd)
                with Runtime(timeout=20) as rt:
                    # What the host writes to its standard output must not get to the worker.
                    apart = min(rt._worker.stdin, rt._worker.stdout) > 2
                    os._exit(0 if apart and rt.eval("6 * 7") == 42 else 1)
            assert os.waitstatus_to_exitcode(os.wait()[1]) == 0, closed
        print("done")
    """
    assert host(code).stdout == "done\n"


def test_a_host_that_ignores_its_children_can_use_workers() -> None:
    code = """
        import signal
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        from small_python import Runtime
        with Runtime(timeout=20) as rt:
            print(rt.eval("1"))
    """
    assert host(code).stdout == "1\n"


@pytest.mark.once
def test_nothing_is_left_of_many_runtimes() -> None:
    gc.collect()
    before = descriptors()
    for number in range(200):
        with Runtime(timeout=60) as rt:
            if number % 10 == 0:
                assert rt.eval("1") == 1
    assert children() == []
    assert descriptors() == before


@pytest.mark.once
def test_idle_runtimes_stand_side_by_side() -> None:
    runtimes = [Runtime(timeout=60) for _ in range(40)]
    for number, rt in enumerate(runtimes):
        rt["x"] = number
    assert [rt.eval("x") for rt in runtimes] == list(range(40))
    for rt in runtimes:
        rt.close()


# Signals.


def test_an_interrupt_while_waiting_ends_the_worker_and_goes_on() -> None:
    rt = Runtime()
    pid = rt.pid
    rt.define("interrupt", lambda: threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start())
    with pytest.raises(KeyboardInterrupt):
        rt.exec("interrupt()\nwhile True: pass")
    assert rt.closed
    assert gone(pid)
    with pytest.raises(WorkerError, match="KeyboardInterrupt") as caught:
        rt.eval("1")
    assert caught.value.returncode is None
    rt.close()


def test_an_interrupt_in_a_host_function_is_an_exception_of_it(rt: Runtime) -> None:
    def wait() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(20)

    rt.define("wait", wait)
    assert rt.eval("try:\n    wait()\nexcept KeyboardInterrupt:\n    found = 1\nfound") == 1
    with pytest.raises(KeyboardInterrupt):
        rt.eval("wait()")
    assert rt.eval("1") == 1


def test_ctrl_c_at_a_terminal_reaches_only_the_host() -> None:
    with Runtime(timeout=20) as rt:
        assert os.getpgid(rt.pid) == rt.pid != os.getpgid(0)


def test_a_signal_handler_that_returns_disturbs_nothing(rt: Runtime) -> None:
    ticks: list[int] = []
    before = signal.signal(signal.SIGALRM, lambda *_: ticks.append(1))
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    try:
        rt.define("echo", lambda x: x)
        for number in range(300):
            assert rt.eval(f"echo({number}) + 1") == number + 1
        assert rt.call("echo", b"x" * (1 << 20)) == b"x" * (1 << 20)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert ticks


def test_a_signal_handler_cannot_use_a_runtime_that_waits(rt: Runtime) -> None:
    refused: list[str] = []

    def handler(*_: object) -> None:
        for use in (lambda: rt.eval("1"), lambda: rt.call("len", ""), lambda: rt["x"], rt.close):
            try:
                use()
            except RuntimeError as error:
                refused.append(str(error))

    before = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        rt.exec("for _ in range(20_000_000): pass")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert refused == ["the runtime is waiting for its worker"] * 4
    assert rt.eval("1") == 1


HOME = os.path.dirname(small_python.__file__)


class Interrupt:
    """Raises KeyboardInterrupt before the n-th instruction that runs in the package's own code, as Ctrl-C might."""

    def __init__(self, at: int) -> None:
        self.left = at

    def __call__(self, frame: FrameType, event: str, argument: object) -> Any:
        if not frame.f_code.co_filename.startswith(HOME):
            return None
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        if event == "opcode" and interruptible(frame.f_code, frame.f_lasti):
            self.left -= 1
            if self.left == 0:
                sys.settrace(None)
                raise KeyboardInterrupt
        return self


_places: dict[CodeType, set[int]] = {}


def interruptible(code: CodeType, offset: int) -> bool:
    """Whether CPython looks for signals right before this instruction: after calls, at jumps back, at a function's start."""
    places = _places.get(code)
    if places is None:
        places = _places[code] = set()
        before = "RESUME"
        for instruction in dis.get_instructions(code):
            if before.startswith(("CALL", "RESUME", "JUMP_BACKWARD", "JUMP_ABSOLUTE")):
                places.add(instruction.offset)
            before = instruction.opname
    return offset in places


def interrupted(action: Callable[[], object], at: int) -> bool:
    """Runs `action` with an interrupt at that point; whether the point was reached."""
    interrupt = Interrupt(at)
    sys._getframe().f_trace_opcodes = True  # before settrace: from 3.12 on that is when it is looked at
    sys.settrace(interrupt)
    try:
        action()
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(None)
    return interrupt.left <= 0


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_ctrl_c_at_every_point_of_an_operation() -> None:
    """Afterwards the runtime either works or is lost; it is never stuck, and its worker never stays behind."""
    at, lost, worked = 0, 0, 0
    rt = Runtime(timeout=20)
    while True:
        at += 1
        if rt.closed:
            rt.close()
            rt = Runtime(timeout=20)
        rt.define("host", lambda x: rt.call("len", x))
        kept = rt["len"]
        del kept
        pid = rt.pid
        if not interrupted(lambda: rt.eval("host('abc')"), at):
            break
        try:
            assert rt.eval("1 + 1") == 2
            worked += 1
        except WorkerError:
            lost += 1
            rt.close()
            assert gone(pid)
    rt.close()
    assert lost > 20
    assert worked > 5


@pytest.mark.once
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_ctrl_c_at_every_point_of_starting_and_closing() -> None:
    at = 0
    before = descriptors()

    def action() -> None:
        with Runtime(timeout=20) as rt:
            rt.collect()

    while True:
        at += 1
        reached = interrupted(action, at)
        gc.collect()
        assert children() == [], at
        assert descriptors() == before, at
        if not reached:
            break
    assert at > 50
