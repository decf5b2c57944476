"""Layouts such as NCHW16c, and the operator layout_transform."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from relay_hw.errors import TypeCheckError
from relay_hw.ir.expr import Call, Expr, FusionPattern, Op
from relay_hw.ir.types import ANY, Dim, TensorType
from relay_hw.op.base import (
    PERMUTES,
    Array,
    Attrs,
    call,
    product,
    rule,
)
from relay_hw.op.gradients.common import (
    one_argument,
    ops,
)

__all__ = ["layout_transform"]

INJECTIVE = FusionPattern.INJECTIVE


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
    """Convert `x` from layout `src` to `dst`."""
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


_gradient = one_argument(lambda call, x, g: ops().layout_transform(g, call.attrs.dst_layout, call.attrs.src_layout))

LAYOUT_TRANSFORM = Op(
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
    attrs_type=LayoutTransformAttrs,
    gradient=_gradient,
    pattern=INJECTIVE,
    traits=PERMUTES,
    doc="axes reordered, split and merged from one layout to another",
)


def layout_transform(data: Expr, src_layout: str, dst_layout: str) -> Call:
    """`data` brought from `src_layout` to `dst_layout`, for example NCHW to NCHW16c."""
    return call(LAYOUT_TRANSFORM, (data,), LayoutTransformAttrs(src_layout, dst_layout))


OPS = (LAYOUT_TRANSFORM,)
