"""Combines parallel layers on one input into one wide layer, or one batch of products, and slices of its result."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from relay_hw.analysis.scope import find_scopes
from relay_hw.ir.expr import Call, Constant, Expr, Function, Op, Trait, Tuple, TupleGetItem, Var
from relay_hw.ir.module import IRModule
from relay_hw.ir.visit import children, post_order
from relay_hw.transform.base import FunctionPass
from relay_hw.transform.graph import (
    constant,
    constant_value,
    dtype_of,
    is_external,
    is_op,
    make,
    shape_of,
    typed_call,
    typed_tuple,
)
from relay_hw.transform.redirect import redirect

# What siblings must have in common; None if a call cannot be combined.
Key = Callable[[Call], "Hashable | None"]


class CombineParallelConv2D(FunctionPass):
    """At least `min_num_branches` convolutions of one input, alike but for their output channels, become one.

    Weights are constants or computed from parameters by other operators, and groups 1.
    """

    name = "combine-parallel-conv2d"
    opt_level = 4
    pins_effects = True

    def __init__(self, min_num_branches: int = 3) -> None:
        self.min_num_branches = min_num_branches

    def transform_function(self, function: Function, mod: IRModule) -> Function:
        if is_external(function):
            return function
        return _combine(function, self.min_num_branches, _conv_key, lambda calls: _wide(calls, *_conv_axes(calls[0])))


class CombineParallelDense(FunctionPass):
    """At least `min_num_branches` dense layers of one input become one, whose weight is theirs joined.

    With `to_batch` layers of as many units each become one batch of products instead. Weights are constants or
    computed from parameters by other operators.
    """

    name = "combine-parallel-dense"
    opt_level = 4
    pins_effects = True

    def __init__(self, min_num_branches: int = 3, to_batch: bool = False) -> None:
        self.min_num_branches = min_num_branches
        self.to_batch = to_batch

    def transform_function(self, function: Function, mod: IRModule) -> Function:
        if is_external(function):
            return function
        if self.to_batch:
            return _combine(function, self.min_num_branches, _batch_key, _batch)
        return _combine(function, self.min_num_branches, _dense_key, lambda calls: _wide(calls, *_dense_axes(calls[0])))


def _conv_key(call: Call) -> Hashable | None:
    shape = shape_of(call.args[1]) if is_op(call, "nn.conv2d") and call.attrs.groups == 1 else None
    if shape is None:
        return None
    sizes = list(shape)
    sizes[call.attrs.kernel_layout.index("O")] = 0
    return ("conv2d", replace(call.attrs, channels=None), tuple(sizes), dtype_of(call.args[1]))


def _conv_axes(call: Call) -> tuple[int, int]:
    layout = call.attrs.out_layout or call.attrs.data_layout
    return call.attrs.kernel_layout.index("O"), layout.index("C")


def _dense_key(call: Call) -> Hashable | None:
    shape = shape_of(call.args[1]) if is_op(call, "nn.dense") else None
    return None if shape is None else ("dense", shape[1], dtype_of(call.args[1]), call.attrs.out_dtype)


def _dense_axes(call: Call) -> tuple[int, int]:
    return 0, call.tensor_type.rank - 1


def _batch_key(call: Call) -> Hashable | None:
    key = _dense_key(call)
    return None if key is None or call.tensor_type.rank != 2 else (key, shape_of(call.args[1]))


def _movable(function: Function, layers: Collection[Expr]) -> set[Expr]:
    """The nodes that may be computed where any layer is: of constants and parameters, by other operators."""
    found: set[Expr] = set()
    params = set(function.params)
    for node in post_order(function):
        match node:
            case Constant():
                found.add(node)
            case Var() if node in params:
                found.add(node)
            case Call(op=Op() as op) if not op.has(Trait.EFFECT) and found.issuperset(node.args) and node not in layers:
                found.add(node)
            case Tuple() | TupleGetItem() if found.issuperset(children(node)):
                found.add(node)
            case _:
                pass
    return found


def _combine(function: Function, least: int, key: Key, join: Callable[[Sequence[Call]], dict[Expr, Expr]]) -> Function:
    found = {node: key(node) for node in post_order(function) if isinstance(node, Call)}
    keys = {node: one for node, one in found.items() if one is not None}
    scopes, movable = find_scopes(function), _movable(function, keys)
    groups: dict[Hashable, list[Call]] = {}
    for node, one in keys.items():
        if shape_of(node) is not None and node.args[1] in movable:
            # Layers of different blocks need not be computed together.
            groups.setdefault((one, node.args[0], scopes.of[node]), []).append(node)
    new: dict[Expr, Expr] = {}
    for calls in groups.values():
        if len(calls) >= least:
            new.update(join(calls))
    if not new:
        return function
    result = redirect(function, new.get)
    assert isinstance(result, Function)
    return result


def _joined(weights: Sequence[Expr], axis: int) -> Expr:
    values = [value for value in map(constant_value, weights) if value is not None]
    if len(values) == len(weights):
        return constant(np.concatenate(values, axis=axis))
    return make("concatenate", (typed_tuple(weights),), axis=axis)


def _wide(calls: Sequence[Call], weight_axis: int, axis: int) -> dict[Expr, Expr]:
    """For each of `calls` its slice of one call for all."""
    first = calls[0]
    weight = _joined([call.args[1] for call in calls], weight_axis)
    size = weight.tensor_type.static_shape[weight_axis]
    changes: dict[str, Any] = {"channels": size} if is_op(first, "nn.conv2d") else {"units": size}
    both = typed_call(first.op, (first.args[0], weight), replace(first.attrs, **changes), first.span)  # type: ignore[arg-type]
    slices: dict[Expr, Expr] = {}
    start = 0
    for call in calls:
        end = start + call.args[1].tensor_type.static_shape[weight_axis]
        slices[call] = _slice(both, start, end, axis, call)
        start = end
    return slices


def _slice(whole: Expr, start: int, end: int, axis: int, call: Call) -> Call:
    return make("strided_slice", (whole,), begin=(start,), end=(end,), strides=(1,), axes=(axis,), span=call.span)


def _batch(calls: Sequence[Call]) -> dict[Expr, Expr]:
    """For each of `calls` its matrix of one product of batches, in which the input is repeated."""
    first = calls[0]
    weights = [make("expand_dims", (call.args[1],), axis=0, num_newaxis=1) for call in calls]
    sides = make("expand_dims", (first.args[0],), axis=0, num_newaxis=1), _joined(weights, 0)
    product = make(
        "nn.batch_matmul", sides, out_dtype=dtype_of(first), transpose_a=False, transpose_b=True, span=first.span
    )
    return {
        call: make("squeeze", (_slice(product, at, at + 1, 0, call),), axis=(0,), span=call.span)
        for at, call in enumerate(calls)
    }
