"""Bytes that a program moves over the bus, by kind, as profiles and reports count them.

In: the work of every instruction and its owner. Out: `Traffic` by owner. It depends on the program alone, on no memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass
from functools import reduce
from operator import add

from typing_extensions import assert_never

from relay_hw.accel.isa.config import INSTRUCTION_BYTES, AccelConfig
from relay_hw.accel.isa.spec import Mem, Unit
from relay_hw.accel.isa.stream import Instr
from relay_hw.accel.sim.cycle.unit_work import Work, work_of


@dataclass(frozen=True, slots=True)
class Traffic:
    """Bytes read: weights, records of parameters, tables and coefficients, micro-ops and activations; bytes written:
    activations; and instructions, which are fetched. Padding of lines and channels is among them, padding that no byte
    is read for is not."""

    weights: int = 0
    records: int = 0
    uops: int = 0
    activations_read: int = 0
    activations_written: int = 0
    instructions: int = 0

    @property
    def read(self) -> int:
        """Bytes that loads bring; instructions are apart."""
        return self.weights + self.records + self.uops + self.activations_read

    @property
    def written(self) -> int:
        """Bytes that stores take away."""
        return self.activations_written

    @property
    def total(self) -> int:
        """All that crosses the bus, either way."""
        return self.read + self.written + self.instructions

    def __add__(self, other: Traffic) -> Traffic:
        return Traffic(*map(add, astuple(self), astuple(other)))

    def __mul__(self, times: int) -> Traffic:
        return Traffic(*(part * times for part in astuple(self)))


NO_TRAFFIC = Traffic()


def total_traffic(parts: Iterable[Traffic]) -> Traffic:
    """The sum of several counts."""
    return reduce(add, parts, NO_TRAFFIC)


def program_works(config: AccelConfig, instructions: Iterable[Instr]) -> list[Work]:
    """The work of every instruction."""
    return [work_of(config, op, values) for op, values in instructions]


def traffic_by_owner(works: Sequence[Work], owners: Sequence[int], config: AccelConfig) -> dict[int, Traffic]:
    """Bytes that the instructions of each owner move, their own among them."""
    found: dict[int, Traffic] = {}
    for work, owner in zip(works, owners, strict=True):
        found[owner] = found.get(owner, NO_TRAFFIC) + _moved(work, config.bus_bytes)
    return found


def _moved(work: Work, bus_bytes: int) -> Traffic:
    moved, own = work.beats * bus_bytes, INSTRUCTION_BYTES
    if work.mem is None:
        return Traffic(instructions=own)
    if work.unit is Unit.STORE:
        return Traffic(activations_written=moved, instructions=own)
    match work.mem:
        case Mem.WGT:
            return Traffic(weights=moved, instructions=own)
        case Mem.PRM | Mem.TAB | Mem.COF:
            return Traffic(records=moved, instructions=own)
        case Mem.UOP:
            return Traffic(uops=moved, instructions=own)
        case Mem.INP | Mem.ACC | Mem.OUT:
            return Traffic(activations_read=moved, instructions=own)
        case _:
            assert_never(work.mem)
