"""What the toy NPU takes, and how its layers become programs.

In: dense layers of int8 with constant weights and their requantization. Out: one program for each region of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from examples.toy_npu.program import DenseLayer, from_bytes, to_bytes
from examples.toy_npu.simulator import Simulator, cycles_of
from relay_hw.dataflow_pattern import is_constant, is_op, wildcard
from relay_hw.errors import ArtifactError, InputError
from relay_hw.ir.expr import Call, Constant, Expr, Function, Var
from relay_hw.ir.visit import post_order
from relay_hw.target import (
    Facts,
    LayerInfo,
    PartitionRecord,
    QuantizerRules,
    RegionInfo,
    Request,
    TensorPort,
    host_row,
)
from relay_hw.transform import InferType, MergeComposite, Pass, Pipeline

NAME, COMPOSITE, DEVICE = "toy", "toy.dense", "simulator"
MOST_INPUTS = 4096
DENSE = is_op("fixed.requantize")(is_op("nn.dense")(wildcard(), is_constant()), is_constant())


@dataclass(frozen=True, slots=True)
class ToyRegion:
    """A region: ports, and layers in the order in which they run."""

    inputs: tuple[TensorPort, ...]
    outputs: tuple[TensorPort, ...]
    layers: tuple[DenseLayer, ...]

    def to_bytes(self) -> bytes:
        """The program."""
        return to_bytes(self.layers)


@dataclass(frozen=True, slots=True)
class ToyTarget:
    """See `relay_hw.target.Target`."""

    name: str = NAME
    anchors: frozenset[str] = frozenset({"nn.dense"})
    multiplier_bits: int = 31
    devices: tuple[str, ...] = (DEVICE,)

    def composites(self) -> Pass:
        """Dense layers with their requantization."""
        return Pipeline([MergeComposite([(COMPOSITE, DENSE)]), InferType()])

    def why_not(self, composite: Function) -> str | None:
        """What the engine's counters and its one rounding cannot do."""
        requantize, dense = _calls(composite)
        inputs = dense.args[0].tensor_type
        if inputs.dtype != "int8":
            return f"the data of toy.dense must be int8, not {inputs.dtype}"
        if inputs.static_shape[-1] > MOST_INPUTS:
            return f"the toy NPU counts to {MOST_INPUTS} inputs, not to {inputs.static_shape[-1]}"
        if requantize.attrs.rounding != "half_up":
            return f"the toy NPU rounds half up, not by {requantize.attrs.rounding}"
        return None

    def why_on_host(self, call: Call, rules: QuantizerRules) -> str:
        """One reason for all others."""
        return "the toy NPU runs dense layers of int8 with constant weights, and nothing else"

    def takes_in(self, call: Call, composite: str) -> bool:
        """Nothing stands in front of a dense layer."""
        return False

    def compile(self, functions: Mapping[str, Function], request: Request) -> Mapping[str, ToyRegion]:
        """A program for each function: its layers in order. Raises InputError for a region that is no chain."""
        return {name: _region(name, function) for name, function in functions.items()}

    def layers(self, records: Sequence[PartitionRecord], regions: Mapping[str, ToyRegion]) -> tuple[LayerInfo, ...]:
        """Cycles of each layer as the engine needs them."""
        left = {name: list(region.layers) for name, region in regions.items()}
        rows: list[LayerInfo] = []
        for record in records:
            row = host_row(record)
            if record.where == NAME:
                layer = left[record.function].pop(0)
                row = LayerInfo(row.name, row.operator, NAME, row.function, macs=row.macs, cycles=cycles_of(layer))
            rows.append(row)
        return tuple(rows)

    def facts(self, regions: Mapping[str, ToyRegion], calls: Sequence[str]) -> Facts:
        """There is one variant."""
        return Facts()

    def check(self, row: RegionInfo, program: bytes) -> None:
        """Whether the program's first and last layer have the sizes of the ports."""
        try:
            layers = from_bytes(program)
        except ValueError as error:
            raise ArtifactError(f"region {row.name}: {error}") from None
        (first,), (last,) = row.inputs, row.outputs
        if not layers or layers[0].weight.shape[1] != first.shape[-1] or len(layers[-1].bias) != last.shape[-1]:
            raise ArtifactError(f"region {row.name} must have the sizes of its program")

    def open(self, device: str, regions: Sequence[RegionInfo], programs: Mapping[str, bytes]) -> Simulator:
        """The simulator."""
        if device not in self.devices:
            raise InputError(f"device must be {DEVICE} for target {NAME}, not {device}")
        return Simulator({name: from_bytes(data) for name, data in programs.items()})


def make(variant: str = "") -> ToyTarget:
    """The target; it has no variants. Raises InputError."""
    if variant:
        raise InputError(f"target {NAME} must have no configuration, not {variant}")
    return ToyTarget()


def _calls(composite: Function) -> tuple[Call, Call]:
    """Requantization and dense layer of a composite."""
    requantize = composite.body
    assert isinstance(requantize, Call) and isinstance(requantize.args[0], Call)
    return requantize, requantize.args[0]


def _region(name: str, function: Function) -> ToyRegion:
    calls = [node for node in post_order(function.body) if isinstance(node, Call) and isinstance(node.op, Function)]
    values: dict[Expr, int] = {param: 0 for param in function.params}
    layers: list[DenseLayer] = []
    for number, call in enumerate(calls, 1):
        assert isinstance(call.op, Function)
        layers.append(_layer(call.op, values[call.args[0]]))
        values[call] = number
    if len(function.params) != 1 or not calls or function.body is not calls[-1]:
        raise InputError(f"region {name} of the toy NPU must have one input and one output")
    return ToyRegion(_ports("x", function.params), _ports("y", [function.body]), tuple(layers))


def _ports(name: str, values: Sequence[Expr | Var]) -> tuple[TensorPort, ...]:
    return tuple(TensorPort(name, value.tensor_type.static_shape) for value in values)


def _layer(composite: Function, source: int) -> DenseLayer:
    requantize, dense = _calls(composite)
    weight, bias, attrs = dense.args[1], requantize.args[1], requantize.attrs
    assert isinstance(weight, Constant) and isinstance(bias, Constant)
    outputs = len(weight.data)
    spread = lambda values: np.broadcast_to(np.asarray(values, np.int64), (outputs,)).copy()  # noqa: E731
    return DenseLayer(
        weight.data.astype(np.int8),
        bias.data.astype(np.int32),
        spread(attrs.multiplier),
        spread(attrs.shift),
        attrs.zero_point,
        attrs.a_min,
        attrs.a_max,
        source,
    )
