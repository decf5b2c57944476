"""Live ranges of values in the scratchpads, read off a finished program, for reports.

In: a program and its configuration. Out: the lives in each scratchpad, as rows of an array.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from relay_hw.accel.isa.config import AccelConfig
from relay_hw.accel.isa.program import Program
from relay_hw.accel.isa.spec import Mem, Op
from relay_hw.accel.isa.state import depth
from relay_hw.accel.isa.stream import Instr, decode_instructions
from relay_hw.tensorize.emit.footprint import Access, Cells, UopMemory, accesses

# The writer of what the resident stream loaded, before the first instruction.
RESIDENT = -1
NOBODY = -2
# int64 [n, 4]: entries [begin, end), the instruction that wrote them, the last one that used them.
Lives = NDArray[np.int64]


def occupancy(program: Program, config: AccelConfig) -> dict[Mem, Lives]:
    """All lives by scratchpad. Raises TensorizeError for a program that is not sound.

    What an instruction adds to goes on living. What the resident stream loaded stays, whatever uses it last; the last
    that uses an entry is NOBODY where nothing does.
    """
    uops = UopMemory(program, config)
    pads = {mem: _Pad(size) for mem in Mem if (size := depth(config, mem))}
    if program.resident is not None:
        for index, (op, values) in enumerate(_body(decode_instructions(program.resident.data or b""))):
            for mem, access in _on_chip(accesses(index, op, values, uops.words, config)):
                if access.write:
                    pads[mem].keep(access.cells)
            uops.run(op, values)
    body = _body(program.instructions)
    for index, (op, values) in enumerate(body):
        _step(index, _on_chip(accesses(index, op, values, uops.words, config)), pads)
        uops.run(op, values)
    return {mem: pad.finish() for mem, pad in pads.items()}


def _body(instructions: Sequence[Instr]) -> list[Instr]:
    return [row for row in instructions if row[0] is not Op.FINISH]


def _on_chip(found: Sequence[Access]) -> list[tuple[Mem, Access]]:
    return [(access.memory, access) for access in found if isinstance(access.memory, Mem)]


def _step(index: int, found: Sequence[tuple[Mem, Access]], pads: Mapping[Mem, _Pad]) -> None:
    """One instruction: reads first, since what it both reads and writes goes on living."""
    for mem, access in found:
        if not access.write:
            pads[mem].read(index, access.cells)
    for mem, access in found:
        if access.write:
            pads[mem].write(index, access.cells)


class _Pad:
    """One scratchpad: who wrote each entry, who used it last, and the lives that are over."""

    def __init__(self, count: int) -> None:
        self._writer = np.full(count, NOBODY, np.int64)
        self._last = np.full(count, NOBODY, np.int64)
        self._found: list[Lives] = []

    def keep(self, cells: Cells) -> None:
        """Entries that the resident stream loads."""
        self._writer[cells] = RESIDENT

    def read(self, index: int, cells: Cells) -> None:
        """An instruction uses entries."""
        self._last[cells] = index

    def write(self, index: int, cells: Cells) -> None:
        """An instruction writes entries."""
        fresh = cells[self._last[cells] != index]
        self._end(fresh)
        self._writer[fresh] = self._last[fresh] = index

    def finish(self) -> Lives:
        """All lives."""
        self._end(np.arange(self._writer.size))
        return np.concatenate([np.zeros((0, 4), np.int64), *self._found])

    def _end(self, cells: Cells) -> None:
        """What entries, in ascending order, held until now: runs of neighbours with one life."""
        cells = cells[self._writer[cells] != NOBODY]
        if not cells.size:
            return
        writer, last = self._writer[cells], self._last[cells]
        is_cut = (np.diff(cells) != 1) | (np.diff(writer) != 0) | (np.diff(last) != 0)
        first = np.concatenate([[0], np.flatnonzero(is_cut) + 1])
        end = np.concatenate([first[1:], [cells.size]]) - 1
        self._found.append(np.stack([cells[first], cells[end] + 1, writer[first], last[first]], axis=1))
