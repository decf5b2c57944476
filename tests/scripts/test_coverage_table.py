"""docs/relay-coverage.md is true, and the script that checks it finds what is not."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
coverage: ModuleType = __import__("coverage_table")
sys.path.pop(0)
PAGE = (ROOT / "docs" / "relay-coverage.md").read_text()


def test_the_page_has_every_row_and_every_test_exists() -> None:
    assert coverage.problems(PAGE) == []


def test_little_is_later() -> None:
    rows = coverage.read_rows(PAGE)
    assert len(rows) == 134
    assert sum(row.state == "later" for row in rows) <= 20


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("| b1 | base", "| b1b | base", "missing: b1"),
        ("test_kinds_are_kept_apart", "test_nothing", "test of b9 must exist: text/test_dimensions.py::test_nothing"),
        ("text/test_json.py", "text/test_nothing.py", "test file of c17 must exist"),
        (
            "| | yes | analysis/test_mapl_rules.py::test_type_if |",
            "| | later | not yet there at all |",
            "a21 must not be",
        ),
        ("| X | later | there is one device |", "| X | later | no |", "e12 must give a reason, not 'no'"),
        ("| X | later | there is one device |", "| X | perhaps | there is one device |", "state of e12 must be yes or"),
        (
            "| X | later | there is one device |",
            "| Y | later | there is one device |",
            "mark of e12 must be X or empty",
        ),
    ],
)
def test_what_is_wrong_is_found(old: str, new: str, problem: str) -> None:
    assert old in PAGE
    found = coverage.problems(PAGE.replace(old, new, 1))
    assert len(found) == 1 and problem in found[0]


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert coverage.main() == 0
    assert "of 134 rows are there" in capsys.readouterr().out
