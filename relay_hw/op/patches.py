"""Operators on windows of images: onnx.col2im, and deformable convolution as ONNX and as Relay have it.

In: types, attributes, arrays. Out: types, arrays, `Call` nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from relay_hw.errors import EvalError, TypeCheckError
from relay_hw.ir.expr import Call, Constant, Expr, Op
from relay_hw.ir.types import ANY, Dim, TensorType, Type
from relay_hw.op.base import (
    Array,
    Attrs,
    Ints,
    call,
    full_padding,
    out_type,
    permutation,
    product,
    rule,
    same_dim,
    same_dtype,
    show,
    split_padding,
    spread,
    window_size,
)
from relay_hw.op.dynamic_shape import numbers, vector_length
from relay_hw.op.gradients.accumulate import by_expansion
from relay_hw.op.gradients.common import moved, ops, reshaped, sizes, zeros
from relay_hw.op.gradients.selection import places_of

__all__ = ["deformable_conv2d"]


@dataclass(frozen=True, slots=True)
class PatchAttrs(Attrs):
    """One number per spatial axis; `padding`: all beginnings, then all ends."""

    strides: tuple[int, ...] = (1, 1)
    dilation: tuple[int, ...] = (1, 1)
    padding: tuple[int, ...] = (0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class DeformAttrs(Attrs):
    strides: tuple[int, ...] = (1, 1)
    dilation: tuple[int, ...] = (1, 1)
    padding: tuple[int, ...] = (0, 0, 0, 0)
    groups: int = 1
    offset_groups: int = 1


@rule("onnx.col2im", 3)
def _col2im_type(attrs: PatchAttrs, x: TensorType, image: TensorType, block: TensorType) -> Type:
    rank = vector_length("onnx.col2im", "image shape", image)
    if x.rank != 3 or vector_length("onnx.col2im", "block shape", block) != rank or len(attrs.strides) != rank:
        raise TypeCheckError(
            f"onnx.col2im must get (N, C*blocks, L) and two shapes of {len(attrs.strides)} axes, "
            f"not {x}, {image} and {block}"
        )
    return TensorType((x.shape[0], ANY, *[ANY] * rank), x.dtype)


def _col2im(attrs: PatchAttrs, values: Sequence[Array], result: Type) -> Array:
    x, image, block = np.asarray(values[0]), numbers(values[1]), numbers(values[2])
    rank = len(image)
    before, after = attrs.padding[:rank], attrs.padding[rank:]
    rows = zip(image, block, attrs.strides, before, after, attrs.dilation, strict=True)
    counts = [int(window_size(size, k, s, b, a, d)) for size, k, s, b, a, d in rows]  # type: ignore[arg-type]
    area = int(np.prod(block))
    if x.shape[1] % area or x.shape[2] != int(np.prod(counts)):
        raise EvalError(f"the columns of onnx.col2im must be multiples of {area} by {np.prod(counts)}, not {x.shape}")
    columns = x.reshape(x.shape[0], x.shape[1] // area, *block, *counts)
    padded = [size + b + a for size, b, a in zip(image, before, after, strict=True)]
    total = np.zeros((*columns.shape[:2], *padded), x.dtype)
    for at in np.ndindex(*block):
        spans = zip(at, attrs.dilation, attrs.strides, counts, strict=True)
        view = tuple(slice(k * d, k * d + (count - 1) * s + 1, s) for k, d, s, count in spans)
        total[(slice(None), slice(None), *view)] += columns[(slice(None), slice(None), *at)]
    inner = tuple(slice(b, b + size) for b, size in zip(before, image, strict=True))
    return total[(slice(None), slice(None), *inner)]


def _col2im_gradient(call: Call, adjoint: Expr) -> Sequence[Expr]:
    """Every element of a column gets the adjoint of its pixel; those in the padding get none."""
    (x, image, block), attrs, op = call.args, call.attrs, ops()
    rank = len(attrs.strides)
    place, inside = op.const(0, "int64"), op.const(True)
    for axis in range(rank):
        size, kernel = (op.cast(op.take(v, op.const(axis, "int64"), 0), "int64") for v in (image, block))
        places = _window_places(attrs, axis, size, kernel)
        # One axis for each of the block's and one for each of the windows'.
        order = (axis, axis + rank)
        places = op.expand_dims(places, 0, order[0])
        places = op.expand_dims(places, order[0] + 1, rank - 1)
        places = op.expand_dims(places, order[1] + 1, 2 * rank - 1 - order[1])
        is_inner = op.logical_and(op.greater_equal(places, op.const(0, "int64")), op.less(places, size))
        place, inside = place * size + places, op.logical_and(inside, is_inner)
    inside = op.reshape(inside, (-1,))
    chosen = op.where(inside, op.reshape(place, (-1,)), op.const(0, "int64"))
    pixels = op.reshape(adjoint, (0, 0, -1))
    found = op.take(pixels, chosen, 2)
    return op.reshape_like(op.where(inside, found, op.zeros_like(found)), x), zeros(image), zeros(block)


def _window_places(attrs: PatchAttrs, axis: int, size: Expr, kernel: Expr) -> Expr:
    """(kernel, windows): where each element of each window lies along an axis."""
    op, rank = ops(), len(attrs.strides)
    one, stride, dilation, before, after = (
        op.const(value, "int64")
        for value in (1, attrs.strides[axis], attrs.dilation[axis], attrs.padding[axis], attrs.padding[rank + axis])
    )
    reach = dilation * (kernel - one) + one
    count = op.floor_divide(size + before + after - reach, stride) + one
    starts = op.expand_dims(places_of(count) * stride - before, 0)
    return op.expand_dims(places_of(kernel) * dilation, 1) + starts


COL2IM = Op(
    "onnx.col2im",
    3,
    _col2im_type,
    _col2im,
    attrs_type=PatchAttrs,
    gradient=_col2im_gradient,
    doc="the image whose windows are the columns; overlaps are added",
)


def col2im(data: Expr, image_shape: Expr, block_shape: Expr, attrs: PatchAttrs) -> Call:
    """Images of `image_shape` from the columns of `data`, which are windows of `block_shape`; overlaps are added."""
    return call(COL2IM, (data, image_shape, block_shape), attrs)


@rule("onnx.deform_conv", 4)
def _deform_type(attrs: DeformAttrs, x: TensorType, weight: TensorType, offset: TensorType, mask: TensorType) -> Type:
    if any(ty.rank != 4 for ty in (x, weight, offset, mask)):
        raise TypeCheckError(f"onnx.deform_conv must get four tensors of 4 axes, not {x}, {weight}, {offset}, {mask}")
    same_dtype("onnx.deform_conv", x, weight, offset, mask)
    return TensorType((x.shape[0], weight.shape[0], *offset.shape[2:]), x.dtype)


def _bilinear(image: Array, y: Array, x: Array) -> Array:
    """Elements of (C, H, W) at real places; zero outside."""
    total = np.zeros((image.shape[0], *y.shape))
    low_y, low_x = np.floor(y), np.floor(x)
    for ys, wy in ((low_y, 1 - (y - low_y)), (low_y + 1, y - low_y)):
        for xs, wx in ((low_x, 1 - (x - low_x)), (low_x + 1, x - low_x)):
            inside = (ys >= 0) & (ys < image.shape[1]) & (xs >= 0) & (xs < image.shape[2])
            at = np.where(inside, ys, 0).astype(np.int64), np.where(inside, xs, 0).astype(np.int64)
            total += image[:, at[0], at[1]] * np.where(inside, wy * wx, 0)
    return total


def _places(attrs: DeformAttrs, offset: Array, kernel: Sequence[int]) -> tuple[Array, Array]:
    """(y, x) of every tap: (N, offset groups, kernel elements, rows, columns)."""
    count, _, *out = offset.shape
    shifts = offset.reshape(count, attrs.offset_groups, -1, 2, *out)
    y, x = (_grid(attrs, axis, kernel, out) + shifts[:, :, :, axis] for axis in (0, 1))
    return y, x


def _deform_conv(attrs: DeformAttrs, values: Sequence[Array], result: Type) -> Array:
    x, weight, offset, mask = (np.asarray(value).astype(np.float64) for value in values)
    count, _, rows, columns = offset.shape
    kernel = weight.shape[2:]
    area, groups = kernel[0] * kernel[1], attrs.offset_groups
    places = _places(attrs, offset, kernel)
    masks = mask.reshape(count, groups, area, rows, columns)
    channels, share = x.shape[1], x.shape[1] // groups
    taps = np.zeros((count, channels, area, rows, columns))
    for image, group in np.ndindex(count, groups):
        part = slice(group * share, (group + 1) * share)
        sampled = _bilinear(x[image, part], *(one[image, group] for one in places))
        taps[image, part] = sampled * masks[image, group]
    wide = taps.reshape(count, attrs.groups, channels // attrs.groups * area, rows, columns)
    rows_of = weight.reshape(attrs.groups, weight.shape[0] // attrs.groups, -1)
    value = np.einsum("ngkhw,gok->ngohw", wide, rows_of)
    return value.reshape(count, weight.shape[0], rows, columns).astype(out_type(result).dtype)


def _deform_expr(attrs: DeformAttrs, x: Expr, weight: Expr, offset: Expr, mask: Expr) -> Expr:
    """What `_deform_conv` computes, as a program of operators that have gradients."""
    op, dtype = ops(), x.tensor_type.dtype
    (count, channels, *size), (outputs, inputs, *kernel), (_, _, rows, columns) = (
        value.tensor_type.static_shape for value in (x, weight, offset)
    )
    x, weight, offset, mask = (op.cast(value, "float64") for value in (x, weight, offset, mask))
    area, groups, share = prod(kernel), attrs.offset_groups, channels // attrs.offset_groups
    lead = (count, groups, area)
    shifts = reshaped(offset, (*lead, 2, rows, columns))
    y, along = (op.take(shifts, op.const(at, "int64"), 3) + Constant(_grid(attrs, at, kernel, (rows, columns)))
                for at in (0, 1))  # fmt: skip
    pixels = op.transpose(reshaped(x, (count, groups, share, *size)), (0, 1, 3, 4, 2))
    images = [Constant(np.broadcast_to(part, (*lead, rows, columns)).astype(np.int64)) for part in
              np.ogrid[:count, :groups, :1, :1, :1][:2]]  # fmt: skip
    total = None
    for ys, wy in _two(y):
        for xs, wx in _two(along):
            inside = op.logical_and(_is_inside(ys, size[0]), _is_inside(xs, size[1]))
            at = [op.cast(op.where(inside, place, op.zeros_like(place)), "int64") for place in (ys, xs)]
            kept = op.where(inside, wy * wx, op.zeros_like(wy))
            part = op.gather_nd(pixels, op.stack([*images, *at], 0)) * op.expand_dims(kept, 5)
            total = part if total is None else total + part
    assert total is not None
    taps = op.transpose(total * op.expand_dims(reshaped(mask, (*lead, rows, columns)), 5), (0, 1, 5, 2, 3, 4))
    wide = reshaped(taps, (count, attrs.groups, channels // attrs.groups * area, rows, columns))
    of = reshaped(weight, (attrs.groups, outputs // attrs.groups, inputs * area))
    value = op.einsum([wide, of], "ngkhw,gok->ngohw")
    return op.cast(reshaped(value, (count, outputs, rows, columns)), dtype)


_by_expansion = by_expansion(_deform_expr)


def _deform_gradient(call: Call, adjoint: Expr) -> Sequence[Expr]:
    """Every argument has one, offsets too. Raises UnsupportedError for sizes known only at run time."""
    for arg in call.args:
        sizes(call, arg)
    return _by_expansion(call, adjoint)


def _grid(attrs: DeformAttrs, axis: int, kernel: Sequence[int], out: Sequence[int]) -> Array:
    """Where the taps lie along an axis before they are moved: (taps, rows, columns)."""
    inner = np.indices(kernel)[axis].reshape(-1, 1, 1) * attrs.dilation[axis]
    return inner + np.indices(out)[axis] * attrs.strides[axis] - float(attrs.padding[axis])


def _two(place: Expr) -> tuple[tuple[Expr, Expr], tuple[Expr, Expr]]:
    """The neighbours of a place, with weights."""
    low, one = ops().floor(place), ops().const(1.0, "float64")
    return (low, one - (place - low)), (low + one, place - low)


def _is_inside(place: Expr, size: int) -> Expr:
    op = ops()
    return op.logical_and(op.greater_equal(place, op.const(0.0, "float64")), op.less(place, op.const(size, "float64")))


DEFORM_CONV = Op(
    "onnx.deform_conv",
    4,
    _deform_type,
    _deform_conv,
    attrs_type=DeformAttrs,
    gradient=_deform_gradient,
    doc="convolution whose kernel elements are displaced by offsets and weighted by a mask",
)


def deform_conv(data: Expr, weight: Expr, offset: Expr, mask: Expr, attrs: DeformAttrs) -> Call:
    """Convolution of NCHW data whose taps are moved by (y, x) pairs in `offset` and multiplied by `mask`."""
    return call(DEFORM_CONV, (data, weight, offset, mask), attrs)


@dataclass(frozen=True, slots=True)
class DeformableConv2DAttrs(Attrs):
    strides: tuple[int, ...] = (1, 1)
    padding: tuple[int, ...] = (0, 0)
    dilation: tuple[int, ...] = (1, 1)
    deformable_groups: int = 1
    groups: int = 1
    channels: int | None = None
    kernel_size: tuple[int, ...] | None = None
    data_layout: str = "NCHW"
    kernel_layout: str = "OIHW"
    out_layout: str = ""
    out_dtype: str | None = None


_DEFORMABLE = "nn.deformable_conv2d"


def _known(size: Dim) -> int:
    """A size of the kernel. Raises TypeCheckError while only run time knows it."""
    if not isinstance(size, int):
        raise TypeCheckError(f"the kernel of {_DEFORMABLE} must have a known size, not {size}")
    return size


def _check_deformable(attrs: DeformableConv2DAttrs) -> None:
    """Raise TypeCheckError for attributes that fit no convolution."""
    if attrs.out_layout not in ("", attrs.data_layout):
        raise TypeCheckError(f"out_layout of {_DEFORMABLE} must be {attrs.data_layout}, not {attrs.out_layout}")
    pairs = (*attrs.strides, *attrs.dilation)
    if len(attrs.strides) != 2 or len(attrs.dilation) != 2 or min(*pairs, attrs.groups, attrs.deformable_groups) < 1:
        raise TypeCheckError(
            f"strides, dilation and groups of {_DEFORMABLE} must be at least 1, "
            f"not {attrs.strides}, {attrs.dilation}, {attrs.groups} and {attrs.deformable_groups}"
        )


@rule(_DEFORMABLE, 3)
def _deformable_type(attrs: DeformableConv2DAttrs, x: TensorType, offset: TensorType, weight: TensorType) -> Type:
    _check_deformable(attrs)
    order = permutation(_DEFORMABLE, attrs.data_layout, "NCHW")
    kernel_order = permutation(_DEFORMABLE, attrs.kernel_layout, "OIHW")
    same_dtype(_DEFORMABLE, x, offset, weight)
    if any(ty.rank != 4 for ty in (x, offset, weight)):
        raise TypeCheckError(f"{_DEFORMABLE} must get three tensors of 4 axes, not {x}, {offset} and {weight}")
    count, channels, *image = (x.shape[axis] for axis in order)
    units, share, *kernel = (weight.shape[axis] for axis in kernel_order)
    before, after = split_padding(_DEFORMABLE, attrs.padding, 2)
    rows = zip(image, kernel, attrs.strides, before, after, attrs.dilation, strict=True)
    windows = [window_size(size, _known(k), s, b, a, d) for size, k, s, b, a, d in rows]
    pairs = 2 * attrs.deformable_groups * _known(product(kernel))
    wanted = [count, pairs, *windows]
    if not all(same_dim(offset.shape[axis], size) for axis, size in zip(order, wanted, strict=True)):
        raise TypeCheckError(
            f"the offset of {_DEFORMABLE} must have {pairs} channels of {windows[0]} x {windows[1]}, not {show(offset)}"
        )
    inner = share * attrs.groups if isinstance(share, int) else share
    if not same_dim(inner, channels) or (isinstance(channels, int) and channels % attrs.deformable_groups):
        raise TypeCheckError(f"the weight of {_DEFORMABLE} must fit {channels} channels in groups, not {show(weight)}")
    sizes = dict(zip("NCHW", (count, units, *windows), strict=True))
    return TensorType([sizes[letter] for letter in attrs.data_layout], attrs.out_dtype or x.dtype)


def _shared(attrs: DeformableConv2DAttrs) -> DeformAttrs:
    """The same in ONNX's words."""
    before, after = split_padding(_DEFORMABLE, attrs.padding, 2)
    return DeformAttrs(attrs.strides, attrs.dilation, (*before, *after), attrs.groups, attrs.deformable_groups)


def _deformable(attrs: DeformableConv2DAttrs, values: Sequence[Array], result: Type) -> Array:
    order = permutation(_DEFORMABLE, attrs.data_layout, "NCHW")
    x, offset = (np.asarray(value).transpose(order) for value in values[:2])
    weight = np.asarray(values[2]).transpose(permutation(_DEFORMABLE, attrs.kernel_layout, "OIHW"))
    shared = _shared(attrs)
    # ONNX weighs taps that lie less than a pixel outside; here they are 0.
    y, x_at = _places(shared, offset.astype(np.float64), weight.shape[2:])
    mask = (y >= 0) & (y < x.shape[2]) & (x_at >= 0) & (x_at < x.shape[3])
    found = _deform_conv(shared, (x, weight, offset, mask), result)
    return found.transpose(permutation(_DEFORMABLE, "NCHW", attrs.data_layout))


def _deformable_expr(attrs: DeformableConv2DAttrs, x: Expr, offset: Expr, weight: Expr) -> Expr:
    """The same by ONNX's operator, whose mask is 0 for taps outside."""
    op, order = ops(), permutation(_DEFORMABLE, attrs.data_layout, "NCHW")
    kernel_order = permutation(_DEFORMABLE, attrs.kernel_layout, "OIHW")
    image, out = ([one.tensor_type.static_shape[axis] for axis in order] for one in (x, offset))
    kernel = [weight.tensor_type.static_shape[axis] for axis in kernel_order[2:]]
    shared = _shared(attrs)
    shifts = reshaped(moved(offset, order), (out[0], attrs.deformable_groups, prod(kernel), 2, *out[2:]))
    inside = None
    for axis in (0, 1):
        start = Constant(_grid(shared, axis, kernel, out[2:]))
        place = op.cast(op.take(shifts, op.const(axis, "int64"), 3), "float64") + start
        is_inner = _is_inside(place, image[2 + axis])
        inside = is_inner if inside is None else op.logical_and(inside, is_inner)
    mask = reshaped(op.cast_like(inside, x), (out[0], out[1] // 2, *out[2:]))
    found = deform_conv(moved(x, order), moved(weight, kernel_order), moved(offset, order), mask, shared)
    return moved(found, permutation(_DEFORMABLE, "NCHW", attrs.data_layout))


DEFORMABLE_CONV2D = Op(
    _DEFORMABLE,
    3,
    _deformable_type,
    _deformable,
    attrs_type=DeformableConv2DAttrs,
    gradient=by_expansion(_deformable_expr),
    doc="convolution whose kernel elements are displaced by offsets",
)


def deformable_conv2d(
    data: Expr,
    offset: Expr,
    weight: Expr,
    strides: Ints = (1, 1),
    padding: Ints = (0, 0),
    dilation: Ints = (1, 1),
    deformable_groups: int = 1,
    groups: int = 1,
    channels: int | None = None,
    kernel_size: Ints | None = None,
    data_layout: str = "NCHW",
    kernel_layout: str = "OIHW",
    out_layout: str = "",
    out_dtype: str | None = None,
) -> Call:
    """Convolution of `data` whose taps are moved by the (y, x) pairs in `offset`."""
    attrs = DeformableConv2DAttrs(
        spread(strides, 2), full_padding(padding, 2), spread(dilation, 2), deformable_groups, groups, channels,
        None if kernel_size is None else spread(kernel_size, 2), data_layout, kernel_layout, out_layout, out_dtype,
    )  # fmt: skip
    return call(DEFORMABLE_CONV2D, (data, offset, weight), attrs)


OPS = (COL2IM, DEFORM_CONV, DEFORMABLE_CONV2D)
