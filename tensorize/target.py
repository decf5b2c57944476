"""What programs are compiled for: an accelerator, the memory behind its bus, and the clock that times launches.

In: a configuration, numbers of the memory, a clock. Out: `Target`, a configuration that knows its memory: what has to
do with sizes only takes an `AccelConfig`, what has to do with time a `Target`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Protocol

from relay_hw.accel.isa.config import AccelConfig
from relay_hw.accel.isa.spec import Op

Instruction = tuple[Op, Mapping[str, int]]


@dataclass(frozen=True, slots=True)
class Memory:
    """What closed forms know of a memory: cycles from a burst's address to its first data, and from its last data to
    the response; bursts in flight at most.
    """

    latency: int
    read_outstanding: int
    write_outstanding: int


class Launch(Protocol):
    """What a clock knows of a launch."""

    @property
    def cycles(self) -> int:
        """From the launch to done."""
        ...


class Clock(Protocol):
    """Times launches; equal clocks count alike."""

    def __call__(self, instructions: Sequence[Instruction], config: AccelConfig, place: int) -> Launch:
        """The launch. `place`: byte of the window at which the instructions begin."""
        ...

    def __hash__(self) -> int:
        """Targets are keys of what is known already."""
        ...


@dataclass(frozen=True, slots=True)
class Target(AccelConfig):
    """An accelerator with its memory and a clock."""

    memory: Memory
    clock: Clock

    @classmethod
    def of(cls, config: AccelConfig, memory: Memory, clock: Clock) -> Target:
        """The target of these sizes."""
        sizes = {field.name: getattr(config, field.name) for field in fields(AccelConfig)}
        return cls(**sizes, memory=memory, clock=clock)

    @property
    def reads(self) -> int:
        """Read bursts in flight at most."""
        return min(self.read_outstanding, self.memory.read_outstanding)

    @property
    def writes(self) -> int:
        """Write bursts in flight at most."""
        return min(self.write_outstanding, self.memory.write_outstanding)

    def launch(self, instructions: Sequence[Instruction], place: int = 0) -> Launch:
        """Time a launch; see `Clock`."""
        return self.clock(instructions, self, place)
