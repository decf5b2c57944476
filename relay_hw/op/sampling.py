"""Sampling of images at real places: image.grid_sample, image.affine_grid.

In: types, attributes, arrays. Out: types, arrays, `Call` nodes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Final

import numpy as np

from relay_hw.errors import TypeCheckError
from relay_hw.ir.expr import Call, Constant, Expr, Op
from relay_hw.ir.types import TensorType, Type
from relay_hw.op.base import Array, Attrs, call, out_type, rule, same_dim
from relay_hw.op.gradients.accumulate import by_expansion
from relay_hw.op.gradients.common import ops
from relay_hw.op.gradients.selection import places_of, size_of
from relay_hw.op.resample import cubic

_ALPHA: Final = -0.75


@dataclass(frozen=True, slots=True)
class GridSampleAttrs(Attrs):
    method: str = "bilinear"
    layout: str = "NCHW"
    padding_mode: str = "zeros"
    align_corners: bool = True


@rule("image.grid_sample", 2)
def _grid_type(attrs: GridSampleAttrs, x: TensorType, grid: TensorType) -> Type:
    rank = len(attrs.layout) - 2
    if attrs.layout not in ("NCHW", "NCDHW") or x.rank != rank + 2 or grid.rank != x.rank:
        raise TypeCheckError(f"image.grid_sample must get data and grid of layout NCHW or NCDHW, not {x} and {grid}")
    if not same_dim(grid.shape[1], rank) or not same_dim(grid.shape[0], x.shape[0]):
        raise TypeCheckError(f"the grid of image.grid_sample must hold {rank} coordinates for each image, not {grid}")
    if attrs.method not in ("bilinear", "nearest", "bicubic"):
        raise TypeCheckError(
            f"the method of image.grid_sample must be bilinear, nearest or bicubic, not {attrs.method}"
        )
    if attrs.padding_mode not in ("zeros", "border", "reflection"):
        raise TypeCheckError(
            f"padding_mode of image.grid_sample must be zeros, border or reflection, not {attrs.padding_mode}"
        )
    return TensorType((*x.shape[:2], *grid.shape[2:]), x.dtype)


def _reflected(x: Array, low: float, high: float) -> Array:
    """Places outside of [low, high] mirrored into it, as often as needed."""
    span = high - low
    if span <= 0:
        return np.full_like(x, low)
    away = np.abs(np.where(x < low, low - x, np.maximum(x - high, 0)))
    turns = np.floor(away / span)
    rest, even = away - turns * span, turns % 2 == 0
    below = np.where(even, low + rest, high - rest)
    above = np.where(even, high - rest, low + rest)
    return np.where(x < low, below, np.where(x > high, above, x))


def _policies(attrs: GridSampleAttrs, size: int) -> tuple[float, float]:
    return (0.0, size - 1.0) if attrs.align_corners else (-0.5, size - 0.5)


def _padded(attrs: GridSampleAttrs, x: Array, size: int, outer: tuple[float, float]) -> Array:
    match attrs.padding_mode:
        case "border":
            return np.clip(x, 0, size - 1)
        case "reflection":
            return _reflected(x, *outer)
        case _:
            return x


def _grid_taps(attrs: GridSampleAttrs, x: Array) -> list[tuple[Array, Array]]:
    """(index, weight) of the neighbours of a coordinate along one axis."""
    if attrs.method == "nearest":
        return [(x, np.ones_like(x))]
    base = np.floor(x)
    if attrs.method == "bilinear":
        return [(base, 1 - (x - base)), (base + 1, x - base)]
    return [(base + step, cubic(x - (base + step), _ALPHA)) for step in (-1, 0, 1, 2)]


def _grid_sample(attrs: GridSampleAttrs, values: Sequence[Array], result: Type) -> Array:
    x, grid = np.asarray(values[0]), np.asarray(values[1]).astype(np.float64)
    sizes = x.shape[2:]
    axes: list[list[tuple[Array, Array]]] = []
    for number, size in enumerate(sizes):
        # Coordinates come as x, y(, z): the last axis first.
        given = grid[:, len(sizes) - 1 - number]
        place = (given + 1) / 2 * (size - 1) if attrs.align_corners else ((given + 1) * size - 1) / 2
        place = np.rint(place) if attrs.method == "nearest" else place
        axes.append(_grid_taps(attrs, _padded(attrs, place, size, _policies(attrs, size))))
    total = np.zeros((*x.shape[:2], *grid.shape[2:]))
    batch = np.arange(len(x)).reshape(-1, *(1,) * len(sizes))
    for choice in np.ndindex(*(len(taps) for taps in axes)):
        places, weight, inside = [], np.ones(()), np.ones((), bool)
        for taps, at, size in zip(axes, choice, sizes, strict=True):
            place = _padded(attrs, taps[at][0], size, _policies(attrs, size))
            inside = inside & (place > -1) & (place < size)
            places.append(np.clip(np.trunc(place), 0, size - 1).astype(np.int64))
            weight = weight * taps[at][1]
        picked = np.moveaxis(x[(batch, slice(None), *places)], -1, 1)
        total += picked * np.where(inside, weight, 0)[:, None]
    return total.astype(out_type(result).dtype)


def _expansion(attrs: GridSampleAttrs, x: Expr, grid: Expr) -> Expr:
    """What `_grid_sample` computes, as a program of operators that have gradients."""
    op, rank, ty = ops(), x.tensor_type.rank - 2, x.tensor_type
    wide = op.transpose(op.cast(x, "float64"), (0, *range(2, rank + 2), 1))
    axes = [_Axis.of(attrs, x, op.cast(grid, "float64"), number) for number in range(rank)]
    first = axes[0].taps[0][0]
    images = op.broadcast_to_like(op.expand_dims(places_of(size_of(x, 0)), 1, rank), first)
    total = None
    for choice in np.ndindex(*(len(axis.taps) for axis in axes)):
        taps = [(axis, *axis.taps[at]) for axis, at in zip(axes, choice, strict=True)]
        padded = [axis.padded(place) for axis, place, _ in taps]
        places = [axis.inner(place) for (axis, _, _), place in zip(taps, padded, strict=True)]
        inside = [axis.is_inside(place) for (axis, _, _), place in zip(taps, padded, strict=True)]
        weight = reduce(op.multiply, [weight for _, _, weight in taps])
        kept = op.where(reduce(op.logical_and, inside), weight, op.zeros_like(weight))
        picked = op.gather_nd(wide, op.stack([images, *places], 0))
        part = picked * op.expand_dims(kept, rank + 1)
        total = part if total is None else total + part
    assert total is not None
    return op.cast(op.transpose(total, (0, rank + 1, *range(1, rank + 1))), ty.dtype)


@dataclass(frozen=True, slots=True)
class _Axis:
    """One axis of the image: its size, what its places are moved into, and (place, weight) of the neighbours."""

    mode: str
    size: Expr
    low: Expr
    high: Expr
    taps: tuple[tuple[Expr, Expr], ...]

    @staticmethod
    def of(attrs: GridSampleAttrs, x: Expr, grid: Expr, number: int) -> _Axis:
        op, rank = ops(), x.tensor_type.rank - 2
        size = size_of(x, 2 + number, "float64")
        given = op.take(grid, op.const(rank - 1 - number, "int64"), 1)
        one, two, half = (op.const(value, "float64") for value in (1.0, 2.0, 0.5))
        place = (given + one) / two * (size - one) if attrs.align_corners else ((given + one) * size - one) / two
        edge = op.const(0.0, "float64") if attrs.align_corners else half
        axis = _Axis(attrs.padding_mode, size, -edge, size - one + edge, ())
        place = axis.padded(_to_even(place) if attrs.method == "nearest" else place)
        return replace(axis, taps=tuple(_taps(attrs.method, place)))

    def padded(self, place: Expr) -> Expr:
        """Places outside of the image moved into it, as the mode says."""
        match self.mode:
            case "border":
                return self._clipped(place)
            case "reflection":
                return self._reflected(place)
            case _:
                return place

    def _clipped(self, place: Expr) -> Expr:
        op = ops()
        return op.minimum(op.maximum(place, op.const(0.0, "float64")), self.size - op.const(1.0, "float64"))

    def _reflected(self, x: Expr) -> Expr:
        op, low, high = ops(), self.low, self.high
        zero, one, two = (op.const(value, "float64") for value in (0.0, 1.0, 2.0))
        span = op.where(op.greater(high, low), high - low, one)
        away = op.where(op.less(x, low), low - x, op.maximum(x - high, zero))
        turns = op.floor(away / span)
        rest, even = away - turns * span, op.equal(op.floor_mod(turns, two), zero)
        below = op.where(even, low + rest, high - rest)
        above = op.where(even, high - rest, low + rest)
        moved = op.where(op.less(x, low), below, op.where(op.greater(x, high), above, x))
        return op.where(op.greater(high, low), moved, op.zeros_like(x) + low)

    def is_inside(self, place: Expr) -> Expr:
        """Whether a padded place is one of the image's elements."""
        op = ops()
        return op.logical_and(op.greater(place, op.const(-1.0, "float64")), op.less(place, self.size))

    def inner(self, place: Expr) -> Expr:
        """The element at a padded place; of one outside, the nearest."""
        return ops().cast(self._clipped(ops().trunc(place)), "int64")


def _to_even(x: Expr) -> Expr:
    """The nearest whole number, the even one of two."""
    op = ops()
    one, two, half = (op.const(value, "float64") for value in (1.0, 2.0, 0.5))
    up = op.floor(x + half)
    is_tie = op.equal(up - x, half)
    return op.where(op.logical_and(is_tie, op.equal(op.floor_mod(up, two), one)), up - one, up)


def _taps(method: str, x: Expr) -> Iterator[tuple[Expr, Expr]]:
    op = ops()
    one = op.const(1.0, "float64")
    if method == "nearest":
        yield x, op.ones_like(x)
        return
    base = op.floor(x)
    if method == "bilinear":
        yield base, one - (x - base)
        yield base + one, x - base
        return
    for step in (-1.0, 0.0, 1.0, 2.0):
        place = base + op.const(step, "float64")
        yield place, _cubic(op.abs(x - place))


def _cubic(x: Expr) -> Expr:
    """`cubic` of a place at most 2 away."""
    op, a = ops(), _ALPHA
    powers = (x * x * x, x * x, x, op.ones_like(x))
    near, far = ((a + 2, -a - 3, 0.0, 1.0), (a, -5 * a, 8 * a, -4 * a))
    sums = [reduce(op.add, [op.const(factor, "float64") * power for factor, power in zip(row, powers, strict=True)])
            for row in (near, far)]  # fmt: skip
    return op.where(op.less_equal(x, op.const(1.0, "float64")), *sums)


GRID_SAMPLE = Op(
    "image.grid_sample",
    2,
    _grid_type,
    _grid_sample,
    attrs_type=GridSampleAttrs,
    gradient=by_expansion(_expansion),
    doc="images sampled at a grid of coordinates in [-1, 1]",
)


def grid_sample(
    data: Expr,
    grid: Expr,
    method: str = "bilinear",
    layout: str = "NCHW",
    padding_mode: str = "zeros",
    align_corners: bool = True,
) -> Call:
    """`data` at the coordinates of `grid`, whose axis 1 holds x, y(, z)."""
    return call(GRID_SAMPLE, (data, grid), GridSampleAttrs(method, layout, padding_mode, align_corners))


@dataclass(frozen=True, slots=True)
class AffineGridAttrs(Attrs):
    target_shape: tuple[int, ...]


@rule("image.affine_grid", 1)
def _affine_type(attrs: AffineGridAttrs, x: TensorType) -> Type:
    if x.rank != 3 or not same_dim(x.shape[1], 2) or not same_dim(x.shape[2], 3):
        raise TypeCheckError(f"image.affine_grid must get matrices (N, 2, 3), not {x}")
    if len(attrs.target_shape) != 2 or min(attrs.target_shape) < 2:
        raise TypeCheckError(
            f"the target_shape of image.affine_grid must be two sizes from 2 on, not {attrs.target_shape}"
        )
    return TensorType((x.shape[0], 2, *attrs.target_shape), x.dtype)


def _pixels(attrs: AffineGridAttrs) -> Array:
    """(x, y, 1) of every pixel."""
    rows, columns = (np.linspace(-1, 1, size) for size in attrs.target_shape)
    y, x = np.meshgrid(rows, columns, indexing="ij")
    return np.stack([x, y, np.ones_like(x)])


def _affine_grid(attrs: AffineGridAttrs, values: Sequence[Array], result: Type) -> Array:
    return np.einsum("nij,jhw->nihw", np.asarray(values[0]), _pixels(attrs)).astype(out_type(result).dtype)


def _affine_expr(attrs: AffineGridAttrs, x: Expr) -> Expr:
    return ops().einsum([x, Constant(_pixels(attrs).astype(x.tensor_type.dtype))], "nij,jhw->nihw")


AFFINE_GRID = Op(
    "image.affine_grid",
    1,
    _affine_type,
    _affine_grid,
    attrs_type=AffineGridAttrs,
    gradient=by_expansion(_affine_expr),
    doc="coordinates of every pixel in [-1, 1], x first, times the matrix of its image",
)


def affine_grid(data: Expr, target_shape: Sequence[int]) -> Call:
    """The grid (N, 2, rows, columns) for grid_sample that the matrices `data` stand for."""
    return call(AFFINE_GRID, (data,), AffineGridAttrs(tuple(target_shape)))


OPS = (GRID_SAMPLE, AFFINE_GRID)
