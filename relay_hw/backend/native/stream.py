"""Values as streams of words, by which they enter and leave native code: the layout that `c/stream.h` reads.

In: arrays, tuples, values of data types. Out: bytes; and back.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from math import prod

import numpy as np

from relay_hw.backend.native.constructors import KnownConstructor
from relay_hw.backend.native.nodes import C_TYPES
from relay_hw.errors import EvalError
from relay_hw.interp.values import ConstructorValue, Value, show

_TENSOR, _TUPLE, _DATA = range(3)
_WORD = struct.Struct("<q")
# Ranks that a header of one piece is prepared for.
_HEADS = [struct.Struct(f"<{3 + rank}q") for rank in range(9)]
_PADDING = [b"", *(bytes(8 - rest) for rest in range(1, 8))]


class Codec:
    """Writes and reads the streams of one program, whose constructors have the numbers of their places."""

    def __init__(self, constructors: Sequence[KnownConstructor]) -> None:
        self._tags = {one.name: tag for tag, one in enumerate(constructors)}
        self._constructors = [one.made for one in constructors]
        self._numbers = {np.dtype(name): number for number, name in enumerate(C_TYPES)}
        self._dtypes = list(self._numbers)

    def encode(self, values: Sequence[Value]) -> bytes:
        """The stream of some values. Raises EvalError for a function or a reference."""
        done: list[bytes] = []
        waiting = list(values)
        # Each value before its parts, the last one first: read backwards, parts come before what they are part of.
        while waiting:
            value = waiting.pop()
            if isinstance(value, ConstructorValue):
                done.append(struct.pack("<3q", _DATA, self._tag(value), len(value.fields)))
                waiting += value.fields
            elif isinstance(value, tuple):
                done.append(struct.pack("<2q", _TUPLE, len(value)))
                waiting += value
            elif isinstance(value, (np.ndarray, np.generic)):
                done += self._tensor(np.asarray(value))
            else:
                raise EvalError(f"a value of native code must be tensors, tuples and data, not {show(value)}")
        done.reverse()
        return b"".join(done)

    def decode(self, raw: bytes) -> list[Value]:
        """The values of a stream."""
        values: list[Value] = []
        words = np.frombuffer(raw, "<i8")
        at = 0
        while at < len(words):
            kind, first, second = (*words[at : at + 3].tolist(), 0)[:3]
            if kind == _TENSOR:
                shape = tuple(words[at + 3 : at + 3 + second].tolist())
                dtype, count = self._dtypes[first & 0xFF], prod(shape)
                at += 3 + second
                values.append(np.frombuffer(raw, dtype, count, 8 * at).reshape(shape).copy())
                at += -(-count * dtype.itemsize // 8)
                continue
            size = first if kind == _TUPLE else second
            fields = tuple(values[len(values) - size :])
            del values[len(values) - size :]
            values.append(fields if kind == _TUPLE else self._data(first, fields))
            at += 2 if kind == _TUPLE else 3
        return values

    def _tag(self, value: ConstructorValue) -> int:
        tag = self._tags.get(value.name)
        if tag is None:
            raise EvalError(f"data must be of constructors that the program knows, not {show(value)}")
        self._constructors[tag] = self._constructors[tag] or value.constructor
        return tag

    def _data(self, tag: int, fields: tuple[Value, ...]) -> ConstructorValue:
        made = self._constructors[tag]
        assert made is not None, "it was made by the program, or came in before"
        return ConstructorValue(made, fields)

    def _tensor(self, array: np.ndarray) -> list[bytes]:
        """Backwards: the elements, then what they are."""
        number = self._numbers.get(array.dtype)
        if number is None:
            number = self._numbers[array.dtype] = len(self._dtypes)
            self._dtypes.append(array.dtype)
        raw = array.tobytes()
        head = (_TENSOR, number | array.dtype.itemsize << 8, array.ndim, *array.shape)
        packed = _HEADS[array.ndim].pack(*head) if array.ndim < len(_HEADS) else b"".join(map(_WORD.pack, head))
        return [_PADDING[len(raw) % 8], raw, packed]
