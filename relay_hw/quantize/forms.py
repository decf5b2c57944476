"""Writes float operators that have no integer form by others that have one, where their data come from a layer.

In: a simplified module. Out: one of the same values. A factor and an offset for each channel are a depthwise
convolution of one tap; more channels are a layer of one tap; parts of a tensor are slices; a reduction over the image
is a pool; a mean whose windows lie across the border is several; what bends at 0 is a sum of a ReLU and its data.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from math import isqrt, prod

import numpy as np
from numpy.typing import NDArray

from relay_hw.ir.expr import Call, Constant, Expr, TupleGetItem, Var
from relay_hw.ir.module import IRModule
from relay_hw.ir.types import TensorType, TupleType
from relay_hw.ir.visit import children, copy_with, post_order
from relay_hw.op.pool import Windows
from relay_hw.op.reduce import reduced_axes
from relay_hw.quantize.plan import make_plan
from relay_hw.quantize.scaled_products import scaled_products
from relay_hw.quantize.steps import AverageStep, FloatStep, Plan
from relay_hw.quantize.turned import turned_products
from relay_hw.transform.graph import (
    constant,
    constant_value,
    dtype_of,
    is_op,
    known_shape,
    make,
    op_name,
    shape_of,
    typed_tuple,
)
from relay_hw.transform.infer_type import InferType
from relay_hw.transform.redirect import redirect

Vector = NDArray[np.float64]

_AFFINE = ("add", "divide", "multiply", "negative", "subtract")
_REDUCTIONS = {"mean": "nn.avg_pool2d", "sum": "nn.avg_pool2d", "max": "nn.max_pool2d"}
_GLOBAL = "nn.global_max_pool2d"
# More pools than these are not worth it: nine stand for padding of a window smaller than the image.
_MOST_POOLS = 16
# Pixels of an image whose mean is taken at once.
_MOST_PIXELS = 1024


def integer_forms(mod: IRModule) -> IRModule:
    """`mod`, whose `main` is one graph of operators, with such ones rewritten, and those behind them."""
    while True:
        main = mod["main"]
        body = _rewritten(main.body, make_plan(main.body))
        if body is main.body:
            return mod
        mod = InferType()(mod.with_functions({"main": copy_with(main, body=body, checked_type=None)}))


def _rewritten(body: Expr, plan: Plan) -> Expr:
    integers = {step.output for step in plan.steps if not isinstance(step, FloatStep)}
    floats = [step.output for step in plan.steps if isinstance(step, FloatStep)]
    calls = [call for call in floats if isinstance(call, Call) and any(map(_is_image, call.args))]
    found = scaled_products(body) | turned_products(body, integers)
    if found:
        # First: what they leave is then no layer of its own.
        return redirect(body, found.get)
    chains = _chains(calls)
    for call in _ends(body, chains):
        if chains[call].data in integers:
            found[call] = _depthwise(call, chains[call])
    for step in plan.steps:
        new = _more_channels(step.output) if step.output in integers and isinstance(step.output, Call) else None
        if new is not None:
            found[step.output] = new
        if isinstance(step, AverageStep) and (new := _in_stages(step.pool)) is not None:
            found[step.pool] = new
    for call in calls:
        new = _pooled(call) or _as_sum(call) if call.args[_main_operand(call)] in integers else None
        if new is not None:
            found.setdefault(call, new)
    for node in post_order(body):
        row = _taken(node) or (_mean_of_tokens(node) if _reads(node, integers) else None)
        found |= {} if row is None else {node: row}
        split = node.tuple_value if isinstance(node, TupleGetItem) else None
        if isinstance(node, TupleGetItem) and isinstance(split, Call) and is_op(split, "split"):
            new = _section(node, split) if split.args[0] in integers else None
            found |= {} if new is None else {node: new}
    return redirect(body, found.get) if found else body


def _main_operand(call: Call) -> int:
    """Which operand must be in integers; the other one of a sum becomes so."""
    return 1 if op_name(call) == "subtract" else 0


@dataclass(frozen=True, slots=True, eq=False)
class _Affine:
    """`data * scale + shift`, a number for each channel."""

    data: Expr
    scale: Vector
    shift: Vector


def _is_image(expr: Expr) -> bool:
    """Whether a tensor [N, C, H, W] of known sizes."""
    shape = shape_of(expr)
    return shape is not None and len(shape) == 4 and min(shape) > 0


def _chains(calls: list[Call]) -> Mapping[Expr, _Affine]:
    """What each operator with a constant factor or offset makes of the data that a chain of them begins with."""
    chains: dict[Expr, _Affine] = {}
    for call in calls:
        own = _affine(call)
        if own is None:
            continue
        before = chains.get(own.data)
        if before is not None:
            own = _Affine(before.data, before.scale * own.scale, before.shift * own.scale + own.shift)
        if np.isfinite(own.scale).all() and np.isfinite(own.shift).all():
            chains[call] = own
    return chains


def _affine(call: Call) -> _Affine | None:
    name = op_name(call)
    if name not in _AFFINE:
        return None
    data = next((arg for arg in call.args if constant_value(arg) is None), None)
    if data is None or shape_of(data) != shape_of(call) or not _is_image(data):
        return None
    channels = known_shape(data)[1]
    one, none = np.ones(channels), np.zeros(channels)
    if name == "negative":
        return _Affine(data, -one, none)
    other = next((arg for arg in call.args if arg is not data), None)
    value = None if other is None else _per_channel(other, channels)
    if value is None:
        return None
    match name, call.args[0] is data:
        case "multiply", _:
            return _Affine(data, value, none)
        case "add", _:
            return _Affine(data, one, value)
        case "subtract", True:
            return _Affine(data, one, -value)
        case "subtract", False:
            return _Affine(data, -one, value)
        case "divide", True if value.all():
            return _Affine(data, 1 / value, none)
        case _:
            return None


def _per_channel(expr: Expr, channels: int) -> Vector | None:
    """A constant that is one number for each channel of an image; None for others."""
    value = constant_value(expr)
    if value is None or value.ndim > 4 or value.dtype.kind != "f":
        return None
    shape = (1,) * (4 - value.ndim) + value.shape
    if shape[0] != 1 or shape[1] not in (1, channels) or shape[2:] != (1, 1):
        return None
    return np.broadcast_to(value.reshape(-1), channels).astype(np.float64)


def _ends(body: Expr, chains: Mapping[Expr, _Affine]) -> Iterator[Call]:
    """Operators of chains that others than those read."""
    read = {body} | {part for node in post_order(body) if node not in chains for part in children(node)}
    return (call for call in chains if isinstance(call, Call) and call in read)


def _depthwise(call: Call, chain: _Affine) -> Expr:
    """Each channel by its own factor, and its offset as a bias."""
    channels = chain.scale.size
    weight = constant(chain.scale.reshape(-1, 1, 1, 1).astype(np.float32), call.span)
    attrs = {"groups": channels, "channels": channels, "kernel_size": (1, 1)}
    value = make("nn.conv2d", (chain.data, weight), span=call.span, **attrs)
    if not chain.shift.any():
        return value
    return make("nn.bias_add", (value, constant(chain.shift.astype(np.float32), call.span)), span=call.span)


def _pooled(call: Call) -> Expr | None:
    """A reduction over rows, columns or both, or a mean of windows with several divisors, as pools."""
    name = op_name(call)
    if not _is_image(call.args[0]):
        return None
    if name == _GLOBAL and call.attrs.layout == "NCHW":
        return _over_image(call, "nn.max_pool2d", (2, 3))
    if name in _REDUCTIONS:
        axes = reduced_axes(name, call.attrs, 4)
        return _over_image(call, name, axes) if axes and set(axes) <= {2, 3} else None
    if name == "nn.avg_pool2d":
        return _in_parts(call)
    return None


def _more_channels(pad: Call) -> Expr | None:
    """Zeros in front of an image's channels and behind them, by a layer of one tap whose weights are 0 and 1."""
    if not is_op(pad, "nn.pad") or not _is_image(pad.args[0]):
        return None
    value, (batch, around, *spatial) = constant_value(pad.args[1]), pad.attrs.pad_width
    if value is None or value.any() or any(map(any, (batch, *spatial))) or pad.attrs.pad_mode != "constant":
        return None
    channels, total = known_shape(pad.args[0])[1], known_shape(pad)[1]
    if min(around) < 0 or total == channels:
        return None
    weight = np.zeros((total, channels, 1, 1), np.float32)
    weight[around[0] : around[0] + channels, :, 0, 0] = np.eye(channels, dtype=np.float32)
    attrs = {"channels": total, "kernel_size": (1, 1)}
    return make("nn.conv2d", (pad.args[0], constant(weight, pad.span)), span=pad.span, **attrs)


def _section(part: TupleGetItem, split: Call) -> Expr | None:
    """One part of a tensor that is cut into several, by its place."""
    data, axis, parts = split.args[0], split.attrs.axis, split.type
    shape = shape_of(data)
    if shape is None:
        return None
    assert isinstance(parts, TupleType)
    sizes = [ty.static_shape[axis] for ty in parts.fields if isinstance(ty, TensorType)]
    begin = sum(sizes[: part.index])
    place = {"begin": (begin,), "end": (begin + sizes[part.index],), "strides": (1,), "axes": (axis % len(shape),)}
    return make("strided_slice", (data,), span=split.span, **place)


def _taken(call: Expr) -> Expr | None:
    """One place of an axis of what operators make, which goes."""
    if not isinstance(call, Call) or not is_op(call, "take") or isinstance(call.args[0], (Constant, Var)):
        return None
    shape, at, axis = shape_of(call.args[0]), constant_value(call.args[1]), call.attrs.axis
    if shape is None or at is None or at.ndim or axis is None or dtype_of(call) != "float32":
        return None
    begin = int(at)
    if not 0 <= begin < shape[axis]:
        return None
    place = {"begin": (begin,), "end": (begin + 1,), "strides": (1,), "axes": (axis % len(shape),)}
    row = make("strided_slice", (call.args[0],), span=call.span, **place)
    return make("reshape", (row,), newshape=known_shape(call), span=call.span)


def _reads(node: Expr, integers: Collection[Expr]) -> bool:
    return isinstance(node, Call) and len(node.args) == 1 and node.args[0] in integers


def _mean_of_tokens(call: Expr) -> Expr | None:
    """The mean of the rows of one matrix, as that of an image whose channels its columns are."""
    if not isinstance(call, Call) or not is_op(call, "mean") or len(known_shape(call.args[0])) != 3:
        return None
    count, rows, columns = known_shape(call.args[0])
    if count != 1 or reduced_axes("mean", call.attrs, 3) != (1,):
        return None
    turned = make("transpose", (call.args[0],), axes=(0, 2, 1), span=call.span)
    image = make("reshape", (turned,), newshape=(1, columns, rows, 1), span=call.span)
    pooled = make("nn.global_avg_pool2d", (image,), span=call.span)
    return make("reshape", (pooled,), newshape=known_shape(call), span=call.span)


def _as_sum(call: Call) -> Expr | None:
    """Differences, absolute values and leaky ReLUs as sums of tensors with factors."""
    data = call.args[0]
    match op_name(call):
        case "subtract" if constant_value(data) is None and shape_of(data) == shape_of(call.args[1]):
            return make("add", (data, make("negative", (call.args[1],), span=call.span)), span=call.span)
        case "abs":
            return _bent(call, -np.ones(1))
        case "nn.leaky_relu":
            return _bent(call, np.asarray([call.attrs.alpha], np.float64))
        case "nn.prelu" if call.attrs.axis % 4 == 1:
            slope = constant_value(call.args[1])
            return None if slope is None else _bent(call, slope.reshape(-1, 1, 1).astype(np.float64))
        case _:
            return None


def _bent(call: Call, slope: Vector) -> Expr:
    """`x` where it is positive and `slope * x` elsewhere: `(1 - slope) * relu(x) + slope * x`."""
    data, span = call.args[0], call.span
    parts = (make("nn.relu", (data,), span=span), 1 - slope), (data, slope)
    terms = [make("multiply", (x, constant(factor.astype(np.float32), span)), span=span) for x, factor in parts]
    return make("add", terms, span=span)


def _over_image(call: Call, name: str, axes: tuple[int, ...]) -> Expr:
    """One window along `axes`; a sum is as many means."""
    shape = known_shape(call.args[0])
    size = tuple(shape[axis] if axis in axes else 1 for axis in (2, 3))
    pooled = make(_REDUCTIONS.get(name, name), (call.args[0],), pool_size=size, strides=(1, 1), span=call.span)
    if name == "sum":
        factor = constant(np.asarray(np.prod(size), np.float32), call.span)
        pooled = make("multiply", (pooled, factor), span=call.span)
    wanted = known_shape(call)
    return pooled if wanted == known_shape(pooled) else make("reshape", (pooled,), newshape=wanted, span=call.span)


@dataclass(frozen=True, slots=True)
class _Band:
    """`count` windows of `length` elements along an axis, the first from `begin`, one every stride."""

    begin: int
    length: int
    count: int


def _in_stages(pool: Call) -> Expr | None:
    """The mean of an image of too many pixels for an accelerator's memory as the mean of means of its parts."""
    if not is_op(pool, "nn.global_avg_pool2d") or pool.attrs.layout != "NCHW":
        return None
    sizes = known_shape(pool.args[0])[2:]
    window = tuple(max(part for part in range(1, isqrt(size) + 1) if size % part == 0) for size in sizes)
    if prod(sizes) <= _MOST_PIXELS or prod(window) == 1:
        return None
    parts = make("nn.avg_pool2d", (pool.args[0],), pool_size=window, strides=window, span=pool.span)
    return make("nn.global_avg_pool2d", (parts,), span=pool.span)


def _in_parts(pool: Call) -> Expr | None:
    """A mean without its padding: a pool for each part of the image whose windows are of one size; else None."""
    attrs = pool.attrs
    windows = Windows.of(op_name(pool), attrs, 2)
    if attrs.count_include_pad or attrs.layout != "NCHW" or attrs.out_layout not in ("", "NCHW"):
        return None
    if any(step != 1 for step in windows.dilation):
        return None
    data, out = known_shape(pool.args[0]), known_shape(pool)
    rows, cols = (
        _bands(data[axis + 2], out[axis + 2], windows.kernel[axis], windows.strides[axis], windows.before[axis])
        for axis in (0, 1)
    )
    if len(rows) * len(cols) > _MOST_POOLS or any(band.length < 1 for band in (*rows, *cols)):
        return None
    parts = [[_part(pool, row, col, windows.strides) for col in cols] for row in rows]
    return _joined([_joined(line, 3, pool) for line in parts], 2, pool)


def _bands(size: int, count: int, kernel: int, stride: int, before: int) -> list[_Band]:
    """Windows along an axis of `size` elements, each without what lies beyond them, in groups of one length."""
    bands: list[_Band] = []
    for number in range(count):
        first = number * stride - before
        begin, end = max(first, 0), min(first + kernel, size)
        last = bands[-1] if bands else None
        follows = last is not None and begin == last.begin + last.count * stride and end - begin == last.length
        if last is not None and follows:
            bands[-1] = _Band(last.begin, last.length, last.count + 1)
        else:
            bands.append(_Band(begin, end - begin, 1))
    return bands


def _part(pool: Call, row: _Band, col: _Band, strides: tuple[int, ...]) -> Expr:
    """The means of some rows and columns of windows."""
    begins = (0, 0, row.begin, col.begin)
    sizes = [(band.count - 1) * stride + band.length for band, stride in zip((row, col), strides, strict=True)]
    ends = (*known_shape(pool.args[0])[:2], row.begin + sizes[0], col.begin + sizes[1])
    part = make("strided_slice", (pool.args[0],), begin=begins, end=ends, strides=(1, 1, 1, 1), span=pool.span)
    window = (row.length, col.length)
    return make("nn.avg_pool2d", (part,), pool_size=window, strides=strides, span=pool.span)


def _joined(parts: list[Expr], axis: int, pool: Call) -> Expr:
    return parts[0] if len(parts) == 1 else make("concatenate", (typed_tuple(parts),), axis=axis, span=pool.span)
