"""Multiply-accumulates and weights of a network, by the bit width of weights.

In: a typed module, float or quantized. Out: `Work`: multiply-accumulates and weights, where their number is known.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Final

import numpy as np

from relay_hw.analysis.products import call_macs, weight_shape
from relay_hw.ir.expr import Call, Constant, Expr
from relay_hw.ir.module import IRModule
from relay_hw.ir.types import TensorType
from relay_hw.ir.visit import post_order
from relay_hw.transform.graph import op_name

FLOAT: Final = 32
NIBBLE: Final = 4


@dataclass(frozen=True, slots=True)
class LayerWork:
    """One layer: `bits` of its weights as they are multiplied; `weights` is 0 for products of two activations."""

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

    def macs_of(self, bits: int) -> int:
        """Multiply-accumulates of layers with weights of that width."""
        return sum(layer.macs for layer in self.layers if layer.bits == bits)


def network_work(mod: IRModule) -> Work:
    """Layers of `main`; those in branches and called functions count once."""
    return Work(tuple(map(layer_work, product_calls(mod))))


def product_calls(mod: IRModule) -> Iterator[Call]:
    """The calls that make products, in order of evaluation."""
    for function in mod.functions.values():
        for node in post_order(function.body):
            if isinstance(node, Call) and call_macs(node):
                yield node


def weight_bits(weight: np.ndarray) -> int:
    """Bit width of a weight in multiplications: 4 if all values lie in -8 to 7, else that of its type."""
    if weight.dtype.kind == "f":
        return FLOAT
    fits = weight.size == 0 or (int(weight.min()) >= -8 and int(weight.max()) <= 7)
    return NIBBLE if fits and weight.dtype == np.int8 else 8 * weight.dtype.itemsize


def layer_work(call: Call) -> LayerWork:
    """The layer of a call that makes products."""
    operator, macs = op_name(call), call_macs(call)
    name = str(call.span) if call.span is not None else operator
    shape = weight_shape(call)
    if not shape:
        return LayerWork(name, operator, macs, 0, 8 if _is_integer(call.args[0]) else FLOAT)
    weight = call.args[1]
    return LayerWork(
        name, operator, macs, prod(shape), weight_bits(weight.data) if isinstance(weight, Constant) else FLOAT
    )


def _is_integer(expr: Expr) -> bool:
    ty = expr.type
    return isinstance(ty, TensorType) and ty.dtype.startswith(("int", "uint"))
