"""Writes build folders atomically, and checks beforehand that they can be written.

In: a path, contents. Out: a folder in place of an older build. Nothing heavy is imported: commands ask before any work.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from relay_hw.errors import InputError
from relay_hw.support import durable

MANIFEST = "manifest.json"


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """A temporary folder beside `path` that replaces it when the block succeeds, and is deleted when it fails.

    An older build at `path` is replaced. Raises InputError if `path` is something else, or cannot be written.
    """
    check_target(path)
    started = False
    try:
        with durable.new_folder(path, _is_ours) as work:
            started = True
            yield work
            check_target(path)
            started = False
    except OSError as error:
        if started:
            raise
        raise InputError(f"build folder {path} must be writable: {error.strerror}") from None


def check_target(path: Path) -> None:
    """Check that a build can be written to `path`. Raises InputError if it is something else, or below a file."""
    if path.is_symlink() or (path.exists() and not path.is_dir()):
        raise InputError(f"build folder {path} must be a new folder or an older build, not a file")
    if path.is_dir() and any(path.iterdir()) and not (path / MANIFEST).is_file():
        raise InputError(f"build folder {path} must be a new folder or an older build, not a folder of other files")
    reason = why_not_writable(path)
    if reason is not None:
        raise InputError(f"build folder {path} must be writable: {reason}")


def why_not_writable(path: Path) -> str | None:
    """Why no file or folder `path` can be created; None if nothing is known to prevent it."""
    there = path
    while not there.exists() and there != there.parent:
        there = there.parent
    if there != path and not there.is_dir():
        return os.strerror(errno.ENOTDIR)
    return None if os.access(there, os.W_OK) else os.strerror(errno.EACCES)


def _is_ours(name: str) -> bool:
    """Whether a file in a build folder belongs to the build; other files are left alone."""
    known = r"manifest\.json|seal\.txt|weights\.bin|report\.(json|html)|program.*\.bin|host\..*|\d_.*\.relay"
    return re.fullmatch(known, name) is not None


def replace_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files into an existing folder, each whole or not at all. Raises OSError."""
    for name, data in files.items():
        durable.write_file(folder / name, data)
