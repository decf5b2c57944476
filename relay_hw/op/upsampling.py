"""nn.upsampling by repeated rows and columns; interpolation is not supported yet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from relay_hw.errors import TypeCheckError
from relay_hw.ir.expr import Call, Expr, FusionPattern, Op
from relay_hw.ir.types import TensorType, Type
from relay_hw.op.base import (
    MOVES,
    Array,
    Attrs,
    call,
    permutation,
    product,
    rule,
    show_shape,
)
from relay_hw.op.gradients.common import (
    known_type,
    one_argument,
    ops,
    reshaped,
    sizes,
)
from relay_hw.op.gradients.selection import returned

__all__ = ["upsampling"]

METHOD = "nearest_neighbor"


@dataclass(frozen=True, slots=True)
class UpSamplingAttrs(Attrs):
    scale_h: float
    scale_w: float
    layout: str = "NCHW"
    method: str = METHOD
    align_corners: bool = False

    def __post_init__(self) -> None:
        Attrs.__post_init__(self)
        self._set(scale_h=float(self.scale_h), scale_w=float(self.scale_w), align_corners=bool(self.align_corners))

    def factors(self) -> dict[int, int]:
        """The factor of each axis."""
        return {self.layout.index("H"): int(self.scale_h), self.layout.index("W"): int(self.scale_w)}


@rule("nn.upsampling", 1)
def _upsampling_type(attrs: UpSamplingAttrs, x: TensorType) -> Type:
    name = "nn.upsampling"
    permutation(name, attrs.layout, "NCHW")
    if x.rank != 4:
        raise TypeCheckError(f"the data of {name} must have 4 axes, not {show_shape(x.shape)}")
    if attrs.method != METHOD:
        raise TypeCheckError(f"method of {name} must be {METHOD}, not {attrs.method}")
    for what in ("scale_h", "scale_w"):
        scale = getattr(attrs, what)
        if scale < 1 or scale != int(scale):
            raise TypeCheckError(f"{what} of {name} must be a whole number from 1 on, not {scale:g}")
    shape = list(x.shape)
    for axis, count in attrs.factors().items():
        shape[axis] = product((shape[axis], count))
    return TensorType(shape, x.dtype)


def _upsampling(attrs: UpSamplingAttrs, values: Sequence[Array], result: Type) -> Array:
    found = np.asarray(values[0])
    for axis, count in attrs.factors().items():
        found = np.repeat(found, count, axis=axis)
    return found


def _slope(call: Call, x: Expr, g: Expr) -> Expr:
    if known_type(x) is None:
        return returned(call, 0, g)
    shape = list(sizes(call, x))
    counts = call.attrs.factors()
    parts: list[int] = []
    summed: list[int] = []
    for axis, size in enumerate(shape):
        parts.append(size)
        if axis in counts:
            summed.append(len(parts))
            parts.append(counts[axis])
    return ops().sum(reshaped(g, parts), tuple(summed))


UPSAMPLING = Op(
    "nn.upsampling",
    1,
    _upsampling_type,
    _upsampling,
    attrs_type=UpSamplingAttrs,
    gradient=one_argument(_slope),
    pattern=FusionPattern.INJECTIVE,
    traits=MOVES,
    doc="rows and columns repeated",
)


def upsampling(
    data: Expr,
    scale_h: float = 1,
    scale_w: float = 1,
    layout: str = "NCHW",
    method: str = METHOD,
    align_corners: bool = False,
) -> Call:
    """`data` with every row repeated `scale_h` and every column `scale_w` times."""
    return call(UPSAMPLING, (data,), UpSamplingAttrs(scale_h, scale_w, layout, method, align_corners))


OPS = (UPSAMPLING,)
