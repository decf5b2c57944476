"""Rules that merge explicit padding into the convolution or pooling that reads it, and say reflection one way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from relay_hw.ir.expr import Call, Expr
from relay_hw.op.base import split_padding
from relay_hw.transform.graph import constant_value, dtype_of, is_op, make, op_name, remake
from relay_hw.transform.rewrite_rules import Rule, Uses
from relay_hw.transform.rules.activation import is_nonnegative


def _merged(call: Call, pad: Call, layout: str) -> tuple[int, ...] | None:
    """Both paddings together, None if the explicit one touches other axes than height and width, or crops."""
    spatial = [axis for axis, letter in enumerate(layout) if letter in "HW"]
    width: Sequence[Sequence[int]] = pad.attrs.pad_width
    if any(any(pair) for axis, pair in enumerate(width) if axis not in spatial) or min(map(min, width)) < 0:
        return None
    before, after = split_padding(op_name(call), call.attrs.padding, 2)
    return (
        *(b + width[axis][0] for b, axis in zip(before, spatial, strict=True)),
        *(a + width[axis][1] for a, axis in zip(after, spatial, strict=True)),
    )


def _pad_value(expr: Expr) -> tuple[Call, float] | None:
    if not isinstance(expr, Call) or not is_op(expr, "nn.pad") or expr.attrs.pad_mode != "constant":
        return None
    value = constant_value(expr.args[1])
    return (expr, float(value.reshape(-1)[0])) if value is not None and value.size == 1 else None


def _into_conv(call: Call, uses: Uses) -> Expr | None:
    found = _pad_value(call.args[0])
    if found is None or found[1] != 0:
        return None
    pad, layout = found[0], call.attrs.data_layout
    padding = _merged(call, pad, layout) if sorted(layout) == sorted("NCHW") else None
    return None if padding is None else _repad(call, pad, padding)


def _into_avg_pool(call: Call, uses: Uses) -> Expr | None:
    """Zeros that the average already counts: the divisor must be the window's size in both forms."""
    found = _pad_value(call.args[0])
    if found is None or found[1] != 0 or call.attrs.ceil_mode:
        return None
    if any(call.attrs.padding) and not call.attrs.count_include_pad:
        return None
    padding = _merged(call, found[0], call.attrs.layout)
    if padding is None or not _smaller(padding, call):
        return None
    attrs = replace(call.attrs, padding=padding, count_include_pad=True)
    return remake(call, (found[0].args[0],), attrs)


def _into_max_pool(call: Call, uses: Uses) -> Expr | None:
    """Max pooling pads with the smallest number; an explicit 0 is as good where no value is below 0."""
    found = _pad_value(call.args[0])
    if found is None:
        return None
    pad, value = found
    is_smallest = value <= _smallest(dtype_of(call))
    if not is_smallest and not (value == 0 and is_nonnegative(pad.args[0])):
        return None
    padding = _merged(call, pad, call.attrs.layout)
    if padding is None or not _smaller(padding, call) or call.attrs.ceil_mode:
        return None
    return _repad(call, pad, padding)


def _reflect(call: Call, uses: Uses) -> Expr | None:
    """Reflection without a value that nobody reads, a move of elements. Negative widths crop, as only nn.pad does."""
    if call.attrs.pad_mode != "reflect" or min(map(min, call.attrs.pad_width)) < 0:
        return None
    attrs = {"pad_width": call.attrs.pad_width, "mode": "REFLECT"}
    return make("nn.mirror_pad", (call.args[0],), span=call.span, **attrs)


def _smallest(dtype: str) -> float:
    kind = np.dtype(dtype)
    return float(np.finfo(kind).min) if kind.kind == "f" else float(np.iinfo(kind).min)


def _smaller(padding: Sequence[int], call: Call) -> bool:
    """Every window meets at least one element of the data."""
    size = call.attrs.pool_size
    return all(step == 1 for step in call.attrs.dilation) and all(
        amount < extent for amount, extent in zip(padding, (*size, *size), strict=True)
    )


def _repad(call: Call, pad: Call, padding: tuple[int, ...]) -> Expr:
    return remake(call, (pad.args[0], *call.args[1:]), replace(call.attrs, padding=padding))


PADDING_RULES = (
    Rule("reflect-as-mirror", ("nn.pad",), _reflect),
    Rule("pad-into-conv", ("nn.conv2d",), _into_conv),
    Rule("pad-into-avg-pool", ("nn.avg_pool2d",), _into_avg_pool),
    Rule("pad-into-max-pool", ("nn.max_pool2d",), _into_max_pool),
)
