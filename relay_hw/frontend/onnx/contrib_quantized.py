"""onnxruntime's quantized operators (domain com.microsoft).

Element-wise ones and poolings compute in float32 between dequantize and quantize, as onnxruntime does.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from relay_hw import op
from relay_hw.errors import InputError
from relay_hw.frontend.onnx.geometry import check_pads, geometry
from relay_hw.frontend.onnx.node import Arguments, Convert, Converter, Known, Node
from relay_hw.frontend.onnx.qlinear import dynamic_parameters, int_matmul, requantize, scale_product, single
from relay_hw.frontend.onnx.quantize import MICROSOFT, scale_of, zero_dtype, zero_of
from relay_hw.ir.expr import Constant, Expr
from relay_hw.op import nn, qnn

_AVERAGES = {1: nn.avg_pool1d, 2: nn.avg_pool2d, 3: nn.avg_pool3d}
Build = Callable[[Expr], Expr]
Unary = Callable[[Node, Arguments, Expr], Expr]


def _params(args: Arguments, at: int) -> tuple[Expr, Expr]:
    """The scale at input `at` and the zero point after it, both scalars."""
    scale = scale_of(args, at)
    return single(scale, args), single(zero_of(args, at + 1, scale), args)


def _real(args: Arguments, at: int) -> Expr:
    """The float values of the quantized input `at`, whose scale and zero point follow it."""
    return qnn.dequantize(args[at], *_params(args, at + 1))


def _integers(args: Arguments, value: Expr, at: int, dtype: str) -> Expr:
    """Quantize float `value` with the scale at input `at` and the zero point after it."""
    return qnn.quantize(value, *_params(args, at), -1, zero_dtype(args, at + 1, dtype), "half_even")


def _binary(build: Callable[[Expr, Expr], Expr]) -> Convert:
    def convert(node: Node, args: Arguments) -> Expr:
        return _integers(args, build(_real(args, 0), _real(args, 3)), 6, args.dtype(args[0]))

    return convert


def _unary(build: Unary) -> Convert:
    def convert(node: Node, args: Arguments) -> Expr:
        return _integers(args, build(node, args, _real(args, 0)), 3, args.dtype(args[0]))

    return convert


def _softmax(node: Node, args: Arguments, value: Expr) -> Expr:
    shape = args.shape(value)
    axis = node.attr("axis", -1) % max(len(shape), 1)
    if node.attr("opset", 13) >= 13:
        return nn.softmax(value, axis)
    # Before opset 13 everything from the axis on is one distribution.
    rows = op.reshape(value, (int(np.prod(shape[:axis], initial=1)), -1))
    return op.reshape(nn.softmax(rows, 1), shape)


def _in_channels_first(node: Node, args: Arguments, value: Expr, build: Build) -> Expr:
    """Apply `build` with channels on axis 1, also if the node has them last."""
    if not node.attr("channels_last", 0):
        return build(value)
    rank = args.rank(value)
    first = op.transpose(value, (0, rank - 1, *range(1, rank - 1)))
    return op.transpose(build(first), (0, *range(2, rank), 1))


def _global_average(node: Node, args: Arguments, value: Expr) -> Expr:
    axes = tuple(range(2, args.rank(value)))
    if len(axes) == 2:
        return _in_channels_first(node, args, value, nn.global_avg_pool2d)
    return _in_channels_first(node, args, value, lambda x: op.mean(x, axes, True))


def _average(node: Node, args: Arguments, value: Expr) -> Expr:
    def build(x: Expr) -> Expr:
        windows = geometry(node, args.shape(x)[2:], tuple(node.attr("kernel_shape")))
        average = _AVERAGES[len(windows.kernel)]
        return average(
            x, windows.kernel, windows.strides, windows.dilations, windows.pads,
            ceil_mode=bool(node.attr("ceil_mode", 0)), count_include_pad=bool(node.attr("count_include_pad", 0)),
        )  # fmt: skip

    return _in_channels_first(node, args, value, build)


def _reduce_mean(node: Node, args: Arguments, value: Expr) -> Expr:
    axes = node.attr("axes")
    return op.mean(value, None if axes is None else tuple(axes), bool(node.attr("keepdims", 1)))


def _concat(node: Node, args: Arguments) -> Expr:
    count = len(args) - 2
    if count < 3 or count % 3:
        raise InputError(
            f"QLinearConcat must have a tensor, scale and zero point for each part, not {count} inputs", node.span
        )
    out, dtype = _params(args, 0), zero_dtype(args, 1, "uint8")
    parts = [_part(args, at, out, dtype) for at in range(2, len(args), 3)]
    return op.concatenate(parts, node.attr("axis"))


def _part(args: Arguments, at: int, out: tuple[Expr, Expr], dtype: str) -> Expr:
    given = _params(args, at + 1)
    if args.dtype(args[at]) == dtype and all(map(_same, given, out)):
        return args[at]
    return qnn.quantize(qnn.dequantize(args[at], *given), *out, -1, dtype, "half_even")


def _same(left: Expr, right: Expr) -> bool:
    return isinstance(left, Constant) and isinstance(right, Constant) and np.array_equal(left.data, right.data)


def _where(node: Node, args: Arguments) -> Expr:
    """QLinearWhere. Inputs: condition; tensor, scale and zero point of both sides; those of the result."""
    out, dtype = _params(args, 7), zero_dtype(args, 8, "uint8")
    return op.where(args[0], _part(args, 1, out, dtype), _part(args, 4, out, dtype))


def _qgemm(node: Node, args: Arguments) -> Expr:
    left = op.transpose(args[0], (1, 0)) if node.attr("transA", 0) else args[0]
    right = op.transpose(args[3], (1, 0)) if node.attr("transB", 0) else args[3]
    a_scale, b_scale = scale_of(args, 1), scale_of(args, 4)
    if node.attr("alpha", 1.0) != 1:
        a_scale = scale_product(args, a_scale, op.const(np.float32(node.attr("alpha"))))
    zeros = zero_of(args, 2, a_scale), zero_of(args, 5, b_scale)
    acc = int_matmul(args, left, right, zeros, (a_scale, b_scale))
    bias = args.get(6)
    if bias is not None:
        is_vector = args.shape(bias) == args.shape(acc)[-1:]
        acc = nn.bias_add(acc, bias) if is_vector else op.add(acc, bias)
    if node.has_input(7):
        y_scale = scale_of(args, 7)
        dtype = zero_dtype(args, 8, args.dtype(args[0]))
        return requantize(args, acc, (a_scale, b_scale), (y_scale, zero_of(args, 8, y_scale)), dtype)
    return op.multiply(op.cast(acc, "float32"), scale_product(args, a_scale, b_scale))


def _with_bias(args: Arguments, value: Expr, at: int) -> Expr:
    bias = args.get(at)
    return value if bias is None else op.add(value, bias)


def _product(args: Arguments, left: Expr, right: Expr, scales: tuple[Expr, Expr], zeros: tuple[Expr, Expr]) -> Expr:
    acc = int_matmul(args, left, right, zeros, scales)
    return op.multiply(op.cast(acc, "float32"), scale_product(args, *scales))


def _matmul_to_float(node: Node, args: Arguments) -> Expr:
    scales = scale_of(args, 2), scale_of(args, 3)
    zeros = zero_of(args, 4, scales[0]), zero_of(args, 5, scales[1])
    return _with_bias(args, _product(args, args[0], args[1], scales, zeros), 6)


def _dynamic_matmul(node: Node, args: Arguments) -> Expr:
    scale, zero = dynamic_parameters(args, args[0])
    left = qnn.quantize(args[0], scale, zero, -1, "uint8", "half_even")
    b_scale = scale_of(args, 2)
    zeros = zero, zero_of(args, 3, b_scale)
    return _with_bias(args, _product(args, left, args[1], (scale, b_scale), zeros), 4)


def _check_average(node: Node, known: Known) -> str | None:
    if len(node.attr("kernel_shape", ())) not in _AVERAGES:
        return f"kernel_shape must have 1 to 3 numbers, not be {node.attr('kernel_shape')}"
    return check_pads(node, known)


def _leaky(node: Node, args: Arguments, value: Expr) -> Expr:
    return nn.leaky_relu(value, node.attr("alpha", 0.01))


def _sigmoid(node: Node, args: Arguments, value: Expr) -> Expr:
    return op.sigmoid(value)


_TABLE: tuple[tuple[str, Convert], ...] = (
    ("QLinearAdd", _binary(op.add)),
    ("QLinearMul", _binary(op.multiply)),
    ("QLinearSigmoid", _unary(_sigmoid)),
    ("QLinearLeakyRelu", _unary(_leaky)),
    ("QLinearSoftmax", _unary(_softmax)),
    ("QLinearGlobalAveragePool", _unary(_global_average)),
    ("QLinearReduceMean", _unary(_reduce_mean)),
    ("QLinearConcat", _concat),
    ("QLinearWhere", _where),
    ("QGemm", _qgemm),
    ("MatMulIntegerToFloat", _matmul_to_float),
    ("DynamicQuantizeMatMul", _dynamic_matmul),
)
CONVERTERS = (
    *(Converter(name, convert, None, MICROSOFT) for name, convert in _TABLE),
    Converter("QLinearAveragePool", _unary(_average), _check_average, MICROSOFT),
)
