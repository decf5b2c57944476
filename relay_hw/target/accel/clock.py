"""The compiler's timing model: the engine of the cycle simulator, with the memory that programs are optimised for.

In: a configuration and a memory model. Out: the target that tensorize compiles for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from relay_hw.accel.isa.config import AccelConfig
from relay_hw.accel.sim.cycle.timing import Launch, launch_of
from relay_hw.accel.sim.dram_timing import MemoryModel
from relay_hw.tensorize.target import Instruction, Memory, Target

# The default memory model of a build.
STANDARD = "standard"
# Bursts of an SDRAM controller: one that it works at, one that waits in its registers.
_SDRAM_BURSTS = 2


@dataclass(frozen=True, slots=True)
class EngineClock:
    """Times launches by the cycle simulator's engine; see `relay_hw.tensorize.target.Clock`."""

    memory: MemoryModel

    def __call__(self, instructions: Sequence[Instruction], config: AccelConfig, place: int) -> Launch:
        """The launch. Raises Fault, DeadlockError."""
        return launch_of(config, self.memory, place, instructions)


def target_of(config: AccelConfig, memory: MemoryModel) -> Target:
    """The tensorizer's target for that accelerator with that memory."""
    return Target.of(config, _numbers(config, memory), EngineClock(memory))


def _numbers(config: AccelConfig, memory: MemoryModel) -> Memory:
    """Parameters of the memory model for the closed-form cost estimate."""
    chip = memory.sdram
    if chip is None:
        return Memory(memory.latency, memory.read_outstanding, memory.write_outstanding)
    # Of a row that is opened for it.
    latency = chip.rp + 1 + chip.rcd + chip.beat_cycles(config) + memory.latency
    return Memory(latency, _SDRAM_BURSTS, _SDRAM_BURSTS)
