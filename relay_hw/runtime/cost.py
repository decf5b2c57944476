"""What layers need: multiply-accumulates and the least cycles for them; bytes and slots of the program made of them.

In: a typed composite function, or a segment, and a configuration. Out: `LayerCost`, `LayerNeeds`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from accel.isa.config import AccelConfig
from accel.isa.nibbles import is_narrow
from accel.isa.spec import Unit
from accel.sim.cycle.traffic import NO_TRAFFIC, Traffic, program_works, total_traffic, traffic_by_owner
from relay_hw.backend.flat import FlatCall, FlatConstant, FlatFunction, FlatInput, FlatNode, flatten
from relay_hw.ir.expr import Function
from relay_hw.ir.types import TensorType, Type
from relay_hw.report import Bounds, bounds_of
from tensorize import Segment


@dataclass(frozen=True, slots=True)
class LayerCost:
    """`macs`: multiply-accumulates, without padding of channels; `shape`: in -> out, for people.

    `narrow`: all weights fit 4 bits; other ones take an array of 4-bit multipliers twice.
    """

    macs: int
    shape: str
    narrow: bool = False

    def array_cycles(self, config: AccelConfig) -> int:
        """The least cycles of the array. Bytes bound no layer: what it reads may come while another one computes."""
        products = self.macs * (2 if config.wgt_bits == 4 and not self.narrow else 1)
        return -(-products // config.macs_per_cycle)


def layer_cost(composite: Function) -> LayerCost:
    """Cost of one composite. Shapes must be static."""
    flat = flatten(composite, "composite")
    calls = [node for node in flat.nodes if isinstance(node, FlatCall)]
    result = flat.nodes[flat.result]
    assert isinstance(result, FlatCall)
    shapes = [_shape(node.type) for node in flat.params]
    text = f"{' + '.join(map(_show, shapes))} -> {_show(_shape(result.type))}"
    return LayerCost(sum(_macs(flat, call) for call in calls), text, any(_is_narrow(flat, call) for call in calls))


@dataclass(frozen=True, slots=True)
class LayerNeeds:
    """One layer of a program: `traffic` are the bytes that its instructions move, `output_slots` their cycles on the
    output stage."""

    cost: LayerCost
    traffic: Traffic
    output_slots: int


def layer_needs(segment: Segment, config: AccelConfig) -> list[LayerNeeds]:
    """What each layer of a program needs in a launch."""
    works = program_works(config, segment.program.instructions)
    traffic = traffic_by_owner(works, segment.owners, config)
    slots = Counter[int]()
    for work, owner in zip(works, segment.owners, strict=True):
        slots[owner] += work.slots if work.unit is Unit.OUTPUT else 0
    return [
        LayerNeeds(layer_cost(layer.composite), traffic.get(number, NO_TRAFFIC), slots[number])
        for number, layer in enumerate(segment.layers)
    ]


def launch_bounds(name: str, needs: Sequence[LayerNeeds], config: AccelConfig) -> Bounds:
    """Cycles that a launch of these layers cannot go below."""
    array = sum(row.cost.array_cycles(config) for row in needs)
    output = sum(row.output_slots for row in needs)
    return bounds_of(name, array, output, total_traffic(row.traffic for row in needs), config.bus_bytes)


_PRODUCTS = ("nn.conv2d", "nn.dense", "nn.batch_matmul", "accel.conv2d_transpose")


def _shape(ty: Type) -> tuple[int, ...]:
    assert isinstance(ty, TensorType)
    return ty.static_shape


def _show(shape: Sequence[int]) -> str:
    return "x".join(map(str, shape[1:]))


def _is_narrow(flat: FlatFunction, call: FlatCall) -> bool:
    weight = flat.nodes[call.args[1]] if call.op.name in _PRODUCTS else None
    return isinstance(weight, FlatConstant) and is_narrow(weight.data)


def _macs(flat: FlatFunction, call: FlatCall) -> int:
    if call.op.name not in _PRODUCTS:
        return 0
    if call.op.name == "nn.batch_matmul":
        return prod(_shape(call.type)) * _shape(_type_of(flat.nodes[call.args[0]]))[-1]
    weight = flat.nodes[call.args[1]]
    assert isinstance(weight, FlatConstant)
    if call.op.name == "accel.conv2d_transpose":
        # Every input element takes one product for each weight of its input channel: inserted zeros are no work.
        return prod(_shape(_type_of(flat.nodes[call.args[0]]))) * prod(weight.data.shape[1:])
    # Every output element takes one product for each weight of its output channel.
    return prod(_shape(call.type)) * prod(weight.data.shape[1:])


def _type_of(node: FlatNode) -> Type:
    assert isinstance(node, (FlatInput, FlatCall))
    return node.type
