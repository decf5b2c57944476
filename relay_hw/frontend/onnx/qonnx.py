"""QONNX: Quant, BipolarQuant and Trunc, as Brevitas and QKeras export them. Their results are floats on a grid."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from relay_hw import op
from relay_hw.errors import InputError
from relay_hw.frontend.onnx.node import Arguments, Converter, Known, Node, all_of, known_inputs
from relay_hw.frontend.onnx.quantize import scale_of, zero_of
from relay_hw.ir.expr import Expr
from relay_hw.op import const, qnn
from relay_hw.support.names import one_of

DOMAINS = ("qonnx.custom_op.general", "onnx.brevitas", "finn.custom_op.general")
# Sums and differences of these modes stay exact in float32.
MAX_BITS = 24
_DIRECTED: Mapping[str, Callable[[Expr], Expr]] = {"FLOOR": op.floor, "CEIL": op.ceil, "ROUND_TO_ZERO": op.trunc}
_NEAREST = ("ROUND", "HALF_EVEN")


def _check_mode(node: Node, known: Known) -> str | None:
    mode = _mode(node)
    allowed = (*_NEAREST, *_DIRECTED)
    return None if mode in allowed else one_of("rounding_mode", allowed, mode)


def _mode(node: Node) -> str:
    return str(node.attr("rounding_mode", "FLOOR" if node.operator == "Trunc" else "ROUND")).upper()


def _bits(node: Node, args: Arguments, index: int) -> int:
    found = args.array(index)
    assert found is not None
    if found.size != 1 or not 1 <= float(found.reshape(-1)[0]) <= MAX_BITS or float(found.reshape(-1)[0]) % 1:
        raise InputError(f"input {index} of {node.operator} must be a number of bits from 1 to {MAX_BITS}", node.span)
    return int(found.reshape(-1)[0])


def _grid(node: Node, args: Arguments) -> tuple[Expr, Expr, int]:
    """Scale and zero point, each a scalar or a vector, and the axis of the vector."""
    scale, zero = scale_of(args, 1), zero_of(args, 2, scale_of(args, 1))
    rank = args.rank(args[0])
    axes: set[int] = set()
    flat: list[Expr] = []
    for param in (scale, zero):
        shape = args.shape(param)
        wide = [axis - len(shape) for axis, size in enumerate(shape) if size != 1]
        if len(wide) > 1:
            raise InputError(f"scales of {node.operator} must vary along one axis, not have shape {shape}", node.span)
        axes.update(wide)
        flat.append(op.reshape(param, (-1,) if wide else ()) if shape else param)
    if len(axes) > 1:
        raise InputError(f"scale and zero point of {node.operator} must vary along the same axis", node.span)
    return flat[0], flat[1], (axes.pop() % rank if axes else -1)


def _limits(node: Node, bits: int) -> tuple[int, int]:
    signed, narrow = bool(node.attr("signed", 1)), bool(node.attr("narrow", 0))
    if signed:
        return -(1 << (bits - 1)) + narrow, (1 << (bits - 1)) - 1
    return 0, (1 << bits) - 1 - narrow


def _quant(node: Node, args: Arguments) -> Expr:
    scale, zero, axis = _grid(node, args)
    bits = _bits(node, args, 3)
    low, high = _limits(node, bits)
    if _mode(node) not in _NEAREST:
        return _directed(node, args, (scale, zero, axis), (low, high))
    signed = bool(node.attr("signed", 1))
    dtype = ("int8" if signed else "uint8") if bits <= 8 else "int32"
    integers: Expr = qnn.quantize(args[0], scale, zero, axis, dtype, "half_even")
    info = np.iinfo(dtype)
    if (low, high) != (info.min, info.max):
        integers = op.clip(integers, low, high)
    return qnn.dequantize(integers, scale, zero, axis)


def _directed(node: Node, args: Arguments, grid: tuple[Expr, Expr, int], limits: tuple[int, int]) -> Expr:
    """Quant with directed rounding, which QNN lacks: the integers are represented by whole floats."""
    scale, zero, axis = grid
    rank = args.rank(args[0])
    wide = [
        op.reshape(param, (-1,) + (1,) * (rank - axis - 1)) if args.rank(param) == 1 else param
        for param in (scale, op.cast(zero, "float32"))
    ]
    moved = _DIRECTED[_mode(node)](op.add(op.divide(args[0], wide[0]), wide[1]))
    return op.multiply(op.subtract(op.clip(moved, *limits), wide[1]), wide[0])


def _bipolar(node: Node, args: Arguments) -> Expr:
    scale = scale_of(args, 1)
    is_positive = op.greater_equal(args[0], args.scalar(0.0, args[0]))
    integers = op.where(is_positive, const(np.int8(1)), const(np.int8(-1)))
    shape = args.shape(scale)
    if int(np.prod(shape, initial=1)) == 1:
        return qnn.dequantize(integers, op.reshape(scale, ()) if shape else scale, const(np.int32(0)))
    return op.multiply(op.cast(integers, "float32"), scale)


def _trunc(node: Node, args: Arguments) -> Expr:
    """Trunc: divide integers by a power of two and round; the scale stays, as QONNX defines it."""
    scale, zero, axis = _grid(node, args)
    dropped = _bits(node, args, 3) - _bits(node, args, 4)
    if dropped < 0:
        raise InputError("Trunc must drop bits, not add some", node.span)
    whole = op.cast(qnn.quantize(args[0], scale, zero, axis, "int32", "half_even"), "float32")
    divided = op.multiply(whole, const(np.float32(2.0**-dropped)))
    if _mode(node) in _NEAREST:
        kept = qnn.quantize(divided, const(np.float32(1)), const(np.int32(0)), -1, "int32", "half_even")
    else:
        kept = op.cast(_DIRECTED[_mode(node)](divided), "int32")
    return qnn.dequantize(kept, scale, zero, axis)


CONVERTERS = tuple(
    converter
    for domain in DOMAINS
    for converter in (
        Converter("Quant", _quant, all_of(_check_mode, known_inputs(3)), domain),
        Converter("IntQuant", _quant, all_of(_check_mode, known_inputs(3)), domain),
        Converter("BipolarQuant", _bipolar, None, domain),
        Converter("Trunc", _trunc, all_of(_check_mode, known_inputs(3, 4)), domain),
    )
)
