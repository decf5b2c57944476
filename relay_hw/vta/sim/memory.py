"""LOAD and STORE: blocks of rows between DRAM and a buffer.

In: a state, an instruction, the choices of an implementation. Out: the state, changed in place. Raises SimulationError.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from relay_hw.vta.geometry import Buffer
from relay_hw.vta.isa import Memory
from relay_hw.vta.sim.choices import Choices
from relay_hw.vta.sim.state import SimulationError, State


def load(state: State, insn: Memory, choices: Choices) -> None:
    """Fill a buffer. An instruction of no entries does nothing."""
    buffer = insn.memory_type
    if buffer is Buffer.OUT or (buffer is Buffer.ACC_8BIT and not choices.loads_bytes):
        raise SimulationError(f"LOAD must be to a buffer that it fills, not to {buffer.name}")
    if not insn.x_size:
        return
    top, bottom, left, right = pads(insn, choices)
    place = state.of(buffer)
    # Micro-ops are a row; what says more is not read.
    height = 1 if buffer is Buffer.UOP else insn.y_size
    rows, columns = top + height + bottom, left + insn.x_size + right
    first = insn.sram_base
    if first + rows * columns > len(place):
        raise SimulationError(f"entries of {buffer.name} must be below {len(place)}, not {first + rows * columns - 1}")
    block = np.zeros((rows, columns, *place.shape[1:]), place.dtype)
    for y in range(height):
        block[top + y, left : left + insn.x_size] = _read(state, insn, insn.dram_base + y * insn.x_stride)
    place[first : first + rows * columns] = block.reshape(-1, *place.shape[1:])


def pads(insn: Memory, choices: Choices) -> tuple[int, int, int, int]:
    """Rows and columns of zeros that an implementation writes: above, below, on the left, on the right."""
    buffer = insn.memory_type
    given = (insn.y_pad_0, insn.y_pad_1, insn.x_pad_0, insn.x_pad_1)
    none = {
        Buffer.UOP: True,
        Buffer.WGT: not choices.pads_wgt,
        Buffer.ACC: not choices.pads_acc,
        Buffer.ACC_8BIT: not choices.pads_acc,
    }
    return (0, 0, 0, 0) if none.get(buffer, False) else given


def store(state: State, insn: Memory, choices: Choices) -> None:
    """Write rows of OUT to DRAM; without that buffer, the low bytes of ACC."""
    if insn.memory_type is not Buffer.OUT:
        raise SimulationError(f"STORE must be from OUT, not from {insn.memory_type.name}")
    count = insn.y_size * insn.x_size
    if not count:
        return
    first = insn.sram_base
    if first + count > len(state.out):
        raise SimulationError(f"entries of OUT must be below {len(state.out)}, not {first + count - 1}")
    source = state.out if choices.out_buffer else state.acc.astype(np.int8)
    rows = source[first : first + count].reshape(insn.y_size, -1)
    for y in range(insn.y_size):
        where = state.dram.span(insn.dram_base + y * insn.x_stride, insn.x_size, state.geometry.entry_bytes(Buffer.OUT))
        state.dram.data[where] = rows[y].view(np.uint8)


def _read(state: State, insn: Memory, entry: int) -> NDArray[Any]:
    """One row of DRAM as entries."""
    buffer = insn.memory_type
    place = state.of(buffer)
    where = state.dram.span(entry, insn.x_size, state.geometry.entry_bytes(buffer))
    data = state.dram.data[where]
    narrow = data.view(np.int8) if buffer is Buffer.ACC_8BIT else data.copy().view(place.dtype)
    return narrow.reshape(insn.x_size, *place.shape[1:])
