"""Scales, zero points and constant tensors of a prequantized graph.

In: typed expressions of the QNN dialect. Out: `Grid` of an activation, `GridConstant` of a weight or bias, or None.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relay_hw.ir.expr import Call, Constant, Expr, Op, Trait, Tuple, TupleGetItem
from relay_hw.transform.graph import has_trait, is_op

Array = NDArray[Any]
# Offset from uint8 to int8.
OFFSET = {"int8": 0, "uint8": 128}


@dataclass(frozen=True, slots=True)
class Grid:
    """Affine quantization: an int8 integer q represents scale * (q - zero)."""

    scale: Fraction
    zero: int

    def index(self, value: float) -> int:
        """The integer nearest to a bound, ties to even, within int8."""
        if value in (float("inf"), float("-inf")):
            return 127 if value > 0 else -128
        return min(max(round(Fraction(value) / self.scale) + self.zero, -128), 127)

    def exact(self, value: float) -> int | None:
        """The integer that represents exactly `value`; None if there is none."""
        if not np.isfinite(value):
            return None
        index = Fraction(value) / self.scale + self.zero
        return int(index) if index.denominator == 1 and -128 <= index <= 127 else None


@dataclass(frozen=True, slots=True)
class GridConstant:
    """A constant tensor: int64 `integers`, zero point subtracted, times one scale or one per index of `axis`."""

    integers: Array
    scales: tuple[Fraction, ...]
    axis: int

    def along(self, axis: int) -> tuple[Fraction, ...] | None:
        """Scales for each index of `axis`; None if they vary along another one."""
        if len(self.scales) == 1:
            return self.scales * self.integers.shape[axis]
        return self.scales if self.axis == axis % self.integers.ndim else None


def fraction(value: Any) -> Fraction:
    """The exact value of a float32 number."""
    return Fraction(float(np.float32(value)))


def grid_of(call: Call, offset: int) -> Grid | None:
    """Scale and zero point (arguments 1 and 2) of a conversion; `offset` is what the integers lose."""
    scale, zero = call.args[1], call.args[2]
    if not isinstance(scale, Constant) or not isinstance(zero, Constant):
        return None
    return make_grid(scale.data, zero.data, offset)


def make_grid(scale: Array, zero: Array, offset: int) -> Grid | None:
    """The grid of one scale and zero point; None if there are several, or none on int8."""
    if scale.size != 1 or zero.size != 1:
        return None
    number, shifted = float(scale.reshape(())), int(zero.reshape(())) - offset
    if not np.isfinite(number) or number <= 0 or not -128 <= shifted <= 127:
        return None
    return Grid(fraction(number), shifted)


def known(expr: Expr, memo: dict[Expr, Any]) -> Any:
    """The value of a constant expression; None for others."""
    if expr in memo:
        return memo[expr]
    value: Any = None
    match expr:
        case Constant(data=data):
            value = data
        case Tuple(fields=fields):
            parts = tuple(known(part, memo) for part in fields)
            value = None if any(part is None for part in parts) else parts
        case TupleGetItem(tuple_value=whole, index=index):
            found = known(whole, memo)
            value = None if found is None else found[index]
        case Call(op=Op() as op, args=args, attrs=attrs) if not op.has(Trait.EFFECT):
            values = [known(arg, memo) for arg in args]
            if not any(item is None for item in values):
                value = op.reference(attrs, values, expr.type)
        case _:
            pass
    memo[expr] = value
    return value


def grid_constant(expr: Expr, memo: dict[Expr, Any]) -> GridConstant | None:
    """A float weight or bias computed from constant integers: dequantized, maybe transposed or reshaped."""
    if is_op(expr, "qnn.dequantize"):
        assert isinstance(expr, Call)
        values = [known(arg, memo) for arg in expr.args]
        if any(value is None for value in values):
            return None
        integers, scale, zero = (np.asarray(value) for value in values)
        return integer_constant(integers, scale, zero, expr.attrs.axis)
    if is_op(expr, "transpose"):
        assert isinstance(expr, Call)
        inner = grid_constant(expr.args[0], memo)
        if inner is None:
            return None
        axes = [axis % inner.integers.ndim for axis in expr.attrs.axes or range(inner.integers.ndim)[::-1]]
        return GridConstant(inner.integers.transpose(axes), inner.scales, axes.index(inner.axis))
    if has_trait(expr, Trait.RESHAPES) or is_op(expr, "copy", "broadcast_to"):
        assert isinstance(expr, Call)
        inner = grid_constant(expr.args[0], memo)
        if inner is None:
            return None
        shape = expr.tensor_type.static_shape
        axis = _axis_after(inner, shape)
        if axis is None:
            return None
        same = int(np.prod(shape, initial=1)) == inner.integers.size
        moved = inner.integers.reshape(shape) if same else np.broadcast_to(inner.integers, shape)
        return GridConstant(moved, inner.scales, axis)
    return None


def _axis_after(inner: GridConstant, shape: tuple[int, ...]) -> int | None:
    """The axis of the scales after a reshape."""
    if len(inner.scales) == 1:
        return 0
    size, before = inner.integers.shape[inner.axis], int(np.prod(inner.integers.shape[: inner.axis], initial=1))
    for axis, other in enumerate(shape):
        if other == size and int(np.prod(shape[:axis], initial=1)) == before:
            return axis
    return None


def integer_constant(integers: Array, scale: Array, zero: Array, axis: int) -> GridConstant:
    """Integers with the zero point subtracted, and their scales."""
    rank = integers.ndim
    axis = axis % rank if rank else 0
    wide = integers.astype(np.int64)
    shaped = zero.reshape(()) if zero.size == 1 else zero.reshape([-1 if k == axis else 1 for k in range(rank)])
    return GridConstant(wide - shaped.astype(np.int64), tuple(fraction(s) for s in scale.reshape(-1)), axis)
