"""What a network has to compute and to store, by the width of its weights.

In: a typed module, float or quantized. Out: `Work`: multiply-accumulates and weights, where their number is known.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Final

import numpy as np

from relay_hw.ir.expr import Call, Constant, Expr
from relay_hw.ir.module import IRModule
from relay_hw.ir.types import TensorType
from relay_hw.ir.visit import post_order
from relay_hw.transform.graph import op_name

FLOAT: Final = 32
NIBBLE: Final = 4
_LAYERS: Final = ("nn.conv1d", "nn.conv2d", "nn.conv3d", "nn.dense", "nn.matmul")
_TRANSPOSED: Final = ("nn.conv2d_transpose", "accel.conv2d_transpose")
_PRODUCTS: Final = ("nn.batch_matmul",)


@dataclass(frozen=True, slots=True)
class LayerWork:
    """One layer: `bits` of its weights as they are stored; `weights` is 0 for products of two activations."""

    name: str
    operator: str
    macs: int
    weights: int
    bits: int


@dataclass(frozen=True, slots=True)
class Work:
    """All layers, in order of evaluation."""

    layers: tuple[LayerWork, ...]

    @property
    def macs(self) -> int:
        """Multiply-accumulates of a run."""
        return sum(layer.macs for layer in self.layers)

    @property
    def weight_bytes(self) -> int:
        """Weights of all layers as they are stored, biases and scales left out."""
        return sum(-(-layer.weights * layer.bits // 8) for layer in self.layers)

    def macs_of(self, bits: int) -> int:
        """Multiply-accumulates of layers with weights of that width."""
        return sum(layer.macs for layer in self.layers if layer.bits == bits)


def network_work(mod: IRModule) -> Work:
    """Layers of `main`. Those of branches and of functions that it calls count once."""
    found: list[LayerWork] = []
    for function in mod.functions.values():
        for node in post_order(function.body):
            layer = _layer(node) if isinstance(node, Call) else None
            if layer is not None:
                found.append(layer)
    return Work(tuple(found))


def weight_bits(weight: np.ndarray) -> int:
    """Width that the accelerator stores a weight in: 4 where every number lies in -8 to 7, else that of its type."""
    if weight.dtype.kind == "f":
        return FLOAT
    fits = weight.size == 0 or (int(weight.min()) >= -8 and int(weight.max()) <= 7)
    return NIBBLE if fits and weight.dtype == np.int8 else 8 * weight.dtype.itemsize


def _layer(call: Call) -> LayerWork | None:
    operator = op_name(call)
    if operator not in (*_LAYERS, *_TRANSPOSED, *_PRODUCTS):
        return None
    out, data = _shape(call), _shape(call.args[0])
    if out is None or data is None:
        return None
    name = str(call.span) if call.span is not None else operator
    if operator in _PRODUCTS:
        inner = data[1] if getattr(call.attrs, "transpose_a", False) else data[-1]
        return LayerWork(name, operator, prod(out) * inner, 0, 8 if _is_integer(call.args[0]) else FLOAT)
    kernel = _shape(call.args[1])
    if kernel is None:
        return None
    weight = call.args[1]
    bits = weight_bits(weight.data) if isinstance(weight, Constant) else FLOAT
    return LayerWork(name, operator, _macs(call, operator, out, data, kernel), prod(kernel), bits)


def _macs(call: Call, operator: str, out: tuple[int, ...], data: tuple[int, ...], kernel: tuple[int, ...]) -> int:
    if operator in ("nn.dense", "nn.matmul"):
        return prod(out) * data[-1]
    if operator in _TRANSPOSED:
        # Every input element meets each weight of its input channel, which is the kernel's first axis.
        return prod(data) * prod(kernel[1:])
    layout = str(getattr(call.attrs, "kernel_layout", "OIHW"))
    return prod(out) * prod(kernel) // kernel[layout.index("O")]


def _shape(expr: Expr) -> tuple[int, ...] | None:
    ty = expr.type
    if not isinstance(ty, TensorType) or not all(isinstance(size, int) for size in ty.shape):
        return None
    return ty.static_shape


def _is_integer(expr: Expr) -> bool:
    ty = expr.type
    return isinstance(ty, TensorType) and ty.dtype.startswith(("int", "uint"))
