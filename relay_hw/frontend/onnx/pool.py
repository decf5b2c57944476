"""ONNX poolings: max, average and Lp pooling, of windows and global."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from relay_hw import op
from relay_hw.errors import InputError
from relay_hw.frontend.onnx.geometry import Geometry, check_pads, geometry
from relay_hw.frontend.onnx.node import Arguments, Converter, Node
from relay_hw.ir.expr import Expr
from relay_hw.op import const, nn
from relay_hw.op.base import call

MAX = {1: nn.max_pool1d, 2: nn.max_pool2d, 3: nn.max_pool3d}
AVERAGE = {1: nn.avg_pool1d, 2: nn.avg_pool2d, 3: nn.avg_pool3d}


def _windows(node: Node, args: Arguments) -> Geometry:
    sizes, kernel = args.dims(args[0])[2:], tuple(node.attr("kernel_shape", ()))
    if len(sizes) not in (1, 2, 3) or len(kernel) != len(sizes):
        raise InputError(
            f"kernel_shape of {node.operator} must have one number for each of 1 to 3 spatial axes, "
            f"not be {kernel} for {len(sizes)}",
            node.span,
        )
    return geometry(node, sizes, kernel)


def _cropped(value: Expr, args: Arguments, windows: Geometry) -> Expr:
    """Drop windows that ceil_mode would start in the end padding: ONNX drops them, Relay does not."""
    if not args.node.attr("ceil_mode", 0):
        return value
    sizes, out = args.shape(args[0])[2:], args.shape(value)[2:]
    keep: Sequence[int] = [
        count - 1 if (count - 1) * stride >= size + before else count
        for count, stride, size, before in zip(out, windows.strides, sizes, windows.before, strict=True)
    ]
    if tuple(keep) == out:
        return value
    axes = tuple(range(2, 2 + len(keep)))
    return op.strided_slice(value, (0,) * len(keep), tuple(keep), (1,) * len(keep), axes=axes)


def _max_pool(node: Node, args: Arguments) -> Sequence[Expr]:
    windows = _windows(node, args)
    value = MAX[len(windows.kernel)](
        args[0],
        windows.kernel,
        windows.strides,
        windows.dilations,
        windows.pads,
        ceil_mode=bool(node.attr("ceil_mode", 0)),
    )
    if not node.has_output(1):
        return [_cropped(value, args, windows)]
    places = call(op.get(f"nn.max_pool{len(windows.kernel)}d_argmax"), value.args, value.attrs)
    return [_cropped(value, args, windows), _flat_places(node, args, _cropped(places, args, windows))]


def _flat_places(node: Node, args: Arguments, places: Expr) -> Expr:
    """Turn indices within a channel into indices of the whole tensor; storage_order 1 is column-major."""
    shape = args.shape(args[0])
    area = prod(shape[2:])
    if node.attr("storage_order", 0):
        total: Expr = const(np.int64(0))
        for axis, size in enumerate(shape[2:]):
            below, step = prod(shape[3 + axis :]), prod(shape[2 : 2 + axis])
            at = op.floor_mod(op.floor_divide(places, const(np.int64(below))), const(np.int64(size)))
            total = op.add(total, op.multiply(at, const(np.int64(step))))
        places = total
    args.reserve(shape[:2], "int64")
    planes = np.arange(shape[0] * shape[1], dtype=np.int64).reshape(*shape[:2], *(1,) * (len(shape) - 2))
    return op.add(places, const(planes * area))


def _average_pool(node: Node, args: Arguments) -> Expr:
    windows = _windows(node, args)
    value = AVERAGE[len(windows.kernel)](
        args[0],
        windows.kernel,
        windows.strides,
        windows.dilations,
        windows.pads,
        ceil_mode=bool(node.attr("ceil_mode", 0)),
        count_include_pad=bool(node.attr("count_include_pad", 0)),
    )
    return _cropped(value, args, windows)


def _lp_pool(node: Node, args: Arguments) -> Expr:
    """LpPool: the p-th root of the sum of p-th powers, as an average of powers (padding is 0) times the window size."""
    windows, power = _windows(node, args), node.attr("p", 2)
    data = op.abs(args[0])
    data = op.multiply(data, data) if power == 2 else op.power(data, args.scalar(power, data))
    rank, after = len(windows.kernel), windows.after
    if node.attr("ceil_mode", 0):
        # Zeros up to the end of the last window, so that each divides by its whole size.
        rows = zip(
            args.shape(args[0])[2:], windows.kernel, windows.strides, windows.dilations, windows.before, strict=True
        )
        reach = [((k - 1) * d + 1, s, n + b) for n, k, s, d, b in rows]
        counts = [-(-(size + a - extent) // s) for (extent, s, size), a in zip(reach, after, strict=True)]
        after = tuple(
            max(c * s + extent - size, a) for c, (extent, s, size), a in zip(counts, reach, after, strict=True)
        )
    value = AVERAGE[rank](
        data, windows.kernel, windows.strides, windows.dilations, (*windows.before, *after), count_include_pad=True
    )
    total = op.multiply(_cropped(value, args, windows), args.scalar(prod(windows.kernel), data))
    return op.sqrt(total) if power == 2 else op.power(total, args.scalar(1 / power, total))


def _global_lp(node: Node, args: Arguments) -> Expr:
    power, axes = node.attr("p", 2), tuple(range(2, args.rank(args[0])))
    total = op.sum(op.power(op.abs(args[0]), args.scalar(power, args[0])), axes, True)
    return op.power(total, args.scalar(1 / power, total))


def _global_average(node: Node, args: Arguments) -> Expr:
    rank = args.rank(args[0])
    return nn.global_avg_pool2d(args[0]) if rank == 4 else op.mean(args[0], tuple(range(2, rank)), True)


def _global_max(node: Node, args: Arguments) -> Expr:
    rank = args.rank(args[0])
    return nn.global_max_pool2d(args[0]) if rank == 4 else op.max(args[0], tuple(range(2, rank)), True)


CONVERTERS = (
    Converter("GlobalLpPool", _global_lp),
    Converter("LpPool", _lp_pool, check_pads),
    Converter("MaxPool", _max_pool, check_pads),
    Converter("AveragePool", _average_pool, check_pads),
    Converter("GlobalAveragePool", _global_average),
    Converter("GlobalMaxPool", _global_max),
)
