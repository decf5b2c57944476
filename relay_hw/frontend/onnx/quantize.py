"""ONNX QuantizeLinear and DequantizeLinear in the QNN dialect, ties to even: per tensor, per axis and blockwise."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np

from relay_hw import op
from relay_hw.errors import InputError
from relay_hw.frontend.onnx.cast import DTYPES, LARGEST
from relay_hw.frontend.onnx.node import Arguments, Array, Converter, Known, Node
from relay_hw.ir.expr import Call, Expr
from relay_hw.ir.types import know_narrow_dtypes
from relay_hw.op import const, qnn
from relay_hw.op.casts import CAST
from relay_hw.op.elementwise import CLIP
from relay_hw.support.names import one_of

INTEGERS = {code: DTYPES[code] for code in (2, 3, 4, 5, 6, 21, 22, 25, 26)}
# Integers of few bits: the type that computes with them, and their range.
NARROW = {
    "int4": ("int8", -8, 7), "uint4": ("uint8", 0, 15), "int2": ("int8", -2, 1), "uint2": ("uint8", 0, 3),
}  # fmt: skip
MICROSOFT = "com.microsoft"


def scale_of(args: Arguments, index: int) -> Expr:
    """A scale in float32; if known at import, a constant, not a parameter. Raises InputError for an illegal scale."""
    known = args.array(index)
    if known is not None:
        with np.errstate(over="ignore"):
            scales = known.astype(np.float32)
        wrong = scales[~(np.isfinite(scales) & (scales > 0))]
        if wrong.size:
            sentence = f"scales of {args.node.operator} must be above 0 and finite, not {wrong.flat[0]:g}"
            raise InputError(sentence, args.node.span)
        return const(scales)
    scale = args[index]
    return scale if args.dtype(scale) == "float32" else op.cast(scale, "float32")


def zero_of(args: Arguments, index: int, scale: Expr) -> Expr:
    """A zero point in int32; by default 0 in the shape of `scale`."""
    if not args.node.has_input(index):
        args.reserve(args.shape(scale), "int32")
        return const(np.zeros(args.shape(scale), np.int32))
    known = args.array(index)
    if known is not None:
        return const(known.astype(np.int32))
    zero = args[index]
    return zero if args.dtype(zero) == "int32" else op.cast(zero, "int32")


def zero_dtype(args: Arguments, index: int, default: str) -> str:
    """The element type that a zero point gives to its tensor."""
    known = args.array(index)
    if known is not None:
        return str(known.dtype)
    return args.dtype(args[index]) if args.node.has_input(index) else default


def _check(node: Node, known: Known) -> str | None:
    kind = node.attr("output_dtype", 0)
    floats = [code for code, name in DTYPES.items() if name in LARGEST]
    if node.operator == "QuantizeLinear" and kind and kind not in (*INTEGERS, *floats):
        names = [DTYPES[code] for code in (*INTEGERS, *floats)]
        return one_of("output_dtype", names, f"type {kind}")
    return None


def _axis(node: Node, args: Arguments) -> int:
    """Per-tensor parameters ignore the axis, which may then not exist."""
    rank = args.rank(args[0])
    axis = node.attr("axis", 1)
    return axis % rank if -rank <= axis < rank else -1


def _quantize(node: Node, args: Arguments) -> Expr:
    data = args[0] if args.dtype(args[0]) in ("float32", "float16") else op.cast(args[0], "float32")
    scale = scale_of(args, 1)
    zero = zero_of(args, 2, scale)
    dtype = zero_dtype(args, 2, DTYPES[node.attr("output_dtype", 0) or 2])
    know_narrow_dtypes()

    def convert(data: Expr, scale: Expr, zero: Expr, axis: int) -> Expr:
        if dtype in LARGEST:
            divided = op.divide(op.cast(data, "float32"), _along(scale, axis, args, data))
            limited = op.clip(divided, -LARGEST[dtype], LARGEST[dtype]) if node.attr("saturate", 1) else divided
            return op.cast(limited, dtype)
        if dtype in NARROW:
            wide, low, high = NARROW[dtype]
            return op.cast(op.clip(qnn.quantize(data, scale, zero, axis, wide, "half_even"), low, high), dtype)
        return qnn.quantize(data, scale, zero, axis, dtype, "half_even")

    return _with_blocks(node, args, convert, data, scale, zero)


def _dequantize(node: Node, args: Arguments) -> Expr:
    known = args.array(1)
    out = str(known.dtype) if known is not None else args.dtype(args[1])
    scale = scale_of(args, 1)
    zero = zero_of(args, 2, scale)

    given = args.dtype(args[0])
    know_narrow_dtypes()

    def convert(data: Expr, scale: Expr, zero: Expr, axis: int) -> Expr:
        if given in LARGEST:
            moved = op.subtract(op.cast(data, "float32"), op.cast(_along(zero, axis, args, data), "float32"))
            return op.cast(op.multiply(moved, _along(scale, axis, args, data)), out)
        return qnn.dequantize(data, scale, zero, axis, out)

    return _with_blocks(node, args, convert, _widened(args[0], given), scale, zero)


def _widened(data: Expr, dtype: str) -> Expr:
    """Low-bit integers in the type that operators compute with; a narrowing directly before is undone."""
    if dtype not in NARROW:
        return data
    if isinstance(data, Call) and data.op is CAST and is_clip(data.args[0]):
        return data.args[0]
    return op.cast(data, NARROW[dtype][0])


def is_clip(expr: Expr) -> bool:
    """Whether `expr` limits a range."""
    return isinstance(expr, Call) and expr.op is CLIP


def _along(param: Expr, axis: int, args: Arguments, data: Expr) -> Expr:
    """Reshape a vector to broadcast along `axis`."""
    rank = args.rank(data)
    return op.reshape(param, (-1,) + (1,) * (rank - axis % rank - 1)) if args.rank(param) == 1 else param


Convert = Callable[[Expr, Expr, Expr, int], Expr]


def _with_blocks(node: Node, args: Arguments, convert: Convert, data: Expr, scale: Expr, zero: Expr) -> Expr:
    """`convert`, with `block_size` on a matrix with one row for each block."""
    axis, size = _axis(node, args), node.attr("block_size", 0)
    if not size:
        return convert(data, _flat(scale, args), _flat(zero, args), axis)
    shape = args.shape(data)
    if shape[axis] % size or args.shape(scale) != (*shape[:axis], shape[axis] // size, *shape[axis + 1 :]):
        raise InputError(
            f"the scale of {node.operator} must have one number for each block of {size} along axis {axis}, "
            f"not shape {args.shape(scale)} for data of shape {shape}",
            node.span,
        )
    split = (*shape[: axis + 1], size, *shape[axis + 1 :])
    split = (*split[:axis], shape[axis] // size, *split[axis + 1 :])
    order = (*(k for k in range(len(split)) if k != axis + 1), axis + 1)
    turned = tuple(split[k] for k in order)
    rows = op.reshape(op.transpose(op.reshape(data, split), order), (prod(turned[:-1]), size))
    made = convert(rows, op.reshape(scale, (-1,)), op.reshape(zero, (-1,)), 0)
    back: Array = np.argsort(order)
    return op.reshape(op.transpose(op.reshape(made, turned), tuple(int(k) for k in back)), shape)


def _flat(param: Expr, args: Arguments) -> Expr:
    """A parameter with one element as a scalar."""
    shape = args.shape(param)
    return op.reshape(param, ()) if len(shape) > 1 and prod(shape) == 1 else param


CONVERTERS = (
    Converter("QuantizeLinear", _quantize, _check),
    Converter("DequantizeLinear", _dequantize),
    Converter("QuantizeLinear", _quantize, _check, MICROSOFT),
    Converter("DequantizeLinear", _dequantize, None, MICROSOFT),
)
