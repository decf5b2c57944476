"""Matrix products and bias: nn.dense, nn.matmul, nn.batch_matmul, nn.bias_add. Integers wrap around exactly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from relay_hw.errors import TypeCheckError
from relay_hw.ir.expr import Call, Expr, FusionPattern, Op, Solver
from relay_hw.ir.types import ANY, Dim, TensorType, Type
from relay_hw.op.base import (
    ALONG_AXIS,
    ANCHOR,
    ON_CHANNELS,
    Array,
    Attrs,
    broadcast_shapes,
    call,
    check_axis,
    expect,
    out_type,
    rule,
    same_dim,
    show_shape,
    tensor,
)
from relay_hw.op.base import (
    matmul as product,
)
from relay_hw.op.gradients.common import (
    collapse,
    in_type,
    known_type,
    ops,
    reshaped,
    sizes,
)

__all__ = ["batch_matmul", "bias_add", "dense", "matmul"]


@dataclass(frozen=True, slots=True)
class DenseAttrs(Attrs):
    units: int | None
    out_dtype: str | None = None


def dense_relation(name: str, types: Sequence[Type], attrs: DenseAttrs, solver: Solver) -> TensorType | None:
    """Type of data[..., k] times weight[units, k] transposed; fills in an unknown weight."""
    data, weight = tensor(name, types, 0), tensor(name, types, 1)
    if data is None:
        return None
    if not data.rank:
        raise TypeCheckError(f"the data of {name} must have at least 1 axis, not be a scalar")
    if weight is None and attrs.units is None:
        return None
    if weight is not None and weight.rank != 2:
        raise TypeCheckError(f"the weight of {name} must have 2 axes (units, inputs), not {show_shape(weight.shape)}")
    units: Dim = attrs.units if attrs.units is not None else weight.shape[0] if weight is not None else ANY
    depth = data.shape[-1]
    if weight is not None and not isinstance(depth, int):
        depth = weight.shape[1]
    dtype = data.dtype if weight is None else weight.dtype
    expect(name, solver, "weight", types[1], TensorType((units, depth), dtype))
    return TensorType(data.shape[:-1] + (units,), attrs.out_dtype or data.dtype)


def _rows(call: Call, value: Expr, of: Expr) -> Expr:
    """All axes but the last merged; `of` has the shape of `value`."""
    if known_type(of) is None:
        return value if of.tensor_type.rank == 2 else ops().reverse_reshape(value, (-1, 0))
    shape = sizes(call, of)
    return value if len(shape) == 2 else reshaped(value, (prod(shape[:-1]), shape[-1]))


def _dense_gradient(call: Call, adjoint: Expr) -> Sequence[Expr]:
    """Adjoints of both arguments: products of the other one with the adjoint."""
    op, (x, weight) = ops(), call.args
    to_weight = op.nn.matmul(_rows(call, adjoint, call), _rows(call, x, x), transpose_a=True)
    return in_type(op.nn.matmul(adjoint, weight), x, call), in_type(to_weight, weight, call)


DENSE = Op(
    "nn.dense",
    2,
    lambda types, attrs, solver: dense_relation("nn.dense", types, attrs, solver),
    lambda attrs, values, result: product(np.asarray(values[0]), np.asarray(values[1]).T, out_type(result).dtype),
    attrs_type=DenseAttrs,
    gradient=_dense_gradient,
    pattern=FusionPattern.OUT_ELEMWISE_FUSABLE,
    traits=ANCHOR,
    doc="data times the transposed weight (units, inputs)",
)


def dense(data: Expr, weight: Expr, units: int | None = None, out_dtype: str | None = None) -> Call:
    """`data`[..., k] times `weight`[units, k] transposed."""
    return call(DENSE, (data, weight), DenseAttrs(units, out_dtype))


@dataclass(frozen=True, slots=True)
class MatmulAttrs(Attrs):
    units: int | None
    out_dtype: str | None = None
    transpose_a: bool = False
    transpose_b: bool = False

    def __post_init__(self) -> None:
        Attrs.__post_init__(self)
        self._set(transpose_a=bool(self.transpose_a), transpose_b=bool(self.transpose_b))


def _matmul_type(types: Sequence[Type], attrs: MatmulAttrs, solver: Solver) -> Type | None:
    a, b = tensor("nn.matmul", types, 0), tensor("nn.matmul", types, 1)
    if a is None or (b is None and attrs.units is None):
        return None
    if a.rank < 2 and attrs.transpose_a:
        raise TypeCheckError(f"the first argument of nn.matmul must have 2 axes to be transposed, not {a.rank}")
    lead, depth = (a.shape[:-2] + a.shape[-1:], a.shape[-2]) if attrs.transpose_a else (a.shape[:-1], a.shape[-1])
    if b is not None and b.rank != 2:
        raise TypeCheckError(f"the second argument of nn.matmul must have 2 axes, not {show_shape(b.shape)}")
    units: Dim = attrs.units if attrs.units is not None else ANY
    if b is not None:
        units = units if attrs.units is not None else b.shape[0 if attrs.transpose_b else 1]
        depth = depth if isinstance(depth, int) else b.shape[1 if attrs.transpose_b else 0]
    wanted = TensorType((units, depth) if attrs.transpose_b else (depth, units), a.dtype if b is None else b.dtype)
    expect("nn.matmul", solver, "second argument", types[1], wanted)
    return TensorType(lead + (units,), attrs.out_dtype or a.dtype)


def _swap(x: Array, transposed: bool) -> Array:
    return np.swapaxes(x, -1, -2) if transposed else np.asarray(x)


def _swapped(value: Expr, rank: int) -> Expr:
    return ops().transpose(value, (*range(rank - 2), rank - 1, rank - 2))


def _matmul_gradient(call: Call, adjoint: Expr) -> Sequence[Expr]:
    """Adjoints of both arguments: products of the other one with the adjoint."""
    op, (a, b), attrs = ops(), call.args, call.attrs
    rank = a.tensor_type.rank
    to_a = op.nn.matmul(adjoint, b, transpose_b=not attrs.transpose_b)
    to_a = _swapped(to_a, rank) if attrs.transpose_a else to_a
    rows = _swapped(a, rank) if attrs.transpose_a else a
    if rank != 2 and known_type(a) is None:
        rows = op.reverse_reshape(rows, (-1, 0))
    elif rank != 2:
        shape = sizes(call, a)
        depth = shape[-2] if attrs.transpose_a else shape[-1]
        rows = reshaped(rows, (prod(shape) // max(depth, 1), depth))
    left, right = rows, _rows(call, adjoint, call)
    if attrs.transpose_b:
        left, right = right, left
    return in_type(to_a, a, call), in_type(op.nn.matmul(left, right, transpose_a=True), b, call)


MATMUL = Op(
    "nn.matmul",
    2,
    _matmul_type,
    lambda attrs, values, result: product(
        _swap(values[0], attrs.transpose_a), _swap(values[1], attrs.transpose_b), out_type(result).dtype
    ),
    attrs_type=MatmulAttrs,
    gradient=_matmul_gradient,
    pattern=FusionPattern.OUT_ELEMWISE_FUSABLE,
    traits=ANCHOR,
    doc="matrix product, each side optionally transposed",
)


def matmul(
    tensor_a: Expr,
    tensor_b: Expr,
    units: int | None = None,
    out_dtype: str | None = None,
    transpose_a: bool = False,
    transpose_b: bool = False,
) -> Call:
    """Matrix product of `tensor_a` and `tensor_b`."""
    return call(MATMUL, (tensor_a, tensor_b), MatmulAttrs(units, out_dtype, transpose_a, transpose_b))


@dataclass(frozen=True, slots=True)
class BatchMatmulAttrs(Attrs):
    out_dtype: str | None = None
    transpose_a: bool = False
    transpose_b: bool = False

    def __post_init__(self) -> None:
        Attrs.__post_init__(self)
        self._set(transpose_a=bool(self.transpose_a), transpose_b=bool(self.transpose_b))


def batch_matmul_type(name: str, attrs: BatchMatmulAttrs, a: TensorType, b: TensorType) -> TensorType:
    """Type of the batched product. Raises TypeCheckError if the shapes do not fit."""
    if a.rank != 3 or b.rank != 3:
        raise TypeCheckError(
            f"the arguments of {name} must have 3 axes, not {show_shape(a.shape)} and {show_shape(b.shape)}"
        )
    rows, depth_a = (a.shape[2], a.shape[1]) if attrs.transpose_a else (a.shape[1], a.shape[2])
    columns, depth_b = (b.shape[1], b.shape[2]) if attrs.transpose_b else (b.shape[2], b.shape[1])
    if not same_dim(depth_a, depth_b):
        raise TypeCheckError(f"the inner sizes of {name} must be equal, not {depth_a} and {depth_b}")
    batch = broadcast_shapes(name, (a.shape[:1], b.shape[:1]))
    return TensorType((*batch, rows, columns), attrs.out_dtype or a.dtype)


def _batch_matmul_gradient(call: Call, adjoint: Expr) -> Sequence[Expr]:
    """Each side meets the adjoint; a side that was repeated for every batch gets the sum."""
    op, (a, b), attrs = ops(), call.args, call.attrs
    flip_a, flip_b = attrs.transpose_a, attrs.transpose_b

    def product(left: Expr, right: Expr, flip_left: bool, flip_right: bool) -> Expr:
        return op.nn.batch_matmul(left, right, transpose_a=flip_left, transpose_b=flip_right)

    to_a = product(b, adjoint, flip_b, True) if flip_a else product(adjoint, b, False, not flip_b)
    to_b = product(adjoint, a, True, flip_a) if flip_b else product(a, adjoint, not flip_a, False)
    return _summed(in_type(to_a, a, call), call, a), _summed(in_type(to_b, b, call), call, b)


def _summed(value: Expr, call: Call, arg: Expr) -> Expr:
    have, want = known_type(call), known_type(arg)
    if have is None or want is None:
        return collapse(value, call, arg)
    return ops().sum(value, 0, keepdims=True) if have.shape[0] != want.shape[0] else value


BATCH_MATMUL = Op(
    "nn.batch_matmul",
    2,
    rule("nn.batch_matmul", 2)(lambda attrs, a, b: batch_matmul_type("nn.batch_matmul", attrs, a, b)),
    lambda attrs, values, result: product(
        _swap(values[0], attrs.transpose_a), _swap(values[1], attrs.transpose_b), out_type(result).dtype
    ),
    attrs_type=BatchMatmulAttrs,
    gradient=_batch_matmul_gradient,
    pattern=FusionPattern.OUT_ELEMWISE_FUSABLE,
    traits=ANCHOR,
    doc="matrix products along the first axis",
)


def batch_matmul(
    tensor_a: Expr,
    tensor_b: Expr,
    out_dtype: str | None = None,
    transpose_a: bool = False,
    transpose_b: bool = True,
) -> Call:
    """Matrix products along the first axis; the second side is transposed unless told otherwise, as in Relay."""
    return call(BATCH_MATMUL, (tensor_a, tensor_b), BatchMatmulAttrs(out_dtype, transpose_a, transpose_b))


@dataclass(frozen=True, slots=True)
class BiasAddAttrs(Attrs):
    axis: int = 1


def _bias_add_type(types: Sequence[Type], attrs: BiasAddAttrs, solver: Solver) -> Type | None:
    data = tensor("nn.bias_add", types, 0)
    if data is None:
        return None
    axis = check_axis("nn.bias_add", attrs.axis, data.rank)
    expect("nn.bias_add", solver, "bias", types[1], TensorType((data.shape[axis],), data.dtype))
    return data


def along(value: Array, axis: int, rank: int) -> Array:
    """A vector reshaped so that it broadcasts along `axis`."""
    shape = [1] * rank
    shape[axis] = -1
    return np.reshape(value, shape)


def _bias_add(attrs: BiasAddAttrs, values: Sequence[Array], result: Type) -> Array:
    x = np.asarray(values[0])
    with np.errstate(over="ignore"):
        return x + along(values[1], attrs.axis, x.ndim)


def _bias_add_gradient(call: Call, adjoint: Expr) -> Sequence[Expr]:
    """The bias gets the sum over all axes but its own."""
    return adjoint, ops().sum(adjoint, call.attrs.axis, exclude=True)


BIAS_ADD = Op(
    "nn.bias_add",
    2,
    _bias_add_type,
    _bias_add,
    attrs_type=BiasAddAttrs,
    gradient=_bias_add_gradient,
    pattern=FusionPattern.BROADCAST,
    traits=ALONG_AXIS | ON_CHANNELS,
    doc="a vector added along one axis",
)


def bias_add(data: Expr, bias: Expr, axis: int = 1) -> Call:
    """`data` plus `bias` along `axis`."""
    return call(BIAS_ADD, (data, bias), BiasAddAttrs(axis))


OPS = (DENSE, MATMUL, BATCH_MATMUL, BIAS_ADD)
