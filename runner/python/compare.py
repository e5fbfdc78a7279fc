"""Measures small_python beside its peers in one run: `python compare.py`, with what of them is installed.

`pip install pydantic-monty RestrictedPython` brings two; `crun` in the PATH (as root) is the container. Each round runs
every case once, so that a busy moment of the machine meets all of them. Prints a table of microseconds.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

del sys.path[0]  # the installed package is measured, not the source beside this file
from small_python import Runtime, _runtime  # noqa: E402

PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable
Case = Callable[[], object]


@contextmanager
def echo() -> Iterator[Case]:
    """The floor: a process that sends back what it gets."""
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as process:
        assert process.stdin and process.stdout
        write, read = process.stdin.fileno(), process.stdout.fileno()

        def once() -> None:
            os.write(write, b"x" * 26)
            os.read(read, 65_536)

        yield once
        process.stdin.close()


def start_and_end() -> None:
    with Runtime() as rt:
        rt.eval("1")


def start_and_end_unconfined() -> None:
    _runtime._UNCONFINED = True
    try:
        start_and_end()
    finally:
        _runtime._UNCONFINED = False


def monty(stack: ExitStack) -> tuple[dict[str, Case], dict[str, Case]]:
    import pydantic_monty

    def start() -> None:
        with pydantic_monty.Monty() as pool, pool.checkout() as session:
            session.feed_run("1")

    pool = stack.enter_context(pydantic_monty.Monty())
    session = stack.enter_context(pool.checkout())
    functions = {"host": lambda x: x}
    return {
        "Monty: eval": lambda: session.feed_run("1"),
        "Monty: host function": lambda: session.feed_run("host(1)", external_lookup=functions),
    }, {"Monty: start, eval, end": start}


def restricted() -> dict[str, Case]:
    from RestrictedPython import compile_restricted

    return {"RestrictedPython: compile, eval": lambda: eval(compile_restricted("1", "<string>", "eval"), {})}


def subprocesses(stack: ExitStack) -> dict[str, Case]:
    command = [PYTHON, "-I", "-S", "-c", "print(1)"]
    cases: dict[str, Case] = {"subprocess: python -I -S": lambda: subprocess.run(command, stdout=subprocess.PIPE, check=True)}
    if shutil.which("crun") and os.geteuid() == 0:
        bundle = stack.enter_context(tempfile.TemporaryDirectory())
        subprocess.run(["crun", "spec"], cwd=bundle, check=True)
        config = json.loads(Path(bundle, "config.json").read_text())
        root = Path(bundle, "rootfs")
        (root / "usr").mkdir(parents=True)
        for name in "bin", "lib", "lib64":
            (root / name).symlink_to(f"usr/{name}")
        config["root"] = {"path": "rootfs", "readonly": True}
        config["mounts"].append({"destination": "/usr", "type": "bind", "source": "/usr", "options": ["rbind", "ro"]})
        config["process"].update(terminal=False, args=command)
        Path(bundle, "config.json").write_text(json.dumps(config))
        # A private mount namespace without the hybrid cgroup mount, which some versions of crun refuse.
        script = "umount /sys/fs/cgroup/unified 2>/dev/null; exec crun --cgroup-manager=cgroupfs run -b . compare"
        run = ["unshare", "-m", "sh", "-c", script]

        def container() -> None:
            done = subprocess.run(run, cwd=bundle, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            if done.stdout != b"1\n":
                raise RuntimeError(done.stderr.decode())

        try:
            container()
            cases["container: crun, python"] = container
        except RuntimeError as error:
            print(f"crun does not run here: {error}", file=sys.stderr)
    return cases


def measure(cases: dict[str, Case], rounds: int, inner: int, before: Case = lambda: None) -> None:
    """Prints minimum and median of each case over all rounds."""
    times: dict[str, list[float]] = {name: [] for name in cases}
    for _ in range(rounds):
        for name, case in cases.items():
            before()
            for _ in range(inner):
                started = time.perf_counter()
                case()
                times[name].append((time.perf_counter() - started) * 1e6)
    for name, taken in times.items():
        taken.sort()
        print(f"| {name} | {taken[0]:,.0f} | {taken[len(taken) // 2]:,.0f} |")


def main() -> None:
    print("| µs | least | median |\n|---|--:|--:|")
    with ExitStack() as stack:
        rt = stack.enter_context(Runtime(timeout=10))
        rt.define("host", lambda x: x)
        rt.exec("def echo(x): return x")
        blob, ints = b"x" * (1 << 20), list(range(100_000))
        warm: dict[str, Case] = {
            "an echo process": stack.enter_context(echo()),
            "small_python: eval": lambda: rt.eval("1"),
            "small_python: host function": lambda: rt.eval("host(1)"),
        }
        cold: dict[str, Case] = {
            "small_python: start, eval, end": start_and_end,
            "small_python: the same without its sandbox": start_and_end_unconfined,
        }
        if importlib.util.find_spec("pydantic_monty"):
            more, slow = monty(stack)
            warm |= more
            cold |= slow
        if importlib.util.find_spec("RestrictedPython"):
            warm |= restricted()
        measure(warm, 20, 50)
        measure({
            "small_python: 1 MiB of bytes there and back": lambda: rt.call("echo", blob),
            "small_python: 100,000 ints there and back": lambda: rt.call("echo", ints),
        }, 10, 2)  # fmt: skip
        measure(cold | subprocesses(stack), 30, 1)

        def spare() -> None:
            Runtime.prepare(1)
            time.sleep(0.1)  # what a program that prepares does meanwhile: something else

        measure({"small_python: start, eval, end, with a spare": start_and_end}, 30, 1, spare)
        Runtime.prepare(0)


    idle(100)


def idle(count: int) -> None:
    """What runtimes cost that have run code and wait: memory that is theirs alone or their share, processor time."""
    with ExitStack() as stack:
        started = time.perf_counter()
        runtimes = [stack.enter_context(Runtime()) for _ in range(count)]
        for rt in runtimes:
            rt.eval("1")
        took = time.perf_counter() - started
        homes = [Path(f"/proc/{rt.pid}") for rt in runtimes]

        def ticks() -> int:
            return sum(sum(map(int, (home / "stat").read_text().rsplit(") ")[1].split()[11:13])) for home in homes)

        shares = [(home / "smaps_rollup").read_text() for home in homes]
        kilobytes = sum(int(line.split()[1]) for share in shares for line in share.splitlines() if line.startswith("Pss:"))
        before = ticks()
        time.sleep(2)
        used = (ticks() - before) / os.sysconf("SC_CLK_TCK")
        print(f"{count} idle runtimes: started and used in {took:.2f} s, {kilobytes / count / 1024:.1f} MiB each, "
              f"{used:.2f} s of processor time in 2 s")  # fmt: skip


if __name__ == "__main__":
    main()
