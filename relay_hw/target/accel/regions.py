"""Compiles all regions of a network together: the fastest tiles of each, and the best common set of resident weights.

In: `@accel_k` functions, a target, the order in which an inference calls them. Out: a segment for each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from relay_hw import tensorize
from relay_hw.accel.isa.program import SectionKind
from relay_hw.accel.sim.cycle.timing import time_stream
from relay_hw.accel.sim.dram_timing import MemoryModel
from relay_hw.ir.expr import Function
from relay_hw.support.progress import Progress
from relay_hw.target.accel.residency import Footprints
from relay_hw.target.accel.steady import steady
from relay_hw.tensorize.packing import packings
from relay_hw.tensorize.refine import Refiner
from relay_hw.tensorize.schedule.plan import Chooser
from relay_hw.tensorize.target import Target
from relay_hw.tensorize.tiles.tile_cost import Constants

Segments = dict[str, tensorize.Segment]
# Layers of a program that hides few of its loads, and whose tiles so depend on what it need not load.
FEW_LAYERS = 3


@dataclass(frozen=True, slots=True)
class Builder:
    """Compiles one region after the other. `choosers`: each chooses tiles, and the fastest program wins: what is best
    for each layer alone need not be best for all together. `validate`: prove what the programs compute."""

    target: Target
    memory: MemoryModel
    choosers: Sequence[Chooser]
    progress: Progress
    validate: bool

    def segments(self, functions: Mapping[str, Function], resident: bool, calls: Sequence[str]) -> Segments:
        """A segment for each function. `resident`: constants may stay on the device if that makes an inference faster.

        `calls`: regions in the order in which an inference launches them. Raises TensorizeError.
        """
        plans = {name: self._plan(name, function, resident) for name, function in functions.items()}
        if resident:
            chosen = self._chosen(plans, calls)
        else:
            chosen = {name: plan.candidate(plan.plain) for name, plan in plans.items()}
        checked = {name: plan.checked(chosen[name]) for name, plan in plans.items()}
        if not self.validate:
            return checked
        self.progress.started("proving what the programs compute")
        return {name: plan.proved(checked[name]) for name, plan in plans.items()}

    def _chosen(self, plans: Mapping[str, tensorize.Plan], calls: Sequence[str]) -> Segments:
        """The candidates with the fastest inference."""
        inference = _Inference(self, calls)
        best = self._together(plans, inference)
        if inference.loads(best):
            return best
        others: list[Segments] = []
        for choose in (Refiner(Constants.STAY), Refiner(Constants.SHARED)):
            staying = {name: _staying(plan, choose) for name, plan in plans.items()}
            if any(staying[name] is not plan for name, plan in plans.items()):
                others.append(self._together(staying, inference))
        return _settled(best, others, inference.cycles)

    def _together(self, plans: Mapping[str, tensorize.Plan], inference: _Inference) -> Segments:
        """The plans' candidates that are the fastest one behind the other."""
        alone = {name: plan.candidate(plan.alone) for name, plan in plans.items()}
        if not inference.loads(alone):
            return alone
        plain = {
            name: alone[name] if plan.plain is plan.alone else plan.candidate(plan.plain)
            for name, plan in plans.items()
        }
        self.progress.started("choosing what stays on the device")
        packed = [
            {name: plans[name].candidate(draft) for name, draft in drafts.items()}
            for drafts in packings(plans, Counter(inference.calls), self.target)
        ]
        return _settled(plain, [alone, *packed], inference.cycles)

    def _plan(self, name: str, function: Function, resident: bool) -> tensorize.Plan:
        """The plan with the fastest launch."""
        self.progress.started(f"tensorizing {name}")
        plans = [tensorize.Plan(function, self.target, name, choose=choose) for choose in self.choosers]
        return min(plans, key=lambda plan: (plan.alone if resident else plan.plain).cycles)


class _Inference:
    """Cycles of a steady-state inference by the cycle simulator's engine; each stream is timed once."""

    def __init__(self, builder: Builder, calls: Sequence[str]) -> None:
        self._builder, self.calls = builder, calls
        self._footprints = Footprints(builder.target)
        self._known: dict[int, tuple[tensorize.Segment, int]] = {}

    def loads(self, segments: Segments) -> bool:
        """Whether an inference loads constants, in a region's launches or before them."""
        programs = {name: segment.program for name, segment in segments.items()}
        streams = any(self._footprints.of(program).code.entries.size for program in programs.values())
        return streams or any(steady(self._footprints, programs, self.calls).reloads)

    def cycles(self, segments: Segments) -> int:
        """Cycles of all launches, with repeated loads."""
        programs = {name: segment.program for name, segment in segments.items()}

        def clock(name: str, kind: SectionKind) -> int:
            segment = segments[name]
            return segment.cycles if kind is SectionKind.PROGRAM else self._loading(segment)

        return steady(self._footprints, programs, self.calls).total(clock)

    def _loading(self, segment: tensorize.Segment) -> int:
        """Cycles of the launch that loads a segment's resident constants."""
        if id(segment) not in self._known:
            stream = segment.program.resident
            assert stream is not None
            timing = time_stream(self._builder.target, self._builder.memory, stream)
            self._known[id(segment)] = (segment, timing.cycles)
        return self._known[id(segment)][1]


def _staying(plan: tensorize.Plan, choose: Chooser) -> tensorize.Plan:
    """The plan, or one with tiles for constants that stay: where a program is short, and that one is faster."""
    if plan.layers > FEW_LAYERS:
        return plan
    return min(plan, plan.with_tiles(choose), key=lambda each: each.alone.cycles)


def _settled(plain: Segments, others: Sequence[Segments], cycles: Callable[[Segments], int]) -> Segments:
    """A fast mix of forms: the best of each form for all regions and for one alone, then improved region by region.

    `plain`: programs that keep nothing on the device. `others`: forms that keep something. Never slower than any of
    these starts.
    """
    singles = [{**plain, name: form[name]} for form in others for name in plain if form[name] is not plain[name]]
    best, least = min(((start, cycles(start)) for start in [plain, *others, *singles]), key=lambda found: found[1])
    improved = True
    while improved:
        improved = False
        for name in plain:
            for form in (plain, *others):
                tried = {**best, name: form[name]}
                if form[name] is not best[name] and (found := cycles(tried)) < least:
                    best, least, improved = tried, found, True
    return best
