"""Hazards of the output stage: a slot waits while a vector before it still has to write the entry that it reads.

In: REQUANT fields. Out: the cycle of the last slot and the writes that are on their way after it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from relay_hw.accel.isa.config import AccelConfig
from relay_hw.accel.isa.loops import INDEX_MASK, with_second_steps
from relay_hw.accel.isa.slots import vector_slots
from relay_hw.accel.isa.spec import TWO_OPERANDS, Dst, Form
from relay_hw.accel.sim.cycle.writes import DEPTH, InpWrites


@dataclass(slots=True)
class OutputHazards:
    """Writes to the accumulator that are in flight: (cycle of the slot that brings them, entry)."""

    config: AccelConfig
    pending: list[tuple[int, int]]

    def last_slot(self, start: int, v: dict[str, int], writes: InpWrites) -> int:
        """Cycle of the last slot of an instruction whose first slot may be in cycle start + 1; its `writes` of INP."""
        per_vector = vector_slots(self.config, Form(v["form"]))
        vectors = v["iter_out"] * v["iter_in"]
        self.pending = [(cycle, entry) for cycle, entry in self.pending if cycle + DEPTH > start]
        if v["dst"] != Dst.ACC and not self.pending:
            if v["dst"] == Dst.INP:
                writes.add(start + per_vector + DEPTH, per_vector, vectors)
            return start + vectors * per_vector
        cycles = self._slots(start + 1, v, per_vector)
        if v["dst"] == Dst.INP:
            _add_writes(writes, cycles[per_vector - 1 :: per_vector] + DEPTH)
        return int(cycles[-1])

    def _slots(self, first: int, v: dict[str, int], per_vector: int) -> NDArray[np.int64]:
        """Cycle of each slot, the first in cycle `first` or later."""
        to_acc = v["dst"] == Dst.ACC
        reads, writes = self._entries(v, per_vector)
        if self._may_wait(reads, writes if to_acc else None):
            cycles = self._walk(first, reads.tolist(), writes.tolist() if to_acc else None, per_vector)
        else:
            cycles = np.arange(first, first + reads.size)
        if to_acc:
            ends = cycles[per_vector - 1 :: per_vector][-DEPTH:].tolist()
            self.pending += zip(ends, writes[-len(ends) :].tolist(), strict=True)
        return cycles

    def _entries(self, v: dict[str, int], per_vector: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Entry read by each slot, entry written by each vector."""
        outer = np.arange(v["iter_out"], dtype=np.int64)[:, None]
        inner = np.arange(v["iter_in"], dtype=np.int64)[None, :]
        first = _flat(v["acc_base"] + outer * v["acc_out"] + inner * v["acc_in"])
        if Form(v["form"]) in TWO_OPERANDS:
            steps = with_second_steps(v)
            second = _flat(v["res_base"] + outer * steps["res_out"] + inner * steps["res_in"])
            reads = np.tile(np.stack([first, second], 1), (1, per_vector // 2)).reshape(-1)
        else:
            reads = np.repeat(first, per_vector)
        writes = _flat(v["dst_base"] + outer * v["dst_out"] + inner * v["dst_in"])
        return reads, writes

    def _may_wait(self, reads: NDArray[np.int64], writes: NDArray[np.int64] | None) -> bool:
        """True when a slot reads what one of the DEPTH slots before it, or a pending vector, writes."""
        if self.pending and np.isin(reads[:DEPTH], [entry for _, entry in self.pending]).any():
            return True
        if writes is None:
            return False
        per_vector = reads.size // writes.size
        written = np.full(reads.size, -1, np.int64)
        written[per_vector - 1 :: per_vector] = writes
        return any((reads[distance:] == written[:-distance]).any() for distance in range(1, DEPTH + 1))

    def _walk(self, cycle: int, reads: list[int], writes: list[int] | None, per_vector: int) -> NDArray[np.int64]:
        """Cycle of each slot, one after the other."""
        pending = list(self.pending)
        cycles = np.empty(len(reads), np.int64)
        for k, entry in enumerate(reads):
            while pending and pending[0][0] + DEPTH < cycle:
                pending.pop(0)
            blocking = [when for when, written in pending if written == entry and when + DEPTH >= cycle]
            if blocking:
                cycle = max(blocking) + DEPTH + 1
            cycles[k] = cycle
            if writes is not None and (k + 1) % per_vector == 0:
                pending.append((cycle, writes[k // per_vector]))
            cycle += 1
        return cycles


def _flat(entries: NDArray[np.int64]) -> NDArray[np.int64]:
    """Entries of both loops, in order, as 16-bit adders give them."""
    return entries.reshape(-1) & INDEX_MASK


def _add_writes(writes: InpWrites, cycles: NDArray[np.int64]) -> None:
    """Add ascending cycles, as one progression where they are."""
    gaps = np.diff(cycles)
    if gaps.size and (gaps == gaps[0]).all():
        writes.add(int(cycles[0]), int(gaps[0]), cycles.size)
        return
    for cycle in cycles.tolist():
        writes.add(cycle, 1, 1)
