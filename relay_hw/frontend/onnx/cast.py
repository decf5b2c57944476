"""ONNX element types and the operators that change them: Cast, CastLike, BitCast."""

from __future__ import annotations

from relay_hw import op
from relay_hw.frontend.onnx.node import Arguments, Converter, Known, Node
from relay_hw.ir.expr import Expr

DTYPES = {
    1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64", 9: "bool", 10: "float16",
    11: "float64", 12: "uint32", 13: "uint64",
}  # fmt: skip


def _check_to(node: Node, known: Known) -> str | None:
    return None if node.attr("to") in DTYPES else f"to must be a numpy element type, not ONNX type {node.attr('to')}"


def _cast(node: Node, args: Arguments) -> Expr:
    return op.cast(args[0], DTYPES[node.attr("to")])


def _cast_like(node: Node, args: Arguments) -> Expr:
    return op.cast(args[0], args.dtype(args[1]))


def _bit_cast(node: Node, args: Arguments) -> Expr:
    return op.reinterpret(args[0], DTYPES[node.attr("to")])


CONVERTERS = (
    Converter("BitCast", _bit_cast, _check_to),
    Converter("Cast", _cast, _check_to),
    Converter("CastLike", _cast_like),
)
