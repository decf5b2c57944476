"""ONNX image operators: GridSample, RoiAlign, Col2Im, DeformConv, MaxUnpool and the like."""

from __future__ import annotations

from math import prod

import numpy as np

from relay_hw import op
from relay_hw.errors import InputError, UnsupportedError
from relay_hw.frontend.onnx.geometry import check_pads, geometry
from relay_hw.frontend.onnx.node import Arguments, Converter, Known, Node
from relay_hw.ir.expr import Expr
from relay_hw.op import const, nn
from relay_hw.op.boxes import boxes_kept
from relay_hw.op.patches import DeformAttrs, PatchAttrs
from relay_hw.op.region_align import RoiAlignAttrs, roi_align_of
from relay_hw.support.names import one_of

# The words of opset 16 and of opset 20.
METHODS = {
    "bilinear": "bilinear", "linear": "bilinear", "nearest": "nearest", "bicubic": "bicubic", "cubic": "bicubic",
}  # fmt: skip
BORDERS = ("zeros", "border", "reflection")


def _check_grid(node: Node, known: Known) -> str | None:
    method, border = node.attr("mode", "linear"), node.attr("padding_mode", "zeros")
    if method not in METHODS:
        return one_of("mode", METHODS, method)
    return None if border in BORDERS else one_of("padding_mode", BORDERS, border)


def _grid_sample(node: Node, args: Arguments) -> Expr:
    rank = args.rank(args[0])
    if rank not in (4, 5):
        raise InputError(f"the data of GridSample must have 4 or 5 axes, not {rank}", node.span)
    grid = op.cast(args[1], args.dtype(args[0])) if args.dtype(args[1]) != args.dtype(args[0]) else args[1]
    return op.image.grid_sample(
        args[0],
        op.transpose(grid, (0, rank - 1, *range(1, rank - 1))),
        METHODS[node.attr("mode", "linear")],
        "NCHW" if rank == 4 else "NCDHW",
        node.attr("padding_mode", "zeros"),
        bool(node.attr("align_corners", 0)),
    )


def _check_roi(node: Node, known: Known) -> str | None:
    mode = node.attr("mode", "avg")
    return None if mode in ("avg", "max") else f"mode must be avg or max, not {mode}"


def _roi_align(node: Node, args: Arguments) -> Expr:
    default = "half_pixel" if node.opset >= 16 else "output_half_pixel"
    attrs = RoiAlignAttrs(
        (node.attr("output_height", 1), node.attr("output_width", 1)),
        node.attr("spatial_scale", 1.0),
        node.attr("sampling_ratio", 0),
        node.attr("mode", "avg"),
        node.attr("coordinate_transformation_mode", default) == "half_pixel",
    )
    return roi_align_of(args[0], args[1], args[2], attrs)


def _non_max_suppression(node: Node, args: Arguments) -> Expr:
    count, iou, least = (args.get(index) for index in (2, 3, 4))
    return boxes_kept(
        args[0],
        args[1],
        const(np.int64(0)) if count is None else count,
        const(np.float32(0)) if iou is None else iou,
        const(np.float32(-np.inf)) if least is None else least,
        bool(node.attr("center_point_box", 0)),
    )


def _col2im(node: Node, args: Arguments) -> Expr:
    rank = args.length(1)
    attrs = PatchAttrs(
        tuple(node.attr("strides", [1] * rank)),
        tuple(node.attr("dilations", [1] * rank)),
        tuple(node.attr("pads", [0] * 2 * rank)),
    )
    return op.patches.col2im(args[0], args[1], args[2], attrs)


def _deform_conv(node: Node, args: Arguments) -> Expr:
    kernel, offset = args.shape(args[1]), args.shape(args[2])
    if len(kernel) != 4:
        raise InputError(f"the weight of DeformConv must have 4 axes, not {len(kernel)}", node.span)
    windows = geometry(node, args.shape(args[0])[2:], kernel[2:])
    groups = node.attr("offset_group", 1)
    mask, bias = args.get(4), args.get(3)
    if mask is None:
        mask = op.ones((offset[0], groups * prod(kernel[2:]), *offset[2:]), args.dtype(args[0]))
    attrs = DeformAttrs(windows.strides, windows.dilations, windows.pads, node.attr("group", 1), groups)
    value = op.patches.deform_conv(args[0], args[1], args[2], mask, attrs)
    return value if bias is None else nn.bias_add(value, bias)


def _max_unpool(node: Node, args: Arguments) -> Expr:
    """MaxUnpool: put each element back at its flat index, zeros elsewhere."""
    shape = args.shape(args[0])
    kernel = node.attr("kernel_shape")
    rank = len(kernel)
    strides, pads = node.attr("strides", [1] * rank), node.attr("pads", [0] * 2 * rank)
    rows = zip(shape[2:], strides, kernel, pads[:rank], pads[rank:], strict=True)
    inner = (*shape[:2], *((size - 1) * s + k - a - b for size, s, k, a, b in rows))
    flat = (op.reshape(args[1], (-1,)), op.reshape(args[0], (-1,)))
    value = op.scatter_elements(op.zeros((prod(inner),), args.dtype(args[0])), *flat, 0)
    value = op.reshape(value, inner)
    sizes = args.ints(2)
    if sizes is not None:
        # Places count in the smaller image; the larger one has zeros behind.
        return nn.pad(value, [(0, want - have) for want, have in zip(sizes, inner, strict=True)], 0.0)
    if not node.has_input(2):
        return value
    args.length(2)
    ends = op.subtract(args[2], const(np.array(inner, np.int64)))
    widths = op.stack([const(np.zeros(len(inner), np.int64)), ends], 1)
    return op.dynamic.pad(value, widths, args.scalar(0, value))


def _affine_grid(node: Node, args: Arguments) -> Expr:
    """AffineGrid: coordinates of every pixel in [-1, 1], x first, times the matrix of its image."""
    theta, align = args[0], bool(node.attr("align_corners", 0))
    count, rank, columns = args.shape(theta)
    if rank not in (2, 3) or columns != rank + 1:
        raise UnsupportedError(f"its matrices must be of 2 by 3 or 3 by 4, not {rank} by {columns}")
    total: Expr = _column(theta, rank, count, rank)
    for axis in range(rank):
        places = _coordinates(args, axis + 2, align, theta)
        for _ in range(axis):
            places = op.expand_dims(places, 0)
        # The axes behind it, and the one of the results.
        places = op.expand_dims(places, axis + 1, rank - axis)
        total = op.add(total, op.multiply(places, _column(theta, rank - 1 - axis, count, rank)))
    return total


def _column(theta: Expr, number: int, count: int, rank: int) -> Expr:
    """One column of the matrices as (N, 1, ..., 1, rank)."""
    return op.reshape(op.take(theta, const(number), 2), (count, *(1,) * rank, rank))


def _coordinates(args: Arguments, index: int, align: bool, like: Expr) -> Expr:
    """Coordinates of an axis' pixels in [-1, 1]: centers, or with `align` from edge to edge."""
    known, dtype = args.ints(1), args.dtype(like)
    if known is not None:
        args.reserve((known[index],), "float64")
        at = np.arange(known[index])
        found = at * 2 / (known[index] - 1) - 1 if align else (2 * at + 1) / known[index] - 1
        return const(found.astype(dtype))
    size = op.take(args[1], const(index), 0)
    at = op.cast(op.arange(const(np.int64(0)), op.cast(size, "int64"), const(np.int64(1))), dtype)
    size, one, two = op.cast(size, dtype), args.scalar(1, like), args.scalar(2, like)
    if align:
        return op.subtract(op.divide(op.multiply(at, two), op.subtract(size, one)), one)
    return op.subtract(op.divide(op.add(op.multiply(at, two), one), size), one)


CONVERTERS = (
    Converter("AffineGrid", _affine_grid),
    Converter("Col2Im", _col2im),
    Converter("DeformConv", _deform_conv, check_pads),
    Converter("GridSample", _grid_sample, _check_grid),
    Converter("MaxUnpool", _max_unpool),
    Converter("NonMaxSuppression", _non_max_suppression),
    Converter("RoiAlign", _roi_align, _check_roi),
)
