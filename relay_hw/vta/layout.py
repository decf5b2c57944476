"""How tensors lie in DRAM: NCHW[b]n[c]c for data, OIHW[c]o[c]i for weights, rows of int32 for parameters.

In: arrays by Relay's shapes. Out: arrays of entries, channels and batch filled up with zeros, and back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relay_hw.vta.geometry import Geometry
from relay_hw.vta.kernel import Numbers, Shape

Int8 = NDArray[np.int8]


def blocks(count: int, size: int) -> int:
    """How many blocks of `size` hold `count`."""
    return -(-count // size)


def entries(shape: Shape, geometry: Geometry) -> int:
    """Entries of a packed tensor."""
    n, c, h, w = shape
    return blocks(n, geometry.batch) * blocks(c, geometry.block) * h * w


def pack(array: NDArray[Any], shape: Shape, geometry: Geometry) -> Int8:
    """Data as [N/b, C/c, H, W, b, c]."""
    b, c = geometry.batch, geometry.block
    n, channels, h, w = shape
    full = np.zeros((blocks(n, b) * b, blocks(channels, c) * c, h, w), np.int8)
    full[:n, :channels] = np.asarray(array, np.int8).reshape(shape)
    split = full.reshape(len(full) // b, b, full.shape[1] // c, c, h, w)
    return np.ascontiguousarray(split.transpose(0, 2, 4, 5, 1, 3))


def unpack(data: Int8, shape: Shape, geometry: Geometry) -> Int8:
    """Inverse of `pack`: N, C, H, W."""
    b, c = geometry.batch, geometry.block
    n, channels, h, w = shape
    split = data.reshape(blocks(n, b), blocks(channels, c), h, w, b, c).transpose(0, 4, 1, 5, 2, 3)
    return np.ascontiguousarray(split.reshape(blocks(n, b) * b, -1, h, w)[:n, :channels])


def pack_weight(weight: Int8, geometry: Geometry) -> Int8:
    """Weights [O, I, H, W] as [O/c, I/c, H, W, c out, c in]."""
    c = geometry.block
    o, i, h, w = weight.shape
    full = np.zeros((blocks(o, c) * c, blocks(i, c) * c, h, w), np.int8)
    full[:o, :i] = weight
    split = full.reshape(len(full) // c, c, full.shape[1] // c, c, h, w)
    return np.ascontiguousarray(split.transpose(0, 2, 4, 5, 1, 3))


def scaled_identity(scales: Sequence[int], geometry: Geometry) -> Int8:
    """A block for each scale, 2**scale on the diagonal."""
    eye = np.eye(geometry.block, dtype=np.int8)
    return np.stack([eye << scale for scale in scales]).astype(np.int8)


def pack_vectors(vectors: Sequence[Numbers], geometry: Geometry) -> NDArray[np.int32]:
    """Numbers of channels as [vector, O/c, b, c], the same for each row of a batch."""
    c = geometry.block
    rows: list[NDArray[np.int32]] = []
    for vector in vectors:
        full = np.zeros(blocks(len(vector), c) * c, np.int32)
        full[: len(vector)] = vector
        rows.append(np.repeat(full.reshape(-1, 1, c), geometry.batch, axis=1))
    return np.stack(rows)
