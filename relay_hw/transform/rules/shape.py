"""Rules that merge consecutive reshapes and transposes."""

from __future__ import annotations

from collections.abc import Sequence

from relay_hw.ir.expr import Call, Expr, Trait
from relay_hw.op import with_trait
from relay_hw.transform.graph import has_trait, is_op, make, shape_of
from relay_hw.transform.rewrite_rules import Rule, Uses

RESHAPES = with_trait(Trait.RESHAPES)


def _reshape_twice(call: Call, uses: Uses) -> Expr | None:
    inner, shape = call.args[0], shape_of(call)
    if not isinstance(inner, Call) or not has_trait(inner, Trait.RESHAPES) or shape is None or 0 in shape:
        return None
    if is_op(call, "nn.batch_flatten") and is_op(inner, "nn.batch_flatten"):
        return inner
    return make("reshape", (inner.args[0],), newshape=shape, span=call.span)


def _as_reshape(call: Call, uses: Uses) -> Expr | None:
    """One name for what only changes the shape, so that patterns need to know one."""
    shape = shape_of(call)
    return None if shape is None or 0 in shape else make("reshape", (call.args[0],), newshape=shape, span=call.span)


def _axes(call: Call, rank: int) -> Sequence[int]:
    return tuple(axis % rank for axis in call.attrs.axes) if call.attrs.axes else tuple(reversed(range(rank)))


def _transpose_twice(call: Call, uses: Uses) -> Expr | None:
    inner, shape = call.args[0], shape_of(call)
    if not isinstance(inner, Call) or not is_op(inner, "transpose") or shape is None:
        return None
    first, second = _axes(inner, len(shape)), _axes(call, len(shape))
    axes = tuple(first[axis] for axis in second)
    if axes == tuple(range(len(shape))):
        return inner.args[0]
    return make("transpose", (inner.args[0],), axes=axes, span=call.span)


def _transpose_of_vector(call: Call, uses: Uses) -> Expr | None:
    """A transpose that moves only axes of size 1 past others is a reshape."""
    shape, source = shape_of(call), shape_of(call.args[0])
    if shape is None or source is None or 0 in shape:
        return None
    order = [axis for axis in _axes(call, len(shape)) if source[axis] != 1]
    return make("reshape", (call.args[0],), newshape=shape, span=call.span) if order == sorted(order) else None


SHAPE_RULES = (
    Rule("squeeze-as-reshape", ("squeeze", "expand_dims"), _as_reshape),
    Rule("reshape-of-reshape", RESHAPES, _reshape_twice),
    Rule("transpose-of-transpose", ("transpose",), _transpose_twice),
    Rule("transpose-as-reshape", ("transpose",), _transpose_of_vector),
)
