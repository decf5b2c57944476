"""Composites of VTA and what it lacks: patterns, and the kernel of a match or one sentence why there is none.

In: integer operators as quantization makes them. Out: composites, kernels, reasons.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from relay_hw.dataflow_pattern import is_constant, is_op, wildcard
from relay_hw.ir.expr import Call, Constant, Expr, Function
from relay_hw.ir.visit import post_order
from relay_hw.op.base import split_padding
from relay_hw.target import QuantizerRules
from relay_hw.transform import InferType, MergeComposite, Pass, Pipeline
from relay_hw.transform.graph import dtype_of, leaves, op_name
from relay_hw.vta.kernel import (
    MOST_SCALE,
    Kernel,
    Kind,
    Scaling,
    Shape,
    Tail,
    Window,
    diagonal_reach,
    inner_tap,
    reach_of,
    tail_of,
)

NAME: Final = "vta"
ANCHORS: Final = frozenset({"nn.conv2d", "nn.dense", "nn.max_pool2d", "fixed.sum_pool2d", "fixed.add"})
_MOST_PAD: Final = 15
_MOST_STRIDE: Final = (1 << 16) - 1
# A first convolution leaves most lanes of a block idle: VTA's own list has it on the host.
_LEAST_SHARE: Final = 4


def composites() -> Pass:
    """The pass that groups operators into layers."""
    scaled = lambda sums: is_op("fixed.requantize")(sums, is_constant())  # noqa: E731
    padded = is_op("nn.pad")(wildcard(), is_constant())
    table = [
        ("vta.conv2d", scaled(is_op("nn.conv2d")(padded, is_constant())), _in_integers),
        ("vta.conv2d", scaled(is_op("nn.conv2d")(wildcard(), is_constant())), _in_integers),
        ("vta.dense", scaled(is_op("nn.dense")(wildcard(), is_constant())), _in_integers),
        ("vta.sum_pool2d", scaled(is_op("fixed.sum_pool2d")(wildcard())), _in_integers),
        ("vta.add", is_op("fixed.add")(wildcard(), wildcard()), _in_integers),
        ("vta.max_pool2d", is_op("nn.max_pool2d")(wildcard()), _in_integers),
    ]
    return Pipeline([MergeComposite(table), InferType()])


def _in_integers(root: Expr) -> bool:
    """Whether all data of a match is int8; constants and sums are int32."""
    return all(ty.dtype in ("int8", "int32") for ty in leaves(root.type)) and dtype_of(root) == "int8"


def reason_on_host(call: Call, rules: QuantizerRules) -> str:
    """Why an operator is part of no composite."""
    name = op_name(call) or "a function call"
    if name == "qnn.quantize":
        return "qnn.quantize makes integers of floats, and VTA has no floats"
    if name == "qnn.dequantize":
        return "qnn.dequantize makes floats of integers, and VTA has no floats"
    dtypes = sorted({ty.dtype for arg in call.args for ty in leaves(arg.type)} | {dtype_of(call)} - {""})
    for dtype in dtypes:
        if dtype.startswith(("float", "bfloat")):
            asked = rules is not None and name in rules
            return f"{name} was left in {dtype}" if asked else f"{name} is in {dtype}, and VTA has no floats"
    if name in ANCHORS or name == "fixed.requantize":
        return f"{name} must have constant weights, and its sums one fixed.requantize, to run on VTA"
    return f"VTA has no {name}: it computes convolutions, dense layers, residual additions and pools of int8"


def kernel_of(composite: Function, block: int) -> Kernel | str:
    """The kernel of a composite for blocks of so many channels, or why VTA cannot run it."""
    calls = {op_name(node): node for node in post_order(composite.body) if isinstance(node, Call)}
    reader = _READERS[str(composite.attrs["Composite"])]
    found = reader(calls, block)
    return found if isinstance(found, str) else (_limits(found, block) or found)


Calls = Mapping[str, Call]


def _conv(calls: Calls, block: int) -> Kernel | str:
    call, attrs = calls["nn.conv2d"], calls["nn.conv2d"].attrs
    if (attrs.data_layout, attrs.kernel_layout, attrs.out_layout or "NCHW") != ("NCHW", "OIHW", "NCHW"):
        return f"layouts of nn.conv2d must be NCHW and OIHW for VTA, not {attrs.data_layout} and {attrs.kernel_layout}"
    data, result = shape_of(call.args[0]), shape_of(call)
    if attrs.groups != 1:
        return f"groups of nn.conv2d must be 1 for VTA, whose products mix all channels of a block, not {attrs.groups}"
    if data[1] * _LEAST_SHARE < block:
        return f"{data[1]} channels of data would use {data[1]} of {block} lanes: such first layers are the host's"
    weight = _constant(call.args[1]).astype(np.int8)
    before, _ = split_padding("nn.conv2d", attrs.padding, 2)
    pad = calls.get("nn.pad")
    if pad is not None:
        widths = pad.attrs.pad_width
        value = int(_constant(pad.args[1]).reshape(-1)[0])
        if value or pad.attrs.pad_mode != "constant" or any((*widths[0], *widths[1])):
            return f"VTA pads rows and columns with zeros, not with {value}"
        before, data = (before[0] + widths[2][0], before[1] + widths[3][0]), shape_of(pad.args[0])
    window = Window(weight.shape[2:], tuple(attrs.strides), tuple(attrs.dilation), (before[0], before[1]))
    return _dense_kernel(calls["fixed.requantize"], data, result, window, weight)


def _dense(calls: Calls, block: int) -> Kernel | str:
    call = calls["nn.dense"]
    weight = _constant(call.args[1]).astype(np.int8)
    if len(weight.shape) != 2 or len(call.args[0].tensor_type.static_shape) != 2:
        return "data of nn.dense must have two axes for VTA"
    data, result = shape_of(call.args[0]), shape_of(call)
    return _dense_kernel(calls["fixed.requantize"], data, result, Window(), weight[:, :, None, None])


def _dense_kernel(scale: Call, data: Shape, result: Shape, window: Window, weight: Any) -> Kernel | str:
    if scale.attrs.axis not in (1, 1 - len(scale.tensor_type.static_shape)):
        return f"the axis of fixed.requantize must be 1 for VTA, not {scale.attrs.axis}"
    bias = _constant(scale.args[1]).astype(np.int64)
    used = np.broadcast_to(np.array(scale.attrs.multiplier) != 0, bias.shape)
    # A factor of 0 makes zeros: so do weights of 0, with any factor.
    weight = np.where(used.reshape(-1, 1, 1, 1), weight, 0).astype(np.int8)
    tail = _tail(scale, np.where(used, bias, 0), reach_of(weight))
    return tail if isinstance(tail, str) else Kernel(Kind.DENSE, data, result, window, weight, tail=tail)


def _tail(scale: Call, bias: Any, reach: Any) -> Tail | str:
    attrs = scale.attrs
    multipliers = [m or 1 << s for m, s in zip(attrs.multiplier, attrs.shift, strict=True)]
    scaling = Scaling(multipliers, attrs.shift, attrs.rounding, attrs.zero_point, attrs.a_min, attrs.a_max)
    return tail_of(scaling, bias, reach)


def _sum_pool(calls: Calls, block: int) -> Kernel | str:
    call, scale = calls["fixed.sum_pool2d"], calls["fixed.requantize"]
    attrs, data = call.attrs, shape_of(call.args[0])
    if attrs.layout != "NCHW" or scale.attrs.axis not in (1, -3):
        return f"the layout of fixed.sum_pool2d must be NCHW for VTA, not {attrs.layout}"
    if 0 in scale.attrs.multiplier:
        return "the factor of a pool must not be 0 for VTA"
    before, _ = split_padding("fixed.sum_pool2d", attrs.padding, 2)
    window = Window(tuple(attrs.pool_size), tuple(attrs.strides), (1, 1), (before[0], before[1]))
    tail = _tail(scale, _constant(scale.args[1]).astype(np.int64), diagonal_reach(window, (0,), data[1]))
    return tail if isinstance(tail, str) else Kernel(Kind.DIAGONAL, data, shape_of(call), window, tail=tail)


def _add(calls: Calls, block: int) -> Kernel | str:
    call, attrs = calls["fixed.add"], calls["fixed.add"].attrs
    if len(call.tensor_type.static_shape) not in (2, 4):
        return f"tensors of fixed.add must have 2 or 4 axes for VTA, not {len(call.tensor_type.static_shape)}"
    factors = (attrs.y_multiplier, attrs.r_multiplier)
    odd = [factor for factor in factors if factor & (factor - 1) or not factor]
    if odd:
        return f"VTA scales by shifts: multipliers must be powers of two, not {odd[0]} (strategy int8-pow2 makes such)"
    low = min(factors)
    scales = tuple((factor // low).bit_length() - 1 for factor in factors)
    if max(scales) > MOST_SCALE:
        return f"scales of fixed.add must differ by at most {1 << MOST_SCALE} for VTA, not by {1 << max(scales)}"
    zero = -sum(point << scale for point, scale in zip((attrs.y_zero_point, attrs.r_zero_point), scales, strict=True))
    shape = shape_of(call)
    scaling = Scaling((low,), (attrs.shift,), attrs.rounding, attrs.zero_point, attrs.a_min, attrs.a_max)
    tail = tail_of(scaling, np.full(shape[1], zero, np.int64), diagonal_reach(Window(), scales, shape[1]))
    return tail if isinstance(tail, str) else Kernel(Kind.DIAGONAL, shape, shape, Window(), scales=scales, tail=tail)


def _max_pool(calls: Calls, block: int) -> Kernel | str:
    call, attrs = calls["nn.max_pool2d"], calls["nn.max_pool2d"].attrs
    if (attrs.layout, attrs.out_layout or "NCHW") != ("NCHW", "NCHW"):
        return f"the layout of nn.max_pool2d must be NCHW for VTA, not {attrs.layout}"
    before, _ = split_padding("nn.max_pool2d", attrs.padding, 2)
    window = Window(tuple(attrs.pool_size), tuple(attrs.strides), tuple(attrs.dilation), (before[0], before[1]))
    return Kernel(Kind.MAXIMUM, shape_of(call.args[0]), shape_of(call), window)


_READERS: Final[Mapping[str, Callable[[Calls, int], Kernel | str]]] = {
    "vta.conv2d": _conv,
    "vta.dense": _dense,
    "vta.sum_pool2d": _sum_pool,
    "vta.add": _add,
    "vta.max_pool2d": _max_pool,
}


def _limits(kernel: Kernel, block: int) -> str | None:
    """What no instruction could say."""
    window = kernel.window
    for axis, (what, before) in enumerate(zip(("rows", "columns"), window.before, strict=True)):
        size, out = kernel.data[2 + axis], kernel.result[2 + axis]
        after = (out - 1) * window.strides[axis] + window.extent[axis] - before - size
        if max(before, after) > _MOST_PAD:
            return f"VTA pads at most {_MOST_PAD} {what}, not {max(before, after)}"
        if max(before, after) >= window.extent[axis]:
            return f"a window must hold {what} of the data for VTA, not of the padding alone"
        if kernel.kind is Kind.MAXIMUM and inner_tap(kernel, axis) is None:
            return f"one place of the window must lie in the data wherever the window is, along {what}"
    blocks = -(-kernel.data[1] // block) * window.taps
    if max(kernel.data[2] * kernel.data[3], kernel.result[2] * kernel.result[3], blocks) > _MOST_STRIDE:
        return f"planes and rows of weights must have at most {_MOST_STRIDE:,} entries for VTA"
    return None


def shape_of(expr: Expr) -> Shape:
    """A tensor's shape as N, C, H, W."""
    shape: Sequence[int] = expr.tensor_type.static_shape
    n, c, h, w = (*shape, 1, 1)[:4]
    return n, c, h, w


def _constant(expr: Expr) -> Any:
    assert isinstance(expr, Constant)
    return expr.data
