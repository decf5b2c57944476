"""Finds parts of a float graph that are a function of one tensor's elements, each on its own, and computes them.

In: a tensor, and which operators read each. Out: the operators that are functions of it; which are more than other
forms stand for; values. An activation such as SiLU is several operators in ONNX, and one function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from relay_hw.ir.expr import Call, Constant, Expr, Op, Trait, Var
from relay_hw.ir.types import TensorType
from relay_hw.ir.visit import post_order
from relay_hw.transform.graph import dtype_of, is_op, op_name, rebuilt, shape_of

Array = NDArray[Any]
# Operators of one tensor and numbers that other integer forms stand for.
_PLAIN = frozenset(
    {"abs", "add", "clip", "divide", "multiply", "negative", "nn.bias_add", "nn.leaky_relu", "nn.relu", "subtract"}
)


def functions_of(
    source: Expr, readers: Mapping[Expr, Sequence[Expr]], ends: Callable[[Call], bool] = lambda call: False
) -> tuple[Call, ...]:
    """Operators whose every element is a function of the element of `source` at the same place alone, operands first.

    `readers`: of each expression. Those that are `ends`, and what reads these, are left out.
    """
    found: dict[Expr, Call | None] = {source: None}
    stack = [source]
    while stack:
        for reader in readers.get(stack.pop(), ()):
            if reader in found or not _is_pointwise(reader) or ends(reader) or shape_of(reader) != shape_of(source):
                continue
            if all(arg in found or _is_number(arg) for arg in reader.args):
                found[reader] = reader
                stack.append(reader)
    return tuple(call for call in found.values() if call is not None)


def _is_pointwise(expr: Expr) -> TypeGuard[Call]:
    if not isinstance(expr, Call) or not isinstance(expr.op, Op) or dtype_of(expr) != "float32":
        return False
    return expr.op.has(Trait.ELEMENTWISE) or (is_op(expr, "nn.bias_add") and _is_number(expr.args[1]))


def _is_number(expr: Expr) -> bool:
    """Whether a constant is one number, for whatever there is."""
    return isinstance(expr, Constant) and expr.data.size > 0 and bool((expr.data == expr.data.reshape(-1)[0]).all())


def curved(calls: Iterable[Call]) -> frozenset[Call]:
    """The functions, of those that `functions_of` gives, that are more than factors, offsets and bends."""
    found: set[Expr] = set()
    for call in calls:
        several = sum(not _is_number(arg) for arg in call.args) > 1
        if several or op_name(call) not in _PLAIN or not found.isdisjoint(call.args):
            found.add(call)
    return frozenset(call for call in found if isinstance(call, Call))


def function_values(call: Call, source: Expr, numbers: Array) -> Array:
    """What the function makes of float32 [n] elements of `source`."""
    element = Var("element", TensorType(numbers.shape, "float32"))
    body = on_another(call, source, element)
    values: dict[Expr, Array] = {element: numbers}
    with np.errstate(all="ignore"):
        for node in post_order(body):
            if isinstance(node, Constant):
                values[node] = node.data.reshape(-1)[:1].reshape(())
            elif isinstance(node, Call):
                values[node] = _value(node, [values[arg] for arg in node.args])
    return values[body]


def on_another(call: Call, source: Expr, other: Expr) -> Expr:
    """The same operators, of the same types, on another tensor than `source`."""
    memo: dict[Expr, Expr] = {source: other}
    for node in post_order(call):
        if node not in memo:
            memo[node] = rebuilt(node, memo)
    return memo[call]


def _value(call: Call, args: Sequence[Array]) -> Array:
    if is_op(call, "nn.bias_add"):
        return args[0] + args[1]
    assert isinstance(call.op, Op)
    shape = np.broadcast_shapes(*(arg.shape for arg in args))
    return np.asarray(call.op.reference(call.attrs, args, TensorType(shape, "float32")))
