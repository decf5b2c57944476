"""ONNX poolings: largest and mean of windows and of whole channels."""

from __future__ import annotations

from collections.abc import Sequence

from relay_hw import op
from relay_hw.errors import InputError
from relay_hw.frontend.onnx.geometry import Geometry, check_pads, geometry
from relay_hw.frontend.onnx.node import Arguments, Converter, Node, all_of, only_output
from relay_hw.ir.expr import Expr
from relay_hw.op import nn

MAX = {1: nn.max_pool1d, 2: nn.max_pool2d, 3: nn.max_pool3d}
AVERAGE = {1: nn.avg_pool1d, 2: nn.avg_pool2d, 3: nn.avg_pool3d}


def _windows(node: Node, args: Arguments) -> Geometry:
    sizes, kernel = args.shape(args[0])[2:], tuple(node.attr("kernel_shape", ()))
    if len(sizes) not in (1, 2, 3) or len(kernel) != len(sizes):
        raise InputError(
            f"kernel_shape of {node.operator} must have one number for each of 1 to 3 spatial axes, "
            f"not be {kernel} for {len(sizes)}",
            node.span,
        )
    return geometry(node, sizes, kernel)


def _cropped(value: Expr, args: Arguments, windows: Geometry) -> Expr:
    """Without the windows that ceil_mode would start behind the data: ONNX drops them, Relay does not."""
    sizes, out = args.shape(args[0])[2:], args.shape(value)[2:]
    keep: Sequence[int] = [
        count - 1 if (count - 1) * stride >= size + before else count
        for count, stride, size, before in zip(out, windows.strides, sizes, windows.before, strict=True)
    ]
    if tuple(keep) == out:
        return value
    axes = tuple(range(2, 2 + len(keep)))
    return op.strided_slice(value, (0,) * len(keep), tuple(keep), (1,) * len(keep), axes=axes)


def _max_pool(node: Node, args: Arguments) -> Expr:
    windows = _windows(node, args)
    value = MAX[len(windows.kernel)](
        args[0],
        windows.kernel,
        windows.strides,
        windows.dilations,
        windows.pads,
        ceil_mode=bool(node.attr("ceil_mode", 0)),
    )
    return _cropped(value, args, windows)


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


def _global_average(node: Node, args: Arguments) -> Expr:
    rank = args.rank(args[0])
    return nn.global_avg_pool2d(args[0]) if rank == 4 else op.mean(args[0], tuple(range(2, rank)), True)


def _global_max(node: Node, args: Arguments) -> Expr:
    rank = args.rank(args[0])
    return nn.global_max_pool2d(args[0]) if rank == 4 else op.max(args[0], tuple(range(2, rank)), True)


CONVERTERS = (
    Converter("MaxPool", _max_pool, all_of(check_pads, only_output)),
    Converter("AveragePool", _average_pool, check_pads),
    Converter("GlobalAveragePool", _global_average),
    Converter("GlobalMaxPool", _global_max),
)
