"""Makes the layer rows of a build: what the compiler knows of each operator of a partitioned module.

In: the partition's records, the programs of the regions. Out: `LayerInfo`, in the order of the partition.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from relay_hw import tensorize
from relay_hw.accel.isa.config import AccelConfig
from relay_hw.accel.sim.cycle.losses import accounts, stretches
from relay_hw.accel.sim.cycle.timing import Launch
from relay_hw.errors import TensorizeError
from relay_hw.ir.expr import Call, Function, Op
from relay_hw.ir.visit import post_order
from relay_hw.target.accel.roofline import LayerNeeds, layer_needs
from relay_hw.target.accel.rules import ANCHORS
from relay_hw.target.partition import HOST, unique_name
from relay_hw.target.records import LayerInfo, PartitionRecord, host_row


def layer_rows(
    records: Sequence[PartitionRecord], segments: Mapping[str, tensorize.Segment], config: AccelConfig
) -> tuple[LayerInfo, ...]:
    """Host rows from partition records, device rows from programs, in the order of the partition."""
    waiting = {name: list(segment.layers) for name, segment in segments.items()}
    needs = {name: layer_needs(segment, config) for name, segment in segments.items()}
    cycles = {name: _cycles_by_layer(segment) for name, segment in segments.items()}
    rows: list[LayerInfo] = []
    taken: set[str] = set()
    for record in records:
        if record.where == HOST:
            row = host_row(record)
        else:
            row = _accel_row(record, waiting[record.function].pop(0), needs[record.function].pop(0), config)
            row = replace(row, cycles=cycles[record.function].pop(0))
        rows.append(replace(row, name=unique_name(row.name, taken)))
    if any(waiting.values()):
        raise TensorizeError("every layer of a program must have its partition record, not be without one")
    return tuple(rows)


def _cycles_by_layer(segment: tensorize.Segment) -> list[int]:
    """Cycles of a launch by layer; they add up to the launch."""
    launch = segment.launch
    assert isinstance(launch, Launch)  # what the compiler's clock counts
    own = accounts(stretches(launch.timing(), segment.owners))
    return [own[number].total if number in own else 0 for number in range(len(segment.layers))]


def _accel_row(record: PartitionRecord, layer: tensorize.Layer, needs: LayerNeeds, config: AccelConfig) -> LayerInfo:
    """The next layer of the record's program, maybe not the record's own: branches may be in another order."""
    return LayerInfo(
        name=_source_name(layer.composite) or record.name,
        operator=str(layer.composite.attrs["Composite"]),
        where=record.where,
        function=record.function,
        shape=needs.cost.shape,
        reason=layer.reason,
        tile=layer.tile,
        ranges=layer.ranges,
        macs=needs.cost.macs,
        traffic=needs.traffic,
        output_slots=needs.output_slots,
        row_slots=needs.row_slots,
        roofline_cycles=needs.cost.array_cycles(config),
    )


def _source_name(composite: Function) -> str | None:
    """The name in the source of the operator that does the main work."""
    for expr in post_order(composite.body):
        if isinstance(expr, Call) and isinstance(expr.op, Op) and expr.op.name in ANCHORS and expr.span is not None:
            return str(expr.span)
    return None
