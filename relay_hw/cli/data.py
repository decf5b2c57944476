"""Files of users: `.npz` in, `.npz` and text out.

In: paths from users. Out: arrays; files appear whole or not at all. Every refusal is one sentence.
"""

from __future__ import annotations

import os
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from relay_hw.errors import InputError
from relay_hw.runtime.given import check_npz

Arrays = Mapping[str, NDArray[Any]]


def load_npz(path: Path, what: str) -> dict[str, NDArray[Any]]:
    """All arrays of a file. Raises InputError: missing, no .npz, damaged, or with Python objects inside."""
    check_npz(path, what)
    found: dict[str, NDArray[Any]] = {}
    try:
        with np.load(path, allow_pickle=False) as archive:
            for name in archive.files:
                found[name] = archive[name]
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise InputError(f"{what} {path} must hold plain arrays only: {error}") from None
    return found


def save_npz(path: Path, arrays: Arrays) -> None:
    """Write arrays, whole or not at all; the same arrays give the same bytes. Raises InputError."""
    _replace(path, lambda stream: np.savez(stream, **dict(arrays)))  # type: ignore[arg-type]


def save_text(path: Path, text: str) -> None:
    """Write text, whole or not at all. Raises InputError."""
    _replace(path, lambda stream: stream.write(text.encode()))


def _replace(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Write a file under a temporary name, then rename it. Raises InputError."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
    except OSError as error:
        raise InputError(f"output {path} must be writable: {error.strerror}") from None
    try:
        with os.fdopen(handle, "wb") as stream:
            write(stream)
        mask = os.umask(0o022)
        os.umask(mask)
        os.chmod(temporary, 0o666 & ~mask)
        os.replace(temporary, path)
    except OSError as error:
        raise InputError(f"output {path} must be writable: {error.strerror}") from None
    finally:
        Path(temporary).unlink(missing_ok=True)


def accuracy(outputs: Arrays, labels: Any, given: int, samples: int, batch: int = 1) -> tuple[float | None, str]:
    """Share of the first `samples` of `given` samples whose largest output is the label, and what is doubtful about it.

    Where samples are batches, each of their parts has a label of its own. None without labels, without a single output
    of classes, or where the labels do not fit.
    """
    from relay_hw.runtime.labels import check_labels, doubt, read_labels

    scores = next(iter(outputs.values())) if len(outputs) == 1 else None
    if batch > 1 and isinstance(scores, np.ndarray) and scores.shape[1:2] == (batch,):
        scores = scores.reshape(-1, *scores.shape[2:])
        labels = np.ravel(labels) if np.shape(labels) == (given, batch) else labels
        given, samples = given * batch, samples * batch
    if labels is None or not isinstance(scores, np.ndarray) or scores.ndim != 2:
        return None, ""
    classes = scores.shape[1]
    try:
        known = read_labels(labels, given, "the data")
        check_labels(known, classes, "the data")
    except InputError as error:
        return None, f"{error}: accuracy is not counted"
    hits = float(np.mean(scores.argmax(axis=1) == known[:samples]))
    return hits, doubt(hits, classes, samples)
