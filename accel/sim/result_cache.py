"""A cache of slow results in a folder: made by one process at a time, sealed with the hashes of their files.

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

from relay_hw.support import durable
from relay_hw.support.documents import parse_json

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
                seal(work, SEAL, [str(path.relative_to(work)) for path in work.rglob("*") if path.is_file()], key)
    return entry


def seal(folder: Path, mark: str, names: Sequence[str], key: str | None = None) -> None:
    """Write down the hashes of files of `folder`; they are on the disk before. Raises OSError.

    `key`: of the result, the folder's name unless it gets another one.
    """
    for name in names:
        durable.sync(folder / name)
    files = {name: durable.file_hash(folder / name) for name in sorted(names)}
    durable.write_file(folder / mark, _seal(folder.name if key is None else key, mark, files))


def _seal(key: str, mark: str, files: Mapping[str, str]) -> bytes:
    return json.dumps({"of": [key, mark], "files": files}, indent=1).encode()


def is_sealed(folder: Path, mark: str) -> bool:
    """Whether `folder` has the files that were sealed under `mark`, byte by byte, and under its own name."""
    try:
        data = (folder / mark).read_bytes()
        files: dict[str, str] = parse_json(data)["files"]
        if not files or data != _seal(folder.name, mark, files):
            return False
        return all(durable.file_hash(folder / name) == digest for name, digest in files.items())
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
    durable.write_file(path, _row(key, plain))


def read_row(path: Path, key: str) -> dict[str, Any] | None:
    """The result that was kept under `key`; None where there is none, or where its hash does not fit."""
    try:
        data = path.read_bytes()
        content: Any = parse_json(data)["content"]
        return content if data == _row(key, content) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _row(key: str, content: object) -> bytes:
    digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    return (json.dumps({"key": key, "sha256": digest, "content": content}) + "\n").encode()


def write_bytes(path: Path, key: str, content: bytes) -> None:
    """Keep a result that is one file, with a line of its key and hash in front. Raises OSError."""
    durable.write_file(path, _head(key, content) + content)


def read_bytes(path: Path, key: str) -> bytes | None:
    """The bytes that were kept under `key`; None where there are none, or where their hash does not fit."""
    try:
        head, _, content = path.read_bytes().partition(b"\n")
    except OSError:
        return None
    return content if head + b"\n" == _head(key, content) else None


def _head(key: str, content: bytes) -> bytes:
    return hashlib.sha256(key.encode() + b"\0" + content).hexdigest().encode() + b"\n"


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
