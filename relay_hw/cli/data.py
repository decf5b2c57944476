"""Writing `.npz` and text files atomically, and accuracy of outputs against labels.

In: paths from users, arrays. Out: files that appear whole or not at all. Every refusal is one sentence.
"""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from relay_hw.errors import InputError
from relay_hw.support import durable

Arrays = Mapping[str, NDArray[Any]]


def save_npz(path: Path, arrays: Arrays) -> None:
    """Write arrays, whole or not at all; the same arrays give the same bytes. Raises InputError."""
    broken = next((name for name in arrays if "\0" in name), None)
    if broken is not None:
        raise InputError(f"output {path} must have names without a zero byte, not {broken!r}")
    _replace(path, lambda stream: _write_npz(stream, arrays))


def _write_npz(stream: BinaryIO, arrays: Arrays) -> None:
    """Write like numpy.savez, which cannot write an array named `file`."""
    with zipfile.ZipFile(stream, "w") as archive:
        for name, array in arrays.items():
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)


def save_text(path: Path, text: str) -> None:
    """Write text, whole or not at all. Raises InputError."""
    _replace(path, text.encode(errors="backslashreplace"))


def _replace(path: Path, contents: durable.Contents) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        durable.write_file(path, contents)
    except OSError as error:
        raise InputError(f"output {path} must be writable: {error.strerror}") from None


def accuracy(outputs: Arrays, labels: Any, given: int, samples: int, batch: int = 1) -> tuple[float | None, str]:
    """Share of the first `samples` of `given` samples whose largest output is the label, and a warning or "".

    Where samples are batches, each part of a batch has its own label. None without labels, without a single output
    of class scores, or where the labels do not fit.
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
