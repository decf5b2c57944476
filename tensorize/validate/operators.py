"""The meaning of each operator that a layer is made of, on terms.

In: a call and the terms of its arguments. Out: those of its result. Written from the operators' definitions, with no
code of the tensorizer's; operators that only move elements move the terms.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import ceil, floor
from types import MappingProxyType
from typing import Any, TypeGuard

import numpy as np

from relay_hw.errors import TensorizeError
from relay_hw.ir.expr import Attrs, Call, Op, Trait
from relay_hw.op.rows import LENGTH_BYTES
from relay_hw.tensorize.validate.convolutions import (
    batch_matmul,
    constant_part,
    conv2d,
    conv2d_transpose,
    dense,
    four,
    padded,
    pair,
    windows,
)
from relay_hw.tensorize.validate.terms import (
    INT8,
    PRIME,
    Numbers,
    Stage,
    Terms,
    added,
    clipped,
    constants,
    looked_up,
    maximum,
    multiplied,
    norms,
    plus,
    scaled,
    softmaxes,
    times,
)

Value = Terms | tuple[Terms, ...]
# Axes of lengths that are no constants.
_BOUND_AXES = 2
# Operators that put whole tensors together or take them apart.
_JOINS = ("concatenate", "split", "stack")


def apply(call: Call, args: Sequence[Value]) -> Value:
    """The result of an operator. Raises TensorizeError for one that layers do not have."""
    assert isinstance(call.op, Op)
    if call.op.name == "fixed.requantize":
        return _requantize(call, [_one(arg) for arg in args])
    known = _OPERATORS.get(call.op.name)
    if known is not None:
        return known(call.attrs, [_one(arg) for arg in args])
    if call.op.has(Trait.MOVES) or call.op.name in _JOINS:
        return _moved(call, call.op, args)
    raise TensorizeError(f"operator {call.op.name} must have a meaning in terms", call.span)


def _one(value: Value) -> Terms:
    assert isinstance(value, Terms)
    return value


def _moved(call: Call, op: Op, args: Sequence[Value]) -> Value:
    """The operator itself says where each element comes from: it moves places, then terms are taken from there."""
    flat: list[Terms] = []
    places: list[Numbers | tuple[Numbers, ...]] = []
    begin = 0
    for arg in args:
        found: list[Numbers] = []
        for terms in arg if isinstance(arg, tuple) else (arg,):
            found.append(begin + np.arange(terms.numbers.size).reshape(terms.shape))
            begin += terms.numbers.size
            flat.append(terms)
        places.append(tuple(found) if isinstance(arg, tuple) else found[0])
    whole = Terms(*(np.concatenate([_part(terms, at).reshape(-1) for terms in flat]) for at in range(3)))
    moved = op.reference(call.attrs, places, call.type)
    return tuple(whole[part] for part in moved) if _is_several(moved) else whole[np.asarray(moved)]


def _is_several(moved: Any) -> TypeGuard[tuple[Numbers, ...]]:
    return isinstance(moved, tuple)


def _part(terms: Terms, at: int) -> Numbers:
    return (terms.numbers, terms.low, terms.high)[at]


def _pad(attrs: Attrs, args: Sequence[Terms]) -> Terms:
    value = args[1] if len(args) > 1 else constants(np.array(int(getattr(attrs, "pad_value", 0))))
    widths = tuple(tuple(pair) for pair in attrs.pad_width)
    ends = value.reshape(-1)[0]
    return Terms(*(np.pad(_part(args[0], at), widths, constant_values=int(_part(ends, at))) for at in range(3)))


def _along(values: Numbers, axis: int, rank: int) -> Numbers:
    return np.asarray(values, np.int64).reshape([-1 if at == axis % rank else 1 for at in range(rank)])


def totals(call: Call, args: Sequence[Terms]) -> Terms:
    """What the output stage rounds and clips, for a requantization or an addition."""
    assert isinstance(call.op, Op)
    match call.op.name:
        case "fixed.add":
            return _sides(call.attrs, args)
        case "fixed.mul":
            return _product(call.attrs, args)
        case _:
            return plus(args[0], _bias(call, args[1]))


def _requantize(call: Call, args: Sequence[Terms]) -> Terms:
    attrs, rank = call.attrs, len(args[0].shape)
    multiplier, shift = (_along(values, attrs.axis, rank) for values in (attrs.multiplier, attrs.shift))
    return scaled(totals(call, args), multiplier, shift, _stage(attrs))


def _bias(call: Call, bias: Terms) -> Terms:
    """A bias for each channel along the axis. What is constant in the sums is added to it in 32 bits first."""
    rank = len(call.tensor_type.shape)
    along = bias.reshape(*(-1 if at == call.attrs.axis % rank else 1 for at in range(rank)))
    data = call.args[0]
    if not isinstance(data, Call) or not isinstance(data.op, Op) or data.op.name != "fixed.conv2d_transpose":
        return along
    fixed = constant_part(data, data.tensor_type.static_shape)
    return constants((along.low + fixed).astype(np.int32).astype(np.int64) - fixed)


def _stage(attrs: Attrs) -> Stage:
    return Stage(str(attrs.rounding), int(attrs.zero_point), (int(attrs.a_min), int(attrs.a_max)))


def _add(attrs: Attrs, args: Sequence[Terms]) -> Terms:
    return added(_sides(attrs, args), np.array(attrs.shift), _stage(attrs))


def _sides(attrs: Attrs, args: Sequence[Terms]) -> Terms:
    """Both operands less their zero points, times their multipliers."""
    y, r = (
        times(plus(terms, constants(np.array(-zero))), np.array(multiplier))
        for terms, zero, multiplier in zip(
            args, (attrs.y_zero_point, attrs.r_zero_point), (attrs.y_multiplier, attrs.r_multiplier), strict=True
        )
    )
    return plus(y, r)


def _mul(attrs: Attrs, args: Sequence[Terms]) -> Terms:
    return added(_product(attrs, args), np.array(attrs.shift), _stage(attrs))


def _product(attrs: Attrs, args: Sequence[Terms]) -> Terms:
    """Both operands less their zero points, and the multiplier."""
    zeros = (attrs.y_zero_point, attrs.r_zero_point)
    y, r = (plus(terms, constants(np.array(-zero))) for terms, zero in zip(args, zeros, strict=True))
    return multiplied(times(y, np.array(attrs.multiplier)), r)


def _table(attrs: Attrs, args: Sequence[Terms]) -> Terms:
    if (args[1].low != args[1].high).any():
        raise TensorizeError("the table of fixed.table must be constant")
    return looked_up(args[0], args[1].low)


def _softmax(attrs: Attrs, args: Sequence[Terms]) -> Terms:
    """Rows of the last axis. A column counts before its part's length, and of causal rows up to the row's own, where
    the last row ends with the last column."""
    data, table, lengths = args
    bound = lengths[0, :LENGTH_BYTES] if len(lengths.shape) == _BOUND_AXES else None
    if (table.low != table.high).any() or (bound is None and (lengths.low != lengths.high).any()):
        raise TensorizeError("the table and the lengths of fixed.softmax must be constant, or its lengths bytes")
    if bound is not None and lengths.shape[0] != 1:
        raise TensorizeError("lengths of fixed.softmax in bytes must be one for all parts")
    places = np.indices(data.shape)
    counts = np.ones(data.shape, np.bool_)
    if bound is None:
        length = lengths.low if lengths.low.size > 1 else np.repeat(lengths.low, data.shape[0])
        counts = places[-1] < length[places[0]]
    if attrs.causal:
        behind = data.shape[-1] - data.shape[-2]
        counts &= places[-1] - behind <= places[-2]
    numbers = (int(attrs.multiplier), int(attrs.shift), int(attrs.zero_point))
    columns = data.shape[-1]
    found = softmaxes(data.reshape(-1, columns), counts.reshape(-1, columns), table.low, numbers, bound)
    return found.reshape(*data.shape)


def _norm(attrs: Attrs, args: Sequence[Terms], name: str, zero: int) -> Terms:
    data, gain, bias = args
    if (gain.low != gain.high).any() or (bias.low != bias.high).any():
        raise TensorizeError(f"gain and bias of {name} must be constant")
    rows = data.reshape(-1, data.shape[-1])
    numbers = (name, int(attrs.shift), int(attrs.epsilon), int(attrs.zero_point), zero)
    return norms(rows, np.ones(rows.shape, np.bool_), (gain.low, bias.low), numbers).reshape(*data.shape)


def _layer_norm(attrs: Attrs, args: Sequence[Terms]) -> Terms:
    return _norm(attrs, args, "layer_norm", 0)


def _rms_norm(attrs: Attrs, args: Sequence[Terms]) -> Terms:
    return _norm(attrs, args, "rms_norm", int(attrs.input_zero_point))


def _clip(attrs: Attrs, args: Sequence[Terms]) -> Terms:
    return clipped(args[0], (max(ceil(attrs.a_min), INT8[0]), min(floor(attrs.a_max), INT8[1])))


def _max_pool(attrs: Attrs, args: Sequence[Terms]) -> Terms:
    members = _windows(attrs, args[0], INT8[0], bool(attrs.ceil_mode))
    # Members of one row of windows at a time: there are as many as the window has pixels.
    rows = [maximum(members[:, :, :, at]) for at in range(members.shape[3])]
    return Terms(*(np.stack([_part(row, at) for row in rows], axis=2) for at in range(3)))


def _sum_pool(attrs: Attrs, args: Sequence[Terms]) -> Terms:
    members = _windows(attrs, args[0], 0, False)
    return Terms(members.numbers.sum(axis=0) % PRIME, members.low.sum(axis=0), members.high.sum(axis=0))


def _windows(attrs: Attrs, data: Terms, fill: int, up: bool) -> Terms:
    """[taps, 1, C, rows, columns] of padded windows."""
    kernel, strides = pair(attrs.pool_size), pair(attrs.strides)
    dilation, padding = pair(getattr(attrs, "dilation", (1, 1))), list(four(attrs.padding))
    if up:
        for axis in range(2):
            room = data.shape[2 + axis] + padding[axis] + padding[axis + 2] - (kernel[axis] - 1) * dilation[axis] - 1
            padding[axis + 2] += -room % strides[axis]
    return windows(padded(data, padding, fill), kernel, strides, dilation)


_OPERATORS: Mapping[str, Callable[[Attrs, Sequence[Terms]], Terms]] = MappingProxyType(
    {
        "nn.pad": _pad,
        "nn.conv2d": conv2d,
        "nn.dense": dense,
        "nn.batch_matmul": batch_matmul,
        "nn.max_pool2d": _max_pool,
        "fixed.conv2d_transpose": conv2d_transpose,
        "fixed.sum_pool2d": _sum_pool,
        "fixed.add": _add,
        "fixed.mul": _mul,
        "fixed.table": _table,
        "fixed.softmax": _softmax,
        "fixed.layer_norm": _layer_norm,
        "fixed.rms_norm": _rms_norm,
        "clip": _clip,
    }
)
