"""Times one launch: what each instruction asks of its unit, and when it ran.

In: instruction bytes, a configuration, a memory model. Out: `Timing`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from relay_hw.accel.isa.config import AccelConfig
from relay_hw.accel.isa.program import Section
from relay_hw.accel.isa.spec import Op, Unit
from relay_hw.accel.isa.stream import SMALLEST, decode_instructions
from relay_hw.accel.sim.cycle.engine import Engine, InstructionTime
from relay_hw.accel.sim.cycle.unit_work import Work, work_of
from relay_hw.accel.sim.cycle.writes import InpWrites
from relay_hw.accel.sim.dram_timing import MemoryModel


@dataclass(frozen=True, slots=True)
class Timing:
    """A launch: counters by register name; `works` of all instructions; `spans` of all but FINISH, in program order;
    `writes` of INP by OUTPUT; `beat_cycles`: those in which the memory can bring one beat."""

    config: AccelConfig
    counters: Mapping[str, int]
    works: tuple[Work, ...]
    spans: tuple[InstructionTime, ...]
    writes: InpWrites
    beat_cycles: int

    @property
    def cycles(self) -> int:
        """From the launch to done."""
        return self.counters["CYCLES"]

    def of(self, unit: Unit) -> list[InstructionTime]:
        """Instructions of one unit in order."""
        return [span for span in self.spans if span.unit is unit]


class Launch:
    """A simulated launch: its cycles at once, everything else computed when asked for."""

    def __init__(self, config: AccelConfig, memory: MemoryModel, offset: int, works: Sequence[Work]) -> None:
        """`works` of instructions that lie at `offset` of the window. Raises Fault, DeadlockError."""
        self._config, self._memory, self._works = config, memory, tuple(works)
        self._engine = Engine(config, memory, offset, self._works)
        self._counters = self._engine.run()

    @property
    def cycles(self) -> int:
        """From the launch to done."""
        return self._counters["CYCLES"]

    def timing(self) -> Timing:
        """When each instruction ran."""
        engine, chip = self._engine, self._memory.sdram
        beat_cycles = 1 if chip is None else chip.beat_cycles(self._config)
        return Timing(self._config, self._counters, self._works, tuple(engine.spans()), engine.writes, beat_cycles)


def launch_of(
    config: AccelConfig, memory: MemoryModel, offset: int, instructions: Sequence[tuple[Op, Mapping[str, int]]]
) -> Launch:
    """The launch of legal instructions that lie at `offset` of the window. Raises Fault, DeadlockError."""
    works = [work_of(config, op, {**SMALLEST[op], **values}) for op, values in instructions]
    return Launch(config, memory, offset, works)


def time_code(config: AccelConfig, memory: MemoryModel, offset: int, words: bytes) -> Timing:
    """Time instruction bytes that lie at `offset` of the window. Raises EncodeError, Fault, DeadlockError."""
    works = [work_of(config, op, values) for op, values in decode_instructions(words)]
    return Launch(config, memory, offset, works).timing()


def time_stream(config: AccelConfig, memory: MemoryModel, stream: Section) -> Timing:
    """Time a stream of a program, as it lies in the window. Raises EncodeError, Fault, DeadlockError."""
    return time_code(config, memory, stream.offset, stream.data or b"")
