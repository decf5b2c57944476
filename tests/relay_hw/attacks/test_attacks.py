"""Named attacks, each in a process with a bound of 1 GB and 5 s of work: all are refused in one sentence."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from relay_hw.support.child import run_child

ROOT = Path(__file__).parents[3]
FLOOR = 80


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, object]]:
    """What became of every attack."""
    command = [sys.executable, "-m", "tests.relay_hw.attacks.runner", str(tmp_path_factory.mktemp("attacks"))]
    done = run_child(command, ROOT)
    assert done.returncode == 0, done.stderr[-2000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_every_attack_is_refused_in_one_sentence(rows: list[dict[str, object]]) -> None:
    names = [str(row["name"]) for row in rows]
    assert len(set(names)) == len(names) and len(names) >= FLOOR
    wrong = [row for row in rows if not _is_refused(row)]
    print(f"{len(rows) - len(wrong)} of {len(rows)} attacks refused")
    assert not wrong, "\n".join(json.dumps(row)[:400] for row in wrong)


def _is_refused(row: dict[str, object]) -> bool:
    said = str(row["said"])
    is_one_line = said.count("\n") == 1 and said.endswith("\n")
    bad = any(word in said for word in ("internal error", "Traceback", "not caught", "\x1b"))
    return row["status"] in (1, 2) and is_one_line and not bad and not row["ran"]
