"""Results that take minutes, kept in a folder: made by one process at a time, sealed with the hashes of their files.

In: a folder, a key of all that decides the result, what makes it. Out: the folder of the result, whose every byte is
the one that was made; what was cut, changed or half written is made again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from accel import durable
from accel.documents import parse_json

SEAL: Final = "sealed.json"


def kept(folder: Path, key: str, make: Callable[[Path], object]) -> Path:
    """The folder `key` in `folder`, filled by `make` now unless it is there. Raises OSError, and what `make` raises."""
    entry = folder / key
    folder.mkdir(parents=True, exist_ok=True)
    durable.sweep(folder)
    if is_sealed(entry, SEAL):
        return entry
    with locked(folder / f"{key}.lock"):
        if not is_sealed(entry, SEAL):
            with durable.new_folder(entry) as work:
                make(work)
                seal(work, SEAL, [str(path.relative_to(work)) for path in work.rglob("*") if path.is_file()])
    return entry


def seal(folder: Path, mark: str, names: Sequence[str]) -> None:
    """Write down the hashes of files of `folder`; they are on the disk before. Raises OSError."""
    for name in names:
        durable.sync(folder / name)
    row = {"files": {name: durable.file_hash(folder / name) for name in sorted(names)}}
    durable.write_file(folder / mark, json.dumps(row, indent=1).encode())


def is_sealed(folder: Path, mark: str) -> bool:
    """Whether `folder` has the files that were sealed under `mark`, byte by byte."""
    try:
        row: Any = parse_json((folder / mark).read_bytes())
        files: dict[str, str] = row["files"]
        return bool(files) and all(durable.file_hash(folder / name) == digest for name, digest in files.items())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def sealed(folder: Path, mark: str, names: Sequence[str], make: Callable[[], object]) -> None:
    """Let `make` write the files `names` of `folder`, unless they are there as they were sealed under `mark`.

    One process at a time does so. Raises OSError, and what `make` raises.
    """
    if is_sealed(folder, mark):
        return
    durable.sweep(folder)
    with locked(folder / f"{mark}.lock"):
        if not is_sealed(folder, mark):
            make()
            seal(folder, mark, names)


def write_row(path: Path, key: str, content: Mapping[str, Any]) -> None:
    """Keep a result that is one JSON object in a file of its own, with its key and hash. Raises OSError."""
    # Numbers that are keys come back as texts.
    plain = parse_json(json.dumps(content))
    row = {"key": key, "sha256": _hash(plain), "content": plain}
    durable.write_file(path, (json.dumps(row) + "\n").encode())


def read_row(path: Path, key: str) -> dict[str, Any] | None:
    """The result that was kept under `key`; None where there is none, or where its hash does not fit."""
    try:
        row: Any = parse_json(path.read_bytes())
        content, found, digest = row["content"], row["key"], row["sha256"]
        return content if found == key and digest == _hash(content) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _hash(content: object) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """One process at a time; the system drops the lock of one that dies. Raises OSError."""
    try:
        import fcntl
    except ImportError:  # no such locks: two processes waste time and still exchange whole folders
        yield
        return
    with path.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
