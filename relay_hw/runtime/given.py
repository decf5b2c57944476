"""Checks input files and folders before any work: whether they exist, are of the right kind and readable.

In: paths. Out: nothing, or one sentence about what is wrong. Nothing heavy is imported.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable
from pathlib import Path

from relay_hw.errors import ArtifactError, InputError
from relay_hw.runtime.folder import MANIFEST
from relay_hw.support import durable

RELAY_SUFFIXES = (".relay", ".txt", ".json")
# Read by TVM's importers.
TVM_SUFFIXES = (".tflite", ".pt2")
# First bytes of a zip, and of one without members (APPNOTE.TXT of PKWARE, 4.3.7 and 4.3.16).
_ZIP = (b"PK\x03\x04", b"PK\x05\x06")
_MODELS = (".onnx", *RELAY_SUFFIXES, *TVM_SUFFIXES)


def check_model(path: Path) -> None:
    """Check a model file. Raises InputError: wrong suffix, missing, not readable."""
    if path.suffix not in _MODELS:
        found = path.suffix or "a file without suffix"
        raise InputError(f"model {path} must be an .onnx, .relay, .json, .tflite or .pt2 file, not {found}")
    check_text(path)


def check_text(path: Path) -> None:
    """Check a model file with any suffix. Raises InputError: missing, not readable."""
    if not path.is_file():
        raise InputError(f"model {path} must be an existing file")
    _check_readable(path, "model")


def check_npz(path: Path, what: str) -> None:
    """Check an .npz file. Raises InputError: missing, not readable, no archive."""
    if not path.is_file():
        raise InputError(f"{what} {path} must be an existing .npz file")
    _check_readable(path, what)
    if not _is_zip(path):
        raise InputError(f"{what} {path} must be an .npz file (a zip of arrays, as numpy.savez writes it)")


def check_build(path: Path) -> None:
    """Check a build folder. Raises ArtifactError."""
    if not path.exists():
        durable.recover(path)
    if (path / MANIFEST).is_file():
        return
    what = "a file" if path.is_file() else "a folder without manifest.json" if path.is_dir() else "a missing folder"
    raise ArtifactError(f"{path} must be a folder that `relay-hw compile` wrote, not {what}")


def check_npz_of(what: str) -> Callable[[Path], None]:
    """A `check_npz` whose messages call the file `what`."""
    return lambda path: check_npz(path, what)


def check_build_or_model(path: Path) -> None:
    """Check a build folder or a model file. Raises ArtifactError, InputError."""
    if path.suffix and path.is_file():
        check_model(path)
    else:
        check_build(path)


def check_build_or_program(path: Path) -> None:
    """Check a build folder or a program file. Raises ArtifactError."""
    if not path.is_file():
        check_build(path)


def _check_readable(path: Path, what: str) -> None:
    if not os.access(path, os.R_OK):
        raise InputError(f"{what} {path} must be readable: permission denied")


def _is_zip(path: Path) -> bool:
    """Whether a file starts as a zip: zipfile also accepts one after other bytes, numpy does not."""
    with path.open("rb") as file:
        begin = file.read(max(map(len, _ZIP)))
    return begin.startswith(_ZIP) and zipfile.is_zipfile(path)
