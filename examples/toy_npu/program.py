"""Programs of the toy NPU: dense layers one behind the other, each with its weights and its requantization.

In: values of composites. Out: bytes, an .npz without code, and back.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class DenseLayer:
    """`weight` int8 [outputs, inputs]; `bias` int32, `multiplier` and `shift` int64 [outputs]; the range of results.

    Layers read value `source`: 0 is the region's input, k the result of layer k - 1.
    """

    weight: NDArray[np.int8]
    bias: NDArray[np.int32]
    multiplier: NDArray[np.int64]
    shift: NDArray[np.int64]
    zero_point: int
    low: int
    high: int
    source: int


def to_bytes(layers: Sequence[DenseLayer]) -> bytes:
    """The program."""
    names = [field.name for field in fields(DenseLayer)]
    arrays = {f"{number}.{name}": getattr(layer, name) for number, layer in enumerate(layers) for name in names}
    file = io.BytesIO()
    np.savez(file, allow_pickle=False, **arrays)
    return file.getvalue()


def from_bytes(data: bytes) -> list[DenseLayer]:
    """Inverse of `to_bytes`. Raises ValueError for what is no program."""
    names = [field.name for field in fields(DenseLayer)]
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as file:
            count = len(file.files) // len(names)
            rows = [{name: file[f"{number}.{name}"] for name in names} for number in range(count)]
    except (OSError, KeyError, ValueError, EOFError) as error:
        raise ValueError(f"a program of the toy NPU must be an archive of layers: {error}") from None
    return [DenseLayer(**{n: int(v) if v.ndim == 0 else v for n, v in row.items()}) for row in rows]
