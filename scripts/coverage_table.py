"""Check docs/relay-coverage.md: every row there, every test that it names there, nothing later that must not be.

In: the page and the tests. Out: one line a problem, and the exit status.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "relay-coverage.md"
# Rows of each section of the list that the page answers.
ROWS = {"a": 37, "b": 33, "c": 39, "d": 12, "e": 13}
# Rows of section c that may wait: other frameworks, the debugger.
MAY_WAIT = frozenset(("c23", "c26", "c27"))


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the tables."""

    name: str
    what: str
    mark: str
    state: str
    shown: str


def read_rows(page: str) -> list[Row]:
    """The rows of all tables, in order."""
    lines = (line for line in page.splitlines() if re.match(r"\| [a-e]\d+ \|", line))
    return [Row(*(cell.strip() for cell in line.strip("|").split("|"))) for line in lines]


def problems(page: str) -> list[str]:
    """What is wrong with the page, a sentence each."""
    rows = read_rows(page)
    wanted = [f"{section}{number}" for section, count in ROWS.items() for number in range(1, count + 1)]
    found = [row.name for row in rows]
    if found != wanted:
        missing = sorted(set(wanted) - set(found)) or ["none"]
        return [f"rows must be {wanted[0]} to {wanted[-1]} in order; missing: {', '.join(missing)}"]
    return [problem for row in rows if (problem := _problem(row)) is not None]


def _problem(row: Row) -> str | None:
    if not row.what:
        return f"{row.name} must say what it is"
    if row.mark not in ("", "X"):
        return f"mark of {row.name} must be X or empty, not {row.mark}"
    if row.state == "later":
        may_wait = row.mark == "X" or row.name in MAY_WAIT
        if not may_wait:
            return f"{row.name} must not be later"
        return None if len(row.shown.split()) >= 4 else f"{row.name} must give a reason, not {row.shown!r}"
    if row.state != "yes":
        return f"state of {row.name} must be yes or later, not {row.state}"
    return _missing_test(row)


def _missing_test(row: Row) -> str | None:
    path, _, name = row.shown.partition("::")
    file = ROOT / path if path.startswith("tests/") else ROOT / "tests" / "relay_hw" / path
    if not file.is_file():
        return f"test file of {row.name} must exist: {row.shown}"
    if name and not re.search(rf"^\s*def {re.escape(name)}\(", file.read_text(), re.M):
        return f"test of {row.name} must exist: {row.shown}"
    return None


def main() -> int:
    """Print the problems, and how much there is."""
    page = PAGE.read_text()
    found = problems(page)
    for problem in found:
        print(f"{PAGE.name}: {problem}")
    rows = read_rows(page)
    print(f"{sum(row.state == 'yes' for row in rows)} of {len(rows)} rows are there, the rest later")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
