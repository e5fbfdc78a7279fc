"""The unit desk of "Back of an Envelope".

run({"lines": ["walk = 3.2 km", "walk / (4.5 km/h) in min"], "state": ""})
-> {"results": [{"text": "3.2 km", "ok": true}, {"text": "42.6667 min", "ok": true}], "state": ""}

A line is an expression, or `name = expression`, and may end in `in unit` or `to unit`. Names keep their values for the lines
below. A line that starts with # is a note. Every quantity is a number in base units together with the powers of those base
units, so adding metres to seconds is noticed and refused. Nothing is remembered from one call to the next.
"""

import math
import re

LINES_MAX = 60
LINE_CHARS_MAX = 200
DEPTH_MAX = 40
POWER_MAX = 60

# The base units, in the order of the powers in a Quantity: length, mass, time, current, temperature, information.
BASE = ("m", "kg", "s", "A", "K", "byte")


class Trouble(Exception):
    """Something in a line that the writer can put right; its text is shown beside the line."""


NONE = (0, 0, 0, 0, 0, 0)
LENGTH, AREA, VOLUME = (1, 0, 0, 0, 0, 0), (2, 0, 0, 0, 0, 0), (3, 0, 0, 0, 0, 0)
MASS, TIME, CURRENT = (0, 1, 0, 0, 0, 0), (0, 0, 1, 0, 0, 0), (0, 0, 0, 1, 0, 0)
WARMTH, DATA, RATE = (0, 0, 0, 0, 1, 0), (0, 0, 0, 0, 0, 1), (0, 0, -1, 0, 0, 0)
FORCE, ENERGY, POWER = (1, 1, -2, 0, 0, 0), (2, 1, -2, 0, 0, 0), (2, 1, -3, 0, 0, 0)
PRESSURE, SPEED, VOLTAGE = (-1, 1, -2, 0, 0, 0), (1, 0, -1, 0, 0, 0), (2, 1, -3, -1, 0, 0)
CHARGE = (0, 0, 1, 1, 0, 0)
KINDS = {
    NONE: "a plain number", LENGTH: "a length", AREA: "an area", VOLUME: "a volume", MASS: "a mass", TIME: "a time",
    FORCE: "a force", ENERGY: "an energy", POWER: "a power", PRESSURE: "a pressure", SPEED: "a speed",
    DATA: "an amount of data", WARMTH: "a temperature",
}


class Quantity:
    """A number in base units, the powers of those, and the unit to show it in: a name, or a text and its size ("km/h|0.27")."""

    def __init__(self, value: float, powers: tuple = NONE, unit: str = "") -> None:
        if isinstance(value, complex) or not math.isfinite(value):
            raise Trouble("too large for this envelope")
        self.value = value
        self.powers = powers
        self.unit = unit


# name: (how many base units it is, powers)
UNITS = {
    "m": (1, LENGTH), "km": (1000, LENGTH), "cm": (0.01, LENGTH), "mm": (0.001, LENGTH), "inch": (0.0254, LENGTH),
    "ft": (0.3048, LENGTH), "yd": (0.9144, LENGTH), "mile": (1609.344, LENGTH),
    "kg": (1, MASS), "g": (0.001, MASS), "mg": (1e-6, MASS), "t": (1000, MASS), "lb": (0.45359237, MASS),
    "oz": (0.028349523125, MASS),
    "s": (1, TIME), "ms": (0.001, TIME), "min": (60, TIME), "h": (3600, TIME), "day": (86400, TIME), "week": (604800, TIME),
    "month": (2629746, TIME), "year": (31556952, TIME),
    "l": (0.001, VOLUME), "dl": (1e-4, VOLUME), "cl": (1e-5, VOLUME), "ml": (1e-6, VOLUME), "cup": (2.5e-4, VOLUME),
    "tbsp": (1.5e-5, VOLUME), "tsp": (5e-6, VOLUME),
    "ha": (10000, AREA), "acre": (4046.8564224, AREA),
    "N": (1, FORCE), "kN": (1000, FORCE), "J": (1, ENERGY), "kJ": (1000, ENERGY), "MJ": (1e6, ENERGY), "kcal": (4184, ENERGY),
    "Wh": (3600, ENERGY), "kWh": (3.6e6, ENERGY), "W": (1, POWER), "kW": (1000, POWER),
    "Pa": (1, PRESSURE), "hPa": (100, PRESSURE), "kPa": (1000, PRESSURE), "bar": (1e5, PRESSURE),
    "mph": (0.44704, SPEED), "knot": (1852 / 3600, SPEED),
    "A": (1, CURRENT), "mA": (0.001, CURRENT), "Ah": (3600, CHARGE),
    "V": (1, VOLTAGE), "Hz": (1, RATE), "K": (1, WARMTH),
    "byte": (1, DATA), "bit": (0.125, DATA), "kB": (1000, DATA), "MB": (1e6, DATA), "GB": (1e9, DATA), "TB": (1e12, DATA),
    "KiB": (1024, DATA), "MiB": (1048576, DATA), "GiB": (1073741824, DATA), "Mbit": (125000, DATA),
    "percent": (0.01, NONE), "dozen": (12, NONE),
}
PLURALS = {
    "metre": "m", "meter": "m", "inche": "inch", "foot": "ft", "feet": "ft", "yard": "yd", "gram": "g", "kilo": "kg", "tonne": "t",
    "pound": "lb", "ounce": "oz", "sec": "s", "second": "s", "minute": "min", "hour": "h", "hr": "h", "litre": "l", "liter": "l",
    "L": "l", "watt": "W", "joule": "J", "B": "byte", "d": "day", "mi": "mile",
}
DEGREES = {"degC": (1.0, 273.15), "degF": (5 / 9, 459.67 * 5 / 9)}  # kelvins to a degree, and where its zero lies
CONSTANTS = {"pi": math.pi, "tau": math.tau, "e": math.e}
SHOWN_AS = ("N", "J", "W", "Pa", "V", "m", "kg", "s", "A", "K", "byte")  # for results without a unit of their own

FUNCTIONS = {
    "floor": math.floor, "ceil": math.ceil, "round": round, "sin": math.sin, "cos": math.cos, "tan": math.tan,
    "log": math.log10, "ln": math.log, "exp": math.exp,
}
PIECE = r"\s*(?:(\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|\.\d+)|([A-Za-z_]\w*)|(\*\*|[-+*/^()=,%]))"


def find_unit(name: str) -> str | None:
    """The name under which a unit stands in the table, whether it was written as one or as many."""
    for candidate in (name, name[:-1] if name.endswith("s") and len(name) > 2 else name):
        if candidate in UNITS or candidate in DEGREES:
            return candidate
        if candidate in PLURALS:
            return PLURALS[candidate]
    return None


def split(line: str) -> list:
    """The line as tokens: ("number", 3.2), ("word", "km"), ("sign", "+")."""
    tokens, at = [], 0
    line = line.rstrip().replace("°", "deg").replace("×", "*").replace("÷", "/").replace("−", "-")
    while at < len(line):
        match = re.match(PIECE, line[at:])
        if not match:
            raise Trouble(f"cannot read {line[at:].strip()[:12]!r}")
        number, word, sign = match.groups()
        tokens.append(("number", float(number)) if number else ("word", word) if word else ("sign", sign))
        at += match.end()
    return tokens


class Reader:
    """Reads one expression by recursive descent; each method handles one level of binding."""

    def __init__(self, tokens: list, names: dict) -> None:
        self.tokens, self.names, self.at, self.depth = tokens, names, 0, 0

    def peek(self) -> tuple:
        return self.tokens[self.at] if self.at < len(self.tokens) else ("end", "")

    def sign(self, *wanted: str) -> str | None:
        """Takes the next token if it is one of these signs."""
        kind, text = self.peek()
        if kind == "sign" and text in wanted:
            self.at += 1
            return text
        return None

    def whole(self) -> Quantity:
        result = self.total()
        if self.peek() in (("word", "in"), ("word", "to")):
            result = convert(result, self.tokens[self.at + 1:])
            self.at = len(self.tokens)
        if self.peek()[0] != "end":
            raise Trouble(f"did not expect {self.peek()[1]}")
        return result

    def total(self) -> Quantity:
        self.depth += 1
        if self.depth > DEPTH_MAX:
            raise Trouble("too many brackets")
        result = self.product()
        while operator := self.sign("+", "-"):
            result = add(result, self.product(), 1 if operator == "+" else -1)
        self.depth -= 1
        return result

    def product(self) -> Quantity:
        result = self.beside()
        while operator := self.sign("*", "/"):
            result = multiply(result, self.beside(), 1 if operator == "*" else -1)
        return result

    def beside(self) -> Quantity:
        """Things side by side: `3 km` multiplies, `5 ft 3 inch` adds."""
        result = self.signed()
        while self.at_word() or self.peek()[0] == "number" or self.peek() == ("sign", "("):
            is_number = self.peek()[0] == "number"
            if is_number and not result.unit:
                raise Trouble(f"a sign is missing before {self.peek()[1]:g}")
            other = self.signed()
            if is_number and self.at_word():
                result = add(result, multiply(other, self.signed(), 1), 1)
            else:
                result = multiply(result, other, 1)
        return result

    def at_word(self) -> bool:
        return self.peek()[0] == "word" and self.peek()[1] not in ("in", "to")

    def signed(self) -> Quantity:
        minus = False
        while operator := self.sign("-", "+"):
            minus = minus != (operator == "-")
        result = self.power()
        return Quantity(-result.value, result.powers, result.unit) if minus else result

    def power(self) -> Quantity:
        base = self.single()
        if self.sign("%"):
            base = Quantity(base.value / 100, base.powers, base.unit)
        if self.sign("^", "**"):
            self.depth += 1
            if self.depth > DEPTH_MAX:
                raise Trouble("too many powers")
            exponent = self.signed()
            self.depth -= 1
            return raise_to(base, exponent)
        return base

    def single(self) -> Quantity:
        kind, text = self.peek()
        self.at += 1
        if kind == "number":
            return self.degrees(text) or Quantity(text)
        if kind == "sign" and text == "(":
            inner = self.total()
            if not self.sign(")"):
                raise Trouble("a bracket is not closed")
            return inner
        if kind == "word":
            return self.word(text)
        raise Trouble("something is missing at the end" if kind == "end" else f"did not expect {text}")

    def degrees(self, number: float) -> Quantity | None:
        """`20 degC` is a temperature, not a product."""
        kind, text = self.peek()
        if kind == "word" and text in DEGREES:
            self.at += 1
            size, zero = DEGREES[text]
            return Quantity(number * size + zero, WARMTH, text)
        return None

    def word(self, text: str) -> Quantity:
        if text in self.names:
            return self.names[text]
        if (text in FUNCTIONS or text in ("sqrt", "abs", "min", "max")) and self.peek() == ("sign", "("):
            self.at += 1
            values = [self.total()]
            while self.sign(","):
                values.append(self.total())
            if not self.sign(")"):
                raise Trouble("a bracket is not closed")
            return call(text, values)
        if text in CONSTANTS:
            return Quantity(CONSTANTS[text])
        unit = find_unit(text)
        if unit is None:
            raise Trouble(f"do not know {text}")
        if unit in DEGREES:
            raise Trouble(f"write a number before {unit}")
        size, powers = UNITS[unit]
        return Quantity(size, powers, unit)


def add(left: Quantity, right: Quantity, way: int) -> Quantity:
    if left.powers != right.powers:
        one, other = kind_of(left), kind_of(right)
        raise Trouble(f"cannot add {other} to {one}" if way > 0 else f"cannot take {other} from {one}")
    return Quantity(left.value + way * right.value, left.powers, left.unit or right.unit)


def multiply(left: Quantity, right: Quantity, way: int) -> Quantity:
    if way < 0 and right.value == 0:
        raise Trouble("cannot divide by zero")
    powers = tuple(a + way * b for a, b in zip(left.powers, right.powers))
    value = left.value * right.value if way > 0 else left.value / right.value
    if powers == left.powers:
        return Quantity(value, powers, left.unit)
    if way > 0:
        return Quantity(value, powers, right.unit if powers == right.powers else "")
    if powers != NONE and left.unit in UNITS and right.unit in UNITS:  # km and h make km/h
        size = UNITS[left.unit][0] / UNITS[right.unit][0]
        return Quantity(value, powers, f"{left.unit}/{right.unit}|{size!r}")
    return Quantity(value, powers)


def raise_to(base: Quantity, exponent: Quantity) -> Quantity:
    if exponent.powers != NONE:
        raise Trouble("a power has to be a plain number")
    if abs(exponent.value) > POWER_MAX:
        raise Trouble(f"powers go up to {POWER_MAX} here")
    try:
        value = base.value ** exponent.value
    except (OverflowError, ZeroDivisionError):
        raise Trouble("too large for this envelope") from None
    if isinstance(value, complex):
        raise Trouble("no root of a negative number here")
    return Quantity(value, tuple(power * exponent.value for power in base.powers), base.unit if exponent.value == 1 else "")


def call(name: str, values: list) -> Quantity:
    first = values[0]
    if name in ("min", "max"):
        if any(value.powers != first.powers for value in values):
            raise Trouble(f"{name} needs things of one kind")
        return (min if name == "min" else max)(values, key=lambda value: value.value)
    if len(values) > 1:
        raise Trouble(f"{name} takes one value")
    if name == "sqrt":
        return raise_to(first, Quantity(0.5))
    if name == "abs":
        return Quantity(abs(first.value), first.powers, first.unit)
    if first.powers != NONE:
        raise Trouble(f"{name} needs a plain number")
    try:
        return Quantity(float(FUNCTIONS[name](first.value)))
    except (ValueError, OverflowError):
        raise Trouble(f"{name} has no answer there") from None


def convert(quantity: Quantity, tokens: list) -> Quantity:
    """`… in km/h`: keeps the value, changes how it is shown."""
    if not tokens:
        raise Trouble("in which unit?")
    if len(tokens) == 1 and tokens[0][1] in DEGREES:
        if quantity.powers != WARMTH:
            raise Trouble(f"{kind_of(quantity)} is not a temperature")
        return Quantity(quantity.value, quantity.powers, tokens[0][1])
    reader = Reader(tokens, {})
    target = reader.total()
    if reader.peek()[0] != "end":
        raise Trouble(f"did not expect {reader.peek()[1]}")
    if target.powers != quantity.powers:
        raise Trouble(f"{kind_of(quantity)} cannot be shown as {kind_of(target)}")
    written = "".join(find_unit(text) or text if kind == "word" else f"{text:g}" if kind == "number" else text for kind, text in tokens)
    return Quantity(quantity.value, quantity.powers, f"{written}|{target.value!r}")


def kind_of(quantity: Quantity) -> str:
    """What a quantity is, in words, for messages."""
    return KINDS.get(quantity.powers, base_units(quantity.powers))


def base_units(powers: tuple) -> str:
    def part(name: str, power: float) -> str:
        return name if power == 1 else f"{name}^{power:g}"

    above = " ".join(part(name, power) for name, power in zip(BASE, powers) if power > 0)
    below = " ".join(part(name, -power) for name, power in zip(BASE, powers) if power < 0)
    return (above or "1") + (f"/{below}" if " " not in below else f"/({below})") if below else above


def number(value: float) -> str:
    if value == 0:
        return "0"
    if 1e-4 <= abs(value) < 1e12:
        digits = max(0, 5 - math.floor(math.log10(abs(value))))
        text = f"{value:,.{digits}f}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    return f"{value:.6g}"


def show(quantity: Quantity) -> str:
    unit, value = quantity.unit, quantity.value
    if "|" in unit:
        written, _, size = unit.partition("|")
        return f"{number(value / float(size))} {written}"
    if unit in DEGREES:
        size, zero = DEGREES[unit]
        return f"{number((value - zero) / size)} {unit.replace('deg', '°')}"
    if unit == "" and quantity.powers != NONE:
        unit = next((name for name in SHOWN_AS if UNITS[name][1] == quantity.powers), "")
    if unit:
        return f"{number(value / UNITS[unit][0])} {unit}"
    return f"{number(value)} {base_units(quantity.powers)}".strip()


def work_out(line: str, names: dict) -> dict:
    if not line.strip() or line.lstrip().startswith("#"):
        return {"text": "", "ok": True}
    try:
        tokens = split(line[:LINE_CHARS_MAX])
        name = None
        if len(tokens) > 1 and tokens[0][0] == "word" and tokens[1] == ("sign", "="):
            name, tokens = tokens[0][1], tokens[2:]
        result = Reader(tokens, names).whole()
        if name:
            names[name] = result
        return {"text": show(result), "ok": True}
    except Trouble as trouble:
        return {"text": str(trouble), "ok": False}
    except OverflowError:
        return {"text": "too large for this envelope", "ok": False}


def run(inputs: dict) -> dict:
    lines = inputs.get("lines")
    if not isinstance(lines, list):
        return {"results": [], "state": "", "problem": "lines is missing"}
    names: dict = {}
    return {"results": [work_out(str(line), names) for line in lines[:LINES_MAX]], "state": ""}
