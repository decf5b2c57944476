"""TVM's `.params` files: named arrays in one file.

In: bytes as `save_param_dict` writes them. Out: arrays by name; and back, byte for byte.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from relay_hw.compat.tvm.nd import NDArray
from relay_hw.errors import InputError
from relay_hw.text.metadata import MetadataError, decode_array, encode_array

LIST_MAGIC: Final = 0xF7E58D4F05049CB7
_COUNT: Final = struct.Struct("<Q")
# Mark, reserved, device, rank, element type.
_ARRAY_HEAD: Final = struct.Struct("<QQiiiBBH")


def save_param_dict(params: Mapping[str, Any]) -> bytes:
    """`params` as the bytes of a `.params` file. Raises InputError for arrays that hold no numbers."""
    parts = [_COUNT.pack(LIST_MAGIC), _COUNT.pack(0), _COUNT.pack(len(params))]
    for name in params:
        raw = name.encode()
        parts += [_COUNT.pack(len(raw)), raw]
    parts.append(_COUNT.pack(len(params)))
    for name, value in params.items():
        try:
            parts.append(base64.b64decode(encode_array(np.asarray(value))))
        except ValueError:
            raise InputError(f"parameter {name} must hold numbers, not {np.asarray(value).dtype}") from None
    return b"".join(parts)


def load_param_dict(param_bytes: bytes | bytearray) -> dict[str, NDArray]:
    """The arrays of a `.params` file. Raises InputError for anything else."""
    reader = _Reader(bytes(param_bytes))
    if reader.number() != LIST_MAGIC:
        raise InputError("parameters must begin with the mark of a list of arrays")
    reader.number()
    names = [reader.take(reader.length()).decode("utf-8", "replace") for _ in range(reader.length())]
    count = reader.length()
    if count != len(names):
        raise InputError(f"parameters must have an array for each of {len(names)} names, not {count}")
    arrays = [NDArray(reader.array(name)) for name in names]
    return dict(zip(names, arrays, strict=True))


def save_param_dict_to_file(params: Mapping[str, Any], path: str | Path) -> None:
    """Write a `.params` file."""
    Path(path).write_bytes(save_param_dict(params))


def load_param_dict_from_file(path: str | Path) -> dict[str, NDArray]:
    """Read a `.params` file."""
    return load_param_dict(Path(path).read_bytes())


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._place = 0

    def take(self, size: int) -> bytes:
        if size > len(self._data) - self._place:
            raise InputError(f"parameters must have {size} more bytes at {self._place}, not {self._left}")
        self._place += size
        return self._data[self._place - size : self._place]

    @property
    def _left(self) -> int:
        return len(self._data) - self._place

    def number(self) -> int:
        return _COUNT.unpack(self.take(_COUNT.size))[0]

    def length(self) -> int:
        """A count, which cannot be larger than what is left."""
        value = self.number()
        if value > self._left:
            raise InputError(f"parameters must have room for {value} items, not {self._left} bytes")
        return value

    def array(self, name: str) -> np.ndarray:
        start = self._place
        rank = _ARRAY_HEAD.unpack(self.take(_ARRAY_HEAD.size))[4]
        if not 0 <= rank <= 32:
            raise InputError(f"parameter {name} must have 0 to 32 dimensions, not {rank}")
        self.take(8 * rank)
        self.take(self.length())
        try:
            return decode_array(base64.b64encode(self._data[start : self._place]).decode("ascii"))
        except MetadataError as error:
            raise InputError(f"parameter {name} cannot be read: {error}") from None
