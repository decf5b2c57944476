"""One launch in time: what each instruction asks of its unit, and when it ran.

In: instruction bytes, a configuration, a memory model. Out: `Timing`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from accel.isa.config import AccelConfig
from accel.isa.program import SMALLEST, decode_instructions
from accel.isa.spec import Op, Unit
from accel.sim.cycle.engine import Engine, Span
from accel.sim.cycle.work import Work, work_of
from accel.sim.cycle.writes import InpWrites
from accel.sim.memory import MemoryModel


@dataclass(frozen=True, slots=True)
class Timing:
    """A launch: counters by register name; `works` of all instructions; `spans` of all but FINISH, in program order;
    `writes` of INP by OUTPUT; `beat_cycles`: those in which the memory can bring one beat."""

    config: AccelConfig
    counters: Mapping[str, int]
    works: tuple[Work, ...]
    spans: tuple[Span, ...]
    writes: InpWrites
    beat_cycles: int

    @property
    def cycles(self) -> int:
        """From the launch to done."""
        return self.counters["CYCLES"]

    def of(self, unit: Unit) -> list[Span]:
        """Instructions of one unit in order."""
        return [span for span in self.spans if span.unit is unit]


def count_cycles(
    config: AccelConfig, memory: MemoryModel, offset: int, instructions: Sequence[tuple[Op, Mapping[str, int]]]
) -> int:
    """CYCLES of legal instructions that lie at `offset` of the window. Raises Fault, DeadlockError."""
    works = tuple(work_of(config, op, {**SMALLEST[op], **values}) for op, values in instructions)
    return Engine(config, memory, offset, works).run()["CYCLES"]


def time_code(config: AccelConfig, memory: MemoryModel, offset: int, words: bytes) -> Timing:
    """Time instruction bytes that lie at `offset` of the window. Raises EncodeError, Fault, DeadlockError."""
    works = tuple(work_of(config, op, values) for op, values in decode_instructions(words))
    engine = Engine(config, memory, offset, works)
    counters = engine.run()
    beat_cycles = 1 if memory.sdram is None else memory.sdram.beat_cycles(config)
    return Timing(config, counters, works, tuple(engine.spans()), engine.writes, beat_cycles)
