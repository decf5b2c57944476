"""The state of a VTA: its buffers, micro-ops and DRAM, and the error of an instruction that has no meaning.

In: a geometry. Out: arrays that instructions change in place.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from relay_hw.errors import RelayHwError
from relay_hw.vta.geometry import Buffer, Geometry

# What buffers hold before anything is written, so that nobody takes it for zeros.
_JUNK: Final = 0x5B


class SimulationError(RelayHwError):
    """An instruction that has no meaning, or a program that stands still."""


@dataclass(slots=True)
class Dram:
    """Bytes of memory from the physical address `base` on."""

    data: NDArray[np.uint8]
    base: int = 0

    def span(self, entry: int, count: int, entry_bytes: int) -> slice:
        """Where `count` entries from an address in entries on lie. Raises SimulationError."""
        begin = entry * entry_bytes - self.base
        if begin < 0 or begin + count * entry_bytes > len(self.data):
            end = self.base + len(self.data)
            raise SimulationError(f"addresses must be in [{self.base:#x}, {end:#x}), not {entry * entry_bytes:#x}")
        return slice(begin, begin + count * entry_bytes)


@dataclass(slots=True)
class State:
    """Buffers by entries: INP and OUT int8 [entry, row, lane], WGT int8 [entry, out, in], ACC int32."""

    geometry: Geometry
    dram: Dram
    uop: NDArray[np.uint32]
    inp: NDArray[np.int8]
    wgt: NDArray[np.int8]
    acc: NDArray[np.int32]
    out: NDArray[np.int8]

    def of(self, buffer: Buffer) -> NDArray[Any]:
        """The array of a buffer."""
        arrays = {Buffer.UOP: self.uop, Buffer.INP: self.inp, Buffer.WGT: self.wgt, Buffer.OUT: self.out}
        return arrays.get(buffer, self.acc)


def new_state(geometry: Geometry, dram: Dram) -> State:
    """A machine that has run nothing: its buffers hold junk."""
    rows, lanes = geometry.batch, geometry.block

    def junk(buffer: Buffer, dtype: Any, *shape: int) -> NDArray[Any]:
        size = geometry.depth(buffer) * geometry.entry_bytes(buffer)
        noise = (np.arange(size, dtype=np.uint32) * 2654435761 >> 13).astype(np.uint8) ^ _JUNK
        return noise.view(dtype).reshape(geometry.depth(buffer), *shape)

    return State(
        geometry,
        dram,
        junk(Buffer.UOP, np.uint32),
        junk(Buffer.INP, np.int8, rows, lanes),
        junk(Buffer.WGT, np.int8, lanes, lanes),
        junk(Buffer.ACC, np.int32, rows, lanes),
        junk(Buffer.OUT, np.int8, rows, lanes),
    )
