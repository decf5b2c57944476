"""Reads and writes TVM's `.params` files. In: arrays by name, or bytes. Out: the other."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from relay_hw.errors import InputError
from relay_hw.text.metadata import MetadataError, array_bytes, read_array

_MAGIC: Final = 0xF7E58D4F05049CB7
_COUNT: Final = struct.Struct("<Q")


def save_param_dict(params: Mapping[str, Any]) -> bytes:
    """The bytes of a `.params` file with `params` by name. Raises InputError for what is no array of numbers."""
    parts = [struct.pack("<QQQ", _MAGIC, 0, len(params))]
    for name in params:
        encoded = name.encode()
        parts += [_COUNT.pack(len(encoded)), encoded]
    parts.append(_COUNT.pack(len(params)))
    for name, value in params.items():
        array = np.asarray(value)
        try:
            parts.append(array_bytes(array))
        except ValueError:
            raise InputError(f"parameter {name} must hold numbers or booleans, not {array.dtype}") from None
    return b"".join(parts)


def load_param_dict(data: bytes | bytearray) -> dict[str, np.ndarray]:
    """The arrays of a `.params` file by name. Raises InputError."""
    reader = _Reader(bytes(data))
    magic, _ = reader.count(), reader.count()
    if magic != _MAGIC:
        raise InputError(f"parameter file must begin with the mark of a list of arrays, not {magic:#x}")
    names = [reader.text() for _ in range(reader.length("names"))]
    count = reader.length("arrays")
    if count != len(names):
        raise InputError(f"parameter file must have an array for each of its {len(names)} names, not {count}")
    found: dict[str, np.ndarray] = {}
    for name in names:
        if name in found:
            raise InputError(f"parameter file must have an array once, unlike {name}")
        found[name] = reader.array(name)
    reader.end()
    return found


class _Reader:
    """A place in the bytes."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._place = 0

    @property
    def _left(self) -> int:
        return len(self._data) - self._place

    def _take(self, size: int) -> bytes:
        if size > self._left:
            raise InputError(
                f"parameter file must be whole: it must have {size} more bytes at {self._place}, not {self._left}"
            )
        self._place += size
        return self._data[self._place - size : self._place]

    def end(self) -> None:
        """Raise InputError if there are more bytes."""
        if self._left:
            raise InputError(f"parameter file must end behind its last array, not {self._left} bytes later")

    def count(self) -> int:
        return _COUNT.unpack(self._take(_COUNT.size))[0]

    def length(self, what: str) -> int:
        """A count of items of at least eight bytes each."""
        found = self.count()
        if found > self._left // _COUNT.size:
            raise InputError(f"parameter file must hold its {found} {what}, not {len(self._data)} bytes")
        return found

    def text(self) -> str:
        raw = self._take(self.count())
        try:
            return raw.decode()
        except UnicodeDecodeError:
            raise InputError(f"names in a parameter file must be UTF-8, not {raw[:60]!r}") from None

    def array(self, name: str) -> np.ndarray:
        try:
            found, self._place = read_array(self._data, self._place)
        except struct.error:
            raise InputError(f"parameter file must be whole: it ends within parameter {name}") from None
        except MetadataError as error:
            raise InputError(f"parameter {name} of the parameter file cannot be read: {error}") from None
        return found
