"""The journal: rows that survive kills, changes by others and wrong bits."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from relay_hw.errors import InputError
from relay_hw.sweep.journal import Journal
from tests.flips import COUNTS, spoiled


def test_a_journal_has_one_row_of_a_key(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "points.sqlite")
    journal.write("a", {"cycles": 1}, 0.5)
    Journal(tmp_path / "points.sqlite").write("a", {"cycles": 2}, 0.5)
    keys = ["a", *(f"none {k}" for k in range(2000))]
    assert journal.read(keys) == {"a": {"cycles": 2}} and journal.count() == 1
    (tmp_path / "other").write_bytes(b"no database at all" * 100)
    with pytest.raises(InputError, match=r"journal .*other must be a database that can be written"):
        Journal(tmp_path / "other")


WRITER = """
import os, signal, sys
from pathlib import Path
from relay_hw.sweep.journal import Journal
journal = Journal(Path(sys.argv[1]))
for number in range(20):
    journal.write(str(number), {"cycles": number}, 0.0)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_writer_loses_no_row(tmp_path: Path) -> None:
    path = tmp_path / "points.sqlite"
    done = subprocess.run([sys.executable, "-c", WRITER, str(path)], cwd=Path(__file__).parents[3])
    assert done.returncode == -signal.SIGKILL
    assert Journal(path).read([str(n) for n in range(20)]) == {str(n): {"cycles": n} for n in range(20)}
    with sqlite3.connect(path) as database:
        assert database.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_changed_rows_are_computed_again(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "points.sqlite")
    for key in "abc":
        journal.write(key, {"cycles": 100}, 0.5)
    with sqlite3.connect(journal.path) as database:
        database.execute("UPDATE results SET content = '{\"cycles\": 101}' WHERE key = 'a'")
        database.execute("UPDATE results SET key = 'd' WHERE key = 'b'")
    assert journal.read(list("abcd")) == {"c": {"cycles": 100}}
    journal.write("a", {"cycles": 100}, 0.5)
    assert journal.read(list("abcd")) == {"a": {"cycles": 100}, "c": {"cycles": 100}}


@COUNTS
def test_wrong_bits_are_refused_or_computed_again(tmp_path: Path, count: int) -> None:
    path = tmp_path / "points.sqlite"
    want = {str(n): {"cycles": n} for n in range(20)}
    for key, content in want.items():
        Journal(path).write(key, content, 0.5)
    for what in spoiled([path], count):
        try:
            found = Journal(path).read(list(want))
        except InputError:
            continue
        assert found.items() <= want.items(), what
