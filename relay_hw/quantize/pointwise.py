"""Finds parts of a float graph that are a function of one tensor's elements, each on its own, and computes them.

In: operators and which tensors are in integers. Out: the tensor that an operator is a function of; values. An
activation such as SiLU is several operators in ONNX, and one function.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from relay_hw.ir.expr import Call, Constant, Expr, Op, Trait
from relay_hw.ir.types import TensorType
from relay_hw.ir.visit import copy_with
from relay_hw.transform.graph import dtype_of, is_op, op_name, shape_of

Array = NDArray[Any]
# Operators of one tensor and numbers that other integer forms stand for.
_PLAIN = frozenset(
    {"abs", "add", "clip", "divide", "multiply", "negative", "nn.bias_add", "nn.leaky_relu", "nn.relu", "subtract"}
)


def source_of(expr: Expr, is_integer: Callable[[Expr], bool]) -> Expr | None:
    """The tensor in integers that each element of `expr` is a function of, by its element at the same place alone."""
    memo: dict[Expr, Expr | None] = {}

    def find(node: Expr) -> Expr | None:
        if node not in memo:
            memo[node] = node if is_integer(node) else function_of(node)
        return memo[node]

    def function_of(call: Expr) -> Expr | None:
        if not _is_pointwise(call):
            return None
        found = {find(arg) for arg in call.args if not _is_number(arg)}
        source = found.pop() if len(found) == 1 else None
        return source if source is not None and shape_of(source) == shape_of(call) else None

    return function_of(expr)


def _is_pointwise(expr: Expr) -> TypeGuard[Call]:
    if not isinstance(expr, Call) or not isinstance(expr.op, Op) or dtype_of(expr) != "float32":
        return False
    return expr.op.has(Trait.ELEMENTWISE) or (is_op(expr, "nn.bias_add") and _is_number(expr.args[1]))


def _is_number(expr: Expr) -> bool:
    """Whether a constant is one number, for whatever there is."""
    return isinstance(expr, Constant) and expr.data.size > 0 and bool((expr.data == expr.data.reshape(-1)[0]).all())


def is_curved(call: Call, source: Expr) -> bool:
    """Whether the function is more than factors, offsets and bends, for which there are other forms."""
    several = sum(not _is_number(arg) for arg in call.args) > 1
    inner = (arg for arg in call.args if isinstance(arg, Call) and arg is not source)
    return several or op_name(call) not in _PLAIN or any(is_curved(arg, source) for arg in inner)


def function_values(call: Call, source: Expr, numbers: Array) -> Array:
    """What the function makes of float32 [n] elements of `source`."""
    with np.errstate(all="ignore"):
        return _values(call, {source: numbers})


def on_another(call: Call, source: Expr, other: Expr) -> Call:
    """The same operators on another tensor than `source`."""
    args = [
        other if arg is source else arg if not isinstance(arg, Call) else on_another(arg, source, other)
        for arg in call.args
    ]
    return copy_with(call, args=tuple(args))


def _values(expr: Expr, known: Mapping[Expr, Array]) -> Array:
    if expr in known:
        return known[expr]
    if isinstance(expr, Constant):
        return expr.data.reshape(-1)[:1].reshape(())
    assert isinstance(expr, Call) and isinstance(expr.op, Op)
    args = [_values(arg, known) for arg in expr.args]
    if is_op(expr, "nn.bias_add"):
        return args[0] + args[1]
    shape = np.broadcast_shapes(*(arg.shape for arg in args))
    return np.asarray(expr.op.reference(expr.attrs, args, TensorType(shape, "float32")))
