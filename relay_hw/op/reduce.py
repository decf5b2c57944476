"""Reductions over axes: sum, mean, max, argmax and others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any as AnyValue

import numpy as np

from relay_hw.ir.expr import Call, Expr, FusionPattern, Gradient, Op
from relay_hw.ir.expr import Tuple as TupleExpr
from relay_hw.ir.types import Dim, TensorType, Type
from relay_hw.op import broadcast, elementwise
from relay_hw.op.base import (
    KEEPS_SCALE,
    REDUCES,
    Array,
    Attrs,
    Ints,
    call,
    check_axes,
    divide_trunc,
    ints,
    out_type,
    rule,
    tensors,
)
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

__all__ = [
    "all",
    "any",
    "argmax",
    "argmin",
    "logsumexp",
    "max",
    "mean",
    "mean_variance",
    "min",
    "prod",
    "std",
    "sum",
    "variance",
]

Reducer = Callable[[Array, tuple[int, ...]], AnyValue]


@dataclass(frozen=True, slots=True)
class ReduceAttrs(Attrs):
    axis: tuple[int, ...] | None = None
    keepdims: bool = False
    exclude: bool = False

    def __post_init__(self) -> None:
        self._set(axis=ints(self.axis), keepdims=bool(self.keepdims), exclude=bool(self.exclude))


@dataclass(frozen=True, slots=True)
class ArgReduceAttrs(Attrs):
    axis: tuple[int, ...] | None = None
    keepdims: bool = False
    select_last_index: bool = False
    exclude: bool = False

    def __post_init__(self) -> None:
        self._set(axis=ints(self.axis), keepdims=bool(self.keepdims), exclude=bool(self.exclude))
        self._set(select_last_index=bool(self.select_last_index))


@dataclass(frozen=True, slots=True)
class VarianceAttrs(Attrs):
    axis: tuple[int, ...] | None = None
    keepdims: bool = False
    exclude: bool = False
    unbiased: bool = False

    def __post_init__(self) -> None:
        self._set(axis=ints(self.axis), keepdims=bool(self.keepdims), exclude=bool(self.exclude))
        self._set(unbiased=bool(self.unbiased))


AnyReduce = ReduceAttrs | ArgReduceAttrs | VarianceAttrs


def reduced_axes(name: str, attrs: AnyReduce, rank: int) -> tuple[int, ...]:
    """The reduced axes in order; no axes means all, `exclude` means all others."""
    if not attrs.axis:
        return () if attrs.exclude and attrs.axis is not None else tuple(range(rank))
    axes = check_axes(name, attrs.axis, rank)
    return tuple(axis for axis in range(rank) if (axis in axes) != attrs.exclude)


def _shape(name: str, attrs: AnyReduce, x: TensorType) -> tuple[Dim, ...]:
    axes = reduced_axes(name, attrs, x.rank)
    if attrs.keepdims:
        return tuple(1 if axis in axes else dim for axis, dim in enumerate(x.shape))
    return tuple(dim for axis, dim in enumerate(x.shape) if axis not in axes)


def _reduce(name: str, function: Reducer, doc: str, gradient: Gradient | None = None) -> Op:
    @rule(name, 1)
    def relation(attrs: ReduceAttrs, x: TensorType) -> Type:
        return TensorType(_shape(name, attrs, x), x.dtype)

    def reference(attrs: ReduceAttrs, values: Sequence[Array], result: Type) -> Array:
        x = np.asarray(values[0])
        value = np.asarray(function(x, reduced_axes(name, attrs, x.ndim)))
        shape = _shape(name, attrs, TensorType(x.shape, str(x.dtype)))
        return value.astype(out_type(result).dtype, copy=False).reshape(shape)  # type: ignore[arg-type]

    traits = REDUCES | KEEPS_SCALE if name in ("max", "min") else REDUCES
    return Op(
        name,
        1,
        relation,
        reference,
        attrs_type=ReduceAttrs,
        pattern=FusionPattern.COMM_REDUCE,
        gradient=gradient,
        traits=traits,
        doc=doc,
    )


def _mean(x: Array, axes: tuple[int, ...]) -> AnyValue:
    if x.dtype.kind == "f":
        return np.mean(x, axis=axes)
    count = np.int64(np.prod([x.shape[axis] for axis in axes], dtype=np.int64))
    return divide_trunc(np.sum(x, axis=axes, dtype=np.int64), count)  # type: ignore[arg-type]


def _builder(op: Op) -> Callable[..., Call]:
    def build(data: Expr, axis: Ints | None = None, keepdims: bool = False, exclude: bool = False) -> Call:
        return call(op, (data,), ReduceAttrs(ints(axis), keepdims, exclude))

    build.__doc__ = op.doc
    build.__name__ = op.name
    return build


def _axes(call: Call) -> tuple[int, ...]:
    return reduced_axes(name_of(call), call.attrs, call.args[0].tensor_type.rank)


def _kept(call: Call, value: Expr) -> Expr:
    """A result or adjoint with the reduced axes kept with size 1."""
    if call.attrs.keepdims:
        return value
    for axis in _axes(call):
        value = ops().expand_dims(value, axis)
    return value


def _spread(call: Call, x: Expr, value: Expr) -> Expr:
    ty = known_type(x)
    value = _kept(call, value)
    return ops().broadcast_to_like(value, x) if ty is None else ops().broadcast_to(value, ty.static_shape)


def _count(call: Call) -> int:
    shape, count = sizes(call, call.args[0]), 1
    for axis in _axes(call):
        count *= shape[axis]
    return count


def _share(call: Call, x: Expr, g: Expr, factor: float = 1, less: int = 0) -> Expr:
    """g * factor / (number of reduced elements - less), the reduced axes _kept."""
    if known_type(x) is not None:
        divisor = _count(call) - less
        return _kept(call, g) * number(factor / (divisor if divisor > 1 else 1), x)
    # The number is known at run time.
    count = ops().sum(ops().ones_like(x), _axes(call), keepdims=True) if _axes(call) else number(1, x)
    return _kept(call, g) * number(factor, x) / (count - number(less, x))


def _mean_slope(call: Call, x: Expr, g: Expr) -> Expr:
    ty, share = known_type(x), _share(call, x, g)
    return ops().broadcast_to_like(share, x) if ty is None else ops().broadcast_to(share, ty.static_shape)


def _extreme_slope(call: Call, x: Expr, g: Expr) -> Expr:
    op = ops()
    chosen = op.cast_like(op.equal(x, _kept(call, call)), x)
    count = op.sum(chosen, _axes(call), keepdims=True) if _axes(call) else chosen
    return chosen * (_kept(call, g) / count)


def _prod_slope(call: Call, x: Expr, g: Expr) -> Expr:
    """Each element's derivative is the product of all others: those before it times those after it."""
    if known_type(x) is None:
        return _prod_slope_by_axes(call, x, g)
    axes, shape = _axes(call), sizes(call, x)
    order = [axis for axis in range(len(shape)) if axis not in axes] + list(axes)
    lead = tuple(shape[axis] for axis in order[: len(shape) - len(axes)])
    count = _count(call)
    if not count:
        return zeros(x)
    flat = reshaped(moved(x, order), (*lead, count))
    others = _before(flat, len(lead), count) * _behind(flat, len(lead), count)
    back = moved(reshaped(others, [shape[axis] for axis in order]), inverse(order))
    return back * _kept(call, g)


def _prod_slope_by_axes(call: Call, x: Expr, g: Expr) -> Expr:
    """One axis after the other, where sizes are known at run time; cumulative products hold all others."""
    op = ops()
    steps = [x]
    for axis in _axes(call):
        steps.append(op.prod(steps[-1], axis, keepdims=True))
    slope = _kept(call, g)
    for value, axis in reversed(list(zip(steps, _axes(call), strict=False))):
        before = op.cumprod(value, axis, None, True)
        behind = op.reverse(op.cumprod(op.reverse(value, axis), axis, None, True), axis)
        slope = before * behind * slope
    return slope


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


_ALL = _reduce("all", lambda x, axes: np.all(x, axis=axes), "true where all are true")

_ANY = _reduce("any", lambda x, axes: np.any(x, axis=axes), "true where one is true")

_MAX = _reduce("max", lambda x, axes: np.max(x, axis=axes), "the largest", one_argument(_extreme_slope))

_MEAN = _reduce("mean", _mean, "the mean; of integers toward zero", one_argument(_mean_slope))

_MIN = _reduce("min", lambda x, axes: np.min(x, axis=axes), "the smallest", one_argument(_extreme_slope))

_PROD = _reduce("prod", lambda x, axes: np.prod(x, axis=axes, dtype=x.dtype), "the product", one_argument(_prod_slope))

_SUM = _reduce("sum", lambda x, axes: np.sum(x, axis=axes, dtype=x.dtype), "the sum", one_argument(_spread))

all = _builder(_ALL)

any = _builder(_ANY)

max = _builder(_MAX)

mean = _builder(_MEAN)

min = _builder(_MIN)

prod = _builder(_PROD)

sum = _builder(_SUM)


def _arg(name: str, function: Callable[..., AnyValue], doc: str) -> Op:
    @rule(name, 1)
    def relation(attrs: ArgReduceAttrs, x: TensorType) -> Type:
        return TensorType(_shape(name, attrs, x), "int32")

    def reference(attrs: ArgReduceAttrs, values: Sequence[Array], result: Type) -> Array:
        x = np.asarray(values[0])
        axes = reduced_axes(name, attrs, x.ndim)
        kept = [axis for axis in range(x.ndim) if axis not in axes]
        flat = x.transpose(*kept, *axes).reshape(*(x.shape[axis] for axis in kept), -1)
        last = flat.shape[-1] - 1
        index = last - function(flat[..., ::-1], axis=-1) if attrs.select_last_index else function(flat, axis=-1)
        shape = _shape(name, attrs, TensorType(x.shape))
        return np.asarray(index).astype(np.int32).reshape(shape)  # type: ignore[arg-type]

    return Op(name, 1, relation, reference, attrs_type=ArgReduceAttrs, pattern=FusionPattern.COMM_REDUCE, doc=doc)


ARGMAX = _arg("argmax", np.argmax, "index of the largest; the first of equals unless select_last_index")

ARGMIN = _arg("argmin", np.argmin, "index of the smallest; the first of equals unless select_last_index")


def argmax(
    data: Expr,
    axis: Ints | None = None,
    keepdims: bool = False,
    exclude: bool = False,
    select_last_index: bool = False,
) -> Call:
    """int32 index of the largest element."""
    return call(ARGMAX, (data,), ArgReduceAttrs(ints(axis), keepdims, select_last_index, exclude))


def argmin(
    data: Expr,
    axis: Ints | None = None,
    keepdims: bool = False,
    exclude: bool = False,
    select_last_index: bool = False,
) -> Call:
    """int32 index of the smallest element."""
    return call(ARGMIN, (data,), ArgReduceAttrs(ints(axis), keepdims, select_last_index, exclude))


def _variance_type(types: AnyValue, attrs: VarianceAttrs, solver: AnyValue) -> Type | None:
    known = tensors("variance", types, 2)
    return None if known is None else TensorType(_shape("variance", attrs, known[0]), known[0].dtype)


def _variance(attrs: VarianceAttrs, values: Sequence[Array], result: Type) -> Array:
    x, center = (np.asarray(value) for value in values)
    axes = reduced_axes("variance", attrs, x.ndim)
    count = int(np.prod([x.shape[axis] for axis in axes])) - attrs.unbiased
    total = np.sum(np.square(x - center), axis=axes, dtype=x.dtype)
    shape = _shape("variance", attrs, TensorType(x.shape))
    return np.asarray(total / x.dtype.type(count)).astype(x.dtype).reshape(shape)  # type: ignore[arg-type]


def _variance_gradient(call: Call, adjoint: Expr) -> Sequence[Expr]:
    """Of (x - center)**2, both sides; the center is the mean only by custom."""
    x, center = call.args
    slope = (x - center) * _share(call, x, adjoint, 2, int(call.attrs.unbiased))
    return slope, collapse(-slope, x, center)


VARIANCE = Op(
    "variance",
    2,
    _variance_type,
    _variance,
    attrs_type=VarianceAttrs,
    gradient=_variance_gradient,
    pattern=FusionPattern.COMM_REDUCE,
    doc="mean of (x - mean)**2; the second argument is the mean with its axes kept",
)


def variance(
    data: Expr,
    axis: Ints | None = None,
    keepdims: bool = False,
    exclude: bool = False,
    unbiased: bool = False,
    with_mean: Expr | None = None,
) -> Call:
    """Variance of `data`; `unbiased` divides by one less."""
    center = mean(data, axis, True, exclude) if with_mean is None else with_mean
    return call(VARIANCE, (data, center), VarianceAttrs(ints(axis), keepdims, exclude, unbiased))


def std(
    data: Expr, axis: Ints | None = None, keepdims: bool = False, exclude: bool = False, unbiased: bool = False
) -> Call:
    """Standard deviation of `data`."""
    return elementwise.sqrt(variance(data, axis, keepdims, exclude, unbiased))


def mean_variance(
    data: Expr, axis: Ints | None = None, keepdims: bool = False, exclude: bool = False, unbiased: bool = False
) -> TupleExpr:
    """The pair (mean, variance)."""
    center = mean(data, axis, True, exclude)
    spread = variance(data, axis, keepdims, exclude, unbiased, center)
    return TupleExpr((center if keepdims else mean(data, axis, keepdims, exclude), spread))


def logsumexp(data: Expr, axis: Ints | None = None, keepdims: bool = False) -> Call:
    """log(sum(exp(data))) without overflow."""
    top = max(data, axis, True)
    total = sum(elementwise.exp(broadcast.subtract(data, top)), axis, keepdims)
    return broadcast.add(elementwise.log(total), top if keepdims else max(data, axis, False))


OPS = (_ALL, _ANY, _MAX, _MEAN, _MIN, _PROD, _SUM, ARGMAX, ARGMIN, VARIANCE)
