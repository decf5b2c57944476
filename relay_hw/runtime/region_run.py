"""The record of a region's launch on the cycle simulator. In: program, timing, layers. Out: `RegionRun`."""

from __future__ import annotations

from dataclasses import dataclass

from relay_hw.accel.isa.program import Program
from relay_hw.accel.sim.cycle import Timing
from relay_hw.accel.sim.cycle.losses import Stretch
from relay_hw.target.accel.steady import Turns


@dataclass(frozen=True, slots=True)
class RegionRun:
    """One launch of a region. `owners`: number of the layer, in the manifest, of each instruction; `resident`: the
    launch before it that made weights stay, where the program has one; `turns`: how often both come."""

    function: str
    program: Program
    timing: Timing
    owners: tuple[int, ...]
    stretches: tuple[Stretch, ...]
    seconds: float
    turns: Turns
    resident: Timing | None = None
