"""Enumerations are matched whole: a new member gets a case everywhere, or the type checker says where it lacks one."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator

import pytest

from tests.house.sources import ROOT, nodes_of, tree_of

SOURCES = sorted(path for top in ("relay_hw", "tensorize", "accel", "scripts") for path in (ROOT / top).rglob("*.py"))
BASES = {"Enum", "IntEnum", "StrEnum", "Flag", "IntFlag"}
ENUMERATIONS = {
    node.name
    for path in SOURCES
    for node in nodes_of(path)
    if isinstance(node, ast.ClassDef) and BASES & {ast.unparse(base).rsplit(".", 1)[-1] for base in node.bases}
}


def catch_alls(tree: ast.AST) -> Iterator[int]:
    """Lines of cases that take whatever members of an enumeration are left, but for `assert_never`."""
    for match in (node for node in ast.walk(tree) if isinstance(node, ast.Match)):
        values = [
            node.value for case in match.cases for node in ast.walk(case.pattern) if isinstance(node, ast.MatchValue)
        ]
        if not any(ast.unparse(value).rsplit(".", 2)[-2:][0] in ENUMERATIONS for value in values):
            continue
        for case in match.cases:
            is_wild = isinstance(case.pattern, ast.MatchAs) and case.pattern.pattern is None and case.guard is None
            if is_wild and not ast.unparse(case.body[0]).startswith("assert_never("):
                yield case.pattern.lineno


def test_no_case_takes_the_rest_of_an_enumeration() -> None:
    found = {str(path.relative_to(ROOT)): list(catch_alls(tree_of(path))) for path in SOURCES}
    assert {path: lines for path, lines in found.items() if lines} == {}


def test_the_type_checker_reads_every_room_and_finds_missing_cases() -> None:
    settings = (ROOT / "pyproject.toml").read_text()
    assert 'reportMatchNotExhaustive = "error"' in settings
    assert 'include = ["relay_hw", "accel", "tensorize", "examples/digits.py"]' in settings


@pytest.mark.parametrize(
    ("last", "found"), [("case _:\n    y = 2", [4]), ("case _:\n    assert_never(op)", []), ("", [])]
)
def test_a_catch_all_is_found(last: str, found: list[int]) -> None:
    text = "match op:\n    case AluOp.ADD:\n        y = 1\n" + textwrap.indent(last, "    ")
    assert list(catch_alls(ast.parse(text))) == found
