"""The entry point of arrays: `.npz` files. In: small archives. Out: an entry; what is accepted numpy reads alike."""

from __future__ import annotations

import io
import struct
import zipfile
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, Final

import numpy as np

from relay_hw.runtime.archive import Archive
from tests.fuzz import mutate
from tests.fuzz.judge import Entry, Wrong


@cache
def _arrays() -> tuple[dict[str, Any], ...]:
    rng = np.random.default_rng(0)
    samples = rng.normal(size=(6, 3, 2)).astype(np.float32)
    return (
        {"image": samples, "labels": np.arange(6)},
        {"a": np.asfortranarray(samples[0]), "b": np.array(3.5), "c": np.zeros((0, 4), np.int8)},
        {"x": np.array([True, False]), "y": np.array([1 + 2j]), "z": np.array(["a", "bc"])},
    )


@cache
def _archives() -> tuple[bytes, ...]:
    found: list[bytes] = []
    for arrays in _arrays():
        for save in (np.savez, np.savez_compressed):
            stream = io.BytesIO()
            save(stream, **arrays)
            found.append(stream.getvalue())
    return tuple(found)


_HEADERS: Final = (
    "{'descr': '<f4', 'fortran_order': False, 'shape': (SIZE, 3), }",
    "{'descr': '|O', 'fortran_order': False, 'shape': (SIZE,), }",
    "{'descr': [('a', '<f4', (SIZE,))], 'fortran_order': False, 'shape': (2,), }",
    "{'descr': '<fSIZE', 'fortran_order': True, 'shape': (2,), }",
    "{'descr': '|VSIZE', 'fortran_order': False, 'shape': (), }",
    "{'shape': (SIZE, SIZE), 'fortran_order': 0, 'descr': '<i8'}",
    "[" * 300 + "]" * 300,
    "{'descr': '<U99999999', 'fortran_order': False, 'shape': (1,), }",
    "SIZE" * 30,
)
_SIZES: Final = (
    "0",
    "1",
    "2",
    "-1",
    "4294967296",
    "1" * 30,
    "1" * 5000,
    "True",
    "1.5",
    "None",
    "'a'",
    "10**9",
    "lambda: 0",
)


def _member(rng: Random) -> bytes:
    """An array's file of which the header is made up."""
    header = rng.choice(_HEADERS).replace("SIZE", rng.choice(_SIZES)).encode() + b"\n"
    version = rng.choice(((1, 0), (1, 0), (2, 0), (3, 0), (9, 9)))
    form = "<H" if version == (1, 0) else "<I"
    size = rng.choice((len(header), len(header), len(header), 0, 65535))
    return b"\x93NUMPY" + bytes(version) + struct.pack(form, size % (1 << 16)) + header + bytes(rng.choice((0, 24, 48)))


def _make(rng: Random) -> bytes:
    if rng.random() < 0.6:
        return mutate.bytes_of(rng, _archives())
    stream = io.BytesIO()
    with zipfile.ZipFile(
        stream, "w", rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2))
    ) as file:
        for name in rng.sample(("a.npy", "b.npy", "a", "../b.npy", "\x1b.npy", "c.txt", "é.npy"), rng.randrange(4)):
            data = _member(rng) if rng.random() < 0.7 else rng.randbytes(rng.choice((0, 5, 200)))
            file.writestr(name, data)
    return stream.getvalue()


def _take(data: bytes, folder: Path) -> None:
    path = folder / "in.npz"
    path.write_bytes(data)
    found = dict(Archive(path, "data"))
    few = dict(Archive(path, "data", samples=1))
    with np.load(path, allow_pickle=False) as wanted:
        for name, array in found.items():
            want = wanted[name]
            if array.dtype != want.dtype or array.shape != want.shape or array.tobytes() != want.tobytes():
                raise Wrong(f"array {name!a} must be numpy's")
            if few[name].tobytes() not in (want.tobytes(), want[:1].tobytes() if want.ndim else b""):
                raise Wrong(f"one sample of array {name!a} must be numpy's")
    return None


ENTRIES: Final = (Entry("npz", 10_000, ".npz", _make, _take, r"in\.npz"),)
