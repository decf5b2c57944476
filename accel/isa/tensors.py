"""Converts tensors to the bytes of the DRAM window and back, in the layouts that programs name.

In: numpy arrays of a slot's logical shape. Out: uint8 arrays of the slot's size. Every device uses these two functions.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relay_hw.accel.isa.config import AccelConfig
from relay_hw.accel.isa.errors import ProgramError
from relay_hw.accel.isa.program import TensorLayout, TensorSlot, align


def stored_shape(config: AccelConfig, slot: TensorSlot) -> tuple[int, ...]:
    """Shape in DRAM, row-major: `nhwc` pads the last axis to a multiple of `channel_align`, `flat` pads nothing.

    `rows` joins the last two axes (a row of pixels) and pads their bytes to a multiple of the granule. `tiles` cuts
    them into weight tiles: [..., blocks of pixels, blocks of channels, BLOCK_OUT, BLOCK_IN], padded to whole ones.
    """
    match slot.layout:
        case TensorLayout.FLAT:
            return slot.shape
        case TensorLayout.NHWC:
            if not slot.shape:
                raise ProgramError(f"tensor {slot.name}: shape must have a channel axis, not ()")
            return slot.shape[:-1] + (align(slot.shape[-1], config.channel_align),)
        case TensorLayout.ROWS:
            if len(slot.shape) < 2 or np.dtype(slot.dtype).itemsize != 1:
                what = f"rows must be two axes or more of bytes, not {slot.dtype}{list(slot.shape)}"
                raise ProgramError(f"tensor {slot.name}: {what}")
            return slot.shape[:-2] + (align(slot.shape[-2] * slot.shape[-1], config.granule_bytes),)
        case TensorLayout.TILES:
            if len(slot.shape) < 2 or slot.dtype != "int8":
                what = f"tiles must be two axes or more of int8, not {slot.dtype}{list(slot.shape)}"
                raise ProgramError(f"tensor {slot.name}: {what}")
            lanes, block = config.block_out, config.block_in
            pixels, channels = (-(-size // by) for size, by in zip(slot.shape[-2:], (lanes, block), strict=True))
            return (*slot.shape[:-2], pixels, channels, lanes, block)


def slot_bytes(config: AccelConfig, slot: TensorSlot) -> int:
    """Bytes that the tensor takes in DRAM."""
    return prod(stored_shape(config, slot)) * np.dtype(slot.dtype).itemsize


def pack_tensor(config: AccelConfig, slot: TensorSlot, array: NDArray[Any]) -> NDArray[np.uint8]:
    """uint8 [slot_bytes] of `array`, whose shape and dtype must be the slot's; padding is 0. Raises ProgramError."""
    if array.shape != slot.shape or array.dtype != np.dtype(slot.dtype):
        want = f"{slot.dtype}{list(slot.shape)}"
        raise ProgramError(f"tensor {slot.name} must be {want}, not {array.dtype}{list(array.shape)}")
    shape = stored_shape(config, slot)
    stored = np.zeros(_plain(slot, shape), np.dtype(slot.dtype).newbyteorder("<"))
    stored[_logical(slot)] = array.reshape(_joined(slot))
    if slot.layout is TensorLayout.TILES:
        *outer, pixels, channels, lanes, block = shape
        stored = np.ascontiguousarray(stored.reshape(*outer, pixels, lanes, channels, block).swapaxes(-3, -2))
    return stored.reshape(-1).view(np.uint8)


def unpack_tensor(config: AccelConfig, slot: TensorSlot, data: NDArray[np.uint8]) -> NDArray[Any]:
    """Array of the slot's shape and dtype from uint8 [slot_bytes]. Raises ProgramError."""
    if data.size != slot_bytes(config, slot):
        raise ProgramError(f"tensor {slot.name} must be {slot_bytes(config, slot)} bytes, not {data.size}")
    stored = np.ascontiguousarray(data).view(np.dtype(slot.dtype).newbyteorder("<"))
    shape = stored_shape(config, slot)
    stored = stored.reshape(shape)
    if slot.layout is TensorLayout.TILES:
        stored = stored.swapaxes(-3, -2).reshape(_plain(slot, shape))
    return stored[_logical(slot)].astype(slot.dtype).reshape(slot.shape)


def _plain(slot: TensorSlot, stored: tuple[int, ...]) -> tuple[int, ...]:
    """The stored shape with tiles side by side again, as pixels and channels."""
    if slot.layout is TensorLayout.TILES:
        *outer, pixels, channels, lanes, block = stored
        return (*outer, pixels * lanes, channels * block)
    return stored


def _joined(slot: TensorSlot) -> tuple[int, ...]:
    """The tensor's shape with the axes joined that its layout joins."""
    if slot.layout is TensorLayout.ROWS:
        return slot.shape[:-2] + (slot.shape[-2] * slot.shape[-1],)
    return slot.shape


def _logical(slot: TensorSlot) -> tuple[slice, ...]:
    return tuple(slice(0, extent) for extent in _joined(slot))
