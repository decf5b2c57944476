"""Parameter files: `.params`, as TVM's save_param_dict writes them. In: arrays by name, or bytes. Out: the other."""

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
        try:
            parts.append(array_bytes(np.asarray(value)))
        except ValueError as error:
            raise InputError(f"parameter {name}: {error}") from None
    return b"".join(parts)


def load_param_dict(data: bytes | bytearray) -> dict[str, np.ndarray]:
    """The arrays of a `.params` file by name. Raises InputError."""
    reader = _Reader(bytes(data))
    try:
        magic, _ = reader.count(), reader.count()
        if magic != _MAGIC:
            raise InputError(f"parameter file must begin with its mark, not {magic:#x}")
        names = [reader.text(reader.count()) for _ in range(reader.length("names"))]
        if reader.length("arrays") != len(names):
            raise InputError(f"parameter file must have an array for each of its {len(names)} names")
        return {name: reader.array() for name in names}
    except (struct.error, UnicodeDecodeError):
        raise InputError("parameter file must be whole: it ends in the middle") from None
    except MetadataError as error:
        raise InputError(f"parameter file: {error}") from None


class _Reader:
    """A place in the bytes."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._place = 0

    def count(self) -> int:
        (value,) = _COUNT.unpack_from(self._data, self._place)
        self._place += _COUNT.size
        return value

    def length(self, what: str) -> int:
        """A number of things, each of which takes at least eight bytes."""
        found = self.count()
        if found > (len(self._data) - self._place) // _COUNT.size:
            raise InputError(f"parameter file must hold its {found} {what}, not {len(self._data)} bytes")
        return found

    def text(self, size: int) -> str:
        raw = self._data[self._place : self._place + size]
        if len(raw) != size:
            raise InputError("parameter file must be whole: it ends in the middle")
        self._place += size
        return raw.decode()

    def array(self) -> np.ndarray:
        found, self._place = read_array(self._data, self._place)
        return found
