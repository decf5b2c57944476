"""Global and adaptive pooling, max and average."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from relay_hw.errors import TypeCheckError
from relay_hw.ir.expr import Call, Constant, Expr, Gradient, Op
from relay_hw.ir.types import Dim, Type
from relay_hw.op.base import (
    POOLS,
    Array,
    Attrs,
    Ints,
    call,
    divide_trunc,
    ints,
    spread,
)
from relay_hw.op.gradients.common import (
    inverse,
    known_type,
    moved,
    one_argument,
    ops,
)
from relay_hw.op.gradients.selection import places_of, size_of
from relay_hw.op.pool import (
    CHOOSING,
    PATTERN,
    PLACE_OF_LARGEST,
    RESULT,
    largest_slope,
    layout_orders,
    plain_geometry,
    plain_orders,
    pool_relation,
)

__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool2d",
    "adaptive_max_pool3d",
    "global_avg_pool2d",
    "global_max_pool2d",
]


@dataclass(frozen=True, slots=True)
class GlobalPool2DAttrs(Attrs):
    layout: str = "NCHW"
    out_layout: str = ""


@dataclass(frozen=True, slots=True)
class AdaptivePool2DAttrs(Attrs):
    output_size: tuple[int, ...] = ()
    layout: str = "NCHW"
    out_layout: str = ""

    def __post_init__(self) -> None:
        self._set(output_size=ints(self.output_size) or ())


@dataclass(frozen=True, slots=True)
class AdaptivePool1DAttrs(AdaptivePool2DAttrs):
    layout: str = "NCW"


@dataclass(frozen=True, slots=True)
class AdaptivePool3DAttrs(AdaptivePool2DAttrs):
    layout: str = "NCDHW"


def _reduced(x: Array, axes: tuple[int, ...], kind: str) -> Array:
    if kind == "max":
        return x.max(axis=axes)
    if kind == "argmax":
        return x.reshape(*x.shape[:2], -1).argmax(axis=2)
    if x.dtype.kind == "f":
        return x.mean(axis=axes)
    count = np.int64(prod(x.shape[axis] for axis in axes))
    return divide_trunc(x.sum(axis=axes, dtype=np.int64), count).astype(x.dtype)  # type: ignore[arg-type]


def _global(name: str, kind: str, doc: str, gradient: Gradient | None = None) -> Op:
    def reference(attrs: GlobalPool2DAttrs, values: Sequence[Array], result: Type) -> Array:
        inward, outward = layout_orders(name, attrs, 2)
        x = np.asarray(values[0]).transpose(inward)
        return _reduced(x, (2, 3), kind)[:, :, None, None].transpose(outward)

    relation = pool_relation(name, 2, lambda attrs, spatial: (1, 1), RESULT.get(kind))
    return Op(
        name,
        1,
        relation,
        reference,
        attrs_type=GlobalPool2DAttrs,
        pattern=PATTERN,
        gradient=gradient,
        traits=CHOOSING if kind == "max" else POOLS,
        doc=doc,
    )


def _adaptive(name: str, rank: int, attrs_type: type, kind: str, doc: str, gradient: Gradient | None = None) -> Op:
    def sizes(attrs: AdaptivePool2DAttrs, spatial: Sequence[Dim]) -> Sequence[Dim]:
        if not attrs.output_size:
            return spatial
        given = spread(attrs.output_size, rank)
        if len(given) != rank:
            raise TypeCheckError(f"output_size of {name} must be {rank} numbers, not {attrs.output_size}")
        return given

    def reference(attrs: AdaptivePool2DAttrs, values: Sequence[Array], result: Type) -> Array:
        inward, outward = layout_orders(name, attrs, rank)
        x = np.asarray(values[0]).transpose(inward)
        out = tuple(int(size) for size in sizes(attrs, x.shape[2:]))  # type: ignore[arg-type]
        value = np.empty(x.shape[:2] + out, RESULT.get(kind, x.dtype))
        axes = tuple(range(2, 2 + rank))
        for at in np.ndindex(*out):
            bounds = zip(at, out, x.shape[2:], strict=True)
            region = tuple(slice(i * n // o, -(-(i + 1) * n // o)) for i, o, n in bounds)
            found = _reduced(x[(slice(None), slice(None), *region)], axes, kind)
            value[(slice(None), slice(None), *at)] = _outside(found, region, x.shape[2:]) if kind == "argmax" else found
        return value.transpose(outward)

    return Op(
        name,
        1,
        pool_relation(name, rank, sizes, RESULT.get(kind)),
        reference,
        attrs_type=attrs_type,
        pattern=PATTERN,
        gradient=gradient,
        traits=CHOOSING if kind == "max" else POOLS,
        doc=doc,
    )


def _outside(places: Array, region: Sequence[slice], sizes: Sequence[int]) -> Array:
    """Places counted through a region, counted through all of the spatial axes."""
    inner = np.unravel_index(places, [part.stop - part.start for part in region])
    whole = [at + part.start for at, part in zip(inner, region, strict=True)]
    return np.asarray(np.ravel_multi_index(whole, sizes))


def _global_mean_slope(call: Call, x: Expr, g: Expr) -> Expr:
    if known_type(x) is None:
        return _unsized_slope(call, x, g)
    _, inward, outward, shape, _ = plain_geometry(call)
    dtype = x.tensor_type.dtype
    share = moved(g, outward) * ops().const(1 / prod(shape[2:]), dtype)
    return moved(ops().broadcast_to(share, shape), inverse(inward))


def _adaptive_mean_slope(call: Call, x: Expr, g: Expr) -> Expr:
    """Regions of differing size are one matrix an axis: how much of each element each region takes."""
    if known_type(x) is None:
        return _unsized_slope(call, x, g)
    op = ops()
    rank, inward, outward, shape, out = plain_geometry(call)
    found = moved(g, outward)
    for axis in range(2, 2 + rank):
        matrix = _shares(shape[axis], out[axis]).astype(x.tensor_type.dtype)
        order = [*(other for other in range(rank + 2) if other != axis), axis]
        rows = op.nn.dense(moved(found, order), Constant(np.ascontiguousarray(matrix.T)), units=shape[axis])
        found = moved(rows, inverse(order))
    return moved(found, inverse(inward))


def _unsized_slope(call: Call, x: Expr, g: Expr) -> Expr:
    """The same matrices, made when the sizes are there."""
    op, rank = ops(), x.tensor_type.rank - 2
    inward, outward = plain_orders(call, rank)
    found, letters = moved(g, outward), "ncxyz"[: rank + 2]
    for axis in range(2, 2 + rank):
        size, count = size_of(x, inward[axis]), size_of(call, outward[axis])
        region, place = op.expand_dims(places_of(count), 1), op.expand_dims(places_of(size), 0)
        begin = op.floor_divide(region * size, count)
        end = op.floor_divide((region + op.const(1, "int64")) * size + count - op.const(1, "int64"), count)
        inside = op.logical_and(op.less_equal(begin, place), op.less(place, end))
        matrix = op.cast_like(inside, x) / op.cast_like(end - begin, x)
        found = op.einsum([found, matrix], f"{letters},{letters[axis]}Z->{letters.replace(letters[axis], 'Z')}")
    return op.reshape_like(moved(found, inverse(inward)), x)


def _shares(size: int, count: int) -> np.ndarray:
    shares = np.zeros((count, size))
    for region in range(count):
        begin, end = region * size // count, -(-(region + 1) * size // count)
        shares[region, begin:end] = 1 / (end - begin)
    return shares


_ADAPTIVE_RECORDS = {1: AdaptivePool1DAttrs, 2: AdaptivePool2DAttrs, 3: AdaptivePool3DAttrs}


GLOBAL_MAX_POOL2D = _global(
    "nn.global_max_pool2d", "max", "the largest element of every channel", one_argument(largest_slope)
)


GLOBAL_AVG_POOL2D = _global(
    "nn.global_avg_pool2d", "mean", "the mean of every channel", one_argument(_global_mean_slope)
)


ADAPTIVE = tuple(
    _adaptive(
        f"nn.adaptive_{short}_pool{rank}d",
        rank,
        record,
        kind,
        f"{doc} of the regions that make the output size",
        slope,
    )
    for short, kind, doc, slope in (
        ("max", "max", "largest elements", one_argument(largest_slope)),
        ("avg", "mean", "means", one_argument(_adaptive_mean_slope)),
    )
    for rank, record in _ADAPTIVE_RECORDS.items()
)


GLOBAL_MAX_PLACES = _global("nn.global_max_pool2d_argmax", "argmax", PLACE_OF_LARGEST + "channel")


ADAPTIVE_PLACES = tuple(
    _adaptive(f"nn.adaptive_max_pool{rank}d_argmax", rank, record, "argmax", PLACE_OF_LARGEST + "region")
    for rank, record in _ADAPTIVE_RECORDS.items()
)


def global_max_pool2d(data: Expr, layout: str = "NCHW", out_layout: str = "") -> Call:
    """The largest element of every channel; spatial axes stay with size 1."""
    return call(GLOBAL_MAX_POOL2D, (data,), GlobalPool2DAttrs(layout, out_layout))


def global_avg_pool2d(data: Expr, layout: str = "NCHW", out_layout: str = "") -> Call:
    """The mean of every channel; spatial axes stay with size 1."""
    return call(GLOBAL_AVG_POOL2D, (data,), GlobalPool2DAttrs(layout, out_layout))


def _adaptive_builder(op: Op, record: type, layout_default: str) -> Callable[..., Call]:
    def build(data: Expr, output_size: Ints | None = None, layout: str = layout_default, out_layout: str = "") -> Call:
        return call(op, (data,), record(ints(output_size) or (), layout, out_layout))

    build.__doc__ = op.doc
    build.__name__ = op.name.rsplit(".", 1)[-1]
    return build


adaptive_max_pool1d = _adaptive_builder(ADAPTIVE[0], AdaptivePool1DAttrs, "NCW")


adaptive_max_pool2d = _adaptive_builder(ADAPTIVE[1], AdaptivePool2DAttrs, "NCHW")


adaptive_max_pool3d = _adaptive_builder(ADAPTIVE[2], AdaptivePool3DAttrs, "NCDHW")


adaptive_avg_pool1d = _adaptive_builder(ADAPTIVE[3], AdaptivePool1DAttrs, "NCW")


adaptive_avg_pool2d = _adaptive_builder(ADAPTIVE[4], AdaptivePool2DAttrs, "NCHW")


adaptive_avg_pool3d = _adaptive_builder(ADAPTIVE[5], AdaptivePool3DAttrs, "NCDHW")


OPS = (GLOBAL_MAX_POOL2D, GLOBAL_AVG_POOL2D, *ADAPTIVE, GLOBAL_MAX_PLACES, *ADAPTIVE_PLACES)
