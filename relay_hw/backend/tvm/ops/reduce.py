"""Reductions over axes: sum, mean, max, min, argmax, argmin; and sums down to a shape."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from types import MappingProxyType
from typing import Any

from relay_hw.backend.flat import FlatCall
from relay_hw.backend.tvm import scalars as s
from relay_hw.backend.tvm.api import te, tirx
from relay_hw.backend.tvm.ops.base import FLOATS, Arg, Context, Lowering, dtype_of, shape_of, tensor
from relay_hw.op.reduce import reduced_axes

# Element types whose sums fit 64 bits, and the floats that numpy sums in their own type.
SHORT = ("int8", "int16", "int32", "uint8", "uint16", "uint32")
SUMMED = ("float32", "float64")
Element = Callable[[Any, Sequence[Any]], Any]


def folded(x: Any, axes: Sequence[int], keep: bool, reducer: Any, element: Element, finish: Any = None) -> Any:
    """TE: `reducer` over `axes` of `element(x, index)`; `finish` of each result."""
    shape = [int(size) for size in x.shape]
    terms = {axis: te.reduce_axis((0, shape[axis]), f"k{axis}") for axis in axes}
    out = [1 if at in axes else size for at, size in enumerate(shape) if keep or at not in axes]

    def total(*index: Any) -> Any:
        own = iter(index)
        full = []
        for at in range(len(shape)):
            place = next(own) if keep or at not in axes else None
            full.append(terms[at] if at in axes else place)
        return reducer(element(x, full), axis=list(terms.values()))

    found = te.compute(out, total, name="fold")
    return found if finish is None else te.compute(out, lambda *i: finish(found(*i)), name="finish")


def plain(x: Any, index: Sequence[Any]) -> Any:
    """The element itself."""
    return x(*index)


def wide(x: Any, index: Sequence[Any]) -> Any:
    """The element in 64 bits where it is an integer."""
    value = x(*index)
    return value if s.kind(value) in FLOATS else value.astype("int64")


def _reduction(
    reducer: Callable[[Context, str], Any], element: Element, kinds: Sequence[str], finish: Any = None
) -> Lowering:
    def lower(ctx: Context, call: FlatCall, args: Sequence[Arg]) -> Arg | None:
        dtype, a = dtype_of(args[0]), call.attrs
        axes = reduced_axes(call.op.name, a, len(shape_of(args[0])))
        if dtype not in kinds or not axes:
            return None
        fold = reducer(ctx, dtype)
        if fold is None:
            return None
        count = prod(shape_of(args[0])[axis] for axis in axes)

        def end(value: Any) -> Any:
            return s.convert(value if finish is None else finish(value, count), tensor(call.type).dtype)

        after = end if finish is not None or (element is wide and dtype not in FLOATS) else None
        return ctx.te(lambda x: folded(x, axes, a.keepdims, fold, element, after), args[0])

    return lower


def _mean(total: Any, count: int) -> Any:
    divisor = s.number(count, s.kind(total))
    return total / divisor if s.kind(total) in FLOATS else tirx.truncdiv(total, divisor)


def _product(ctx: Context, dtype: str) -> Any:
    if not ctx.machine.is_cpu:
        return None
    return te.comm_reducer(s.multiply, lambda kind: s.number(1, kind))


def _logic(build: Callable[..., Any], start: bool) -> Any:
    return te.comm_reducer(build, lambda kind: s.number(start, kind))


def place_of(largest: bool, last: bool) -> Any:
    """A reducer of (place, value): the place of the largest or smallest, of the first or last one of equals."""

    def combine(best: tuple[Any, Any], new: tuple[Any, Any]) -> tuple[Any, Any]:
        (place, value), (at, x) = best, new
        nearer = at > place if last else at < place
        better = tirx.any(x > value if largest else x < value, tirx.all(s.equal(x, value), nearer))
        if s.kind(x) in FLOATS:
            better = tirx.any(
                tirx.all(better, tirx.Not(s.is_nan(value))),
                tirx.all(s.is_nan(x), tirx.any(tirx.Not(s.is_nan(value)), nearer)),
            )
        return s.select(better, at, place), s.select(better, x, value)

    def start(place: Any, value: Any) -> tuple[Any, Any]:
        return s.number(-1 if last else 2**31 - 1, place), s.number(
            s.lowest(value) if largest else s.highest(value), value
        )

    return te.comm_reducer(combine, start)


def _place(largest: bool) -> Lowering:
    def lower(ctx: Context, call: FlatCall, args: Sequence[Arg]) -> Arg | None:
        a, shape = call.attrs, shape_of(args[0])
        axes = reduced_axes(call.op.name, a, len(shape))
        if not axes or dtype_of(args[0]) in ("bool", "float16") or not ctx.machine.is_cpu:
            return None
        reducer = place_of(largest, a.select_last_index)

        def build(x: Any) -> Any:
            terms = {axis: te.reduce_axis((0, shape[axis]), f"k{axis}") for axis in axes}
            out = [size for at, size in enumerate(shape) if at not in axes]

            def total(*index: Any) -> Any:
                own = iter(index)
                full = [terms[at] if at in axes else next(own) for at in range(len(shape))]
                flat: Any = 0
                for axis in axes:
                    flat = flat * shape[axis] + terms[axis]
                return reducer((tirx.Cast("int32", flat), x(*full)), axis=list(terms.values()))

            places, _ = te.compute(out, total, name="places")
            kept = [at for at in range(len(shape)) if at not in axes]
            result = tensor(call.type).static_shape
            if not a.keepdims:
                return te.compute(out, lambda *i: places(*i), name="place")
            return te.compute(result, lambda *i: places(*(i[at] for at in kept)), name="place")

        return ctx.te(build, args[0])

    return lower


def _variance(ctx: Context, call: FlatCall, args: Sequence[Arg]) -> Arg | None:
    a, shape = call.attrs, shape_of(args[0])
    axes = reduced_axes("variance", a, len(shape))
    count = prod(shape[axis] for axis in axes) - a.unbiased
    if dtype_of(args[0]) not in SUMMED or not axes or count < 1 or len(shape_of(args[1])) != len(shape):
        return None
    center_shape = shape_of(args[1])

    def build(x: Any, center: Any) -> Any:
        def element(_x: Any, index: Sequence[Any]) -> Any:
            near = [0 if size == 1 else at for size, at in zip(center_shape, index, strict=True)]
            difference = x(*index) - center(*near)
            return difference * difference

        return folded(x, axes, a.keepdims, te.sum, element, lambda total: total / s.number(count, s.kind(total)))

    return ctx.te(build, *args)


def _collapse(ctx: Context, call: FlatCall, args: Sequence[Arg]) -> Arg | None:
    shape, want = shape_of(args[0]), tensor(call.type).static_shape
    lead = len(shape) - len(want)
    axes = (*range(lead), *(lead + at for at, size in enumerate(want) if size == 1))
    dtype = dtype_of(args[0])
    if dtype not in (*SUMMED, *SHORT) or not axes:
        return None

    def build(x: Any) -> Any:
        total = folded(x, axes, True, te.sum, wide)
        return te.compute(want, lambda *i: s.convert(total(*([0] * lead), *i), dtype), name="collapse")

    return ctx.te(build, args[0])


def _bools(build: Callable[..., Any], start: bool) -> Lowering:
    return _reduction(lambda ctx, dtype: _logic(build, start) if ctx.machine.is_cpu else None, plain, ("bool",))


LOWERINGS: Mapping[str, Lowering] = MappingProxyType(
    {
        "sum": _reduction(lambda ctx, dtype: te.sum, wide, (*SUMMED, *SHORT)),
        "mean": _reduction(lambda ctx, dtype: te.sum, wide, (*SUMMED, *SHORT), _mean),
        "prod": _reduction(_product, plain, (*SUMMED, *SHORT)),
        "max": _reduction(
            lambda ctx, dtype: s.extreme(True, not ctx.machine.is_cpu), plain, (*FLOATS, *SHORT, "int64", "uint64")
        ),
        "min": _reduction(
            lambda ctx, dtype: s.extreme(False, not ctx.machine.is_cpu), plain, (*FLOATS, *SHORT, "int64", "uint64")
        ),
        "all": _bools(lambda a, b: tirx.all(a, b), True),
        "any": _bools(lambda a, b: tirx.any(a, b), False),
        "argmax": _place(True),
        "argmin": _place(False),
        "variance": _variance,
        "collapse_sum_to": _collapse,
        "collapse_sum_like": _collapse,
    }
)
