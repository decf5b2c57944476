"""Gradients of the reductions. In: a call, its result's adjoint. Out: the arguments' adjoints.

Equally large elements share the adjoint of their maximum.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

from relay_hw.ir.expr import Call, Expr
from relay_hw.ir.late import late
from relay_hw.op.gradients.common import (
    collapse,
    inverse,
    known_type,
    moved,
    name_of,
    number,
    one_argument,
    ops,
    reshaped,
    sizes,
    zeros,
)


def _axes(call: Call) -> tuple[int, ...]:
    return late("relay_hw.op.reduce").reduced_axes(name_of(call), call.attrs, call.args[0].tensor_type.rank)


def kept(call: Call, value: Expr) -> Expr:
    """A result, or an adjoint, with the reduced axes there with size 1."""
    if call.attrs.keepdims:
        return value
    for axis in _axes(call):
        value = ops().expand_dims(value, axis)
    return value


def _spread(call: Call, x: Expr, value: Expr) -> Expr:
    ty = known_type(x)
    value = kept(call, value)
    return ops().broadcast_to_like(value, x) if ty is None else ops().broadcast_to(value, ty.static_shape)


def _count(call: Call) -> int:
    shape, count = sizes(call, call.args[0]), 1
    for axis in _axes(call):
        count *= shape[axis]
    return count


def _share(call: Call, x: Expr, g: Expr, factor: float = 1, less: int = 0) -> Expr:
    """g * factor / (number of reduced elements - less), the reduced axes kept."""
    if known_type(x) is not None:
        return kept(call, g) * number(factor / max(_count(call) - less, 1), x)
    # The number is known at run time.
    count = ops().sum(ops().ones_like(x), _axes(call), keepdims=True) if _axes(call) else number(1, x)
    return kept(call, g) * number(factor, x) / (count - number(less, x))


def _mean(call: Call, x: Expr, g: Expr) -> Expr:
    ty, share = known_type(x), _share(call, x, g)
    return ops().broadcast_to_like(share, x) if ty is None else ops().broadcast_to(share, ty.static_shape)


def _extreme(call: Call, x: Expr, g: Expr) -> Expr:
    op = ops()
    chosen = op.cast_like(op.equal(x, kept(call, call)), x)
    count = op.sum(chosen, _axes(call), keepdims=True) if _axes(call) else chosen
    return chosen * (kept(call, g) / count)


def _prod(call: Call, x: Expr, g: Expr) -> Expr:
    """Each element's slope is the product of all others: of those before it, times those behind it."""
    axes, shape = _axes(call), sizes(call, x)
    order = [axis for axis in range(len(shape)) if axis not in axes] + list(axes)
    lead = tuple(shape[axis] for axis in order[: len(shape) - len(axes)])
    count = _count(call)
    if not count:
        return zeros(x)
    flat = reshaped(moved(x, order), (*lead, count))
    others = _before(flat, len(lead), count) * _behind(flat, len(lead), count)
    back = moved(reshaped(others, [shape[axis] for axis in order]), inverse(order))
    return back * kept(call, g)


def _shifted(value: Expr, rank: int, by: int) -> Expr:
    """`value` moved along the last axis, ones following."""
    widths = [(0, 0)] * rank + [(by, -by)]
    return ops().nn.pad(value, widths, 1.0)


def _before(value: Expr, rank: int, count: int) -> Expr:
    result = _shifted(value, rank, 1)
    for step in takewhile(lambda step: step < count, (1 << power for power in range(count))):
        result = result * _shifted(result, rank, step)
    return result


def _behind(value: Expr, rank: int, count: int) -> Expr:
    return ops().reverse(_before(ops().reverse(value, rank), rank, count), rank)


total = one_argument(_spread)
mean = one_argument(_mean)
extreme = one_argument(_extreme)
prod = one_argument(_prod)


def variance(call: Call, adjoint: Expr) -> Sequence[Expr]:
    """Of (x - center)**2, both sides; the center is the mean only by custom."""
    x, center = call.args
    slope = (x - center) * _share(call, x, adjoint, 2, int(call.attrs.unbiased))
    return slope, collapse(-slope, x, center)
