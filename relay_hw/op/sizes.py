"""Operators that return tensor sizes: shape_of, ndarray_size."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from relay_hw.ir.expr import Call, Expr, FusionPattern, Op
from relay_hw.ir.types import TensorType
from relay_hw.op.base import (
    Attrs,
    call,
    out_type,
    rule,
)
from relay_hw.op.gradients.common import (
    nothing,
)

__all__ = ["ndarray_size", "shape_of"]


@dataclass(frozen=True, slots=True)
class ShapeOfAttrs(Attrs):
    dtype: str | None = None


SHAPE_OF = Op(
    "shape_of",
    1,
    rule("shape_of", 1)(lambda attrs, x: TensorType((x.rank,), attrs.dtype or "int32")),
    lambda attrs, values, result: np.array(np.shape(values[0]), out_type(result).dtype),
    attrs_type=ShapeOfAttrs,
    gradient=nothing,
    doc="the sizes of a tensor",
)


NDARRAY_SIZE = Op(
    "ndarray_size",
    1,
    rule("ndarray_size", 1)(lambda attrs, x: TensorType((), attrs.dtype or "int32")),
    lambda attrs, values, result: np.array(np.size(values[0]), out_type(result).dtype),
    attrs_type=ShapeOfAttrs,
    gradient=nothing,
    pattern=FusionPattern.INJECTIVE,
    doc="the number of elements of a tensor",
)


def shape_of(data: Expr, dtype: str = "int32") -> Call:
    """The sizes of `data` as a tensor, dynamic ones too."""
    return call(SHAPE_OF, (data,), ShapeOfAttrs(dtype))


def ndarray_size(data: Expr, dtype: str = "int32") -> Call:
    """The number of elements of `data`."""
    return call(NDARRAY_SIZE, (data,), ShapeOfAttrs(dtype))


OPS = (SHAPE_OF, NDARRAY_SIZE)
