"""Steps in program order, with their dependences, estimated times and loads of constants.

In: steps and a target. Out: `Ordered`, which every way to write the steps begins with.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from relay_hw.tensorize.commands import Step
from relay_hw.tensorize.schedule.clocks import Flow, flow_of, works_of
from relay_hw.tensorize.schedule.constants import ConstantLoad, constant_loads
from relay_hw.tensorize.schedule.prefetch import starts_of
from relay_hw.tensorize.target import Target


@dataclass(frozen=True, slots=True)
class Ordered:
    """Steps in program order and what is known of them.

    `flow`: work of the steps and who waits for whom; `starts`: when each of them starts to compute, and the end;
    `constants`: loads of constants, in order of first use.
    """

    steps: tuple[Step, ...]
    flow: Flow
    starts: tuple[int, ...]
    constants: tuple[ConstantLoad, ...]


def ordered(steps: Sequence[Step], config: Target) -> Ordered:
    """What is known of steps, which come in program order."""
    flow = flow_of(works_of(steps, config))
    return Ordered(tuple(steps), flow, starts_of(flow, config.memory.latency), constant_loads(steps, config))
