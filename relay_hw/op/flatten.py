"""The operator nn.batch_flatten, which merges all axes but the first."""

from __future__ import annotations

from math import prod

import numpy as np

from relay_hw.errors import TypeCheckError
from relay_hw.ir.expr import Call, Expr, FusionPattern, Op
from relay_hw.ir.types import TensorType, Type
from relay_hw.op.base import (
    RESHAPES,
    call,
    product,
    rule,
)
from relay_hw.op.gradients.common import (
    one_argument,
    reshape_to,
)

__all__ = ["batch_flatten"]


@rule("nn.batch_flatten", 1)
def _flatten_type(attrs: None, x: TensorType) -> Type:
    if x.rank < 2:
        raise TypeCheckError(f"the data of nn.batch_flatten must have at least 2 axes, not {x.rank}")
    return TensorType((x.shape[0], product(x.shape[1:])), x.dtype)


BATCH_FLATTEN = Op(
    "nn.batch_flatten",
    1,
    _flatten_type,
    lambda attrs, values, result: np.reshape(values[0], (np.shape(values[0])[0], prod(np.shape(values[0])[1:]))),
    gradient=one_argument(lambda call, x, g: reshape_to(g, x)),
    pattern=FusionPattern.INJECTIVE,
    traits=RESHAPES,
    doc="all axes but the first merged",
)


def batch_flatten(data: Expr) -> Call:
    """`data` with all axes but the first merged."""
    return call(BATCH_FLATTEN, (data,))


OPS = (BATCH_FLATTEN,)
