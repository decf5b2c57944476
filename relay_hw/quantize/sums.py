"""Merges sums of dense layers into one dense layer of all their inputs: one launch, no rounding in between.

In: a float graph, values of its inputs. Out: the same function in float, within rounding. Each input is scaled by a
power of two, and its weights by the inverse, so that all inputs fill one range.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relay_hw.interp import Interpreter
from relay_hw.ir.expr import Call, Constant, Expr, Function, Tuple
from relay_hw.ir.module import IRModule
from relay_hw.ir.types import TupleType
from relay_hw.quantize.calibration import check_data
from relay_hw.transform.graph import constant, count_uses, is_op, make, shape_of, typed
from relay_hw.transform.infer_type import InferType
from relay_hw.transform.linear import Linear, add_bias, find_linear
from relay_hw.transform.redirect import redirect
from relay_hw.transform.rewrite_rules import Uses

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Sum:
    """`root` is the sum of the dense layers `parts`."""

    root: Call
    parts: tuple[Linear, ...]

    @property
    def inputs(self) -> tuple[Expr, ...]:
        """The inputs of the layers."""
        return tuple(part.anchor.args[0] for part in self.parts)


def merge_sums(mod: IRModule, data: Mapping[str, Array]) -> IRModule:
    """`mod`, whose `main` is a graph, with sums of dense layers merged; `data`: an array for each input."""
    main = mod["main"]
    sums = find_sums(main)
    if not sums:
        return mod
    ranges = _ranges(mod, [source for one in sums for source in one.inputs], data)
    merged: dict[Expr, Expr] = {one.root: _merged(one, [ranges[source] for source in one.inputs]) for one in sums}
    body = redirect(main.body, lambda node: merged.get(node))
    return InferType()(mod.with_functions({"main": Function(main.params, body, attrs=main.attrs, span=main.span)}))


def find_sums(function: Function) -> list[Sum]:
    """The largest sums of two or more dense layers that nothing else reads."""
    counts = count_uses(function)
    uses = Uses(counts)
    found: list[Sum] = []
    inside: set[Expr] = set()
    for node in reversed(list(counts)):
        if node in inside or not is_op(node, "add"):
            continue
        assert isinstance(node, Call)
        parts = _parts(node, uses, inside)
        if parts is not None:
            found.append(Sum(node, tuple(parts)))
    return found


def _parts(root: Call, uses: Uses, inside: set[Expr]) -> list[Linear] | None:
    """The dense layers that `root` adds up; records the sums inside."""
    parts: list[Linear] = []
    sums: set[Expr] = set()
    waiting: list[Expr] = [root]
    while waiting:
        node = waiting.pop()
        shape = shape_of(node)
        if shape is None or shape != shape_of(root) or (node is not root and not uses.is_single(node)):
            return None
        if is_op(node, "add") and isinstance(node, Call):
            sums.add(node)
            waiting += reversed(node.args)
            continue
        linear = find_linear(node, uses)
        if linear is None or not is_op(linear.anchor, "nn.dense") or len(shape) != 2:
            return None
        parts.append(linear)
    inside |= sums
    return parts


def _ranges(mod: IRModule, tensors: Sequence[Expr], data: Mapping[str, Array]) -> dict[Expr, float]:
    """The largest magnitude of each tensor."""
    largest = dict.fromkeys(tensors, 0.0)

    def observe(node: Expr, value: Any) -> None:
        if node in largest and value.size:
            largest[node] = max(largest[node], float(np.abs(value).max()))

    interpreter = Interpreter(mod, observe)
    for batch in check_data(mod["main"].params, data):
        interpreter.call_global("main", batch)
    for tensor in tensors:
        if isinstance(tensor, Constant):
            largest[tensor] = float(np.abs(tensor.data).max(initial=0.0))
    return largest


def _merged(one: Sum, ranges: Sequence[float]) -> Expr:
    """The dense layer of all inputs, each scaled to the range of the first one."""
    span = one.root.span
    sources: list[Expr] = []
    weights: list[Array] = []
    for part, source, reach in zip(one.parts, one.inputs, ranges, strict=True):
        exponent = _exponent(ranges[0], reach)
        factor = np.float32(2.0**exponent)
        scaled = source if exponent == 0 else make("multiply", (source, constant(factor)), span=source.span)
        sources.append(scaled)
        weights.append(part.weight / factor)
    whole = typed(Tuple(sources), TupleType([source.type for source in sources]))
    data = make("concatenate", (whole,), axis=1, span=span)
    weight = np.concatenate(weights, axis=1)
    dense = make("nn.dense", (data, constant(weight, span)), units=weight.shape[0], span=one.parts[0].anchor.span)
    biases = [part.bias.astype(np.float64) for part in one.parts if part.bias is not None]
    return add_bias(dense, np.sum(biases, axis=0).astype(weight.dtype), 1, span) if biases else dense


def _exponent(target: float, reach: float) -> int:
    """The power of two that scales `reach` nearest to `target`."""
    return round(math.log2(target / reach)) if target > 0 and reach > 0 else 0
