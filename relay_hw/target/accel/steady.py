"""Computes the steady state: the launches of each inference when samples come one after the other.

In: the programs of a build and the order in which one inference calls them. Out: `Steady`, the one definition of what
an inference takes: its launches, the loads of resident constants that repeat, and those that come once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from relay_hw.accel.isa.config import AccelConfig
from relay_hw.accel.isa.program import Program, SectionKind
from relay_hw.accel.sim.cycle.timing import time_stream
from relay_hw.accel.sim.dram_timing import MemoryModel
from relay_hw.target.accel.residency import Footprints, Holding

# Cycles, or another count, of one launch of a region's stream.
Clock = Callable[[str, SectionKind], int]


@dataclass(frozen=True, slots=True)
class Turns:
    """How often an inference launches one region, loads its resident constants again, and how often these were loaded
    in the first inferences beyond that."""

    launches: int = 0
    reloads: int = 0
    once: int = 0

    def counters(self, launch: Mapping[str, int], reload: Mapping[str, int]) -> Counter[str]:
        """Counters of all launches of the region in an inference, from those of one launch of each stream."""
        found = Counter({name: self.launches * value for name, value in launch.items()})
        found.update({name: self.reloads * value for name, value in reload.items()})
        return found


@dataclass(frozen=True, slots=True)
class Steady:
    """One inference among many. `calls`: regions in the order in which it launches them; `reloads`: for each call
    whether constants that other launches overwrote are loaded before it, in every inference; `once`: regions whose
    resident constants are loaded in the first inferences alone.
    """

    calls: tuple[str, ...]
    reloads: tuple[bool, ...]
    once: tuple[str, ...]

    @property
    def launches(self) -> int:
        """Launches of an inference, with those that reload constants."""
        return len(self.calls) + sum(self.reloads)

    @property
    def turns(self) -> dict[str, Turns]:
        """Turns by region, in the order of their first calls."""
        launched, once = Counter(self.calls), Counter(self.once)
        again = Counter(name for name, is_again in zip(self.calls, self.reloads, strict=True) if is_again)
        return {name: Turns(count, again[name], once[name]) for name, count in launched.items()}

    def total(self, clock: Clock) -> int:
        """The sum over all launches of an inference."""
        kinds = (SectionKind.PROGRAM, SectionKind.RESIDENT)
        counts = {name: (turns.launches, turns.reloads) for name, turns in self.turns.items()}
        return sum(
            n * clock(name, kind) for name, row in counts.items() for n, kind in zip(row, kinds, strict=True) if n
        )

    def reload_cycles(self, config: AccelConfig, programs: Mapping[str, Program], memory: MemoryModel) -> int:
        """Cycles of the launches that reload constants."""
        total = 0
        for name, turns in self.turns.items():
            stream = programs[name].resident
            if stream is not None and turns.reloads:
                total += turns.reloads * time_stream(config, memory, stream).cycles
        return total

    def total_once(self, clock: Clock) -> int:
        """The sum over one-time loads."""
        return sum(clock(name, SectionKind.RESIDENT) for name in self.once)


def steady(footprints: Footprints, programs: Mapping[str, Program], calls: Sequence[str]) -> Steady:
    """The steady state of inferences that call these regions in this order.

    Inferences are played until one leaves the scratchpads as it found them. What they hold only grows from one to the
    next, since more that is held means fewer loads, so this ends.
    """
    holding = Holding(footprints)
    rounds: list[tuple[bool, ...]] = []
    before: bytes | None = None
    while before != holding.held:
        before = holding.held
        rounds.append(tuple(holding.turn(programs[name]) for name in calls))
    last = rounds[-1]
    once = [
        name for needs in rounds for name, needed, again in zip(calls, needs, last, strict=True) if needed and not again
    ]
    return Steady(tuple(calls), last, tuple(once))
