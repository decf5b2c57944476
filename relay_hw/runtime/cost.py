"""What a layer needs at least: multiply-accumulates, bytes, and the cycles that they take on perfect hardware.

In: a typed composite function and a configuration. Out: `LayerCost`. Each byte counts once, channels unpadded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from accel.isa.config import AccelConfig
from accel.isa.nibbles import is_narrow
from relay_hw.backend.flat import FlatCall, FlatConstant, FlatFunction, FlatInput, FlatNode, flatten
from relay_hw.ir.expr import Function
from relay_hw.ir.types import TensorType, Type


@dataclass(frozen=True, slots=True)
class LayerCost:
    """MACs, bytes read (needed inputs, weights, biases) and written; `shape`: in -> out, for people.

    `narrow`: all weights fit 4 bits, two of them in a byte; other ones take an array of 4-bit multipliers twice.
    """

    macs: int
    bytes_read: int
    bytes_written: int
    shape: str
    narrow: bool = False

    def roofline_cycles(self, config: AccelConfig) -> int:
        """The least cycles: peak MACs, bus beats read, bus beats written, whichever takes longest."""
        bounds = (
            (self.macs * (2 if config.wgt_bits == 4 and not self.narrow else 1), config.macs_per_cycle),
            (self.bytes_read, config.bus_bytes),
            (self.bytes_written, config.bus_bytes),
        )
        return max(-(-amount // rate) for amount, rate in bounds)


def layer_cost(composite: Function) -> LayerCost:
    """Cost of one composite. Shapes must be static."""
    flat = flatten(composite, "composite")
    needed = {i: _size(node.type) for i, node in enumerate(flat.nodes) if isinstance(node, FlatInput)}
    sources = _sources(flat)
    macs = constants = 0
    narrow = False
    for node in flat.nodes:
        if not isinstance(node, FlatCall):
            continue
        macs += _macs(flat, node)
        constants += sum(_stored(flat.nodes[i]) for i in node.args)
        halved = _narrow_bytes(flat, node)
        narrow = narrow or halved > 0
        constants -= halved
        first = sources[node.args[0]]
        if first in needed and node.op.name in _WINDOWED:
            needed[first] = min(needed[first], _touched(flat, node))
    result = flat.nodes[flat.result]
    assert isinstance(result, FlatCall)
    shapes = [_shape(node.type) for node in flat.params]
    text = f"{' + '.join(map(_show, shapes))} -> {_show(_shape(result.type))}"
    return LayerCost(macs, sum(needed.values()) + constants, _size(result.type), text, narrow)


_PRODUCTS = ("nn.conv2d", "nn.dense", "nn.batch_matmul", "accel.conv2d_transpose")
_WINDOWED = ("nn.conv2d", "nn.max_pool2d", "accel.sum_pool2d")


def _sources(flat: FlatFunction) -> list[int]:
    """For each node the parameter that it is, perhaps padded or reshaped."""
    found: list[int] = []
    for index, node in enumerate(flat.nodes):
        through = isinstance(node, FlatCall) and node.op.name in ("nn.pad", "nn.batch_flatten", "reshape")
        found.append(found[node.args[0]] if through and isinstance(node, FlatCall) else index)
    return found


def _shape(ty: Type) -> tuple[int, ...]:
    assert isinstance(ty, TensorType)
    return ty.static_shape


def _size(ty: Type) -> int:
    assert isinstance(ty, TensorType)
    return prod(ty.static_shape) * np.dtype(ty.dtype).itemsize


def _show(shape: Sequence[int]) -> str:
    return "x".join(map(str, shape[1:]))


def _stored(node: FlatNode) -> int:
    """Bytes of a constant operand; a scalar pad value costs nothing."""
    return node.data.nbytes if isinstance(node, FlatConstant) and node.data.ndim else 0


def _narrow_bytes(flat: FlatFunction, call: FlatCall) -> int:
    """Bytes that constant weights of 4 bits need less."""
    weight = flat.nodes[call.args[1]] if call.op.name in _PRODUCTS else None
    return weight.data.nbytes // 2 if isinstance(weight, FlatConstant) and is_narrow(weight.data) else 0


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


def _touched(flat: FlatFunction, call: FlatCall) -> int:
    """Bytes of the input that some window meets: a stride beyond the kernel skips pixels."""
    a = call.attrs
    origin = _shape(_type_of(flat.nodes[call.args[0]]))
    out = _shape(call.type)
    weight = flat.nodes[call.args[1]] if call.op.name == "nn.conv2d" else None
    kernel = weight.data.shape[2:] if isinstance(weight, FlatConstant) else a.pool_size
    dilation = getattr(a, "dilation", (1, 1))
    before = (a.padding * 2)[:2]
    lines = [
        _lines(origin[2 + axis], out[2 + axis], kernel[axis], a.strides[axis], dilation[axis], before[axis])
        for axis in (0, 1)
    ]
    return origin[0] * origin[1] * lines[0] * lines[1]


def _lines(size: int, count: int, kernel: int, stride: int, dilation: int, before: int) -> int:
    met = {o * stride + k * dilation - before for o in range(count) for k in range(kernel)}
    return sum(1 for line in met if 0 <= line < size)


def _type_of(node: FlatNode) -> Type:
    assert isinstance(node, (FlatInput, FlatCall))
    return node.type
