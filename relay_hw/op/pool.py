"""Pooling: largest or mean of windows, of everything (global), or of a fixed number of regions (adaptive)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any as AnyValue

import numpy as np

from relay_hw.errors import TypeCheckError
from relay_hw.ir.expr import Call, Expr, FusionPattern, Gradient, Op
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
    ints,
    make_op,
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
from relay_hw.op.gradients import pool as gradients


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


Pool = MaxPool2DAttrs | AvgPool2DAttrs

_PATTERN = FusionPattern.OUT_ELEMWISE_FUSABLE
# Those whose results are elements of their data.
_CHOOSING = POOLS | KEEPS_SCALE
# Element type of the result where it is not the data's.
_RESULT = {"argmax": "int64"}


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


def _layout(name: str, attrs: AnyValue, rank: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    plain = "NC" + SPATIAL[rank]
    return permutation(name, attrs.layout, plain), permutation(name, plain, attrs.out_layout or attrs.layout)


def _typed(
    name: str, rank: int, sizes: Callable[[AnyValue, Sequence[Dim]], Sequence[Dim]], dtype: str | None = None
) -> AnyValue:
    @rule(name, 1)
    def relation(attrs: AnyValue, x: TensorType) -> Type:
        if x.rank != rank + 2:
            raise TypeCheckError(f"the data of {name} must have {rank + 2} axes, not {show_shape(x.shape)}")
        inward, outward = _layout(name, attrs, rank)
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
    # Padding has no place: a window of nothing else has the place behind the last one.
    numbers = taps(pad_spatial(places, w.before, tail, -1), w.kernel, w.strides, w.dilation, out)
    best = np.full(x.shape[:2] + tuple(out), lowest, x.dtype)
    place = np.full(best.shape, -1, np.int64)
    for (_, view), (_, number) in zip(views, numbers, strict=True):
        is_better = ((place < 0) | (view > best)) & (number >= 0)
        best = np.where(is_better, view, best)
        place = np.where(is_better, number, place)
    return np.where(place < 0, places.size, place)


def _pool(
    name: str,
    rank: int,
    attrs_type: type,
    function: AnyValue,
    doc: str,
    gradient: Gradient | None = None,
    dtype: str | None = None,
) -> Op:
    def sizes(attrs: Pool, spatial: Sequence[Dim]) -> Sequence[Dim]:
        return Windows.of(name, attrs, rank).sizes(spatial, attrs.ceil_mode)

    def meaning(attrs: Pool, values: Sequence[Array], result: Type) -> Array:
        inward, outward = _layout(name, attrs, rank)
        x = np.asarray(values[0]).transpose(inward)
        windows = Windows.of(name, attrs, rank)
        out = windows.sizes(x.shape[2:], attrs.ceil_mode)
        return function(attrs, x, windows, out).transpose(outward)

    return make_op(
        name,
        1,
        _typed(name, rank, sizes, dtype),
        meaning,
        attrs=attrs_type,
        pattern=_PATTERN,
        gradient=gradient,
        traits=_CHOOSING if function is _max else POOLS,
        doc=doc,
    )


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
    def meaning(attrs: GlobalPool2DAttrs, values: Sequence[Array], result: Type) -> Array:
        inward, outward = _layout(name, attrs, 2)
        x = np.asarray(values[0]).transpose(inward)
        return _reduced(x, (2, 3), kind)[:, :, None, None].transpose(outward)

    relation = _typed(name, 2, lambda attrs, spatial: (1, 1), _RESULT.get(kind))
    return make_op(
        name,
        1,
        relation,
        meaning,
        attrs=GlobalPool2DAttrs,
        pattern=_PATTERN,
        gradient=gradient,
        traits=_CHOOSING if kind == "max" else POOLS,
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

    def meaning(attrs: AdaptivePool2DAttrs, values: Sequence[Array], result: Type) -> Array:
        inward, outward = _layout(name, attrs, rank)
        x = np.asarray(values[0]).transpose(inward)
        out = tuple(int(size) for size in sizes(attrs, x.shape[2:]))  # type: ignore[arg-type]
        value = np.empty(x.shape[:2] + out, _RESULT.get(kind, x.dtype))
        axes = tuple(range(2, 2 + rank))
        for at in np.ndindex(*out):
            bounds = zip(at, out, x.shape[2:], strict=True)
            region = tuple(slice(i * n // o, -(-(i + 1) * n // o)) for i, o, n in bounds)
            found = _reduced(x[(slice(None), slice(None), *region)], axes, kind)
            value[(slice(None), slice(None), *at)] = _outside(found, region, x.shape[2:]) if kind == "argmax" else found
        return value.transpose(outward)

    return make_op(
        name,
        1,
        _typed(name, rank, sizes, _RESULT.get(kind)),
        meaning,
        attrs=attrs_type,
        pattern=_PATTERN,
        gradient=gradient,
        traits=_CHOOSING if kind == "max" else POOLS,
        doc=doc,
    )


def _outside(places: Array, region: Sequence[slice], sizes: Sequence[int]) -> Array:
    """Places counted through a region, counted through all of the spatial axes."""
    inner = np.unravel_index(places, [part.stop - part.start for part in region])
    whole = [at + part.start for at, part in zip(inner, region, strict=True)]
    return np.asarray(np.ravel_multi_index(whole, sizes))


_LARGEST, _AVERAGE = "the largest element of every window", "the mean of every window"
_PLACE = "int64 place of the first largest element, counted through the spatial axes, of every "
_MAX_RECORDS = {1: MaxPool1DAttrs, 2: MaxPool2DAttrs, 3: MaxPool3DAttrs}
_ADAPTIVE_RECORDS = {1: AdaptivePool1DAttrs, 2: AdaptivePool2DAttrs, 3: AdaptivePool3DAttrs}
MAX_POOL1D = _pool("nn.max_pool1d", 1, MaxPool1DAttrs, _max, _LARGEST, gradients.largest)
MAX_POOL2D = _pool("nn.max_pool2d", 2, MaxPool2DAttrs, _max, _LARGEST, gradients.largest)
MAX_POOL3D = _pool("nn.max_pool3d", 3, MaxPool3DAttrs, _max, _LARGEST, gradients.largest)
AVG_POOL1D = _pool("nn.avg_pool1d", 1, AvgPool1DAttrs, _mean, _AVERAGE, gradients.mean)
AVG_POOL2D = _pool("nn.avg_pool2d", 2, AvgPool2DAttrs, _mean, _AVERAGE, gradients.mean)
AVG_POOL3D = _pool("nn.avg_pool3d", 3, AvgPool3DAttrs, _mean, _AVERAGE, gradients.mean)
GLOBAL_MAX_POOL2D = _global("nn.global_max_pool2d", "max", "the largest element of every channel", gradients.largest)
GLOBAL_AVG_POOL2D = _global("nn.global_avg_pool2d", "mean", "the mean of every channel", gradients.global_mean)
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
        ("max", "max", "largest elements", gradients.largest),
        ("avg", "mean", "means", gradients.adaptive_mean),
    )
    for rank, record in _ADAPTIVE_RECORDS.items()
)
# What the gradient of a maximum asks for; no network has them.
MAX_PLACES = tuple(
    _pool(f"nn.max_pool{rank}d_argmax", rank, record, _argmax, _PLACE + "window", dtype="int64")
    for rank, record in _MAX_RECORDS.items()
)
GLOBAL_MAX_PLACES = _global("nn.global_max_pool2d_argmax", "argmax", _PLACE + "channel")
ADAPTIVE_PLACES = tuple(
    _adaptive(f"nn.adaptive_max_pool{rank}d_argmax", rank, record, "argmax", _PLACE + "region")
    for rank, record in _ADAPTIVE_RECORDS.items()
)
ARGMAX_OF = {op.name.removesuffix("_argmax"): op for op in (*MAX_PLACES, GLOBAL_MAX_PLACES, *ADAPTIVE_PLACES)}


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

OPS = (
    (
        MAX_POOL1D,
        MAX_POOL2D,
        MAX_POOL3D,
        AVG_POOL1D,
        AVG_POOL2D,
        AVG_POOL3D,
        GLOBAL_MAX_POOL2D,
        GLOBAL_AVG_POOL2D,
    )
    + ADAPTIVE
    + MAX_PLACES
    + (GLOBAL_MAX_PLACES, *ADAPTIVE_PLACES)
)
