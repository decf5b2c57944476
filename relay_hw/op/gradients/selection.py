"""Gradients of operators that select elements, without their sizes: the operator itself says where elements come from.

In: a call, its result's adjoint. Out: the adjoint of the argument that elements are selected from.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from relay_hw.ir.expr import Call, Constant, Expr
from relay_hw.ir.types import TensorType
from relay_hw.op.gradients.common import known_type, moved, ops, reshaped, sizes, zeros


def returned(call: Call, at: int, adjoint: Expr) -> Expr:
    """The adjoint of argument `at`, from which the call takes elements, any number of times each.

    The same call on the elements' numbers says which they are. Sizes need not be known before the program runs.
    """
    x = call.args[at]
    numbers = numbered(x)
    places = Call(call.op, [numbers if index == at else arg for index, arg in enumerate(call.args)], call.attrs)
    return added_at(x, places, adjoint)


def numbered(like: Expr) -> Expr:
    """0, 1, 2, ... in the shape of `like`."""
    op, ty = ops(), known_type(like)
    if ty is not None:
        return Constant(np.arange(int(np.prod(ty.static_shape)), dtype=np.int64).reshape(ty.static_shape))
    return op.reshape_like(op.arange(op.const(0, "int64"), op.ndarray_size(like, "int64"), dtype="int64"), like)


def added_at(like: Expr, places: Expr, adjoint: Expr) -> Expr:
    """Zeros like `like` with the elements of `adjoint` added at `places`, which count through its elements."""
    op = ops()
    flat = op.scatter_nd(
        op.reshape(zeros(like), (-1,)), op.reshape(places, (1, -1)), op.reshape(adjoint, (-1,)), mode="add"
    )
    return op.reshape_like(flat, like)


def size_of(value: Expr, axis: int, dtype: str = "int64") -> Expr:
    """The size of an axis as a scalar; a negative axis needs a typed value."""
    op, ty = ops(), value.checked_type
    at = axis
    if isinstance(ty, TensorType):
        at = axis % ty.rank
        if isinstance(ty.shape[at], int):
            return op.const(ty.shape[at], dtype)
    return op.take(op.shape_of(value, dtype), op.const(at, "int64"), 0)


def places_of(count: Expr) -> Expr:
    """0, 1, ... before the scalar `count`, in int64."""
    op = ops()
    if isinstance(count, Constant):
        return Constant(np.arange(int(count.data), dtype=np.int64))
    return op.arange(op.const(0, "int64"), count, dtype="int64")


def identity(count: Expr, like: Expr) -> Expr:
    """The identity matrix of the size `count`, in the element type of `like`."""
    op, places = ops(), places_of(count)
    return op.cast_like(op.equal(op.expand_dims(places, 0), op.expand_dims(places, 1)), like)


def at_axis(axis: Expr, rank: int, of: Callable[[int], Expr]) -> Expr:
    """`of(a)` for the axis a that the integers `axis` name at run time; all must have one shape."""
    op = ops()
    one = op.cast(op.reshape(axis, ()), "int64")
    found = of(0)
    for other in range(1, rank):
        is_other = op.equal(op.floor_mod(one, op.const(rank, "int64")), op.const(other, "int64"))
        found = op.where(is_other, of(other), found)
    return found


def pixels_of_cells(call: Call, adjoint: Expr, batch: Expr, of_pixels: Callable[[Expr], Expr]) -> Expr:
    """The adjoint of images from that of regions of them, whose cells are weighted sums of pixels.

    `batch` says the image of each region; `of_pixels` makes the regions' cells of one image, and is given one that has
    a channel for each pixel, 1 there and else 0.
    """
    op, (x, *_), layout = ops(), call.args, call.attrs.layout
    shape = dict(zip(layout, sizes(call, x), strict=True))
    count = shape["H"] * shape["W"]
    eye = np.eye(count, dtype=x.tensor_type.dtype).reshape(1, count, shape["H"], shape["W"])
    weights = of_pixels(Constant(eye.transpose(["NCHW".index(letter) for letter in layout])))
    cells, pixels = layout.lower(), layout.lower().replace("c", "p")
    shares = op.einsum([adjoint, weights], f"{cells},{pixels}->ncp")
    zero = op.zeros((shape["N"], shape["C"], count), x.tensor_type.dtype)
    whole = reshaped(
        op.scatter_nd(zero, op.expand_dims(batch, 0), shares, "add"), (shape["N"], shape["C"], shape["H"], shape["W"])
    )
    return moved(whole, ["NCHW".index(letter) for letter in layout])


def stored(which: Expr, adjoint: Expr, value: Expr) -> Expr:
    """The adjoint of a value whose elements were stored: `which` is the number of the one at each place, or -1."""
    op = ops()
    is_there = op.greater_equal(which, op.const(0, "int64"))
    kept = op.where(is_there, adjoint, op.zeros_like(adjoint))
    return added_at(value, op.where(is_there, which, op.zeros_like(which)), kept)
