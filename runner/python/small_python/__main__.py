"""`python -m small_python`: runs a file, a line or a prompt in a `Runtime`, with its limits as options.

The code gets nothing but what the options grant. Unlike those of `Runtime`, the limits here are on unless turned off.
"""

from __future__ import annotations

import argparse
import codeop
import os
import sys

from . import Error, Runtime, Timeout, WorkerError, __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

FAILED, WRONG_USE, LOST, LATE = 1, 2, 3, 4

EPILOG = f"""exit status: 0 the code ended; {FAILED} with an exception; {WRONG_USE} wrong use; {LOST} its worker is lost;
{LATE} it ran out of time. A SystemExit of the code is taken over, up to 255."""


def size(text: str) -> int:
    """A number of bytes: digits, and K, M or G for powers of 1024."""
    unit = {"K": 10, "M": 20, "G": 30}.get(text[-1:].upper())
    number = int(text if unit is None else text[:-1]) << (unit or 0)
    if number < 0:
        raise ValueError
    return number


def mount(text: str) -> tuple[str, str | None, bool]:
    """DIR, DIR:PATH or DIR:PATH:ro."""
    directory, *rest = text.split(":")
    if len(rest) > 2 or (len(rest) == 2 and rest[1] != "ro"):
        raise ValueError
    return directory, rest[0] if rest and rest[0] else None, len(rest) == 2


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m small_python", description=__doc__, epilog=EPILOG)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("file", nargs="?", help="a file to run; - is standard input; without one there is a prompt")
    what.add_argument("-c", dest="code", help="code to run")
    parser.add_argument("--timeout", type=float, default=10.0, metavar="SECONDS", help="per operation; 0 is none (10)")
    parser.add_argument("--memory", type=size, default=256 << 20, metavar="BYTES", help="such as 64M; 0 is none (256M)")
    parser.add_argument("--steps", type=int, default=0, metavar="N", help="instructions per operation; 0 is none (0)")
    parser.add_argument("--mount", type=mount, action="append", default=[], metavar="DIR[:PATH[:ro]]",
                        help="let open() reach a directory; may be given again")  # fmt: skip
    parser.add_argument("--no-std", dest="std", action="store_false", help="without the modules sys and gc")
    parser.add_argument("--version", action="version", version=f"small_python {__version__}")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit status."""
    given = arguments(argv)
    try:
        source, name = read(given)
        with Runtime(
            std=given.std, step_limit=given.steps, memory_limit=given.memory, timeout=given.timeout or None
        ) as rt:
            for directory, path, read_only in given.mount:
                rt.mount(directory, path, read_only=read_only)
            return prompt(rt) if source is None else run(rt, source, name)
    except (ValueError, OSError, Error) as error:
        if isinstance(error, WorkerError):
            return report(error)
        print(f"small_python: {error}", file=sys.stderr)
        return WRONG_USE
    except WorkerError as error:
        return report(error)


def read(given: argparse.Namespace) -> tuple[str | None, str]:
    """The code to run and its name; no code when there is to be a prompt."""
    if given.code is not None:
        return given.code, "<string>"
    if given.file is None and sys.stdin.isatty():
        return None, "<stdin>"
    if given.file in (None, "-"):
        return sys.stdin.read(), "<stdin>"
    with open(given.file, encoding="utf-8") as file:
        return file.read(), os.path.basename(given.file)


def run(rt: Runtime, source: str, name: str) -> int:
    """Runs a whole program."""
    try:
        rt.exec(source, name)
    except (Error, WorkerError) as error:
        return report(error)
    return 0


def prompt(rt: Runtime) -> int:
    """Reads statements and shows values, until the end of the input or of the worker."""
    print(f"small_python {__version__}, worker {rt.pid}; Ctrl-D ends")
    lines: list[str] = []
    while True:
        try:
            lines.append(input("... " if lines else ">>> "))
        except EOFError:
            print()
            return 0
        except KeyboardInterrupt:
            lines.clear()
            print("\nKeyboardInterrupt")
            continue
        source = "\n".join(lines)
        try:
            # Only asks whether more lines have to follow; whatever else is wrong, the engine says.
            if codeop.compile_command(source + "\n" * (lines[-1] == ""), "<stdin>", "single") is None:
                continue
        except (SyntaxError, ValueError, OverflowError):
            pass
        lines.clear()
        try:
            value = rt.eval(source, "<stdin>")
            if value is not None:
                print(repr(value))
        except Error as error:
            if error.type == "SystemExit":
                return report(error)
            report(error)
        except WorkerError as error:
            return report(error)


def report(error: Error | WorkerError) -> int:
    """Tells of an exception; returns the exit status for it."""
    if isinstance(error, WorkerError):
        print(f"small_python: {error}", file=sys.stderr)
        return LATE if isinstance(error, Timeout) else LOST
    if error.type == "SystemExit" and error.exception is not None:
        code = error.exception.code
        if code is None or isinstance(code, int):
            return int(code or 0) & 0xFF
        print(code, file=sys.stderr)
        return FAILED
    if error.filename is not None:
        print(f'  File "{error.filename}", line {error.lineno}', file=sys.stderr)
    print(error if error.message else error.type, file=sys.stderr)
    return FAILED


if __name__ == "__main__":
    sys.exit(main())
