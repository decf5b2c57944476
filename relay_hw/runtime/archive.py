"""Reads arrays of untrusted .npz files lazily, only the rows that are needed, within limits.

In: a path. Out: `Archive`, a mapping of names to arrays. Every refusal is one sentence.
"""

from __future__ import annotations

import math
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from relay_hw.errors import InputError
from relay_hw.limits import is_countable
from relay_hw.runtime.given import check_npz

# Bytes of one array as it lies in memory; a compressed file of a thousandth of it may say that it holds that.
MOST_BYTES: Final = 8 << 30
# Each has a header that is read, some 80 us.
MOST_ARRAYS: Final = 10_000
SUFFIX: Final = ".npy"
# Others take as much memory as their headers say.
_COMPRESSIONS: Final = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
# Bytes in front of a member, its name aside.
_LOCAL_HEADER: Final = 30
# Exceptions of the readers of zip files, headers and data for damaged, encrypted or malicious archives.
_DAMAGE = (
    OSError,
    ValueError,
    EOFError,
    KeyError,
    OverflowError,
    RuntimeError,
    SyntaxError,
    TypeError,
    struct.error,
    tokenize.TokenError,
    zipfile.BadZipFile,
    zlib.error,
)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Header:
    """The header of an array: what precedes its data."""

    shape: tuple[int, ...]
    is_fortran: bool
    dtype: np.dtype[Any]

    @property
    def data_bytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


class Archive(Mapping[str, NDArray[Any]]):
    """The arrays of `path`, which messages call `what`; of each the first `samples` rows where all have as many.

    Raises InputError: missing, no .npz, damaged, larger than `most_bytes` each, with Python objects inside.
    """

    def __init__(self, path: Path, what: str, samples: int | None = None, most_bytes: int = MOST_BYTES) -> None:
        check_npz(path, what)
        self._path, self._what, self._most_bytes = path, what, most_bytes
        # Open as long as this lives: the list of members is read once, not for each array.
        self._file = self._guarded(lambda: zipfile.ZipFile(path))
        self._members: dict[str, zipfile.ZipInfo] = {}
        self._headers = self._guarded(self._read_headers)
        self._read: dict[str, NDArray[Any]] = {}
        counts = {header.shape[0] for header in self._headers.values() if header.shape}
        # If counts differ, the reader of all of these arrays must see it.
        self._samples = samples if len(counts) == 1 else None

    def __getitem__(self, name: str) -> NDArray[Any]:
        if name not in self._headers:
            raise KeyError(name)
        if name not in self._read:
            self._read[name] = self._guarded(lambda: self._array(name))
        return self._read[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._headers)

    def __len__(self) -> int:
        return len(self._headers)

    def _read_headers(self) -> dict[str, _Header]:
        found: dict[str, _Header] = {}
        if len(self._file.infolist()) > MOST_ARRAYS:
            raise ValueError(f"it must hold at most {MOST_ARRAYS:,} arrays, not {len(self._file.infolist()):,}")
        _check_apart(self._file.infolist())
        for member in self._file.infolist():
            name = member.filename.removesuffix(SUFFIX)
            if name in found:
                raise ValueError(f"array {name} must occur once")
            if member.compress_type not in _COMPRESSIONS:
                raise ValueError(f"array {name} must be stored or deflated, as numpy writes it")
            with self._file.open(member) as stream:
                found[name] = _header(stream, name)
            self._members[name] = member
        return found

    def _array(self, name: str) -> NDArray[Any]:
        with self._file.open(self._members[name]) as stream:
            header = _header(stream, name)
            rows = self._rows(header)
            shape = (rows, *header.shape[1:]) if header.shape else ()
            size = math.prod(shape) * header.dtype.itemsize
            if size > self._most_bytes:
                raise ValueError(f"array {name} must take at most {self._most_bytes:,} bytes, not {size:,}")
            if not is_countable(shape, header.dtype.itemsize):
                raise ValueError(f"array {name} must have a size that fits into 64 bits, not {shape}")
            data = _exactly(stream, size, name)
        array = np.frombuffer(data, header.dtype)
        return array.reshape(shape[::-1]).T if header.is_fortran else array.reshape(shape)

    def _rows(self, header: _Header) -> int:
        """Number of rows to read: all in Fortran order, where rows are interleaved."""
        count = header.shape[0] if header.shape else 1
        return count if self._samples is None or header.is_fortran else min(count, max(self._samples, 0))

    def _guarded(self, read: Callable[[], T]) -> T:
        try:
            return read()
        except MemoryError:
            raise InputError(f"{self._what} {self._path} must fit the memory of this machine") from None
        except _DAMAGE as error:
            raise InputError(f"{self._what} {self._path} must hold plain arrays only: {error}") from None


def _check_apart(members: Iterable[zipfile.ZipInfo]) -> None:
    """Refuse members that share bytes of the file: a zip bomb. Raises ValueError."""
    end, before = 0, ""
    for member in sorted(members, key=lambda member: member.header_offset):
        if member.header_offset < end:
            raise ValueError(f"array {member.filename} must not overlap array {before}")
        end, before = member.header_offset + _LOCAL_HEADER + member.compress_size, member.filename


def _header(stream: IO[bytes], name: str) -> _Header:
    """Read the header of an array, which `stream` starts with. Raises ValueError."""
    version = np.lib.format.read_magic(stream)
    readers = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    if version not in readers:
        raise ValueError(f"array {name} must be of version 1.0 or 2.0, not {version[0]}.{version[1]}")
    shape, is_fortran, dtype = readers[version](stream)
    if dtype.hasobject:
        raise ValueError(f"array {name} must hold numbers, not Python objects")
    if dtype.names is not None or dtype.subdtype is not None:
        raise ValueError(f"array {name} must hold numbers, not {dtype}")
    if any(size < 0 for size in shape):
        raise ValueError(f"array {name} must have sizes of at least 0, not {shape}")
    return _Header(shape, is_fortran, dtype)


def _exactly(stream: IO[bytes], size: int, name: str) -> bytearray:
    """The next `size` bytes, read in chunks: the header may claim more than there is. Raises ValueError."""
    data = bytearray()
    while len(data) < size:
        piece = stream.read(min(size - len(data), 1 << 24))
        if not piece:
            raise ValueError(f"array {name} must hold {size:,} bytes, not {len(data):,}")
        data += piece
    return data
