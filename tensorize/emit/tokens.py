"""Assigns semaphores: finds which instructions must wait for which, and orders them with the fewest tokens.

In: instructions in program order with the absolute ranges they touch. Out: wait and set masks.
Each ordered pair of units has one semaphore: units work in order, so its k-th token belongs to its k-th waiter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from relay_hw.accel.isa.config import SEMAPHORES, AccelConfig
from relay_hw.accel.isa.ordering import PAIRS
from relay_hw.accel.isa.spec import Mem, Unit
from relay_hw.accel.isa.state import depth
from relay_hw.tensorize.access import Space


@dataclass(frozen=True, slots=True)
class Range:
    """Absolute entries of a scratchpad, or bytes of DRAM, [begin, end)."""

    space: Space
    begin: int
    end: int
    write: bool


@dataclass(frozen=True, slots=True)
class Masks:
    """Semaphores that one instruction waits for and sets."""

    wait: int
    set: int


class _Memory:
    """Index of the last instruction of each unit that read and wrote each cell; -1 for none."""

    def __init__(self, cells: int, cell: int, exclusive: bool) -> None:
        self.cell = cell
        self.exclusive = exclusive
        self.read: NDArray[np.int32] = np.full((len(Unit), cells), -1, np.int32)
        self.written: NDArray[np.int32] = np.full((len(Unit), cells), -1, np.int32)

    def where(self, touched: Range) -> slice:
        return slice(touched.begin // self.cell, -(-touched.end // self.cell))

    def conflicts(self, touched: Range) -> NDArray[np.int32]:
        """For each unit the last instruction that must be over before this access."""
        where = self.where(touched)
        last = self.written[:, where].max(axis=1)
        if touched.write or self.exclusive:
            last = np.maximum(last, self.read[:, where].max(axis=1))
        return last

    def note(self, touched: Range, unit: Unit, index: int) -> None:
        target = self.written if touched.write else self.read
        target[unit, self.where(touched)] = index


def assign_tokens(
    instructions: Sequence[tuple[Unit, Sequence[Range]]], config: AccelConfig, window_bytes: int
) -> list[Masks]:
    """Masks for instructions in program order, so that every conflict between units is ordered as written.

    An instruction waits only for what is not known to be over already from what its unit waited for before.
    """
    memories = _memories(config, window_bytes)
    waits, sets = [0] * len(instructions), [0] * len(instructions)
    # known[i][u]: the last instruction of unit u that is over when instruction i starts.
    known: list[list[int]] = []
    of_unit = {unit: [-1] * len(Unit) for unit in Unit}
    for index, (unit, ranges) in enumerate(instructions):
        need = _needs(memories, unit, ranges)
        now = list(of_unit[unit])
        for giver in sorted(Unit, key=lambda u: -need[u]):
            last = need[giver]
            if giver is unit or last <= now[giver]:
                continue
            bit = 1 << PAIRS[giver, unit]
            waits[index] |= bit
            sets[last] |= bit
            now = [max(a, b) for a, b in zip(now, known[last], strict=True)]
            now[giver] = max(now[giver], last)
        known.append(now)
        of_unit[unit] = now
        for touched in ranges:
            memories[touched.space].note(touched, unit, index)
    return [Masks(wait, give) for wait, give in zip(waits, sets, strict=True)]


def most_open(masks: Sequence[Masks]) -> int:
    """The most tokens of a semaphore that are given before, in program order, they are taken."""
    gives, takes = (np.array([mask.set for mask in masks], np.int64), np.array([mask.wait for mask in masks], np.int64))
    found = [
        np.cumsum(gives >> bit & 1) - np.cumsum(takes >> bit & 1) + (takes >> bit & 1) for bit in range(SEMAPHORES)
    ]
    return int(max(column.max(initial=0) for column in found))


def _memories(config: AccelConfig, window_bytes: int) -> dict[Space, _Memory]:
    memories = {Space(mem): _Memory(depth(config, mem), 1, False) for mem in Mem if mem is not Mem.ACC}
    # A bank of the accumulator belongs to one unit at a time.
    memories[Space.ACC] = _Memory(config.acc_banks, config.acc_bank_depth, True)
    # A table cannot be looked up while any of them is written.
    memories[Space.TAB] = _Memory(1, max(1, config.tab_depth), False)
    # No row is computed while coefficients are written.
    memories[Space.COF] = _Memory(1, max(1, config.cof_depth), False)
    granule = config.granule_bytes
    memories[Space.DRAM] = _Memory(-(-window_bytes // granule), granule, False)
    return memories


def _needs(memories: dict[Space, _Memory], unit: Unit, ranges: Sequence[Range]) -> list[int]:
    need = np.full(len(Unit), -1, np.int32)
    for touched in ranges:
        need = np.maximum(need, memories[touched.space].conflicts(touched))
    need[unit] = -1
    return need.tolist()
