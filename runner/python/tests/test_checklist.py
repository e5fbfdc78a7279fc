"""CHECKLIST.tsv says for each sentence of the specification which tests hold it; this holds CHECKLIST.tsv.

A row: section and number of the sentence, a digest of it, what it asks for in a few words, and tests, or `-` and why
there is none. The sentences themselves are not in this repository. Who has the specification can have the digests
checked against it: SMALL_PYTHON_SPECIFICATION=path pytest test_checklist.py
"""

from __future__ import annotations

import ast
import hashlib
import os
import re
from collections.abc import Iterator
from pathlib import Path

from support import PACKAGE

TESTS = Path(__file__).parent
# How many sentences each section has: a row that is missing at the end of one is missed too.
COUNTS = {
    "0": 2, "1": 6, "2": 12, "3": 1, "3.1": 32, "3.2": 9, "3.3": 9, "3.4": 8, "3.5": 8, "3.6": 4, "3.7": 3, "4": 15,
    "5": 11, "6": 10, "7": 10,
}  # fmt: skip


def rows() -> list[list[str]]:
    lines = (PACKAGE / "CHECKLIST.tsv").read_text("utf-8").splitlines()
    return [line.split("\t") for line in lines if line and not line.startswith("#")]


def sentences(text: str) -> Iterator[tuple[str, str]]:
    """Section and sentence; a row of a table is one, headings, pictures and mere labels are none."""
    section = "0"
    for line in text.splitlines():
        line = line.strip()
        heading = re.match(r"(\d+(?:\.\d+)?) [A-Z][\w ]+$", line)
        if heading:
            section = heading[1]
        elif not line or line[0] in "+|" or re.match(r"(Argument|Python|Platform)\t|CPython process|small_python/$", line):
            continue
        elif re.match(r"\w+(\.md)?( \w+)?:?$", line) and line != "py.typed":
            continue
        elif "\t" in line:
            yield section, line
        else:
            line = re.sub(r"^\d\. |^• ", "", line)
            for part in re.split(r"(?<=[.:;])\s+(?=[A-Z\[(•])", line):
                yield section, part


def digest(sentence: str) -> str:
    return hashlib.sha256(" ".join(sentence.split()).encode()).hexdigest()[:10]


def defined() -> set[str]:
    """The names of all tests that this suite has."""
    names: set[str] = set()
    for path in TESTS.glob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                names.add(f"{path.stem}.{node.name}")
    return names


def test_every_sentence_has_a_row() -> None:
    found: dict[str, int] = {}
    for place, *_ in rows():
        section, number = place.split("/")
        assert int(number) == found.get(section, 0) + 1, f"{place} does not follow"
        found[section] = int(number)
    assert found == COUNTS


def test_every_row_has_its_tests_or_says_why_not() -> None:
    names = defined()
    for place, mark, words, tests in rows():
        assert re.fullmatch(r"[0-9a-f]{10}", mark), place
        assert 2 <= len(words.split()) <= 20, place
        if tests.startswith("- "):
            assert len(tests) > 10, f"{place}: why is there no test?"
            continue
        for name in tests.split(", "):
            assert name in names, f"{place}: there is no test {name}"


def test_the_digests_are_those_of_the_specification() -> None:
    place = os.environ.get("SMALL_PYTHON_SPECIFICATION")
    if place is None:
        # Without it, at least no sentence is mapped twice over but for those that stand there twice.
        marks = [mark for _, mark, *_ in rows()]
        assert len(marks) - len(set(marks)) == 1
        return
    text = Path(place).read_text("utf-8")
    found = [(section, digest(sentence)) for section, sentence in sentences(text)]
    assert found == [(place.split("/")[0], mark) for place, mark, *_ in rows()]
