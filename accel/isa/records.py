"""Converts micro-ops and requantization parameters to the bytes that LOAD brings into their memories, and back.

In: numpy arrays of fields. Out: little-endian uint8 arrays as they lie in DRAM. Field positions come from `spec`.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from relay_hw.accel.isa.config import TABLE_RESULTS
from relay_hw.accel.isa.errors import EncodeError
from relay_hw.accel.isa.fields import Field, Layout
from relay_hw.accel.isa.spec import COF, PRM, TAB, UOP

Bytes = NDArray[np.uint8]

# Largest shift of the output stage; the record's field is wider.
MAX_SHIFT = 62


def encode_uops(dst: ArrayLike, src: ArrayLike, wgt: ArrayLike = 0, first: ArrayLike = 0) -> Bytes:
    """uint8 [n * 8] of n micro-ops; the arguments are integers [n] or scalars. Raises EncodeError naming the field."""
    return _pack(UOP, {"dst": dst, "src": src, "wgt": wgt, "first": first})


def decode_uops(data: Bytes) -> dict[str, NDArray[np.int64]]:
    """Fields of micro-ops, int64 [n] each, from uint8 [n * 8]."""
    return _unpack(UOP, data)


def encode_prm(
    bias: ArrayLike,
    multiplier: ArrayLike,
    shift: ArrayLike,
    y_zero: ArrayLike = 0,
    r_zero: ArrayLike = 0,
    multiplier_bits: int = 31,
) -> Bytes:
    """uint8 [lanes * 16] of parameter records; the arguments are integers of one shape or scalars, lane fastest.

    An entry of the parameter memory is BLOCK_OUT consecutive lanes. `multiplier_bits` is the configuration's: a
    multiplier must fit multiplier_bits + 1 bits, signed. Raises EncodeError naming the field.
    """
    bound = 1 << multiplier_bits
    _check_bounds("prm.multiplier", multiplier, -bound, bound - 1)
    _check_bounds("prm.shift", shift, 0, MAX_SHIFT)
    values = {"bias": bias, "multiplier": multiplier, "shift": shift, "y_zero": y_zero, "r_zero": r_zero}
    return _pack(PRM, values)


def decode_prm(data: Bytes) -> dict[str, NDArray[np.int64]]:
    """Fields of parameter records, int64 [lanes] each, from uint8 [lanes * 16]."""
    return _unpack(PRM, data)


def encode_tables(results: NDArray[np.int8]) -> Bytes:
    """uint8 [n * 1024] of n tables, int8 [n, 256]: the result for -128 first."""
    return _pack(TAB, {"even": results[:, 0::2].reshape(-1), "odd": results[:, 1::2].reshape(-1)})


def decode_tables(data: Bytes) -> NDArray[np.int8]:
    """Tables, int8 [n, 256], from uint8 [n * 1024]."""
    columns = _unpack(TAB, data)
    return np.stack([columns["even"], columns["odd"]], axis=1).astype(np.int8).reshape(-1, TABLE_RESULTS)


def encode_cof(gain: ArrayLike, bias: ArrayLike) -> Bytes:
    """uint8 [columns * 8] of coefficients of a norm's columns; integers of one shape or scalars.

    An entry of the coefficient memory is BLOCK_OUT / 4 columns; those behind a row's last column are zero.
    """
    return _pack(COF, {"gain": gain, "bias": bias})


def encode_exponentials(table: NDArray[np.uint16], lanes: int) -> Bytes:
    """uint8 [256 * lanes * 8] of a softmax's table, uint16 [256], once for each of the row unit's `lanes`."""
    return _pack(COF, {"gain": np.repeat(table.view(np.int16), lanes), "bias": 0})


def decode_cof(data: Bytes) -> dict[str, NDArray[np.int64]]:
    """Fields of coefficients, int64 [columns] each, from uint8 [columns * 8]."""
    return _unpack(COF, data)


def _pack(layout: Layout, values: Mapping[str, ArrayLike]) -> Bytes:
    columns = {key: np.asarray(value) for key, value in values.items()}
    for key, column in columns.items():
        if column.dtype.kind not in "iub":
            raise EncodeError(f"{layout.name}.{key} must be integers, not {column.dtype}")
    shape = np.broadcast_shapes(*(column.shape for column in columns.values()))
    words = np.zeros((int(np.prod(shape, dtype=np.int64)), layout.width // 64), np.uint64)
    for field in layout.fields:
        column = columns[field.name]
        _check_bounds(f"{layout.name}.{field.name}", column, field.low_value, field.high_value)
        flat = np.broadcast_to(column, shape).reshape(-1).astype(np.int64).view(np.uint64)
        word, lo = divmod(field.lo, 64)
        words[:, word] |= (flat & np.uint64((1 << field.width) - 1)) << np.uint64(lo)
    return words.astype("<u8").view(np.uint8).reshape(-1)


def _unpack(layout: Layout, data: Bytes) -> dict[str, NDArray[np.int64]]:
    size = layout.width // 8
    if data.size % size:
        raise EncodeError(f"{layout.name} records must be a multiple of {size} bytes, not {data.size}")
    words = np.ascontiguousarray(data).view("<u8").reshape(-1, layout.width // 64)
    return {field.name: _column(words, field) for field in layout.fields}


def _column(words: NDArray[np.uint64], field: Field) -> NDArray[np.int64]:
    word, lo = divmod(field.lo, 64)
    # Shift to the top and back down, so that the sign comes along.
    top = (words[:, word] << np.uint64(64 - lo - field.width)).view(np.int64)
    if field.signed:
        return top >> (64 - field.width)
    return (top >> (64 - field.width)) & ((1 << field.width) - 1)


def _check_bounds(name: str, values: ArrayLike, low: int, high: int) -> None:
    array = np.asarray(values)
    if not array.size:
        return
    smallest, largest = int(array.min()), int(array.max())
    if smallest < low or largest > high:
        wrong = smallest if smallest < low else largest
        raise EncodeError(f"{name} must be from {low} to {high}, not {wrong}")
