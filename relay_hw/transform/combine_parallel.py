"""Combines parallel layers on one input into one wide layer and slices of its result."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from relay_hw.analysis.scope import find_scopes
from relay_hw.ir.expr import Call, Expr, Function
from relay_hw.ir.module import IRModule
from relay_hw.ir.visit import post_order
from relay_hw.transform.base import FunctionPass
from relay_hw.transform.graph import constant, constant_value, is_external, is_op, make, shape_of, typed_call
from relay_hw.transform.redirect import redirect

# What siblings must have in common; None if a call cannot be combined.
Key = Callable[[Call], "Hashable | None"]


class CombineParallelConv2D(FunctionPass):
    """At least `min_num_branches` convolutions of one input, alike but for their output channels, become one.

    Weights must be constants and groups 1.
    """

    name = "combine-parallel-conv2d"
    opt_level = 4
    pins_effects = True

    def __init__(self, min_num_branches: int = 3) -> None:
        self.min_num_branches = min_num_branches

    def transform_function(self, function: Function, mod: IRModule) -> Function:
        if is_external(function):
            return function
        return _combine(function, self.min_num_branches, _conv_key, _conv_axes)


class CombineParallelDense(FunctionPass):
    """At least `min_num_branches` dense layers of one input become one. Weights must be constants."""

    name = "combine-parallel-dense"
    opt_level = 4
    pins_effects = True

    def __init__(self, min_num_branches: int = 3) -> None:
        self.min_num_branches = min_num_branches

    def transform_function(self, function: Function, mod: IRModule) -> Function:
        if is_external(function):
            return function
        return _combine(function, self.min_num_branches, _dense_key, _dense_axes)


def _conv_key(call: Call) -> Hashable | None:
    if not is_op(call, "nn.conv2d") or call.attrs.groups != 1 or constant_value(call.args[1]) is None:
        return None
    shape = list(constant_value(call.args[1]).shape)  # type: ignore[union-attr]
    shape[call.attrs.kernel_layout.index("O")] = 0
    return ("conv2d", replace(call.attrs, channels=None), tuple(shape), str(constant_value(call.args[1]).dtype))  # type: ignore[union-attr]


def _conv_axes(call: Call) -> tuple[int, int]:
    layout = call.attrs.out_layout or call.attrs.data_layout
    return call.attrs.kernel_layout.index("O"), layout.index("C")


def _dense_key(call: Call) -> Hashable | None:
    weight = constant_value(call.args[1]) if is_op(call, "nn.dense") else None
    return None if weight is None else ("dense", weight.shape[1], str(weight.dtype), call.attrs.out_dtype)


def _dense_axes(call: Call) -> tuple[int, int]:
    return 0, call.tensor_type.rank - 1


def _combine(function: Function, least: int, key: Key, axes: Callable[[Call], tuple[int, int]]) -> Function:
    scopes = find_scopes(function)
    groups: dict[Hashable, list[Call]] = {}
    for node in post_order(function):
        found = key(node) if isinstance(node, Call) else None
        if found is not None and isinstance(node, Call) and shape_of(node) is not None:
            # Layers of different blocks need not be computed together.
            groups.setdefault((found, node.args[0], scopes.of[node]), []).append(node)
    new: dict[Expr, Expr] = {}
    for calls in groups.values():
        if len(calls) >= least:
            new.update(_wide(calls, *axes(calls[0])))
    if not new:
        return function
    result = redirect(function, new.get)
    assert isinstance(result, Function)
    return result


def _wide(calls: Sequence[Call], weight_axis: int, axis: int) -> dict[Expr, Expr]:
    """For each of `calls` its slice of one call for all."""
    first = calls[0]
    weights = [value for value in (constant_value(call.args[1]) for call in calls) if value is not None]
    weight = constant(np.concatenate(weights, axis=weight_axis))
    size = weight.data.shape[weight_axis]
    changes: dict[str, Any] = {"channels": size} if is_op(first, "nn.conv2d") else {"units": size}
    both = typed_call(first.op, (first.args[0], weight), replace(first.attrs, **changes), first.span)  # type: ignore[arg-type]
    slices: dict[Expr, Expr] = {}
    start = 0
    for call, part in zip(calls, weights, strict=True):
        end = start + part.shape[weight_axis]
        slices[call] = make(
            "strided_slice", (both,), begin=(start,), end=(end,), strides=(1,), axes=(axis,), span=call.span
        )
        start = end
    return slices
