"""Orders the steps of all layers: layer after layer, or neighbouring layers interleaved by estimated times.

In: steps layer by layer. Out: step numbers. Steps of neighbouring layers alternate where their weights fit together,
so that a layer starts on the rows that are ready while the one before it still computes the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from relay_hw.accel.isa.config import AccelConfig
from relay_hw.accel.isa.spec import Mem
from relay_hw.tensorize.commands import Key, Step
from relay_hw.tensorize.schedule.clocks import Clocks, flow_of, works_of
from relay_hw.tensorize.schedule.live import Live
from relay_hw.tensorize.schedule.resident import constant_depths
from relay_hw.tensorize.target import Target


def sequential_order(steps: Sequence[Step]) -> tuple[int, ...]:
    """Layer after layer."""
    return tuple(range(len(steps)))


class First(Enum):
    """Which of the steps that could come next does: the one that can start first; or, before that, one of the deepest
    layer whose input has arrived when the step before it starts, so that the array goes on while row unit, output stage
    and bus follow.
    """

    EARLIEST = "earliest"
    DEEPEST = "deepest"


def interleaved_orders(steps: Sequence[Step], config: Target) -> list[tuple[int, ...]]:
    """List scheduling on estimated times, once for each of `First`. `steps`: layer after layer."""
    flow = flow_of(works_of(steps, config))
    return [_interleaved(steps, config, Clocks(flow, config.memory.latency), first) for first in First]


def _interleaved(steps: Sequence[Step], config: Target, clocks: Clocks, first: First) -> tuple[int, ...]:
    live = Live(steps, Mem.ACC, config.acc_depth)
    result: list[int] = []
    for group in layer_groups(steps, config):
        waiting = {layer: [n for n, step in enumerate(steps) if step.layer == layer] for layer in group}
        while any(waiting.values()):
            heads = {layer: numbers[0] for layer, numbers in waiting.items() if numbers}
            layer = min(heads, key=lambda layer: _rank(clocks, live, heads[layer], layer, first))
            number = waiting[layer].pop(0)
            clocks.run_step(number)
            live.place(number)
            result.append(number)
    return tuple(result)


def _rank(clocks: Clocks, live: Live, number: int, layer: int, first: First) -> tuple[int, int, int]:
    """Smaller is better; the first number is 3 for steps whose producers are not placed, 2 for those whose sums have no
    room.
    """
    stored, arrival = clocks.stored(number), clocks.arrival(number)
    if stored is None or arrival is None:
        return (3, 0, layer)
    if not live.fits(number):
        return (2, 0, layer)
    if first is First.DEEPEST and arrival <= clocks.started:
        return (0, -layer, 0)
    return (1, max(clocks.compute, arrival), layer)


def layer_groups(steps: Sequence[Step], config: AccelConfig) -> tuple[tuple[int, ...], ...]:
    """Neighbouring layers whose constants fit the memories at the same time, leaving half for those that follow."""
    layers = sorted({step.layer for step in steps})
    constants = {layer: _constants(steps, layer) for layer in layers}
    if _fits(constants, layers, config, share=1):
        return (tuple(layers),)
    groups: list[list[int]] = []
    for layer in layers:
        if groups and _fits(constants, [*groups[-1], layer], config, share=2):
            groups[-1].append(layer)
        else:
            groups.append([layer])
    return tuple(tuple(group) for group in groups)


Constants = dict[Key, tuple[Mem, int]]


def _constants(steps: Sequence[Step], layer: int) -> Constants:
    """Memory and entries of the layer's own constant buffers; those of the whole program are there in any order."""
    own = [buffer for step in steps if step.layer == layer for buffer in step.buffers if len(buffer.key) > 1]
    return {buffer.key: (buffer.mem, buffer.entries) for buffer in own if buffer.data is not None}


def _fits(constants: dict[int, Constants], layers: Sequence[int], config: AccelConfig, share: int) -> bool:
    """True where all buffers of the layers fit 1/share of each memory."""
    together: Constants = {}
    for layer in layers:
        together |= constants[layer]
    depths = constant_depths(config)
    return all(sum(size for m, size in together.values() if m is mem) <= depths[mem] // share for mem in depths)
