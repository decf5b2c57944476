"""Windows over data whose sizes only run time knows: what each kernel position meets, and sums of products of it.

In: data of NC + spatial, the geometry of the windows. Out: expressions that gradients are taken of.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from relay_hw.ir.expr import Expr
from relay_hw.op.gradients.common import ops
from relay_hw.op.gradients.selection import places_of, size_of


@dataclass(frozen=True, slots=True)
class Geometry:
    """One number a spatial axis."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilation: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]

    @property
    def reach(self) -> tuple[int, ...]:
        """How far a window goes."""
        return tuple((k - 1) * d + 1 for k, d in zip(self.kernel, self.dilation, strict=True))

    def counts(self, x: Expr, more: int = 0) -> tuple[Expr, ...]:
        """How many windows there are along each axis; with `more` 1, those that begin in the padding but go beyond."""
        op = ops()
        found: list[Expr] = []
        for axis, (reach, stride, before, after) in enumerate(
            zip(self.reach, self.strides, self.before, self.after, strict=True)
        ):
            room = size_of(x, 2 + axis) + op.const(before + after - reach + more * (stride - 1), "int64")
            found.append(op.floor_divide(room, op.const(stride, "int64")) + op.const(1, "int64"))
        return tuple(found)


def padded(x: Expr, geometry: Geometry, dtype: str, value: float = 0.0) -> Expr:
    """`x` with its padding of `value`, and behind it zeros for all that windows can meet."""
    op = ops()
    padding = zip(geometry.before, geometry.after, strict=True)
    whole = op.nn.pad(x, [(0, 0), (0, 0), *padding], op.const(value, dtype))
    return op.nn.pad(whole, [(0, 0), (0, 0), *((0, reach) for reach in geometry.reach)], op.const(0.0, dtype))


def met(x: Expr, geometry: Geometry, counts: tuple[Expr, ...]) -> Iterator[Expr]:
    """For every kernel position, row by row, the element of padded `x` that it meets in each window."""
    op = ops()
    for position in np.ndindex(*geometry.kernel):
        value = x
        for axis, at in enumerate(position):
            starts = places_of(counts[axis]) * op.const(geometry.strides[axis], "int64")
            value = op.take(value, starts + op.const(at * geometry.dilation[axis], "int64"), 2 + axis)
        yield value


def convolved(x: Expr, weight: Expr, geometry: Geometry, groups: int, dtype: str) -> Expr:
    """Sums of products of the weight, (groups, outputs, inputs, kernel positions), with every window."""
    op = ops()
    spatial = "xyz"[: len(geometry.kernel)]
    total: Expr | None = None
    for number, value in enumerate(met(padded(x, geometry, dtype), geometry, geometry.counts(x))):
        grouped = op.reshape(value, (0, -4, groups, -1, -2))
        part = op.take(weight, op.const(number, "int64"), 3)
        share = op.einsum([grouped, part], f"ngi{spatial},goi->ngo{spatial}")
        total = share if total is None else total + share
    assert total is not None
    return op.reshape(total, (0, -3, -2))


def spaced(x: Expr, strides: Sequence[int], dtype: str) -> Expr:
    """`x` with stride - 1 zeros behind every element of the spatial axes."""
    op = ops()
    for axis, stride in enumerate(strides, 2):
        if stride > 1:
            widths = [(0, 0)] * (len(strides) + 3)
            widths[axis + 1] = (0, stride - 1)
            wide = op.nn.pad(op.expand_dims(x, axis + 1), widths, op.const(0.0, dtype))
            x = op.reshape(wide, (*[0] * axis, -3, *[0] * (len(strides) + 1 - axis)))
    return x
