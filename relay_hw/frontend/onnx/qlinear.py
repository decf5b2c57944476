"""ONNX integer operators: QLinearConv, QLinearMatMul, ConvInteger, MatMulInteger, DynamicQuantizeLinear.

Sums are exact in int32; requantization multiplies in float32 and sends ties to even, as onnxruntime does.
"""

from __future__ import annotations

from math import prod

import numpy as np

from relay_hw import op
from relay_hw.errors import InputError
from relay_hw.frontend.onnx.geometry import check_pads, geometry
from relay_hw.frontend.onnx.node import Arguments, Converter, Node
from relay_hw.frontend.onnx.quantize import MICROSOFT, scale_of, zero_dtype, zero_of
from relay_hw.ir.expr import Constant, Expr
from relay_hw.op import const, nn, qnn


def requantize(
    args: Arguments, acc: Expr, scales: tuple[Expr, Expr], out: tuple[Expr, Expr], dtype: str, axis: int = -1
) -> Expr:
    """Requantize int32 sums with the product of `scales` as scale to `dtype` with scale and zero point `out`."""
    zero = const(np.zeros((), np.int32))
    return qnn.requantize(
        acc, scale_product(args, *scales), zero, single(out[0], args), single(out[1], args),
        axis=axis, rounding="TONEAREST_EVEN", compute_dtype="float32", out_dtype=dtype,
    )  # fmt: skip


def scale_product(args: Arguments, left: Expr, right: Expr) -> Expr:
    """The product of two scales in float32; a constant if both are."""
    left, right = single(left, args), single(right, args)
    if isinstance(left, Constant) and isinstance(right, Constant):
        return const((left.data * right.data).astype(np.float32))
    return op.multiply(left, right)


def single(param: Expr, args: Arguments) -> Expr:
    """A scale or zero point with one element as a scalar; others unchanged."""
    shape = args.shape(param)
    if prod(shape) != 1 or not shape:
        return param
    return const(param.data.reshape(())) if isinstance(param, Constant) else op.reshape(param, ())


def int_conv(
    node: Node, args: Arguments, data: Expr, weight: Expr, zeros: tuple[Expr, Expr], scales: tuple[Expr, Expr]
) -> Expr:
    """An int32 convolution with one or two spatial axes, or with three on int32 data."""
    shape, kernel = args.shape(data), args.shape(weight)
    rank = len(kernel) - 2
    if rank not in (1, 2, 3) or len(shape) != rank + 2:
        raise InputError(
            f"data and weight of {node.operator} must both have 3, 4 or 5 axes, not {len(shape)} and {len(kernel)}",
            node.span,
        )
    windows = geometry(node, shape[2:], kernel[2:])
    groups, zeros = node.attr("group", 1), (single(zeros[0], args), single(zeros[1], args))
    if rank == 3:
        wide = op.subtract(op.cast(data, "int32"), zeros[0])
        return nn.conv3d(
            wide, op.subtract(op.cast(weight, "int32"), _by_channel(zeros[1], args, 5)), strides=windows.strides,
            padding=windows.pads, dilation=windows.dilations, groups=groups, channels=kernel[0],
            kernel_size=kernel[2:], out_dtype="int32",
        )  # fmt: skip
    flat = rank == 1
    pads = (0, windows.pads[0], 0, windows.pads[1]) if flat else windows.pads
    one = (1,) if flat else ()
    value = qnn.conv2d(
        op.expand_dims(data, 2) if flat else data,
        op.expand_dims(weight, 2) if flat else weight,
        *zeros,
        *(single(scale, args) for scale in scales),
        kernel_size=(*one, *kernel[2:]),
        channels=kernel[0],
        strides=(*one, *windows.strides),
        padding=pads,
        dilation=(*one, *windows.dilations),
        groups=groups,
    )
    return op.squeeze(value, (2,)) if flat else value


def _by_channel(zero: Expr, args: Arguments, rank: int) -> Expr:
    return op.reshape(zero, (-1,) + (1,) * (rank - 1)) if args.rank(zero) == 1 else zero


def _qlinear_conv(node: Node, args: Arguments) -> Expr:
    x_scale, w_scale, y_scale = (scale_of(args, index) for index in (1, 4, 6))
    zeros = zero_of(args, 2, x_scale), zero_of(args, 5, w_scale)
    data = args[0]
    last = bool(node.attr("channels_last", 0))
    if last:
        rank = args.rank(data)
        data = op.transpose(data, (0, rank - 1, *range(1, rank - 1)))
    acc = int_conv(node, args, data, args[3], zeros, (x_scale, w_scale))
    bias = args.get(8)
    if bias is not None:
        acc = nn.bias_add(acc, bias)
    out = (y_scale, zero_of(args, 7, y_scale))
    value = requantize(args, acc, (x_scale, w_scale), out, zero_dtype(args, 7, "uint8"), 1)
    return op.transpose(value, (0, *range(2, args.rank(data)), 1)) if last else value


def int_matmul(args: Arguments, left: Expr, right: Expr, zeros: tuple[Expr, Expr], scales: tuple[Expr, Expr]) -> Expr:
    """An int32 matrix product with the semantics of MatMul."""
    a, b = args.shape(left), args.shape(right)
    if len(a) > 1 and len(b) == 2 and prod(args.shape(zeros[0])) == 1:
        weight = op.transpose(right, (1, 0))
        # A per-row scale of the data belongs to the requantization; the product does not need it.
        row = single(scales[0], args)
        row = row if args.rank(row) == 0 else const(np.float32(1))
        return qnn.dense(
            left, weight, single(zeros[0], args), single(zeros[1], args), row, single(scales[1], args), b[1]
        )
    wide = [
        op.subtract(op.cast(left, "int32"), _rows(zeros[0], args)),
        op.subtract(op.cast(right, "int32"), _columns(zeros[1], args)),
    ]
    dropped: list[int] = []
    if len(a) == 1:
        wide[0], a = op.expand_dims(wide[0], 0), (1, a[0])
        dropped.append(-2)
    if len(b) == 1:
        wide[1], b = op.expand_dims(wide[1], 1), (b[0], 1)
        dropped.append(-1)
    rows, columns = a[len(a) - 2], b[len(b) - 1]
    batch = np.broadcast_shapes(a[:-2], b[:-2])
    flat = [
        op.reshape(op.broadcast_to(value, (*batch, *shape[-2:])), (prod(batch), *shape[-2:]))
        for value, shape in zip(wide, (a, b), strict=True)
    ]
    value = op.reshape(nn.batch_matmul(*flat, out_dtype="int32", transpose_b=False), (*batch, rows, columns))
    rank = len(batch) + 2
    return op.squeeze(value, tuple(axis + rank for axis in dropped)) if dropped else value


def _rows(param: Expr, args: Arguments) -> Expr:
    """A parameter per row, or one for all; with more axes it broadcasts unchanged."""
    param = single(param, args)
    return op.expand_dims(param, 1) if args.rank(param) == 1 else param


def _columns(param: Expr, args: Arguments) -> Expr:
    return single(param, args)


def _qlinear_matmul(node: Node, args: Arguments) -> Expr:
    a_scale, b_scale, y_scale = (scale_of(args, index) for index in (1, 4, 6))
    zeros = zero_of(args, 2, a_scale), zero_of(args, 5, b_scale)
    acc = int_matmul(args, args[0], args[3], zeros, (a_scale, b_scale))
    out, dtype = (y_scale, zero_of(args, 7, y_scale)), zero_dtype(args, 7, "uint8")
    if prod(args.shape(a_scale)) == 1 and args.rank(single(b_scale, args)) <= 1:
        return requantize(args, acc, (a_scale, b_scale), out, dtype)
    # Scales by row reach no axis of their own in QNN: the sums become floats first.
    floats = op.multiply(op.cast(acc, "float32"), op.multiply(_rows(a_scale, args), _columns(b_scale, args)))
    return qnn.quantize(floats, single(out[0], args), single(out[1], args), -1, dtype, "half_even")


def _one() -> Expr:
    return const(np.float32(1))


def _zero(args: Arguments, index: int) -> Expr:
    return zero_of(args, index, _one())


def _conv_integer(node: Node, args: Arguments) -> Expr:
    return int_conv(node, args, args[0], args[1], (_zero(args, 2), _zero(args, 3)), (_one(), _one()))


def _matmul_integer(node: Node, args: Arguments) -> Expr:
    return int_matmul(args, args[0], args[1], (_zero(args, 2), _zero(args, 3)), (_one(), _one()))


def dynamic_parameters(args: Arguments, data: Expr) -> tuple[Expr, Expr]:
    """Scale and uint8 zero point (as int32) for the range of `data` and 0."""
    nothing = const(np.float32(0))
    high, low = op.maximum(op.max(data), nothing), op.minimum(op.min(data), nothing)
    extent = op.subtract(high, low)
    scale = op.where(op.equal(extent, nothing), const(np.float32(1)), op.divide(extent, const(np.float32(255))))
    zero = qnn.quantize(op.negative(low), scale, const(np.int32(0)), -1, "uint8", "half_even")
    return scale, op.cast(zero, "int32")


def _dynamic_quantize(node: Node, args: Arguments) -> tuple[Expr, ...]:
    scale, zero = dynamic_parameters(args, args[0])
    return qnn.quantize(args[0], scale, zero, -1, "uint8", "half_even"), scale, op.cast(zero, "uint8")


CONVERTERS = (
    Converter("QLinearConv", _qlinear_conv, check_pads),
    Converter("QLinearMatMul", _qlinear_matmul),
    Converter("ConvInteger", _conv_integer, check_pads),
    Converter("MatMulInteger", _matmul_integer),
    Converter("DynamicQuantizeLinear", _dynamic_quantize),
    Converter("QLinearConv", _qlinear_conv, check_pads, MICROSOFT),
    Converter("MatMulInteger", _matmul_integer, None, MICROSOFT),
)
