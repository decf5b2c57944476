"""Operators that keep the elements and change the shape: reshape, transpose, squeeze, broadcast_to, layouts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from relay_hw.errors import TypeCheckError
from relay_hw.ir.expr import Call, Expr, FusionPattern
from relay_hw.ir.types import ANY, Dim, TensorType, Type
from relay_hw.op.base import (
    Array,
    Attrs,
    Ints,
    broadcast_shapes,
    call,
    check_axes,
    check_axis,
    ints,
    make_op,
    product,
    rule,
    show_shape,
    static,
)

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


RESHAPE = make_op(
    "reshape",
    1,
    rule("reshape", 1)(
        lambda attrs, x: TensorType(reshape_dims(x.shape, attrs.newshape, bool(attrs.allowzero)), x.dtype)
    ),
    lambda attrs, values, result: _numpy_reshape(
        values, reshape_dims(np.shape(values[0]), attrs.newshape, bool(attrs.allowzero))
    ),
    attrs=ReshapeAttrs,
    pattern=INJECTIVE,
    doc="the elements in another shape; see the codes of newshape",
)


def reshape(data: Expr, newshape: Ints, allowzero: bool = False) -> Call:
    """`data` in another shape; `newshape` may use the codes 0, -1, -2, -3 and -4."""
    return call(RESHAPE, (data,), ReshapeAttrs(ints(newshape) or (), int(allowzero)))


def _reverse_dims(shape: Sequence[Dim], codes: Sequence[int]) -> tuple[Dim, ...]:
    return tuple(reversed(reshape_dims(tuple(reversed(shape)), tuple(reversed(codes)))))


REVERSE_RESHAPE = make_op(
    "contrib_reverse_reshape",
    1,
    rule("contrib_reverse_reshape", 1)(lambda attrs, x: TensorType(_reverse_dims(x.shape, attrs.newshape), x.dtype)),
    lambda attrs, values, result: _numpy_reshape(values, _reverse_dims(np.shape(values[0]), attrs.newshape)),
    attrs=ReshapeAttrs,
    pattern=INJECTIVE,
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


RESHAPE_LIKE = make_op(
    "reshape_like",
    2,
    rule("reshape_like", 2)(lambda attrs, x, like: TensorType(_reshape_like_dims(attrs, x.shape, like.shape), x.dtype)),
    lambda attrs, values, result: _numpy_reshape(
        values, _reshape_like_dims(attrs, np.shape(values[0]), np.shape(values[1]))
    ),
    attrs=ReshapeLikeAttrs,
    pattern=INJECTIVE,
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


TRANSPOSE = make_op(
    "transpose",
    1,
    _transpose_type,
    lambda attrs, values, result: np.transpose(values[0], transpose_axes(attrs.axes, np.ndim(values[0]))),
    attrs=TransposeAttrs,
    pattern=INJECTIVE,
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


EXPAND_DIMS = make_op(
    "expand_dims",
    1,
    _expand_dims_type,
    _expand_dims,
    attrs=ExpandDimsAttrs,
    pattern=FusionPattern.BROADCAST,
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


SQUEEZE = make_op(
    "squeeze",
    1,
    rule("squeeze", 1)(lambda attrs, x: TensorType(_squeezed(attrs, x.shape), x.dtype)),
    lambda attrs, values, result: _numpy_reshape(values, _squeezed(attrs, np.shape(values[0]))),
    attrs=SqueezeAttrs,
    pattern=INJECTIVE,
    doc="axes of size 1 removed",
)


def squeeze(data: Expr, axis: Ints | None = None) -> Call:
    """`data` without the axes `axis`, which must have size 1; without all such axes if none are given."""
    return call(SQUEEZE, (data,), SqueezeAttrs(ints(axis)))


@rule("nn.batch_flatten", 1)
def _flatten_type(attrs: None, x: TensorType) -> Type:
    if x.rank < 2:
        raise TypeCheckError(f"the data of nn.batch_flatten must have at least 2 axes, not {x.rank}")
    return TensorType((x.shape[0], product(x.shape[1:])), x.dtype)


BATCH_FLATTEN = make_op(
    "nn.batch_flatten",
    1,
    _flatten_type,
    lambda attrs, values, result: np.reshape(values[0], (np.shape(values[0])[0], prod(np.shape(values[0])[1:]))),
    pattern=INJECTIVE,
    doc="all axes but the first merged",
)


def batch_flatten(data: Expr) -> Call:
    """`data` with all axes but the first merged."""
    return call(BATCH_FLATTEN, (data,))


@dataclass(frozen=True, slots=True)
class InitOpAttrs(Attrs):
    shape: tuple[int, ...]
    dtype: str | None = None

    def __post_init__(self) -> None:
        self._set(shape=ints(self.shape), dtype=self.dtype or None)


def check_broadcast(name: str, source: Sequence[Dim], target: Sequence[Dim]) -> tuple[Dim, ...]:
    """`target`, if `source` broadcasts to exactly that. Raises TypeCheckError otherwise."""
    if len(source) > len(target) or any(
        static(dim) and dim != 1 and static(goal) and dim != goal
        for dim, goal in zip(reversed(source), reversed(target), strict=False)
    ):
        raise TypeCheckError(
            f"the shape of {name} must be one to which {show_shape(source)} broadcasts, not {show_shape(target)}"
        )
    return tuple(target)


BROADCAST_TO = make_op(
    "broadcast_to",
    1,
    rule("broadcast_to", 1)(
        lambda attrs, x: TensorType(check_broadcast("broadcast_to", x.shape, attrs.shape), attrs.dtype or x.dtype)
    ),
    lambda attrs, values, result: np.broadcast_to(values[0], attrs.shape),
    attrs=InitOpAttrs,
    pattern=FusionPattern.BROADCAST,
    doc="axes of size 1 repeated until the shape is the one given",
)


def broadcast_to(data: Expr, shape: Ints) -> Call:
    """`data` repeated along axes of size 1 to `shape`."""
    return call(BROADCAST_TO, (data,), InitOpAttrs(ints(shape) or ()))


BROADCAST_TO_LIKE = make_op(
    "broadcast_to_like",
    2,
    rule("broadcast_to_like", 2)(
        lambda attrs, x, like: TensorType(check_broadcast("broadcast_to_like", x.shape, like.shape), x.dtype)
    ),
    lambda attrs, values, result: np.broadcast_to(values[0], np.shape(values[1])),
    pattern=FusionPattern.BROADCAST,
    doc="broadcast_to the shape of the second argument",
)


def broadcast_to_like(data: Expr, broadcast_type: Expr) -> Call:
    """`data` repeated to the shape of `broadcast_type`."""
    return call(BROADCAST_TO_LIKE, (data, broadcast_type))


def _collapse(x: Array, shape: Sequence[int]) -> Array:
    lead = x.ndim - len(shape)
    axes = tuple(range(lead)) + tuple(lead + axis for axis, dim in enumerate(shape) if dim == 1)
    return np.sum(x, axis=axes, dtype=x.dtype).reshape(shape) if axes else x


COLLAPSE_SUM_TO = make_op(
    "collapse_sum_to",
    1,
    rule("collapse_sum_to", 1)(
        lambda attrs, x: TensorType(
            attrs.shape if check_broadcast("collapse_sum_to", attrs.shape, x.shape) is not None else (), x.dtype
        )
    ),
    lambda attrs, values, result: _collapse(np.asarray(values[0]), attrs.shape),
    attrs=InitOpAttrs,
    pattern=FusionPattern.COMM_REDUCE,
    doc="sum over the axes that broadcast_to would have repeated",
)


def collapse_sum_to(data: Expr, shape: Ints) -> Call:
    """`data` summed down to `shape`: the adjoint of broadcast_to."""
    return call(COLLAPSE_SUM_TO, (data,), InitOpAttrs(ints(shape) or ()))


@rule("collapse_sum_like", 2)
def _collapse_like_type(attrs: None, x: TensorType, like: TensorType) -> Type:
    broadcast_shapes("collapse_sum_like", (x.shape, like.shape))
    return TensorType(like.shape, x.dtype)


COLLAPSE_SUM_LIKE = make_op(
    "collapse_sum_like",
    2,
    _collapse_like_type,
    lambda attrs, values, result: _collapse(np.asarray(values[0]), np.shape(values[1])),
    pattern=FusionPattern.COMM_REDUCE,
    doc="collapse_sum_to the shape of the second argument",
)


def collapse_sum_like(data: Expr, collapse_type: Expr) -> Call:
    """`data` summed down to the shape of `collapse_type`."""
    return call(COLLAPSE_SUM_LIKE, (data, collapse_type))


@dataclass(frozen=True, slots=True)
class LayoutTransformAttrs(Attrs):
    src_layout: str
    dst_layout: str


@dataclass(frozen=True, slots=True)
class Layout:
    """A layout such as `NCHW16c`: capital letters are axes, `16c` is the inner 16 of axis C."""

    text: str
    parts: tuple[tuple[str, int], ...]  # (letter, factor); factor 0 for a whole or outer axis

    @staticmethod
    def parse(text: str) -> Layout:
        found = re.findall(r"(\d*)([A-Za-z])", text)
        parts = tuple((letter, int(number or 0)) for number, letter in found)
        letters = [letter for letter, _ in parts]
        wrong = "".join(number + letter for number, letter in found) != text or len(set(letters)) != len(letters)
        if wrong or any(letter.islower() != (factor > 0) for letter, factor in parts):
            raise TypeCheckError(f"a layout must be capital letters and factors like 4c, not {text}")
        return Layout(text, parts)

    def factor(self, letter: str) -> int:
        """The inner factor of a capital letter's axis, 1 if there is none."""
        return next((factor for inner, factor in self.parts if inner == letter.lower() and factor), 1)


def layout_axes(src: Layout, dst: Layout) -> tuple[str, ...]:
    """The capital letters, in the source's order. Raises TypeCheckError unless both layouts have the same."""
    capitals = tuple(letter for letter, factor in src.parts if not factor)
    others = sorted(letter for letter, factor in dst.parts if not factor)
    inner = {letter.upper() for letter, factor in src.parts + dst.parts if factor}
    if sorted(capitals) != others or not inner <= set(capitals):
        raise TypeCheckError(f"dst_layout of layout_transform must have the axes of {src.text}, not {dst.text}")
    return capitals


def transform_dims(shape: Sequence[Dim], src: Layout, dst: Layout) -> tuple[Dim, ...]:
    """The shape in layout `dst`. Raises TypeCheckError unless every factor divides its axis."""
    if len(shape) != len(src.parts):
        raise TypeCheckError(
            f"the data of layout_transform must have the {len(src.parts)} axes of {src.text}, not {len(shape)}"
        )
    sizes: dict[str, Dim] = {}
    layout_axes(src, dst)
    for (letter, _), dim in zip(src.parts, shape, strict=True):
        sizes[letter.upper()] = product((sizes.get(letter.upper(), 1), dim))
    result: list[Dim] = []
    for letter, factor in dst.parts:
        size, block = sizes[letter.upper()], dst.factor(letter.upper())
        if isinstance(size, int) and size % block:
            raise TypeCheckError(f"axis {letter.upper()} of layout_transform must be a multiple of {block}, not {size}")
        result.append(factor or (size // block if isinstance(size, int) else ANY))
    return tuple(result)


def transform_layout(x: Array, src: Layout, dst: Layout) -> Array:
    """`x` brought from layout `src` to `dst`."""
    capitals = layout_axes(src, dst)
    order = [
        position
        for capital in capitals
        for lower in (False, True)
        for position, (letter, factor) in enumerate(src.parts)
        if letter.upper() == capital and bool(factor) == lower
    ]
    target = transform_dims(x.shape, src, dst)
    plain = x.transpose(order).reshape(
        [
            prod(x.shape[p] for p, (letter, _) in enumerate(src.parts) if letter.upper() == capital)
            for capital in capitals
        ]
    )
    split: list[int] = []
    names: list[str] = []
    for capital, size in zip(capitals, plain.shape, strict=True):
        block = dst.factor(capital)
        split += [size // block] + [block] * (block_in(dst, capital))
        names += [capital] + [capital.lower()] * (block_in(dst, capital))
    return plain.reshape(split).transpose([names.index(letter) for letter, _ in dst.parts]).reshape(target)  # type: ignore[arg-type]


def block_in(layout: Layout, capital: str) -> bool:
    """Whether the layout splits that axis."""
    return any(letter == capital.lower() and factor for letter, factor in layout.parts)


LAYOUT_TRANSFORM = make_op(
    "layout_transform",
    1,
    rule("layout_transform", 1)(
        lambda attrs, x: TensorType(
            transform_dims(x.shape, Layout.parse(attrs.src_layout), Layout.parse(attrs.dst_layout)), x.dtype
        )
    ),
    lambda attrs, values, result: transform_layout(
        np.asarray(values[0]), Layout.parse(attrs.src_layout), Layout.parse(attrs.dst_layout)
    ),
    attrs=LayoutTransformAttrs,
    pattern=INJECTIVE,
    doc="axes reordered, split and merged from one layout to another",
)


def layout_transform(data: Expr, src_layout: str, dst_layout: str) -> Call:
    """`data` brought from `src_layout` to `dst_layout`, for example NCHW to NCHW16c."""
    return call(LAYOUT_TRANSFORM, (data,), LayoutTransformAttrs(src_layout, dst_layout))


OPS = (
    RESHAPE,
    REVERSE_RESHAPE,
    RESHAPE_LIKE,
    TRANSPOSE,
    EXPAND_DIMS,
    SQUEEZE,
    BATCH_FLATTEN,
    BROADCAST_TO,
    BROADCAST_TO_LIKE,
    COLLAPSE_SUM_TO,
    COLLAPSE_SUM_LIKE,
    LAYOUT_TRANSFORM,
)
