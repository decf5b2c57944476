"""Programs for all regions of a network: the fastest tiles of each, and what stays on the device for all together.

In: `@accel_k` functions, a target, the order in which an inference calls them. Out: a segment for each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import tensorize
from accel.isa.program import SectionKind
from accel.isa.spec import Mem
from accel.sim.cycle.timing import time_code
from accel.sim.memory import MemoryModel
from relay_hw.ir.expr import Function
from relay_hw.runtime.holding import Footprints, stays_alone
from relay_hw.runtime.steady import steady
from tensorize.schedule import Chooser
from tensorize.target import Target

Segments = dict[str, tensorize.Segment]


@dataclass(frozen=True, slots=True)
class Builder:
    """Builds one region after the other. `choosers`: each chooses tiles, and the fastest program is taken: what is best
    for each layer alone need not be best for all together."""

    target: Target
    memory: MemoryModel
    choosers: Sequence[Chooser]
    tell: Callable[[str], object]

    def segments(self, functions: Mapping[str, Function], resident: bool, calls: Sequence[str]) -> Segments:
        """A segment for each function. `resident`: constants may stay on the device where an inference gains by it.

        `calls`: regions in the order in which an inference launches them. Raises TensorizeError.
        """
        found: Segments = {}
        taken: Mapping[Mem, int] = {}
        for name, function in functions.items():
            found[name] = self._segment(name, function, resident, taken)
            taken = {**taken, **stays_alone(self.target, found[name].program)}
        kept = [name for name, segment in found.items() if segment.program.resident is not None]
        inference = _Inference(self, calls)
        if not kept or not inference.reloads(found):
            return found
        plain = {name: self._segment(name, functions[name], False, {}) for name in kept}
        return _settled(found, plain, inference.cycles)

    def _segment(self, name: str, function: Function, resident: bool, taken: Mapping[Mem, int]) -> tensorize.Segment:
        self.tell(f"tensorizing {name}")
        tries = (
            tensorize.compile_function(function, self.target, name, resident, choose=choose, taken=taken)
            for choose in self.choosers
        )
        return min(tries, key=lambda segment: segment.cycles)


class _Inference:
    """What one inference of the steady state takes by the exact engine. Each stream is timed once."""

    def __init__(self, builder: Builder, calls: Sequence[str]) -> None:
        self._builder, self._calls = builder, calls
        self._footprints = Footprints(builder.target)
        self._known: dict[int, tuple[tensorize.Segment, int]] = {}

    def reloads(self, segments: Segments) -> bool:
        """True where constants are loaded again in every inference."""
        programs = {name: segment.program for name, segment in segments.items()}
        return any(steady(self._footprints, programs, self._calls).reloads)

    def cycles(self, segments: Segments) -> int:
        """Cycles of all launches, loads that repeat included."""
        programs = {name: segment.program for name, segment in segments.items()}

        def clock(name: str, kind: SectionKind) -> int:
            segment = segments[name]
            return segment.cycles if kind is SectionKind.PROGRAM else self._loading(segment)

        return steady(self._footprints, programs, self._calls).total(clock)

    def _loading(self, segment: tensorize.Segment) -> int:
        """Cycles of the launch that loads a segment's resident constants."""
        if id(segment) not in self._known:
            stream = segment.program.resident
            assert stream is not None
            timing = time_code(self._builder.target, self._builder.memory, stream.offset, stream.data or b"")
            self._known[id(segment)] = (segment, timing.cycles)
        return self._known[id(segment)][1]


def _settled(resident: Segments, plain: Segments, cycles: Callable[[Segments], int]) -> Segments:
    """Which regions keep constants on the device: of all, none and each alone the best, then region by region better.

    `plain`: forms without resident constants of those regions that have a choice. Never slower than any of the starts.
    """
    none = {**resident, **plain}
    starts = [resident, none, *({**none, name: resident[name]} for name in plain)]
    best, least = min(((start, cycles(start)) for start in starts), key=lambda found: found[1])
    improved = True
    while improved:
        improved = False
        for name in plain:
            other = plain[name] if best[name] is resident[name] else resident[name]
            tried = {**best, name: other}
            if (found := cycles(tried)) < least:
                best, least, improved = tried, found, True
    return best
