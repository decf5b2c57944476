"""The operators depth_to_space and space_to_depth.

In: types, attributes, arrays. Out: types, arrays, `Call` nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from relay_hw.errors import TypeCheckError
from relay_hw.ir.dims import dim_floordiv
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

__all__ = ["depth_to_space", "space_to_depth"]

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


OPS = (DEPTH_TO_SPACE, SPACE_TO_DEPTH)
