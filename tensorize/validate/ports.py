"""Where the elements of a region's inputs and outputs lie in DRAM: the host's side of the program.

In: ports. Out: byte places for each element; an input's bytes as the runtime writes them, padding included.
"""

from __future__ import annotations

import numpy as np

from relay_hw.accel.isa.config import AccelConfig
from relay_hw.accel.isa.program import Program, TensorLayout
from relay_hw.errors import TensorizeError
from relay_hw.tensorize.segment import Port
from relay_hw.tensorize.validate.memories import Memories, constant_bytes
from relay_hw.tensorize.validate.terms import Numbers, Terms


def places(port: Port, config: AccelConfig) -> tuple[Numbers, int]:
    """For each element of a port, in its Relay shape, the byte of its tensor; and the bytes that the tensor takes."""
    height, width, channels = _image(port.shape)
    match port.layout:
        case TensorLayout.NHWC:
            pixel = -(-channels // config.channel_align) * config.channel_align
            row = width * pixel
        case TensorLayout.ROWS:
            pixel = channels
            row = -(-width * channels // config.granule_bytes) * config.granule_bytes
        case TensorLayout.TILES:
            pixel = -(-channels // config.block_in) * config.block_in
            row = -(-width // config.block_out) * config.block_out * pixel
        case TensorLayout.FLAT:
            raise TensorizeError(f"layout of {port.name} must be nhwc, rows or tiles, not flat")
    y, x, c = np.indices((height, width, channels))
    found: Numbers = y * row + x * pixel + c
    if port.layout is TensorLayout.TILES:
        lanes, block = config.block_out, config.block_in
        found = y * row + x // lanes * lanes * pixel + c // block * lanes * block + x % lanes * block + c % block
    plain = found.transpose(2, 0, 1)[None] if len(port.shape) == 4 else found.reshape(port.shape)
    return plain, height * row


def _image(shape: tuple[int, ...]) -> tuple[int, int, int]:
    """Rows, columns and channels of [1, C, H, W], [H, W, C] or [W, C]."""
    if len(shape) == 4:
        return (shape[2], shape[3], shape[1])
    height, width, channels = (1, 1, *shape)[-3:]
    return (height, width, channels)


def write_input(state: Memories, program: Program, port: Port, terms: Terms) -> None:
    """The tensor as the host writes it: what belongs to no element is zero."""
    where, size = places(port, state.config)
    begin = program.tensor_offset(port.name)
    state.dram.put(slice(begin, begin + size), constant_bytes(0, (size,)))
    state.dram.put(begin + where, terms)
