"""Adds semaphore tokens to programs built instruction by instruction, so that no two units race.

In: instructions in program order with the cells that they touch. Out: the same instructions with `wait` and `set`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from relay_hw.accel.isa.config import SEMAPHORES
from relay_hw.accel.isa.spec import BY_OP, Mem, Op, Unit
from relay_hw.accel.isa.stream import complete

# The semaphore by which the second unit of a pair waits for the first. STORE shares no memory with COMPUTE and ROW.
PAIRS = {
    pair: number
    for number, pair in enumerate(
        (giver, taker)
        for giver in Unit
        for taker in Unit
        if giver is not taker and {giver, taker} not in ({Unit.COMPUTE, Unit.STORE}, {Unit.STORE, Unit.ROW})
    )
}
assert len(PAIRS) <= SEMAPHORES


@dataclass(frozen=True, slots=True)
class Access:
    """Entries [begin, end) of a scratchpad, an accumulator bank (`exclusive`), or bytes of DRAM."""

    space: Mem | str
    begin: int
    end: int
    writes: bool
    exclusive: bool = False

    def conflicts(self, other: Access) -> bool:
        """True when the order of the two could matter, or hardware could not serve them at once."""
        if self.space != other.space or self.end <= other.begin or other.end <= self.begin:
            return False
        return self.exclusive or self.writes or other.writes


@dataclass(slots=True)
class OrderedInstruction:
    """One instruction and what it touches."""

    op: Op
    values: dict[str, int]
    accesses: list[Access]


@dataclass(slots=True)
class TokenBuilder:
    """Instructions in program order; `add` inserts the tokens that order conflicting accesses of different units.

    Each ordered pair of units that share a memory has a semaphore; its n-th token is given by one instruction and taken
    by a later one.
    """

    steps: list[OrderedInstruction] = field(default_factory=list[OrderedInstruction])
    synced: dict[tuple[Unit, Unit], int] = field(default_factory=dict[tuple[Unit, Unit], int])

    def add(self, op: Op, values: dict[str, int], accesses: list[Access]) -> None:
        """Append one instruction, all fields but `wait` and `set` given or default."""
        step = OrderedInstruction(op, complete(op, values), accesses)
        unit = BY_OP[op].unit
        if unit is not None:
            for other in Unit:
                if other is not unit:
                    self._order(step, other, unit)
        self.steps.append(step)

    def _order(self, step: OrderedInstruction, other: Unit, unit: Unit) -> None:
        """Let `step` wait for the last conflicting instruction of `other`, unless its unit already has."""
        for index in range(len(self.steps) - 1, self.synced.get((other, unit), -1), -1):
            earlier = self.steps[index]
            if BY_OP[earlier.op].unit is not other:
                continue
            if any(a.conflicts(b) for a in step.accesses for b in earlier.accesses):
                semaphore = 1 << PAIRS[other, unit]
                earlier.values["set"] |= semaphore
                step.values["wait"] |= semaphore
                self.synced[other, unit] = index
                return

    def instructions(self) -> list[tuple[Op, dict[str, int]]]:
        """The program so far."""
        return [(step.op, step.values) for step in self.steps]
