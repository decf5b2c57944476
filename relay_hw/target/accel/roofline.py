"""Lower bounds of layers: multiply-accumulates and their least cycles; bytes and output-stage slots of the program.

In: a typed composite function, or a segment, and a configuration. Out: `LayerCost`, `LayerNeeds`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from relay_hw.accel.isa.config import AccelConfig
from relay_hw.accel.isa.nibbles import fits_bits
from relay_hw.accel.isa.spec import Unit
from relay_hw.accel.sim.cycle.traffic import NO_TRAFFIC, Traffic, program_works, total_traffic, traffic_by_owner
from relay_hw.analysis.products import call_macs, function_macs
from relay_hw.ir.expr import Call, Constant, Expr, Function
from relay_hw.ir.visit import post_order
from relay_hw.report import Bounds, bounds_of
from relay_hw.tensorize import Segment


@dataclass(frozen=True, slots=True)
class LayerCost:
    """Cost of a layer. `macs`: multiply-accumulates without channel padding; `shape`: in -> out, as text.

    `narrow`: all weights fit 4 bits; other ones take an array of 4-bit multipliers twice.
    """

    macs: int
    shape: str
    narrow: bool = False

    def array_cycles(self, config: AccelConfig) -> int:
        """The least cycles of the array. Bytes do not bound a layer: loads may overlap with other layers."""
        products = self.macs * (2 if config.wgt_bits == 4 and not self.narrow else 1)
        return -(-products // config.macs_per_cycle)


def layer_cost(composite: Function) -> LayerCost:
    """Cost of one composite. Shapes must be static."""
    nodes = list(post_order(composite.body))
    shapes = [param.tensor_type.static_shape for param in composite.params]
    text = f"{' + '.join(map(_show, shapes))} -> {_show(composite.body.tensor_type.static_shape)}"
    return LayerCost(function_macs(composite), text, any(map(_is_narrow, nodes)))


@dataclass(frozen=True, slots=True)
class LayerNeeds:
    """One layer of a program: `traffic` are the bytes that its instructions move, `output_slots` and `row_slots`
    their cycles on the output stage and the row unit."""

    cost: LayerCost
    traffic: Traffic
    output_slots: int
    row_slots: int


def layer_needs(segment: Segment, config: AccelConfig) -> list[LayerNeeds]:
    """The needs of each layer of a program in a launch."""
    works = program_works(config, segment.program.instructions)
    traffic = traffic_by_owner(works, segment.owners, config)
    slots = Counter[tuple[int, Unit | None]]()
    for work, owner in zip(works, segment.owners, strict=True):
        slots[owner, work.unit] += work.slots
    return [
        LayerNeeds(
            layer_cost(layer.composite),
            traffic.get(number, NO_TRAFFIC),
            slots[number, Unit.OUTPUT],
            slots[number, Unit.ROW],
        )
        for number, layer in enumerate(segment.layers)
    ]


def launch_bounds(name: str, needs: Sequence[LayerNeeds], config: AccelConfig) -> Bounds:
    """A lower bound on the cycles of a launch of these layers."""
    array = sum(row.cost.array_cycles(config) for row in needs)
    units = (array, sum(row.output_slots for row in needs), sum(row.row_slots for row in needs))
    return bounds_of(name, units, total_traffic(row.traffic for row in needs), config.bus_bytes)


def _show(shape: Sequence[int]) -> str:
    return "x".join(map(str, shape[1:]))


def _is_narrow(node: Expr) -> bool:
    """Whether a layer's constant weights fit 4 bits."""
    weight = node.args[1] if isinstance(node, Call) and call_macs(node) else None
    return isinstance(weight, Constant) and fits_bits(weight.data, 4)
