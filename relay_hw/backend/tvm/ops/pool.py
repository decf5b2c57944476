"""Pooling: max and average of windows, global and adaptive; int8 sum pooling."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from relay_hw.backend.flat import FlatCall
from relay_hw.backend.tvm import scalars as s
from relay_hw.backend.tvm.api import te, tirx
from relay_hw.backend.tvm.ops.base import FLOATS, Arg, Context, Lowering, dtype_of, literal, shape_of, tensor
from relay_hw.backend.tvm.products import STAGE, element_at
from relay_hw.op.base import permutation, spread
from relay_hw.op.conv import SPATIAL
from relay_hw.op.pool import MaxPool2DAttrs, Windows, window_counts

KINDS = ("float32", "float64", "int8", "int16", "int32", "uint8", "uint16", "uint32")


def _layouts(call: FlatCall, rank: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Where N, C and the spatial axes lie in the data, and in the result."""
    name, plain = call.op.name, "NC" + SPATIAL[rank]
    return (
        permutation(name, call.attrs.layout, plain),
        permutation(name, getattr(call.attrs, "out_layout", "") or call.attrs.layout, plain),
    )


def _padded(x: Any, axes: Sequence[int], w: Windows, tail: Sequence[int], fill: Any) -> tuple[Any, Sequence[int]]:
    """The data in whole windows, and where its plain axes lie."""
    if not any(w.before) and not any(tail):
        return x, axes
    plain = [int(x.shape[axis]) for axis in axes]
    shape = plain[:2] + [n + b + t for n, b, t in zip(plain[2:], w.before, tail, strict=True)]

    def element(*index: Any) -> Any:
        places = [at - before for at, before in zip(index[2:], w.before, strict=True)]
        inside = [test for at, size in zip(places, plain[2:], strict=True) for test in (at >= 0, at < size)]
        value = element_at(x, axes, [*index[:2], *places])
        return tirx.if_then_else(tirx.all(*inside), value, s.number(fill, s.kind(value)))

    return te.compute(shape, element, name=STAGE), range(len(plain))


@dataclass(frozen=True, slots=True)
class Reduction:
    """The reduction of a window: a reducer of TE, its value for padding, the element type in which it works."""

    reducer: Any
    fill: Any
    wide: str


def windows(x: Any, axes: Sequence[int], w: Windows, out: Sequence[int], reduction: Reduction) -> Any:
    """TE: `reduction` over the windows of plain N C *S `out`."""
    wide = reduction.wide
    plain = [int(x.shape[axis]) for axis in axes]
    over = w.overhang(plain[2:], out)
    tail = [max(a, 0) + o if o else max(a, 0) for a, o in zip(w.after, over, strict=True)]
    source, at_axes = _padded(x, axes, w, tail, reduction.fill)
    terms = [te.reduce_axis((0, size), f"k{at}") for at, size in enumerate(w.kernel)]

    def element(n: Any, c: Any, *index: Any) -> Any:
        places = [at * t + k * d for at, t, k, d in zip(index, w.strides, terms, w.dilation, strict=True)]
        return reduction.reducer(element_at(source, at_axes, [n, c, *places]).astype(wide), axis=terms)

    return te.compute((*plain[:2], *out), element, name="pool")


def _placed(value: Any, plain: Sequence[int], out_axes: Sequence[int], finish: Any) -> Any:
    """A plain result in its layout."""
    shape = [plain[list(out_axes).index(axis)] for axis in range(len(plain))]
    return te.compute(shape, lambda *i: finish(value, [i[axis] for axis in out_axes]), name="pooled")


def _pool(ctx: Context, call: FlatCall, args: Sequence[Arg], w: Windows, rank: int, kind: str) -> Arg | None:
    dtype = dtype_of(args[0])
    if dtype not in KINDS:
        return None
    axes, out_axes = _layouts(call, rank)
    result = tensor(call.type)
    plain = [result.static_shape[axis] for axis in out_axes]
    out = plain[2:]
    if kind == "max":

        def largest(x: Any) -> Any:
            reduction = Reduction(s.extreme(True, not ctx.machine.is_cpu), s.lowest(dtype), dtype)
            value = windows(x, axes, w, out, reduction)
            return _placed(value, plain, out_axes, lambda v, i: v(*i))

        return ctx.te(largest, args[0])
    wide = dtype if dtype in FLOATS else "int64"
    sizes = [shape_of(args[0])[axis] for axis in axes[2:]]
    counts = None if kind == "sum" else _counts(call, sizes, w, out)

    def mean(x: Any, table: Any = None) -> Any:
        value = windows(x, axes, w, out, Reduction(te.sum, 0, wide))

        def finish(v: Any, i: Sequence[Any]) -> Any:
            total = v(*i)
            if counts is None:
                return total.astype(result.dtype)
            count = s.number(int(counts.flat[0]), wide) if table is None else table(*i[2:])
            return s.convert(total / count if wide == dtype else tirx.truncdiv(total, count), result.dtype)

        return _placed(value, plain, out_axes, finish)

    if counts is None or np.all(counts == counts.flat[0]):
        return ctx.te(mean, args[0])
    return ctx.te(mean, args[0], literal(counts, wide))


def _counts(call: FlatCall, sizes: Sequence[int], w: Windows, out: Sequence[int]) -> Any:
    """How many elements each window's mean divides by."""
    if hasattr(call.attrs, "count_include_pad"):
        return window_counts(call.attrs, sizes, w, out)
    return np.full(out, np.prod(w.kernel))


def _windowed(rank: int, kind: str) -> Lowering:
    def lower(ctx: Context, call: FlatCall, args: Sequence[Arg]) -> Arg | None:
        return _pool(ctx, call, args, Windows.of(call.op.name, call.attrs, rank), rank, kind)

    return lower


def _regions(rank: int, kind: str) -> Lowering:
    """Global and adaptive pools, as windows where all regions have one size."""

    def lower(ctx: Context, call: FlatCall, args: Sequence[Arg]) -> Arg | None:
        axes, out_axes = _layouts(call, rank)
        sizes = [shape_of(args[0])[axis] for axis in axes[2:]]
        out = [tensor(call.type).static_shape[axis] for axis in out_axes[2:]]
        if any(size % parts for size, parts in zip(sizes, out, strict=True)):
            return None
        kernel = tuple(size // parts for size, parts in zip(sizes, out, strict=True))
        none = (0,) * rank
        return _pool(ctx, call, args, Windows(kernel, kernel, (1,) * rank, none, none), rank, kind)

    return lower


def _sum_pool2d(ctx: Context, call: FlatCall, args: Sequence[Arg]) -> Arg | None:
    a = call.attrs
    record = MaxPool2DAttrs(spread(a.pool_size, 2), spread(a.strides, 2), (1, 1), a.padding)
    return _pool(ctx, call, args, Windows.of(call.op.name, record, 2), 2, "sum")


LOWERINGS: Mapping[str, Lowering] = MappingProxyType(
    {f"nn.{kind}_pool{rank}d": _windowed(rank, kind) for kind in ("max", "avg") for rank in SPATIAL}
    | {f"nn.adaptive_{kind}_pool{rank}d": _regions(rank, kind) for kind in ("max", "avg") for rank in SPATIAL}
    | {f"nn.global_{kind}_pool2d": _regions(2, kind) for kind in ("max", "avg")}
    | {"fixed.sum_pool2d": _sum_pool2d}
)
