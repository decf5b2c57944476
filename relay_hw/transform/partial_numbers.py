"""Operators on values that are known at compile time. In: arrays. Out: what is small enough to keep as a constant."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from relay_hw.errors import EvalError
from relay_hw.ir.expr import Call, Op
from relay_hw.transform.partial_values import Fields, Number, PartialValue

# Tensors up to this size are computed and kept as constants; enough for values that decide control flow.
MAX_CONSTANT = 16


def known_number(value: PartialValue) -> Any:
    """The arrays of a value that is known altogether, else None."""
    match value.static:
        case Number(data=data):
            return data
        case Fields(parts=parts, constructor=None):
            numbers = tuple(map(known_number, parts))
            return None if any(number is None for number in numbers) else numbers
        case _:
            return None


def computed(node: Call, op: Op, numbers: Sequence[Any]) -> PartialValue | None:
    """The result of an operator on known arguments; None if it is too large to keep, or fails."""
    try:
        with np.errstate(all="ignore"):
            return _kept(op.reference(node.attrs, numbers, node.type))
    except EvalError:
        return None


def _kept(result: Any) -> PartialValue | None:
    if isinstance(result, (tuple, list)):
        parts = [_kept(part) for part in result]
        known = tuple(part for part in parts if part is not None)
        return PartialValue(Fields(known)) if len(known) == len(parts) else None
    data = np.asarray(result)
    return PartialValue(Number(data)) if data.size <= MAX_CONSTANT else None
