"""Decides when to load constants: as late as is safe, in bus slots left free by activation loads.

In: the work of the ordered steps and the constant loads. Out: for each load the step during which it is written.
Loading too early delays the loads of the next tiles.
"""

from __future__ import annotations

from collections.abc import Sequence

from relay_hw.tensorize.schedule.clocks import Clocks, Flow
from relay_hw.tensorize.schedule.constants import ConstantLoad
from relay_hw.tensorize.schedule.step_work import Work


def starts_of(flow: Flow, latency: int) -> tuple[int, ...]:
    """When each step starts to compute where constants hold nothing up, and when the last one ends."""
    clocks = Clocks(flow, latency)
    starts: list[int] = []
    for number in range(len(flow.work)):
        clocks.run_step(number)
        starts.append(clocks.started)
    return (*starts, clocks.compute)


def load_windows(work: Sequence[Work], starts: Sequence[int], loads: Sequence[ConstantLoad], margin: int) -> list[int]:
    """For each load (in order of deadline) the position of a step; the load is written with that step's look-ahead.

    From the last deadline backwards, each load takes the latest free bus cycles that are over `margin` cycles before
    the step that needs it.
    """
    free = _free_cycles(work, starts)
    windows = [0] * len(loads)
    at = len(work) - 1
    for number in range(len(loads) - 1, -1, -1):
        load = loads[number]
        # Steps that take no time start together.
        at = min(at, load.deadline)
        while at > 0 and starts[at] > starts[load.deadline] - margin:
            at -= 1
        rest = load.cycles
        while at > 0 and free[at] < rest:
            rest -= free[at]
            free[at] = 0
            at -= 1
        free[at] -= rest
        windows[number] = at
    return windows


def _free_cycles(work: Sequence[Work], starts: Sequence[int]) -> list[int]:
    """Bus cycles that are left while each step computes and the next step's activations are loaded."""
    following = [item.load for item in work[1:]] + [0]
    spans = zip(starts[:-1], starts[1:], following, strict=True)
    return [max(end - start - load, 0) for start, end, load in spans]
