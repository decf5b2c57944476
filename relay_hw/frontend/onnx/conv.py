"""ONNX convolutions: Conv and ConvTranspose of one to three spatial axes."""

from __future__ import annotations

from relay_hw.errors import InputError
from relay_hw.frontend.onnx.geometry import check_pads, geometry, known, share
from relay_hw.frontend.onnx.node import Arguments, Converter, Node
from relay_hw.ir.expr import Expr
from relay_hw.ir.types import Dim
from relay_hw.op import nn

CONVS = {1: nn.conv1d, 2: nn.conv2d, 3: nn.conv3d}
TRANSPOSES = {1: nn.conv1d_transpose, 2: nn.conv2d_transpose, 3: nn.conv3d_transpose}


def _sizes(node: Node, args: Arguments) -> tuple[tuple[Dim, ...], tuple[int, ...]]:
    """Spatial sizes of the data and the kernel. Raises InputError unless there are one to three."""
    data, weight = args.dims(args[0]), args.shape(args[1])
    if len(data) not in (3, 4, 5) or len(weight) != len(data):
        raise InputError(
            f"data and weight of {node.operator} must both have 3, 4 or 5 axes, not {len(data)} and {len(weight)}",
            node.span,
        )
    return data[2:], weight[2:]


def _biased(args: Arguments, value: Expr) -> Expr:
    bias = args.get(2)
    return value if bias is None else nn.bias_add(value, bias)


def _conv(node: Node, args: Arguments) -> Expr:
    sizes, kernel = _sizes(node, args)
    windows = geometry(node, sizes, kernel)
    value = CONVS[len(kernel)](
        args[0],
        args[1],
        strides=windows.strides,
        padding=windows.pads,
        dilation=windows.dilations,
        groups=node.attr("group", 1),
        channels=args.shape(args[1])[0],
        kernel_size=kernel,
    )
    return _biased(args, value)


def _conv_transpose(node: Node, args: Arguments) -> Expr:
    sizes, kernel = _sizes(node, args)
    groups, rank = node.attr("group", 1), len(kernel)
    windows = geometry(node, sizes, kernel)
    extra = tuple(node.attr("output_padding", [0] * rank))
    shape = node.attr("output_shape")
    auto = node.attr("auto_pad", "NOTSET")
    pads = windows.pads
    if shape is None and auto.startswith("SAME"):
        shape = [size * stride for size, stride in zip(known(sizes, auto), windows.strides, strict=True)]
    if shape is not None:
        given = known(sizes, "output_shape")
        parts = zip(given, kernel, windows.strides, windows.dilations, extra, shape[-rank:], strict=True)
        totals = [(n - 1) * s + e + (k - 1) * d + 1 - want for n, k, s, d, e, want in parts]
        # The part of the output beyond the windows is output padding.
        extra = tuple(e + max(-total, 0) for e, total in zip(extra, totals, strict=True))
        pads = share([max(total, 0) for total in totals], upper=auto == "SAME_UPPER")
    value = TRANSPOSES[rank](
        args[0],
        args[1],
        strides=windows.strides,
        padding=pads,
        dilation=windows.dilations,
        groups=groups,
        channels=args.shape(args[1])[1] * groups,
        kernel_size=kernel,
        output_padding=extra,
    )
    return _biased(args, value)


CONVERTERS = (Converter("Conv", _conv, check_pads), Converter("ConvTranspose", _conv_transpose, check_pads))
