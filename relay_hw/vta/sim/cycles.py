"""A model of the cycles of a program, as far as VTA's documents go. No RTL stands behind it: no figure was measured.

In: words, a geometry. Out: cycles. What the documents say: three modules run side by side and wait for tokens, each one
instruction at a time; GEMM takes a micro-op a cycle, the ALU one or two; memory is that of VTA's own cycle simulator, a
bus word a cycle without waits, for each module on its own. What they leave open costs nothing here: the begin of an
instruction, zeros of padding, refills of the instruction buffer. So a core may take more cycles, never fewer.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Final

from typing_extensions import assert_never

from relay_hw.vta.geometry import Buffer, Core, Geometry
from relay_hw.vta.isa import Alu, Finish, Gemm, Insn, Memory, Op, Queue, Words, decode, queue_of
from relay_hw.vta.sim.machine import Link, links, uop_count
from relay_hw.vta.sim.state import SimulationError

# Bytes of a bus word.
_BUS: Final = 8
_WIDE_BUS: Final[Mapping[str, int]] = {"ultra96": 16, "zcu104": 16}
INSTRUCTION_BYTES: Final = 16


def modelled_cycles(words: Words, geometry: Geometry) -> int:
    """Cycles from the first instruction's fetch to FINISH. Raises SimulationError for a program that stands still."""
    bus = _WIDE_BUS.get(geometry.name, _BUS)
    queues: dict[Queue, deque[tuple[int, Insn]]] = {queue: deque() for queue in Queue}
    for number, insn in enumerate(decode(words, geometry)):
        # Fetch runs ahead, a bus word a cycle.
        queues[queue_of(insn)].append(((number + 1) * INSTRUCTION_BYTES // bus, insn))
    free = dict.fromkeys(Queue, 0)
    given: dict[Link, deque[int]] = {}
    while any(queues.values()):
        before = sum(map(len, queues.values()))
        for queue, items in queues.items():
            while items and all(given.get(link) for link in links(queue, items[0][1].flags)[0]):
                fetched, insn = items.popleft()
                takes, gives = links(queue, insn.flags)
                begin = max([free[queue], fetched, *(given[link].popleft() for link in takes)])
                free[queue] = begin + _cycles(insn, geometry, bus)
                for link in gives:
                    given.setdefault(link, deque()).append(free[queue])
        if sum(map(len, queues.values())) == before:
            raise SimulationError("the program must go on, not wait for tokens that nobody gives")
    return max(free.values())


def _cycles(insn: Insn, geometry: Geometry, bus: int) -> int:
    """Cycles for which an instruction holds its module."""
    match insn:
        case Memory():
            rows = 1 if insn.memory_type is Buffer.UOP else insn.y_size
            size = geometry.entry_bytes(Buffer.OUT if insn.op is Op.STORE else insn.memory_type)
            return rows * -(-insn.x_size * size // bus)
        case Gemm():
            return uop_count(insn)
        case Alu():
            # HLS starts one every second cycle; Chisel, too, where it reads two entries.
            return uop_count(insn) * (1 if geometry.core is Core.CHISEL and insn.use_imm else 2)
        case Finish():
            return 0
        case _:
            assert_never(insn)
