"""The work folder of a comparison: caches finished results, so that a killed comparison can go on.

In: contents with the key of all that they depend on. Out: files that appear whole or not at all, and carry their hash.
"""

from __future__ import annotations

import hashlib
import io
import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from relay_hw import accel, tensorize
from relay_hw.accel.sim.result_cache import read_bytes, read_row, write_bytes, write_row
from relay_hw.errors import InputError
from relay_hw.support import durable
from relay_hw.support.quote import file_name
from relay_hw.support.sources import sources_hash
from relay_hw.sweep.tasks import Start

Array = NDArray[Any]

# Packages that only show results, or do not compute them. Sources of all others may change results.
_WITHOUT: Final = (
    *("accel", "tensorize", "cli", "compat", "demo", "report", "prelude", "frontend", "text", "sweep"),
    *(f"compare/{name}.py" for name in ("page", "plots", "table")),
    *("explore/main.py", "explore/page.py", "sim/bench"),
)


def key_of(*parts: object) -> str:
    """Hash of what a result depends on: `parts` as JSON, and the sources of this package."""
    text = json.dumps([sources(), *parts], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def sources() -> str:
    """Hash of the sources that results depend on: this whole package, and the two folders beside it."""
    whole = sys.modules[__name__.partition(".")[0]]
    return sources_hash(whole, accel, tensorize, without=_WITHOUT)


def with_same_sources(start: Start) -> Start:
    """`start` for other processes. Raises InputError in one of other sources, whose results our keys do not name."""
    return partial(_started, sources(), start)


def _started(ours: str, start: Start) -> Any:
    if sources() != ours:
        raise InputError("a worker must have the relay_hw of this process, not another: install the same, run again")
    return start()


class Store:
    """Files of one folder, named by what they hold and by the first digits of their key."""

    def __init__(self, folder: Path) -> None:
        """Create the folder. Raises InputError if that fails."""
        self.folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
            durable.sweep(folder)
        except OSError as error:
            raise InputError(f"work folder {folder} must be writable: {error.strerror}") from None

    def path(self, name: str, key: str, suffix: str) -> Path:
        """The path of the content of that name and key."""
        return self.folder / f"{file_name(name)}.{key[:16]}{suffix}"

    def read(self, name: str, key: str) -> dict[str, Any] | None:
        """The content written under `key`; None if there is none, or if its hash does not match."""
        return read_row(self.path(name, key, ".json"), key)

    def write(self, name: str, key: str, content: Mapping[str, Any]) -> None:
        """Store `content`. Raises InputError."""
        with self._refusing():
            write_row(self.path(name, key, ".json"), key, content)

    def read_arrays(self, name: str, key: str) -> dict[str, Array] | None:
        """Arrays stored under `key`; None if there are none, or if their hash does not match."""
        data = read_bytes(self.path(name, key, ".arrays"), key)
        if data is None:
            return None
        with np.load(io.BytesIO(data), allow_pickle=False) as archive:
            return dict(archive)

    def keep_arrays(self, name: str, key: str, arrays: Mapping[str, Array]) -> None:
        """Store arrays. Raises InputError."""
        with self._refusing():
            write_bytes(self.path(name, key, ".arrays"), key, _npz(arrays))

    def put(self, path: Path, data: bytes) -> None:
        """Write a file, whole or not at all. Raises InputError."""
        with self._refusing():
            durable.write_file(path, data)

    @contextmanager
    def _refusing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise InputError(f"work folder {self.folder} must be writable: {error.strerror}") from None


def _npz(arrays: Mapping[str, Array]) -> bytes:
    stream = io.BytesIO()
    np.savez(stream, **dict(arrays))  # type: ignore[arg-type]
    return stream.getvalue()
