"""Blocks of images: depth_to_space and space_to_depth, space_to_batch_nd and batch_to_space_nd.

In: types, attributes, arrays. Out: types, arrays, `Call` nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from relay_hw.errors import TypeCheckError
from relay_hw.ir.dims import dim_add, dim_floordiv
from relay_hw.ir.expr import Call, Expr, FusionPattern, Op
from relay_hw.ir.types import Dim, TensorType, Type
from relay_hw.op.base import (
    PERMUTES,
    Array,
    Attrs,
    call,
    permutation,
    product,
    rule,
    show_shape,
)
from relay_hw.op.gradients.common import (
    one_argument,
    ops,
)

__all__ = ["batch_to_space_nd", "depth_to_space", "space_to_batch_nd", "space_to_depth"]

MODES = ("DCR", "CRD")


@dataclass(frozen=True, slots=True)
class SubPixelAttrs(Attrs):
    block_size: int = 1
    layout: str = "NCHW"
    mode: str = "DCR"


def _sizes(name: str, attrs: SubPixelAttrs, x: TensorType) -> tuple[Dim, ...]:
    """N, C, H, W. Raises TypeCheckError."""
    order = permutation(name, attrs.layout, "NCHW")
    if x.rank != 4:
        raise TypeCheckError(f"the data of {name} must have 4 axes, not {show_shape(x.shape)}")
    if attrs.block_size < 1 or attrs.mode not in MODES:
        shown = f"{attrs.block_size} and {attrs.mode}"
        raise TypeCheckError(f"block_size and mode of {name} must be at least 1 and one of DCR, CRD, not {shown}")
    return tuple(x.shape[axis] for axis in order)


def _divided(name: str, what: str, size: Dim, by: int) -> Dim:
    if isinstance(size, int) and size % by:
        raise TypeCheckError(f"{what} of {name} must be a multiple of {by}, not {size}")
    return dim_floordiv(size, by)


def _laid_out(attrs: SubPixelAttrs, sizes: Sequence[Dim], dtype: str) -> TensorType:
    return TensorType([sizes["NCHW".index(letter)] for letter in attrs.layout], dtype)


@rule("nn.depth_to_space", 1)
def _depth_to_space_type(attrs: SubPixelAttrs, x: TensorType) -> Type:
    block = attrs.block_size
    n, c, h, w = _sizes("nn.depth_to_space", attrs, x)
    channels = _divided("nn.depth_to_space", "channels", c, block * block)
    return _laid_out(attrs, (n, channels, product((h, block)), product((w, block))), x.dtype)


@rule("nn.space_to_depth", 1)
def _space_to_depth_type(attrs: SubPixelAttrs, x: TensorType) -> Type:
    block = attrs.block_size
    n, c, h, w = _sizes("nn.space_to_depth", attrs, x)
    rows, columns = (_divided("nn.space_to_depth", what, size, block) for what, size in (("rows", h), ("columns", w)))
    return _laid_out(attrs, (n, product((c, block * block)), rows, columns), x.dtype)


def _nchw(attrs: SubPixelAttrs, x: Array) -> Array:
    return np.asarray(x).transpose([attrs.layout.index(letter) for letter in "NCHW"])


def _back(attrs: SubPixelAttrs, x: Array) -> Array:
    return x.transpose(["NCHW".index(letter) for letter in attrs.layout])


def _depth_to_space(attrs: SubPixelAttrs, values: Sequence[Array], result: Type) -> Array:
    x, b = _nchw(attrs, values[0]), attrs.block_size
    n, c, h, w = x.shape
    if attrs.mode == "DCR":
        parts = x.reshape(n, b, b, c // (b * b), h, w).transpose(0, 3, 4, 1, 5, 2)
    else:
        parts = x.reshape(n, c // (b * b), b, b, h, w).transpose(0, 1, 4, 2, 5, 3)
    return _back(attrs, parts.reshape(n, c // (b * b), h * b, w * b))


def _space_to_depth(attrs: SubPixelAttrs, values: Sequence[Array], result: Type) -> Array:
    x, b = _nchw(attrs, values[0]), attrs.block_size
    n, c, h, w = x.shape
    parts = x.reshape(n, c, h // b, b, w // b, b)
    order = (0, 3, 5, 1, 2, 4) if attrs.mode == "DCR" else (0, 1, 3, 5, 2, 4)
    return _back(attrs, parts.transpose(order).reshape(n, c * b * b, h // b, w // b))


def _depth_slope(call: Call, x: Expr, g: Expr) -> Expr:
    return ops().nn.space_to_depth(g, call.attrs.block_size, call.attrs.layout, call.attrs.mode)


def _space_slope(call: Call, x: Expr, g: Expr) -> Expr:
    return ops().nn.depth_to_space(g, call.attrs.block_size, call.attrs.layout, call.attrs.mode)


DEPTH_TO_SPACE = Op(
    "nn.depth_to_space",
    1,
    _depth_to_space_type,
    _depth_to_space,
    attrs_type=SubPixelAttrs,
    gradient=one_argument(_depth_slope),
    pattern=FusionPattern.INJECTIVE,
    traits=PERMUTES,
    doc="channels rearranged into blocks of pixels",
)

SPACE_TO_DEPTH = Op(
    "nn.space_to_depth",
    1,
    _space_to_depth_type,
    _space_to_depth,
    attrs_type=SubPixelAttrs,
    gradient=one_argument(_space_slope),
    pattern=FusionPattern.INJECTIVE,
    traits=PERMUTES,
    doc="blocks of pixels rearranged into channels",
)


def depth_to_space(data: Expr, block_size: int, layout: str = "NCHW", mode: str = "DCR") -> Call:
    """`block_size` by `block_size` channels become a block of pixels; `mode` says whether blocks come first (DCR)."""
    return call(DEPTH_TO_SPACE, (data,), SubPixelAttrs(block_size, layout, mode))


def space_to_depth(data: Expr, block_size: int, layout: str = "NCHW", mode: str = "DCR") -> Call:
    """The inverse of `depth_to_space`."""
    return call(SPACE_TO_DEPTH, (data,), SubPixelAttrs(block_size, layout, mode))


@dataclass(frozen=True, slots=True)
class SpaceToBatchNDAttrs(Attrs):
    block_shape: tuple[int, ...]
    paddings: tuple[tuple[int, int], ...]
    pad_value: float = 0.0


@dataclass(frozen=True, slots=True)
class BatchToSpaceNDAttrs(Attrs):
    block_shape: tuple[int, ...]
    crops: tuple[tuple[int, int], ...]


def _check_blocks(name: str, block: Sequence[int], widths: Sequence[tuple[int, int]], x: TensorType) -> None:
    is_fit = 1 <= len(block) == len(widths) < x.rank and min(block) >= 1
    if not is_fit or any(width < 0 for pair in widths for width in pair):
        raise TypeCheckError(
            f"{name} must have a block size and a pair of widths for each spatial axis of {show_shape(x.shape)}, "
            f"not {tuple(block)} and {tuple(widths)}"
        )


@rule("nn.space_to_batch_nd", 1)
def _to_batch_type(attrs: SpaceToBatchNDAttrs, x: TensorType) -> Type:
    name = "nn.space_to_batch_nd"
    _check_blocks(name, attrs.block_shape, attrs.paddings, x)
    spatial: list[Dim] = []
    for size, block, pair in zip(x.shape[1:], attrs.block_shape, attrs.paddings, strict=False):
        spatial.append(_divided(name, "a padded axis", dim_add(size, sum(pair)), block))
    return TensorType((product((x.shape[0], *attrs.block_shape)), *spatial, *x.shape[len(spatial) + 1 :]), x.dtype)


def _to_batch(attrs: SpaceToBatchNDAttrs, values: Sequence[Array], result: Type) -> Array:
    x, block = np.asarray(values[0]), attrs.block_shape
    count = len(block)
    widths = [(0, 0), *attrs.paddings, *[(0, 0)] * (x.ndim - 1 - count)]
    x = np.pad(x, widths, constant_values=np.asarray(attrs.pad_value).astype(x.dtype).item())
    inner = [part for size, step in zip(x.shape[1:], block, strict=False) for part in (size // step, step)]
    parts = x.reshape(x.shape[0], *inner, *x.shape[count + 1 :])
    steps, places = range(2, 2 * count + 1, 2), range(1, 2 * count + 1, 2)
    order = (*steps, 0, *places, *range(2 * count + 1, parts.ndim))
    found = parts.transpose(order)
    return found.reshape(-1, *found.shape[count + 1 :])


SPACE_TO_BATCH_ND = Op(
    "nn.space_to_batch_nd",
    1,
    _to_batch_type,
    _to_batch,
    attrs_type=SpaceToBatchNDAttrs,
    pattern=FusionPattern.INJECTIVE,
    gradient=one_argument(
        lambda call, x, g: ops().nn.batch_to_space_nd(g, call.attrs.block_shape, call.attrs.paddings)
    ),
    doc="the elements of padded blocks as samples of their own",
)


def space_to_batch_nd(
    data: Expr, block_shape: Sequence[int], paddings: Sequence[Sequence[int]], pad_value: float = 0.0
) -> Call:
    """`data` padded, with the places in blocks of the axes behind the first as more samples."""
    widths = tuple((int(before), int(after)) for before, after in paddings)
    return call(SPACE_TO_BATCH_ND, (data,), SpaceToBatchNDAttrs(tuple(block_shape), widths, float(pad_value)))


@rule("nn.batch_to_space_nd", 1)
def _to_space_nd_type(attrs: BatchToSpaceNDAttrs, x: TensorType) -> Type:
    name = "nn.batch_to_space_nd"
    _check_blocks(name, attrs.block_shape, attrs.crops, x)
    count = 1
    for step in attrs.block_shape:
        count *= step
    spatial = [
        dim_add(product((size, step)), -sum(pair))
        for size, step, pair in zip(x.shape[1:], attrs.block_shape, attrs.crops, strict=False)
    ]
    if any(isinstance(size, int) and size < 0 for size in spatial):
        raise TypeCheckError(f"crops of {name} must leave elements, not be {attrs.crops} of {show_shape(x.shape)}")
    samples = _divided(name, "the first axis", x.shape[0], count)
    return TensorType((samples, *spatial, *x.shape[len(spatial) + 1 :]), x.dtype)


def _to_space_nd(attrs: BatchToSpaceNDAttrs, values: Sequence[Array], result: Type) -> Array:
    x, block = np.asarray(values[0]), attrs.block_shape
    count = len(block)
    parts = x.reshape(*block, -1, *x.shape[1:])
    pairs = [axis for number in range(count) for axis in (count + 1 + number, number)]
    whole = parts.transpose(count, *pairs, *range(2 * count + 1, parts.ndim))
    sizes_now = [size * step for size, step in zip(x.shape[1:], block, strict=False)]
    whole = whole.reshape(whole.shape[0], *sizes_now, *x.shape[count + 1 :])
    kept = (slice(first, size - last) for size, (first, last) in zip(sizes_now, attrs.crops, strict=True))
    return whole[(slice(None), *kept)]


BATCH_TO_SPACE_ND = Op(
    "nn.batch_to_space_nd",
    1,
    _to_space_nd_type,
    _to_space_nd,
    attrs_type=BatchToSpaceNDAttrs,
    pattern=FusionPattern.INJECTIVE,
    gradient=one_argument(lambda call, x, g: ops().nn.space_to_batch_nd(g, call.attrs.block_shape, call.attrs.crops)),
    doc="samples as the elements of blocks, cropped",
)


def batch_to_space_nd(data: Expr, block_shape: Sequence[int], crops: Sequence[Sequence[int]]) -> Call:
    """The inverse of space_to_batch_nd: `crops` is what is cut off at both ends of each axis."""
    widths = tuple((int(before), int(after)) for before, after in crops)
    return call(BATCH_TO_SPACE_ND, (data,), BatchToSpaceNDAttrs(tuple(block_shape), widths))


OPS = (DEPTH_TO_SPACE, SPACE_TO_DEPTH, SPACE_TO_BATCH_ND, BATCH_TO_SPACE_ND)
