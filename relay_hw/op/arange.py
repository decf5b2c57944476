"""The operator arange, whose bounds are run-time values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any as AnyValue

import numpy as np

from relay_hw.errors import EvalError, TypeCheckError
from relay_hw.ir.expr import Call, Expr, Op
from relay_hw.ir.types import ANY, TensorType, Type
from relay_hw.op.base import (
    Array,
    Attrs,
    as_expr,
    call,
    out_type,
    rule,
    same_dtype,
)
from relay_hw.op.gradients.common import in_type, ops, zeros
from relay_hw.op.gradients.selection import places_of

__all__ = ["arange"]


@dataclass(frozen=True, slots=True)
class ArangeAttrs(Attrs):
    dtype: str | None = None


@rule("arange", 3)
def _arange_type(attrs: ArangeAttrs, start: TensorType, stop: TensorType, step: TensorType) -> Type:
    dtype = attrs.dtype or same_dtype("arange", start, stop, step)
    if start.rank or stop.rank or step.rank:
        raise TypeCheckError(f"start, stop and step of arange must be scalars, not {start}, {stop} and {step}")
    return TensorType((ANY,), dtype)


def _arange(attrs: ArangeAttrs, values: Sequence[Array], result: Type) -> Array:
    start, stop, step = (np.asarray(value) for value in values)
    if step == 0:
        raise EvalError("the step of arange must not be 0")
    wide = np.int64 if start.dtype.kind in "iu" else np.float64
    first, last, by = (value.astype(wide) for value in (start, stop, step))
    count = max(int(np.ceil((last - first) / by)) if wide is np.float64 else -int((first - last) // by), 0)
    return (first + np.arange(count) * by).astype(out_type(result).dtype)


def _arange_gradient(call: Call, adjoint: Expr) -> Sequence[Expr]:
    """Every element has the start in it once, and the step as often as it is far from the first."""
    start, stop, step = call.args
    op = ops()
    place = op.cast_like(places_of(op.ndarray_size(adjoint, "int64")), adjoint)
    return in_type(op.sum(adjoint), start, call), zeros(stop), in_type(op.sum(adjoint * place), step, call)


ARANGE = Op(
    "arange",
    3,
    _arange_type,
    _arange,
    attrs_type=ArangeAttrs,
    gradient=_arange_gradient,
    doc="start, start + step, ... before stop, from run-time values",
)


def arange(start: AnyValue, stop: AnyValue = None, step: AnyValue = 1, dtype: str | None = None) -> Call:
    """Numbers from `start`, `step` apart, before `stop`; from 0 if only one is given."""
    start, stop = (0, start) if stop is None else (start, stop)
    return call(ARANGE, tuple(as_expr(value, dtype) for value in (start, stop, step)), ArangeAttrs(dtype))


OPS = (ARANGE,)
