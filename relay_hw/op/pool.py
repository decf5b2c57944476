"""Pooling operators: max and average of windows.

The adjoint of a mean is spread by a transposed convolution of ones; that of a maximum goes to the first largest
element.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from math import prod
from typing import Any as AnyValue

import numpy as np

from relay_hw.errors import TypeCheckError
from relay_hw.ir.expr import Call, Constant, Expr, FusionPattern, Gradient, Op
from relay_hw.ir.types import Dim, TensorType, Type
from relay_hw.op.base import (
    KEEPS_SCALE,
    POOLS,
    Array,
    Attrs,
    Ints,
    call,
    divide_trunc,
    full_padding,
    pad_spatial,
    permutation,
    rule,
    show_shape,
    split_padding,
    spread,
    taps,
    window_size,
)
from relay_hw.op.conv import SPATIAL
from relay_hw.op.gradients.accumulate import by_expansion
from relay_hw.op.gradients.common import (
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
from relay_hw.op.gradients.windows import Geometry, met, padded

__all__ = ["avg_pool1d", "avg_pool2d", "avg_pool3d", "max_pool1d", "max_pool2d", "max_pool3d"]


@dataclass(frozen=True, slots=True)
class MaxPool2DAttrs(Attrs):
    pool_size: tuple[int, ...]
    strides: tuple[int, ...] = (1, 1)
    dilation: tuple[int, ...] = (1, 1)
    padding: tuple[int, ...] = (0, 0)
    layout: str = "NCHW"
    out_layout: str = ""
    ceil_mode: bool = False


@dataclass(frozen=True, slots=True)
class MaxPool1DAttrs(MaxPool2DAttrs):
    strides: tuple[int, ...] = (1,)
    dilation: tuple[int, ...] = (1,)
    padding: tuple[int, ...] = (0,)
    layout: str = "NCW"


@dataclass(frozen=True, slots=True)
class MaxPool3DAttrs(MaxPool2DAttrs):
    strides: tuple[int, ...] = (1, 1, 1)
    dilation: tuple[int, ...] = (1, 1, 1)
    padding: tuple[int, ...] = (0, 0, 0)
    layout: str = "NCDHW"


@dataclass(frozen=True, slots=True)
class AvgPool2DAttrs(Attrs):
    pool_size: tuple[int, ...]
    strides: tuple[int, ...] = (1, 1)
    dilation: tuple[int, ...] = (1, 1)
    padding: tuple[int, ...] = (0, 0)
    layout: str = "NCHW"
    out_layout: str = ""
    ceil_mode: bool = False
    count_include_pad: bool = False


@dataclass(frozen=True, slots=True)
class AvgPool1DAttrs(AvgPool2DAttrs):
    strides: tuple[int, ...] = (1,)
    dilation: tuple[int, ...] = (1,)
    padding: tuple[int, ...] = (0,)
    layout: str = "NCW"


@dataclass(frozen=True, slots=True)
class AvgPool3DAttrs(AvgPool2DAttrs):
    strides: tuple[int, ...] = (1, 1, 1)
    dilation: tuple[int, ...] = (1, 1, 1)
    padding: tuple[int, ...] = (0, 0, 0)
    layout: str = "NCDHW"


Pool = MaxPool2DAttrs | AvgPool2DAttrs

PATTERN = FusionPattern.OUT_ELEMWISE_FUSABLE

# Those whose results are elements of their data.
CHOOSING = POOLS | KEEPS_SCALE

# Element type of the result where it is not the data's.
RESULT = {"argmax": "int64"}


@dataclass(frozen=True, slots=True)
class Windows:
    """Normalised geometry of a pooling: one number an axis, and how far ceil_mode reaches past the padding."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilation: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]

    @staticmethod
    def of(name: str, attrs: Pool, rank: int) -> Windows:
        kernel, strides = spread(attrs.pool_size, rank), spread(attrs.strides, rank)
        dilation = spread(attrs.dilation, rank)
        for what, given in (("pool_size", kernel), ("strides", strides), ("dilation", dilation)):
            if len(given) != rank or min(given) < 1:
                raise TypeCheckError(f"{what} of {name} must be {rank} positive numbers, not {given}")
        return Windows(kernel, strides, dilation, *split_padding(name, attrs.padding, rank))

    def sizes(self, spatial: Sequence[Dim], ceil_mode: bool) -> tuple[Dim, ...]:
        """How many windows fit along each axis."""
        extra = [stride - 1 if ceil_mode else 0 for stride in self.strides]
        after = [a + e for a, e in zip(self.after, extra, strict=True)]
        parts = zip(spatial, self.kernel, self.strides, self.before, after, self.dilation, strict=True)
        return tuple(window_size(*part) for part in parts)

    def overhang(self, spatial: Sequence[int], out: Sequence[int]) -> tuple[int, ...]:
        """Elements behind the padded data that the last windows touch."""
        parts = zip(spatial, out, self.kernel, self.strides, self.dilation, self.before, self.after, strict=True)
        return tuple(max((o - 1) * s + (k - 1) * d + 1 - (n + b + a), 0) for n, o, k, s, d, b, a in parts)


def layout_orders(name: str, attrs: AnyValue, rank: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    plain = "NC" + SPATIAL[rank]
    return permutation(name, attrs.layout, plain), permutation(name, plain, attrs.out_layout or attrs.layout)


def pool_relation(
    name: str, rank: int, sizes: Callable[[AnyValue, Sequence[Dim]], Sequence[Dim]], dtype: str | None = None
) -> AnyValue:
    @rule(name, 1)
    def relation(attrs: AnyValue, x: TensorType) -> Type:
        if x.rank != rank + 2:
            raise TypeCheckError(f"the data of {name} must have {rank + 2} axes, not {show_shape(x.shape)}")
        inward, outward = layout_orders(name, attrs, rank)
        plain = [x.shape[axis] for axis in inward]
        spatial = tuple(sizes(attrs, plain[2:]))
        if any(isinstance(size, int) and size < 1 for size in spatial):
            raise TypeCheckError(
                f"the window of {name} must fit into the padded data, not into {show_shape(plain[2:])}"
            )
        result = (*plain[:2], *spatial)
        return TensorType([result[axis] for axis in outward], dtype or x.dtype)

    return relation


def _max(attrs: Pool, x: Array, w: Windows, out: Sequence[int]) -> Array:
    lowest = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
    tail = tuple(a + o for a, o in zip(w.after, w.overhang(x.shape[2:], out), strict=True))
    padded = pad_spatial(x, w.before, tail, lowest)
    result: Array | None = None
    for _, view in taps(padded, w.kernel, w.strides, w.dilation, out):
        result = view.copy() if result is None else np.maximum(result, view, out=result)
    assert result is not None
    return result


def window_sums(x: Array, w: Windows, out: Sequence[int], dtype: str) -> Array:
    """Sums of the windows of x[N, C, *S] in `dtype`; padding adds 0."""
    tail = tuple(a + o for a, o in zip(w.after, w.overhang(x.shape[-len(out) :], out), strict=True))
    padded = pad_spatial(x, w.before, tail)
    result = np.zeros(x.shape[: x.ndim - len(out)] + tuple(out), dtype)
    for _, view in taps(padded, w.kernel, w.strides, w.dilation, out):
        result += view
    return result


def _mean(attrs: Pool, x: Array, w: Windows, out: Sequence[int]) -> Array:
    assert isinstance(attrs, AvgPool2DAttrs)
    total = window_sums(x, w, out, str(x.dtype) if x.dtype.kind == "f" else "int64")
    count = window_counts(attrs, x.shape[2:], w, out)
    return total / count.astype(x.dtype) if x.dtype.kind == "f" else divide_trunc(total, count).astype(x.dtype)


def window_counts(attrs: AvgPool2DAttrs, spatial: Sequence[int], w: Windows, out: Sequence[int]) -> Array:
    """How many elements each window's mean divides by."""
    if attrs.count_include_pad:
        # Padding counts; what ceil_mode adds behind it does not.
        sizes = tuple(n + b + a for n, b, a in zip(spatial, w.before, w.after, strict=True))
        inner = Windows(w.kernel, w.strides, w.dilation, (0,) * len(out), (0,) * len(out))
        return np.maximum(window_sums(np.ones(sizes, np.int64), inner, out, "int64"), 1)
    return np.maximum(window_sums(np.ones(tuple(spatial), np.int64), w, out, "int64"), 1)


def _argmax(attrs: Pool, x: Array, w: Windows, out: Sequence[int]) -> Array:
    """The place of the first largest element of every window, counted through the spatial axes."""
    lowest = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
    tail = tuple(a + o for a, o in zip(w.after, w.overhang(x.shape[2:], out), strict=True))
    views = taps(pad_spatial(x, w.before, tail, lowest), w.kernel, w.strides, w.dilation, out)
    places = np.arange(prod(x.shape[2:]), dtype=np.int64).reshape(1, 1, *x.shape[2:])
    # Padding has no index: a window of padding only has the index after the last.
    numbers = taps(pad_spatial(places, w.before, tail, -1), w.kernel, w.strides, w.dilation, out)
    best = np.full(x.shape[:2] + tuple(out), lowest, x.dtype)
    place = np.full(best.shape, -1, np.int64)
    for (_, view), (_, own) in zip(views, numbers, strict=True):
        is_better = ((place < 0) | (view > best)) & (own >= 0)
        best = np.where(is_better, view, best)
        place = np.where(is_better, own, place)
    return np.where(place < 0, places.size, place)


@dataclass(frozen=True, slots=True)
class _Kind:
    """A kind of pooling: its function of attributes, values, windows, sizes; `dtype` if not the data's."""

    function: Callable[..., Array]
    doc: str
    gradient: Gradient | None = None
    dtype: str | None = None


def _pool(name: str, rank: int, attrs_type: type, kind: _Kind) -> Op:
    def sizes(attrs: Pool, spatial: Sequence[Dim]) -> Sequence[Dim]:
        return Windows.of(name, attrs, rank).sizes(spatial, attrs.ceil_mode)

    def reference(attrs: Pool, values: Sequence[Array], result: Type) -> Array:
        inward, outward = layout_orders(name, attrs, rank)
        x = np.asarray(values[0]).transpose(inward)
        windows = Windows.of(name, attrs, rank)
        out = windows.sizes(x.shape[2:], attrs.ceil_mode)
        return kind.function(attrs, x, windows, out).transpose(outward)

    return Op(
        name,
        1,
        pool_relation(name, rank, sizes, kind.dtype),
        reference,
        attrs_type=attrs_type,
        pattern=PATTERN,
        gradient=kind.gradient,
        traits=CHOOSING if kind.function is _max else POOLS,
        doc=kind.doc,
    )


PLACE_OF_LARGEST = "int64 place of the first largest element, counted through the spatial axes, of every "

_MAX_RECORDS = {1: MaxPool1DAttrs, 2: MaxPool2DAttrs, 3: MaxPool3DAttrs}


def plain_orders(call: Call, rank: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The orders that bring data and result to NC + spatial."""
    attrs, plain = call.attrs, "NC" + SPATIAL[rank]
    return (
        permutation(name_of(call), attrs.layout, plain),
        permutation(name_of(call), attrs.out_layout or attrs.layout, plain),
    )


def plain_geometry(call: Call) -> tuple[int, tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Rank, order of data and of result, shape of data and of result as NC + spatial."""
    x = call.args[0]
    rank = x.tensor_type.rank - 2
    inward, outward = plain_orders(call, rank)
    shape, out = sizes(call, x), sizes(call, call)
    return rank, inward, outward, tuple(shape[axis] for axis in inward), tuple(out[axis] for axis in outward)


def largest_slope(call: Call, x: Expr, g: Expr) -> Expr:
    """`argmax` names the elements, counted through the spatial axes."""
    op = ops()
    places = op.get(f"{name_of(call)}_argmax")
    if known_type(x) is None:
        return _placed(call, x, g, Call(places, (x,), call.attrs))
    _rank, inward, outward, shape, out = plain_geometry(call)
    lead, area, count = shape[:2], prod(shape[2:]), prod(out[2:])
    picked = reshaped(moved(Call(places, (x,), call.attrs), outward), (*lead, count))
    updates = reshaped(moved(g, outward), (*lead, count))
    behind = int(_has_empty_window(call, shape, out))
    start = op.zeros((*lead, area + behind), x.tensor_type.dtype)
    flat = op.scatter_elements(start, picked, updates, 2, "add")
    flat = op.strided_slice(flat, (0,), (area,), axes=(2,)) if behind else flat
    return moved(reshaped(flat, shape), inverse(inward))


def _placed(call: Call, x: Expr, g: Expr, places: Expr) -> Expr:
    """Zeros with `g` added at `places`, which count through the spatial axes; a place behind all is dropped."""
    op = ops()
    inward, outward = plain_orders(call, x.tensor_type.rank - 2)
    start = moved(zeros(x), inward)
    flat = op.nn.pad(op.reshape(start, (0, 0, -1)), [(0, 0), (0, 0), (0, 1)], number(0, x))
    picked, updates = (op.reshape(moved(value, outward), (0, 0, -1)) for value in (places, g))
    total = op.strided_slice(op.scatter_elements(flat, picked, updates, 2, "add"), (0,), (-1,), axes=(2,))
    return op.reshape_like(moved(op.reshape_like(total, start), inverse(inward)), x)


def _has_empty_window(call: Call, shape: tuple[int, ...], out: tuple[int, ...]) -> bool:
    """Whether a window is in the padding only; its argmax is the index after the last."""
    if not hasattr(call.attrs, "pool_size"):
        return False
    windows = Windows.of(name_of(call), call.attrs, len(shape) - 2)
    return not window_sums(np.ones(shape[2:], np.int64), windows, out[2:], "int64").all()


def _spread(g: Expr, channels: int, kernel: tuple[int, ...], dtype: str, **geometry: AnyValue) -> Expr:
    """The transpose of summing windows, channel by channel."""
    ones = ops().ones((channels, 1, *kernel), dtype)
    transpose = getattr(ops().nn, f"conv{len(kernel)}d_transpose")
    return transpose(g, ones, groups=channels, **geometry)


def _mean_expr(attrs: AvgPool2DAttrs, x: Expr) -> Expr:
    """Means of windows over data whose sizes only run time knows."""
    op, rank = ops(), x.tensor_type.rank - 2
    name = f"nn.avg_pool{rank}d"
    inward, outward = layout_orders(name, attrs, rank)
    w = Windows.of(name, attrs, rank)
    geometry = Geometry(w.kernel, w.strides, w.dilation, w.before, w.after)
    data, dtype = moved(x, inward), x.tensor_type.dtype
    counts = geometry.counts(data, int(attrs.ceil_mode))
    # Padding may count; what ceil_mode adds behind it does not.
    weights = padded(op.ones_like(data), geometry, dtype, float(attrs.count_include_pad))
    total, count = (reduce(op.add, met(part, geometry, counts)) for part in (padded(data, geometry, dtype), weights))
    return moved(total / op.maximum(count, number(1, x)), outward)


_mean_gradient = by_expansion(_mean_expr)


def _mean_slope(call: Call, x: Expr, g: Expr) -> Expr:
    if known_type(x) is None:
        return _mean_gradient(call, g)[0]
    rank, inward, outward, shape, out = plain_geometry(call)
    dtype = x.tensor_type.dtype
    w = Windows.of(name_of(call), call.attrs, rank)
    count = window_counts(call.attrs, shape[2:], w, out[2:]).astype(dtype)
    hang = w.overhang(shape[2:], out[2:])
    parts = zip(shape[2:], out[2:], w.kernel, w.strides, w.dilation, w.before, w.after, hang, strict=True)
    rest = tuple(n + b + a + h - ((o - 1) * s + (k - 1) * d + 1) for n, o, k, s, d, b, a, h in parts)
    after = tuple(a + h for a, h in zip(w.after, hang, strict=True))
    found = _spread(
        moved(g, outward) / Constant(count),
        shape[1],
        w.kernel,
        dtype,
        strides=w.strides,
        padding=(*w.before, *after),
        dilation=w.dilation,
        output_padding=rest,
    )
    return moved(found, inverse(inward))


_LARGEST = _Kind(_max, "the largest element of every window", one_argument(largest_slope))
_MEAN = _Kind(_mean, "the mean of every window", one_argument(_mean_slope))
_PLACE = _Kind(_argmax, PLACE_OF_LARGEST + "window", dtype="int64")

MAX_POOL1D = _pool("nn.max_pool1d", 1, MaxPool1DAttrs, _LARGEST)

MAX_POOL2D = _pool("nn.max_pool2d", 2, MaxPool2DAttrs, _LARGEST)

MAX_POOL3D = _pool("nn.max_pool3d", 3, MaxPool3DAttrs, _LARGEST)

AVG_POOL1D = _pool("nn.avg_pool1d", 1, AvgPool1DAttrs, _MEAN)

AVG_POOL2D = _pool("nn.avg_pool2d", 2, AvgPool2DAttrs, _MEAN)

AVG_POOL3D = _pool("nn.avg_pool3d", 3, AvgPool3DAttrs, _MEAN)

# Needed by the gradient of max pooling only; no network has them.
MAX_PLACES = tuple(_pool(f"nn.max_pool{rank}d_argmax", rank, record, _PLACE) for rank, record in _MAX_RECORDS.items())


def _builder(op: Op, record: type, rank: int, layout_default: str) -> Callable[..., Call]:
    def build(
        data: Expr,
        pool_size: Ints,
        strides: Ints = 1,
        dilation: Ints = 1,
        padding: Ints = 0,
        layout: str = layout_default,
        out_layout: str = "",
        ceil_mode: bool = False,
        count_include_pad: bool | None = None,
    ) -> Call:
        extra = {} if count_include_pad is None else {"count_include_pad": count_include_pad}
        geometry = (spread(pool_size, rank), spread(strides, rank), spread(dilation, rank), full_padding(padding, rank))
        return call(op, (data,), record(*geometry, layout, out_layout, ceil_mode, **extra))

    build.__doc__ = op.doc
    build.__name__ = op.name.rsplit(".", 1)[-1]
    return build


max_pool1d = _builder(MAX_POOL1D, MaxPool1DAttrs, 1, "NCW")

max_pool2d = _builder(MAX_POOL2D, MaxPool2DAttrs, 2, "NCHW")

max_pool3d = _builder(MAX_POOL3D, MaxPool3DAttrs, 3, "NCDHW")

avg_pool1d = _builder(AVG_POOL1D, AvgPool1DAttrs, 1, "NCW")

avg_pool2d = _builder(AVG_POOL2D, AvgPool2DAttrs, 2, "NCHW")

avg_pool3d = _builder(AVG_POOL3D, AvgPool3DAttrs, 3, "NCDHW")

OPS = (MAX_POOL1D, MAX_POOL2D, MAX_POOL3D, AVG_POOL1D, AVG_POOL2D, AVG_POOL3D, *MAX_PLACES)
