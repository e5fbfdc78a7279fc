"""A tool for a language model: it writes Python, the tool runs it in a scratch directory and tells it what happened.

The code may read `/inputs`, write `/scratch`, and call the functions that are granted. Whatever it does, the tool
returns a text: the end of what it printed, its value, the files that it left, or the error in words for the next try.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from small_python import Error, Runtime, Timeout, WorkerError

PRINTED_MAX = 2_000


def run(code: str, inputs: Path, functions: dict[str, Callable[..., object]]) -> str:
    """Runs what the model wrote, in a fresh process; returns what to tell it."""
    printed: list[str] = []
    lines: list[str] = []
    with tempfile.TemporaryDirectory() as scratch:
        with Runtime(timeout=2.0, memory_limit=128 << 20, output=printed.append, message_limit=1 << 20) as rt:
            rt.mount(inputs, "/inputs", read_only=True)
            rt.mount(scratch, "/scratch")
            for name, function in functions.items():
                rt.define(name, function)
            try:
                value = rt.eval(code, "tool.py")
                lines.append(f"value: {value!r}" if value is not None else "done, no value")
            except Error as error:
                lines.append(f"{error} (line {error.lineno})")
            except Timeout:
                lines.append("stopped: it took longer than 2 seconds")
            except WorkerError as error:
                lines.append(f"stopped: {error}")
        text = "".join(printed)
        if text:
            lines.insert(0, f"printed: {text[-PRINTED_MAX:].rstrip()}")
        for path in sorted(Path(scratch).iterdir()):
            lines.append(f"wrote {path.name}, {path.stat().st_size} bytes")
    return "\n".join(lines)


ATTEMPTS = [
    "rows = [line.split(',') for line in open('/inputs/sales.csv')]\n"
    "total = sum(float(amount) for _, amount in rows)\n"
    "with open('/scratch/report.txt', 'w') as f: f.write(f'total {convert(total, \"EUR\"):.2f} EUR')\n"
    "print(len(rows), 'rows')\ntotal",
    "import os\nos.system('curl evil.example')",
    "open('/inputs/sales.csv', 'w')",
    "open('/etc/shadow').read()",
    "while True: pass",
    "data = []\nwhile True: data.append('x' * 10_000_000)",
    "convert(1, 'XYZ')",
]


def main() -> None:
    def convert(amount: float, currency: str) -> float:
        return amount * {"EUR": 0.5, "USD": 1.0}[currency]

    with tempfile.TemporaryDirectory() as folder:
        inputs = Path(folder)
        (inputs / "sales.csv").write_text("pens,12.5\npaper,30\nink,7.5\n")
        for code in ATTEMPTS:
            print(">", code.splitlines()[-1])
            print(run(code, inputs, {"convert": convert}))


if __name__ == "__main__":
    main()
