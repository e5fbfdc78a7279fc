"""`python -m small_python`, the examples, and the examples within the documentation."""

from __future__ import annotations

import doctest
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support import PACKAGE

import small_python
from small_python import Error, Object, Runtime, Timeout, WorkerError, __main__


def program(*arguments: str, input: str = "", cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "small_python", *arguments],
        input=input, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60, cwd=cwd,
    )  # fmt: skip


def test_it_runs_a_file_a_line_and_standard_input(tmp_path: Path) -> None:
    file = tmp_path / "hello.py"
    file.write_text("print('hello', 6 * 7)")
    for done in (
        program(str(file)),
        program("-c", "print('hello', 6 * 7)"),
        program("-", input="print('hello', 6 * 7)"),
        program(input="print('hello', 6 * 7)"),
    ):
        assert (done.stdout, done.stderr, done.returncode) == ("hello 42\n", "", 0)


def test_it_tells_of_exceptions_where_they_are(tmp_path: Path) -> None:
    file = tmp_path / "bad.py"
    file.write_text("x = 1\nx / 0\n")
    done = program(str(file))
    assert done.stderr == '  File "bad.py", line 2\nZeroDivisionError: division by zero\n'
    assert done.returncode == 1
    done = program("-c", "def f(:")
    assert "SyntaxError" in done.stderr
    assert done.returncode == 1


def test_its_limits_are_on_and_can_be_set() -> None:
    done = program("--timeout", "0.2", "-c", "while True: pass")
    assert "longer than 0.2 seconds" in done.stderr
    assert done.returncode == 4
    assert "MemoryError" in program("-c", "x = 'x' * (300 << 20)").stderr
    assert program("--memory", "1G", "-c", "x = 'x' * (300 << 20)").returncode == 0
    assert "MemoryError" in program("--memory", "32M", "-c", "x = 'x' * (64 << 20)").stderr
    assert "ModuleNotFoundError" in program("--no-std", "-c", "import sys").stderr
    given = __main__.arguments(["-c", "1"])
    assert (given.timeout, given.memory, given.steps) == (10.0, 256 << 20, 0)


def test_it_mounts_directories(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("inside")
    read = "print(open('/data/f').read())"
    assert program("--mount", f"{tmp_path}:/data:ro", "-c", read).stdout == "inside\n"
    assert program("--mount", f"{tmp_path}:/data:ro", "-c", "open('/data/g', 'w')").returncode == 1
    assert program("--mount", f"{tmp_path}:/data", "-c", "open('/data/g', 'w').close()").returncode == 0
    assert (tmp_path / "g").exists()
    assert program("--mount", str(tmp_path), "-c", f"print(open({str(tmp_path / 'f')!r}).read())").stdout == "inside\n"


def test_it_refuses_wrong_use(tmp_path: Path) -> None:
    for arguments, words in (
        (["--timeout", "-1", "-c", "1"], "timeout must be above 0"),
        (["--memory", "lots", "-c", "1"], "invalid size value"),
        (["--mount", "a:b:c:d", "-c", "1"], "invalid mount value"),
        (["--mount", str(tmp_path / "none"), "-c", "1"], "No such file"),
        ([str(tmp_path / "none.py")], "No such file"),
        (["--nonsense"], "unrecognized arguments"),
    ):
        done = program(*arguments)
        assert words in done.stderr, arguments
        assert done.returncode == 2


def test_it_takes_over_a_system_exit() -> None:
    assert program("-c", "raise SystemExit(7)").returncode == 7
    assert program("-c", "raise SystemExit").returncode == 0
    done = program("-c", "raise SystemExit('bye')")
    assert (done.stderr, done.returncode) == ("bye\n", 1)


def test_it_tells_its_version() -> None:
    assert program("--version").stdout == "small_python 0.1.0\n"


def test_the_prompt_shows_values_and_goes_on_after_errors() -> None:
    script = b"6 * 7\nNone\nfor i in range(2):\n    print(i)\n\nlen\n1 / 0\nx = 5; x\n)\nraise SystemExit(3)\n"
    master, slave = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "small_python"], stdin=slave, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        os.close(slave)
        os.write(master, script)
        assert process.stdout
        shown = process.stdout.read().decode()
    os.close(master)
    assert process.returncode == 3
    for line in ("42", "0", "1", "<built-in function len>", "ZeroDivisionError: division by zero", "5"):
        assert re.search(rf"^(>>> |\.\.\. )*{re.escape(line)}\r?$", shown, re.M), line
    assert "SyntaxError" in shown


EXPECTED = {
    "game_rules.py": ["brave attack", "stuck loses the turn (Timeout", "greedy loses the turn (Error: MemoryError", "cheat loses"],
    "spreadsheet.py": ["C1 = 2820.6", "D1 = #CIRCLE D1 -> D2 -> D1", "D3 = #ZeroDivisionError", "D4 = #PermissionError"],
    "tool_runner.py": ["value: 50.0", "wrote report.txt, 15 bytes", "ModuleNotFoundError: No module named 'os'",
                       "Read-only file system", "PermissionError", "longer than 2 seconds", "MemoryError", "KeyError: 'XYZ'"],
}  # fmt: skip


def test_every_example_is_tested() -> None:
    assert {path.name for path in (PACKAGE / "examples").glob("*.py")} == set(EXPECTED)


@pytest.mark.once
@pytest.mark.parametrize("name", EXPECTED)
def test_the_examples_do_what_they_say(name: str) -> None:
    done = subprocess.run(
        [sys.executable, PACKAGE / "examples" / name], stdout=subprocess.PIPE, text=True, timeout=120, check=True
    )
    for words in EXPECTED[name]:
        assert words in done.stdout


def test_the_examples_in_the_docstrings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "first.txt").write_text("be kind")
    finder = doctest.DocTestFinder(recurse=True)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    count = 0
    for thing, name in ((Runtime, "Runtime"), (Object, "Object"), (Error, "Error"), (Timeout, "Timeout"), (small_python, "m")):
        for test in finder.find(thing, name, module=False, globs={}):
            if not test.examples:
                continue
            with Runtime(timeout=20) as rt:
                test.globs.update(vars(small_python), rt=rt)
                for example in test.examples:
                    example.source = example.source.replace("/srv/rules", str(tmp_path))
                if "WorkerError" in test.name:
                    continue
                runner.run(test)
                count += 1
    assert runner.summarize().failed == 0, capsys.readouterr().out
    assert count >= 14


def test_everything_public_has_a_docstring() -> None:
    for thing in (small_python, Runtime, Object, Error, WorkerError, Timeout):
        assert thing.__doc__
        assert thing is Object or thing is small_python or ">>>" in (thing.__doc__ or "")
    for name, member in vars(Runtime).items():
        if not name.startswith("_"):
            assert member.__doc__, name


def test_the_example_of_the_readme() -> None:
    text = (PACKAGE / "README.md").read_text("utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.S)
    assert blocks, "the README has an example"
    code = blocks[0]
    assert 15 <= len(code.splitlines()) <= 22
    expected = "".join(line[line.index("# prints ") + 9 :] + "\n" for line in code.splitlines() if "# prints " in line)
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, timeout=60, check=True)
    assert done.stdout == expected != ""
