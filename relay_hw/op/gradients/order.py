"""Gradients of operators that order, sum up or move elements. In: a call, its result's adjoint. Out: the adjoints."""

from __future__ import annotations

from collections.abc import Sequence

from relay_hw.ir.expr import Call, Expr, TupleGetItem
from relay_hw.op.gradients.common import one_argument, ops, zeros
from relay_hw.op.gradients.shape import nothing as nothing


def sort(call: Call, adjoint: Expr) -> Sequence[Expr]:
    """Each adjoint goes back to where its element came from."""
    x, attrs = call.args[0], call.attrs
    return (_returned(x, ops().argsort(x, attrs.axis, attrs.is_ascend), adjoint, attrs.axis),)


def topk(call: Call, adjoint: Expr) -> Sequence[Expr]:
    """The adjoints of the chosen elements go back to them; the others have none."""
    x, attrs = call.args[0], call.attrs
    if attrs.ret_type == "indices":
        return (zeros(x),)
    places = ops().topk(x, attrs.k, attrs.axis, "indices", attrs.is_ascend)
    values = TupleGetItem(adjoint, 0) if attrs.ret_type == "both" else adjoint
    return (_returned(x, places, values, attrs.axis),)


def _returned(x: Expr, places: Expr, adjoint: Expr, axis: int) -> Expr:
    return ops().scatter_elements(zeros(x), places, adjoint, axis, "add")


def _cumsum(call: Call, x: Expr, g: Expr) -> Expr:
    axis = 0 if call.attrs.axis is None else call.attrs.axis
    sums = ops().reverse(ops().cumsum(ops().reverse(g, axis), axis, None, call.attrs.exclusive), axis)
    return ops().cast_like(sums if call.attrs.axis is not None else ops().reshape_like(sums, x), x)


def _depth_to_space(call: Call, x: Expr, g: Expr) -> Expr:
    return ops().nn.space_to_depth(g, call.attrs.block_size, call.attrs.layout, call.attrs.mode)


def _space_to_depth(call: Call, x: Expr, g: Expr) -> Expr:
    return ops().nn.depth_to_space(g, call.attrs.block_size, call.attrs.layout, call.attrs.mode)


# Sums of everything behind, from the end.
cumsum = one_argument(_cumsum)
depth_to_space = one_argument(_depth_to_space)
space_to_depth = one_argument(_space_to_depth)
