"""ONNX element types and the operators that change them: Cast, CastLike, BitCast."""

from __future__ import annotations

from relay_hw import op
from relay_hw.frontend.onnx.node import Arguments, Converter, Known, Node, all_of
from relay_hw.ir.expr import Expr
from relay_hw.ir.types import know_narrow_dtypes

DTYPES = {
    1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64", 9: "bool", 10: "float16",
    11: "float64", 12: "uint32", 13: "uint64", 16: "bfloat16", 17: "float8_e4m3fn", 18: "float8_e4m3fnuz",
    19: "float8_e5m2", 20: "float8_e5m2fnuz", 21: "uint4", 22: "int4", 23: "float4_e2m1fn", 24: "float8_e8m0fnu",
    25: "uint2", 26: "int2",
}  # fmt: skip
# Largest numbers of the types that saturate.
LARGEST = {
    "float8_e4m3fn": 448.0, "float8_e4m3fnuz": 240.0, "float8_e5m2": 57344.0, "float8_e5m2fnuz": 57344.0,
    "float4_e2m1fn": 6.0,
}  # fmt: skip


def _check_to(node: Node, known: Known) -> str | None:
    return None if node.attr("to") in DTYPES else f"to must be a numpy element type, not ONNX type {node.attr('to')}"


def _check_rounding(node: Node, known: Known) -> str | None:
    mode = node.attr("round_mode", "up")
    return None if mode in ("up", "down", "nearest") else f"round_mode must be up, down or nearest, not {mode}"


def _cast(node: Node, args: Arguments) -> Expr:
    return _cast_to(node, args, DTYPES[node.attr("to")])


def _cast_like(node: Node, args: Arguments) -> Expr:
    return _cast_to(node, args, args.dtype(args[1]))


def _cast_to(node: Node, args: Arguments, dtype: str) -> Expr:
    know_narrow_dtypes()
    data, source = args[0], args.dtype(args[0])
    if dtype == "float8_e8m0fnu" and source != dtype:
        return _power_of_two(node, args)
    is_float = source.startswith(("float", "bfloat"))
    if is_float and dtype in ("int2", "int4", "uint2", "uint4"):
        # A fraction is cut off, and the bits that stay are those of the whole number.
        data = op.cast(op.cast(op.trunc(op.cast(data, "float32")), "int32"), "int8")
    elif is_float and dtype in LARGEST and source != dtype and (node.attr("saturate", 1) or dtype == "float4_e2m1fn"):
        wide = op.cast(data, "float32")
        data = op.clip(wide, -LARGEST[dtype], LARGEST[dtype])
    return op.cast(data, dtype)


def _power_of_two(node: Node, args: Arguments) -> Expr:
    """Round to a power of two: the next one up (the default), down, or the nearest."""
    wide = op.cast(args[0], "float32")
    exponent = op.log2(op.abs(wide))
    match node.attr("round_mode", "up"):
        case "up":
            exponent = op.ceil(exponent)
        case "down":
            exponent = op.floor(exponent)
        case _:
            # Halfway counts upward: 1.5 times a power of two.
            below = op.floor(exponent)
            edge = op.multiply(op.power(args.scalar(2, wide), below), args.scalar(1.5, wide))
            up = op.greater_equal(op.abs(wide), edge)
            exponent = op.where(up, op.add(below, args.scalar(1, wide)), below)
    if node.attr("saturate", 1):
        exponent = op.clip(exponent, -127.0, 127.0)
    return op.cast(op.power(args.scalar(2, wide), exponent), "float8_e8m0fnu")


def _bit_cast(node: Node, args: Arguments) -> Expr:
    return op.reinterpret(args[0], DTYPES[node.attr("to")])


CONVERTERS = (
    Converter("BitCast", _bit_cast, _check_to),
    Converter("Cast", _cast, all_of(_check_to, _check_rounding)),
    Converter("CastLike", _cast_like, _check_rounding),
)
