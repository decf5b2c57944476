"""Refuses NaN and infinity wherever floats are quantized.

In: samples, constants, intermediate values, with the name that the user knows them by. Out: nothing, or a refusal that
says where the first such number is. Compiling, running and comparing ask here; exported C says the same sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relay_hw.errors import InputError, RelayHwError
from relay_hw.interp.values import ConstructorValue
from relay_hw.ir.expr import Call, Constant, Expr, Tuple
from relay_hw.ir.module import IRModule
from relay_hw.ir.visit import post_order

Array = NDArray[Any]


def check_samples(what: str, samples: Array, error: Callable[[str], RelayHwError] = InputError) -> None:
    """Raise `error` where `samples`, on the first axis, hold NaN or infinity; `what` names them."""
    place = _first(samples)
    if place is not None:
        sample, *index = place
        raise error(_sentence(what, samples[place], f"sample {sample}, {_at(tuple(index))}"))


def check_value(what: str, value: Any, sample: int) -> None:
    """Raise InputError if one sample's value, a tensor or made of tensors, holds NaN or infinity."""
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, ConstructorValue):
            waiting += part.fields
        elif isinstance(part, tuple):
            waiting += part
        elif isinstance(part, (np.ndarray, np.generic)):
            array = np.asarray(part)
            place = _first(array)
            if place is not None:
                raise InputError(_sentence(what, array[place], f"sample {sample}, {_at(place)}"))


def check_constants(mod: IRModule) -> None:
    """Raise InputError for a float constant with NaN in it. Infinity is refused by the layer that would quantize it:
    masks of attention hold it, and stay float."""
    for function in mod.functions.values():
        names = _constant_names(function.body)
        for constant, name in names.items():
            if _is_float(constant.data) and np.isnan(constant.data).any():
                place = tuple(int(k) for k in np.argwhere(np.isnan(constant.data))[0])
                raise InputError(f"{name} must hold numbers, not NaN ({_at(place)})")


def nan_outputs(outputs: Mapping[str, Any]) -> list[str]:
    """A warning for each output that has NaN."""
    counts = {name: _nan_count(value) for name, value in outputs.items()}
    return [f"output {name}: {nan:,} of {all_:,} values are NaN" for name, (nan, all_) in counts.items() if nan]


def _nan_count(value: Any) -> tuple[int, int]:
    """The number of NaN in an output, and its size."""
    if isinstance(value, (list, tuple)):
        parts = [_nan_count(part) for part in value]
        return sum(nan for nan, _ in parts), sum(count for _, count in parts)
    if isinstance(value, np.ndarray):
        return int(np.isnan(value).sum()) if _is_float(value) else 0, value.size
    return 0, 0


def _constant_names(body: Expr) -> dict[Constant, str]:
    """Each constant by its own name in the source, else by the operator that reads it."""
    names: dict[Constant, str] = {}
    for expr in post_order(body):
        parts = expr.args if isinstance(expr, Call) else expr.fields if isinstance(expr, Tuple) else ()
        for part in parts:
            if isinstance(part, Constant) and part not in names:
                own = f"constant {part.span}" if part.span is not None else "a constant"
                names[part] = own if part.span is not None or expr.span is None else f"{own} of {expr.span}"
    return names


def _is_float(values: Array) -> bool:
    return values.dtype.kind == "f"


def _first(values: Array) -> tuple[int, ...] | None:
    """The index of the first NaN or infinity."""
    if not _is_float(values) or bool(np.isfinite(values).all()):
        return None
    return tuple(int(k) for k in np.unravel_index(int(np.argmin(np.isfinite(values))), values.shape))


def _sentence(what: str, value: Any, where: str) -> str:
    shown = "NaN" if np.isnan(value) else "infinity" if value > 0 else "-infinity"
    return f"{what} must hold finite numbers, not {shown} ({where})"


def _at(index: tuple[int, ...]) -> str:
    return f"index {index}" if len(index) != 1 else f"index {index[0]}"
