"""A spreadsheet whose formulas are Python: cells ask for each other through host functions, circles are found.

The sheet stays in the host. A formula reaches other cells by calling `cell`, `column` and `total`, and nothing else.
"""

from __future__ import annotations

from typing import Any

from small_python import Error, Runtime

SHEET = {
    "A1": 1200, "A2": 800, "A3": 350.5,
    "B1": "=cell('A1') * 0.2",
    "B2": "=cell('A2') * 0.2",
    "B3": "=round(cell('A3') * 0.2, 2)",
    "C1": "=total('A') + total('B')",
    "C2": "=max(column('A')) - min(column('A'))",
    "C3": "=[n for n in column('A') if n > cell('B1')]",
    "D1": "=cell('D2') + 1",
    "D2": "=cell('D1') - 1",
    "D3": "=1 / 0",
    "D4": "=open('/etc/passwd').read()",
    "D5": "=().__class__.__base__.__subclasses__()[0]",
}  # fmt: skip


class Circle(Exception):
    """A cell that needs itself."""


class Sheet:
    """Cells, and one runtime for all formulas."""

    def __init__(self, cells: dict[str, object]) -> None:
        self.cells = cells
        self.open: list[str] = []
        self.rt = Runtime(timeout=0.5, memory_limit=32 << 20, std=False)
        self.rt.define("cell", self.value)
        self.rt.define("column", self.column)
        self.rt.define("total", self.total)
        # `eval` is not for callbacks, and a cell may need another one while it is computed: this one may be called.
        self.rt.exec("def compute(formula): return eval(formula)")

    def column(self, name: str) -> list[Any]:
        return [self.value(cell) for cell in self.cells if cell[:1] == name]

    def total(self, name: str) -> float:
        numbers: list[float] = self.column(name)
        return sum(numbers)

    def value(self, name: str) -> Any:
        """The value of a cell, which may be computed while another one is."""
        content = self.cells.get(name)
        if not (isinstance(content, str) and content.startswith("=")):
            return content
        if name in self.open:
            raise Circle(" -> ".join([*self.open, name]))
        self.open.append(name)
        try:
            return self.rt.call("compute", content[1:])
        finally:
            self.open.pop()

    def show(self, name: str) -> str:
        try:
            return repr(self.value(name))
        except Error as error:
            cause = error.__cause__
            return f"#CIRCLE {cause}" if isinstance(cause, Circle) else f"#{error.type} {error.message[:50]}"


def main() -> None:
    sheet = Sheet(dict(SHEET))
    for name in SHEET:
        print(f"{name} = {sheet.show(name)}")
    sheet.rt.close()


if __name__ == "__main__":
    main()
