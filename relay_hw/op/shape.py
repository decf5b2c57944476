"""Shape operators: reshape, transpose, squeeze, expand_dims."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from relay_hw.errors import TypeCheckError
from relay_hw.ir.dims import dim_floordiv
from relay_hw.ir.expr import Call, Expr, FusionPattern, Op
from relay_hw.ir.types import ANY, Any, Dim, TensorType, Type
from relay_hw.op.base import (
    PERMUTES,
    RESHAPES,
    Array,
    Attrs,
    Ints,
    call,
    check_axes,
    check_axis,
    ints,
    product,
    rule,
    show_shape,
    static,
)
from relay_hw.op.gradients.common import (
    inverse,
    one_argument,
    ops,
    reshape_to,
    zeros,
)

__all__ = ["expand_dims", "reshape", "reshape_like", "reverse_reshape", "squeeze", "transpose"]

INJECTIVE = FusionPattern.INJECTIVE


@dataclass(frozen=True, slots=True)
class ReshapeAttrs(Attrs):
    newshape: tuple[int, ...]
    allowzero: int = 0

    def __post_init__(self) -> None:
        self._set(newshape=ints(self.newshape), allowzero=int(self.allowzero))


def reshape_dims(data: Sequence[Dim], codes: Sequence[int], allowzero: bool = False) -> tuple[Dim, ...]:
    """The shape that reshape's codes give.

    Codes: n > 0 a size, 0 copy (a true zero with `allowzero`), -1 infer, -2 copy the rest, -3 merge two,
    -4 split one into the next two codes. Raises TypeCheckError if they do not fit `data`.
    """
    result: list[Dim] = []
    source, position, hole = 0, 0, -1
    while position < len(codes):
        code = codes[position]
        position += 1
        if code > 0 or (code == 0 and allowzero):
            result.append(code)
            source += 1
        elif code == 0:
            result.append(_source(data, codes, source))
            source += 1
        elif code == -1:
            if hole >= 0:
                raise TypeCheckError(f"newshape of reshape must have at most one -1, not {tuple(codes)}")
            hole = len(result)
            result.append(1)
            source += 1
        elif code == -2:
            result.extend(data[source:])
            source = len(data)
        elif code == -3:
            result.append(product((_source(data, codes, source), _source(data, codes, source + 1))))
            source += 2
        elif code == -4:
            result.extend(_split_dim(_source(data, codes, source), codes, position))
            source, position = source + 1, position + 2
        else:
            raise TypeCheckError(f"codes of reshape's newshape must be at least -4, not {code}")
    if hole >= 0:
        result[hole] = _inferred(data, codes, result)
    total, given = product(data), product(result)
    if static(total) and static(given) and total != given:
        raise TypeCheckError(
            f"reshape must keep the {total} elements of {show_shape(data)}, not give {show_shape(result)}"
        )
    return tuple(result)


def _source(data: Sequence[Dim], codes: Sequence[int], index: int) -> Dim:
    if index >= len(data):
        raise TypeCheckError(
            f"newshape {tuple(codes)} of reshape must fit the data, not ask for axis {index} of {show_shape(data)}"
        )
    return data[index]


def _split_dim(dim: Dim, codes: Sequence[int], position: int) -> tuple[Dim, Dim]:
    if len(codes) < position + 2:
        raise TypeCheckError(f"-4 in newshape of reshape must be followed by two sizes, not end {tuple(codes)}")
    left, right = codes[position], codes[position + 1]
    if left == -1 and right == -1:
        raise TypeCheckError("one of the two sizes after -4 in newshape of reshape must be given, not both -1")
    if not isinstance(dim, int):
        return (ANY if left == -1 else left, ANY if right == -1 else right)
    left, right = (dim // right if left == -1 else left, dim // left if right == -1 else right)
    if left * right != dim:
        raise TypeCheckError(
            f"the two sizes after -4 in newshape of reshape must multiply to {dim}, not {left} and {right}"
        )
    return left, right


def _inferred(data: Sequence[Dim], codes: Sequence[int], result: Sequence[Dim]) -> Dim:
    if not any(isinstance(dim, Any) for dim in (*data, *result)) and not all(map(static, (*data, *result))):
        return dim_floordiv(product(data), product(result))
    unknown_in = [dim for dim in data if not static(dim)]
    unknown_out = [dim for dim in result if not static(dim)]
    if len(unknown_in) != len(unknown_out):
        return ANY
    total, given = (prod(dim for dim in dims if isinstance(dim, int)) for dims in (data, result))
    if given == 0 or total % given:
        raise TypeCheckError(
            f"reshape must keep the {total} elements of {show_shape(data)}, which {tuple(codes)} cannot"
        )
    return total // given


def _numpy_reshape(values: Sequence[Array], shape: Sequence[Dim]) -> Array:
    return np.reshape(values[0], shape)  # type: ignore[arg-type]


# The same elements go back into the shape that they had.
_reshape_gradient = one_argument(lambda call, x, g: reshape_to(g, x))

RESHAPE = Op(
    "reshape",
    1,
    rule("reshape", 1)(
        lambda attrs, x: TensorType(reshape_dims(x.shape, attrs.newshape, bool(attrs.allowzero)), x.dtype)
    ),
    lambda attrs, values, result: _numpy_reshape(
        values, reshape_dims(np.shape(values[0]), attrs.newshape, bool(attrs.allowzero))
    ),
    attrs_type=ReshapeAttrs,
    gradient=_reshape_gradient,
    pattern=INJECTIVE,
    traits=RESHAPES,
    doc="the elements in another shape; see the codes of newshape",
)


def reshape(data: Expr, newshape: Ints, allowzero: bool = False) -> Call:
    """`data` in another shape; `newshape` may use the codes 0, -1, -2, -3 and -4."""
    return call(RESHAPE, (data,), ReshapeAttrs(ints(newshape) or (), int(allowzero)))


def _reverse_dims(shape: Sequence[Dim], codes: Sequence[int]) -> tuple[Dim, ...]:
    return tuple(reversed(reshape_dims(tuple(reversed(shape)), tuple(reversed(codes)))))


REVERSE_RESHAPE = Op(
    "contrib_reverse_reshape",
    1,
    rule("contrib_reverse_reshape", 1)(lambda attrs, x: TensorType(_reverse_dims(x.shape, attrs.newshape), x.dtype)),
    lambda attrs, values, result: _numpy_reshape(values, _reverse_dims(np.shape(values[0]), attrs.newshape)),
    attrs_type=ReshapeAttrs,
    gradient=_reshape_gradient,
    pattern=INJECTIVE,
    traits=RESHAPES,
    doc="reshape whose codes are read from the right",
)


def reverse_reshape(data: Expr, newshape: Ints) -> Call:
    """`data` in another shape; codes are read from the right."""
    return call(REVERSE_RESHAPE, (data,), ReshapeAttrs(ints(newshape) or ()))


@dataclass(frozen=True, slots=True)
class ReshapeLikeAttrs(Attrs):
    lhs_begin: int = 0
    lhs_end: int | None = None
    rhs_begin: int = 0
    rhs_end: int | None = None


def _reshape_like_dims(attrs: ReshapeLikeAttrs, data: Sequence[Dim], like: Sequence[Dim]) -> tuple[Dim, ...]:
    begin, end, _ = slice(attrs.lhs_begin, attrs.lhs_end).indices(len(data))
    middle = tuple(like[slice(attrs.rhs_begin, attrs.rhs_end)])
    result = tuple(data[:begin]) + middle + tuple(data[end:])
    total, given = product(data), product(result)
    if static(total) and static(given) and total != given:
        raise TypeCheckError(
            f"reshape_like must keep the {total} elements of {show_shape(data)}, not give {show_shape(result)}"
        )
    return result


def _reshape_like_gradient(call: Call, adjoint: Expr) -> Sequence[Expr]:
    """The adjoint of the data; the shape argument gets none."""
    x, like = call.args
    return reshape_to(adjoint, x), zeros(like)


RESHAPE_LIKE = Op(
    "reshape_like",
    2,
    rule("reshape_like", 2)(lambda attrs, x, like: TensorType(_reshape_like_dims(attrs, x.shape, like.shape), x.dtype)),
    lambda attrs, values, result: _numpy_reshape(
        values, _reshape_like_dims(attrs, np.shape(values[0]), np.shape(values[1]))
    ),
    attrs_type=ReshapeLikeAttrs,
    gradient=_reshape_like_gradient,
    pattern=INJECTIVE,
    traits=RESHAPES,
    doc="the elements in (part of) the shape of the second argument",
)


def reshape_like(
    data: Expr,
    shape_like: Expr,
    lhs_begin: int = 0,
    lhs_end: int | None = None,
    rhs_begin: int = 0,
    rhs_end: int | None = None,
) -> Call:
    """`data` whose axes [lhs_begin, lhs_end) are replaced by axes [rhs_begin, rhs_end) of `shape_like`."""
    return call(RESHAPE_LIKE, (data, shape_like), ReshapeLikeAttrs(lhs_begin, lhs_end, rhs_begin, rhs_end))


@dataclass(frozen=True, slots=True)
class TransposeAttrs(Attrs):
    axes: tuple[int, ...] | None

    def __post_init__(self) -> None:
        self._set(axes=ints(self.axes))


def transpose_axes(axes: Sequence[int] | None, rank: int) -> tuple[int, ...]:
    """The axes counted from the front; none means all of them reversed."""
    if not axes:
        return tuple(reversed(range(rank)))
    if len(axes) != rank:
        raise TypeCheckError(f"axes of transpose must name all {rank} axes, not {tuple(axes)}")
    return check_axes("transpose", axes, rank)


@rule("transpose", 1)
def _transpose_type(attrs: TransposeAttrs, x: TensorType) -> Type:
    return TensorType([x.shape[axis] for axis in transpose_axes(attrs.axes, x.rank)], x.dtype)


def _transpose_slope(call: Call, x: Expr, g: Expr) -> Expr:
    axes, rank = call.attrs.axes, x.tensor_type.rank
    return ops().transpose(g, inverse([axis % rank for axis in axes])) if axes else ops().transpose(g)


TRANSPOSE = Op(
    "transpose",
    1,
    _transpose_type,
    lambda attrs, values, result: np.transpose(values[0], transpose_axes(attrs.axes, np.ndim(values[0]))),
    attrs_type=TransposeAttrs,
    gradient=one_argument(_transpose_slope),
    pattern=INJECTIVE,
    traits=PERMUTES,
    doc="axes in another order",
)


def transpose(data: Expr, axes: Ints | None = None) -> Call:
    """`data` with axes in the order `axes`, reversed if none are given."""
    return call(TRANSPOSE, (data,), TransposeAttrs(ints(axes)))


@dataclass(frozen=True, slots=True)
class ExpandDimsAttrs(Attrs):
    axis: int
    num_newaxis: int = 1


@rule("expand_dims", 1)
def _expand_dims_type(attrs: ExpandDimsAttrs, x: TensorType) -> Type:
    if attrs.num_newaxis < 0:
        raise TypeCheckError(f"num_newaxis of expand_dims must not be negative, not {attrs.num_newaxis}")
    axis = check_axis("expand_dims", attrs.axis, x.rank + 1)
    return TensorType(x.shape[:axis] + (1,) * attrs.num_newaxis + x.shape[axis:], x.dtype)


def _expand_dims(attrs: ExpandDimsAttrs, values: Sequence[Array], result: Type) -> Array:
    shape = np.shape(values[0])
    axis = attrs.axis % (len(shape) + 1)
    return np.reshape(values[0], shape[:axis] + (1,) * attrs.num_newaxis + shape[axis:])


EXPAND_DIMS = Op(
    "expand_dims",
    1,
    _expand_dims_type,
    _expand_dims,
    attrs_type=ExpandDimsAttrs,
    gradient=_reshape_gradient,
    pattern=FusionPattern.BROADCAST,
    traits=RESHAPES,
    doc="new axes of size 1",
)


def expand_dims(data: Expr, axis: int, num_newaxis: int = 1) -> Call:
    """`data` with `num_newaxis` axes of size 1 before `axis`."""
    return call(EXPAND_DIMS, (data,), ExpandDimsAttrs(axis, num_newaxis))


@dataclass(frozen=True, slots=True)
class SqueezeAttrs(Attrs):
    axis: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        self._set(axis=ints(self.axis))


def _squeezed(attrs: SqueezeAttrs, shape: Sequence[Dim]) -> tuple[Dim, ...]:
    if attrs.axis is None:
        return tuple(dim for dim in shape if dim != 1)
    axes = check_axes("squeeze", attrs.axis, len(shape))
    for axis in axes:
        if static(shape[axis]) and shape[axis] != 1:
            raise TypeCheckError(f"axis {axis} of squeeze must have size 1, not {shape[axis]}")
    return tuple(dim for axis, dim in enumerate(shape) if axis not in axes)


SQUEEZE = Op(
    "squeeze",
    1,
    rule("squeeze", 1)(lambda attrs, x: TensorType(_squeezed(attrs, x.shape), x.dtype)),
    lambda attrs, values, result: _numpy_reshape(values, _squeezed(attrs, np.shape(values[0]))),
    attrs_type=SqueezeAttrs,
    gradient=_reshape_gradient,
    pattern=INJECTIVE,
    traits=RESHAPES,
    doc="axes of size 1 removed",
)


def squeeze(data: Expr, axis: Ints | None = None) -> Call:
    """`data` without the axes `axis`, which must have size 1; without all such axes if none are given."""
    return call(SQUEEZE, (data,), SqueezeAttrs(ints(axis)))


OPS = (
    RESHAPE,
    REVERSE_RESHAPE,
    RESHAPE_LIKE,
    TRANSPOSE,
    EXPAND_DIMS,
    SQUEEZE,
)
