"""Stores results in a SQLite database, under a hash of everything that they depend on; survives a killed process.

In: keys, contents. Out: contents. SQLite writes ahead (WAL), each row is a transaction of its own and carries its hash.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

from relay_hw.errors import InputError
from relay_hw.support.documents import DocumentError, parse_json

_TABLE: Final = (
    "CREATE TABLE IF NOT EXISTS results "
    "(key TEXT PRIMARY KEY, content TEXT NOT NULL, sha256 TEXT NOT NULL, seconds REAL NOT NULL)"
)
# Keys in one question, and seconds that a writer waits for another.
_MANY: Final = 500
_PATIENCE: Final = 60.0


class Journal:
    """One file. Several processes may read and write it."""

    def __init__(self, path: Path) -> None:
        """Open or create the file. Raises InputError if that fails, or if it is another kind of database."""
        self.path = path
        with self._open() as database:
            database.execute("PRAGMA journal_mode=WAL")
            database.execute(_TABLE)

    def read(self, keys: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Stored contents by key, for those of `keys` that exist. Raises InputError."""
        found: dict[str, dict[str, Any]] = {}
        with self._open() as database:
            for begin in range(0, len(keys), _MANY):
                some = tuple(keys[begin : begin + _MANY])
                question = f"SELECT key, content, sha256 FROM results WHERE key IN ({','.join('?' * len(some))})"
                for key, content, digest in database.execute(question, some):
                    try:
                        # What was changed by others is computed again.
                        if digest == _digest(key, content):
                            found[key] = parse_json(content)
                    except (DocumentError, TypeError):
                        continue
        return found

    def write(self, key: str, content: Mapping[str, Any], seconds: float) -> None:
        """Store a row. `seconds`: how long it took to compute. Raises InputError."""
        text = json.dumps(content, sort_keys=True)
        with self._open() as database:
            row = (key, text, _digest(key, text), seconds)
            database.execute("INSERT OR REPLACE INTO results VALUES (?, ?, ?, ?)", row)

    def count(self) -> int:
        """Number of rows. Raises InputError."""
        with self._open() as database:
            return database.execute("SELECT COUNT(*) FROM results").fetchone()[0]

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        try:
            with closing(sqlite3.connect(self.path, timeout=_PATIENCE)) as database, database:
                yield database
        except sqlite3.Error as error:
            raise InputError(f"journal {self.path} must be a database that can be written: {error}") from None


@contextmanager
def work_folder(work: str | Path | None, command: str) -> Iterator[Path]:
    """The folder in which a sweep stores results; without `work`, one named after `command` until the sweep ends."""
    if work is not None:
        yield Path(work)
        return
    with tempfile.TemporaryDirectory(prefix=f"relay-hw-{command}-") as folder:
        yield Path(folder)


def _digest(key: str, content: str) -> str:
    return hashlib.sha256(f"{key} {content}".encode()).hexdigest()
