"""ONNX QuantizeLinear and DequantizeLinear: the QNN dialect with ties to even."""

from __future__ import annotations

import numpy as np

from relay_hw.frontend.onnx.node import Arguments, Converter, Known, Node, all_of, known_inputs
from relay_hw.ir.expr import Expr
from relay_hw.op import const, qnn

INTEGERS = {2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32"}


def _check(node: Node, known: Known) -> str | None:
    if node.attr("block_size", 0):
        return f"block_size must be 0, not {node.attr('block_size')}"
    kind = node.attr("output_dtype", 0)
    if node.operator == "QuantizeLinear" and kind and kind not in INTEGERS:
        return f"output_dtype must be one of {', '.join(INTEGERS.values())}, not type {kind}"
    return None


def _params(args: Arguments, default: str) -> tuple[Expr, Expr, str]:
    """Scale, zero point as int32, and the zero point's element type."""
    scale, zero = np.asarray(args.array(1)), args.array(2)
    dtype = default if zero is None else str(zero.dtype)
    shaped = np.zeros(scale.shape, np.int32) if zero is None else zero.astype(np.int32)
    return const(scale.astype(np.float32)), const(shaped), dtype


def _axis(node: Node, args: Arguments) -> int:
    """Per-tensor parameters ignore the axis, which may then not exist."""
    rank = args.rank(args[0])
    axis = node.attr("axis", 1)
    return axis if -rank <= axis < rank else -1


def _quantize(node: Node, args: Arguments) -> Expr:
    scale, zero, dtype = _params(args, INTEGERS.get(node.attr("output_dtype", 0), "uint8"))
    return qnn.quantize(args[0], scale, zero, _axis(node, args), dtype, "half_even")


def _dequantize(node: Node, args: Arguments) -> Expr:
    scale, zero, _ = _params(args, args.dtype(args[0]))
    return qnn.dequantize(args[0], scale, zero, _axis(node, args))


CONVERTERS = (
    Converter("QuantizeLinear", _quantize, all_of(_check, known_inputs(1, 2))),
    Converter("DequantizeLinear", _dequantize, all_of(_check, known_inputs(1, 2))),
)
