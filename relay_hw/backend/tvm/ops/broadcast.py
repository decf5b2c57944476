"""Binary operators with broadcasting: arithmetic, comparisons, logic, shifts; `where`, `nn.prelu`, bias."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from relay_hw.backend.flat import FlatCall
from relay_hw.backend.tvm import scalars as s
from relay_hw.backend.tvm.api import tirx
from relay_hw.backend.tvm.ops.base import (
    FLOATS,
    Arg,
    Context,
    Lowering,
    dtype_of,
    elementwise,
    is_float,
    reshape,
    shape_of,
)

Scalar = s.Scalar
Binary = Callable[[Scalar, Scalar], Scalar]


def _binary(build: Binary, without: Sequence[str] = ()) -> Lowering:
    """Of any element type but those."""

    def lower(ctx: Context, call: FlatCall, args: Sequence[Arg]) -> Arg | None:
        return None if dtype_of(args[0]) in without else elementwise(ctx, call, args, build)

    return lower


def _divisor_fits(ctx: Context, call: FlatCall, dtype: str) -> bool:
    """Whether integer division by a constant can neither fail nor overflow."""
    divisor = ctx.constant(call.args[1])
    if divisor is None or dtype in ("bool", "uint64") or not np.all(divisor):
        return False
    return dtype != "int64" or not np.any(divisor == -1)


def _division(integer: Binary, real: Binary | None) -> Lowering:
    """`real`: for floats, where LLVM has it."""

    def whole(a: Scalar, b: Scalar) -> Scalar:
        return integer(a.astype("int64"), b.astype("int64"))

    def lower(ctx: Context, call: FlatCall, args: Sequence[Arg]) -> Arg | None:
        if is_float(args[0]):
            return None if real is None else elementwise(ctx, call, args, real)
        return elementwise(ctx, call, args, whole) if _divisor_fits(ctx, call, dtype_of(args[0])) else None

    return lower


def _shift(left: bool) -> Lowering:
    """Shifts; counts of at least the bit width act like repeated shifts by one."""

    def scalar(a: Scalar, b: Scalar) -> Scalar:
        return s.bind(shifted, a, b)

    def shifted(a: Scalar, b: Scalar) -> Scalar:
        bits = np.dtype(s.kind(a)).itemsize * 8
        near = tirx.min(tirx.max(b, s.number(0, s.kind(b))), s.number(bits - 1, s.kind(b)))
        once = a << near if left else a >> near
        one = s.number(1, s.kind(a))
        return s.select(b >= s.number(bits, s.kind(b)), once << one if left else once >> one, once)

    return _binary(scalar, (*FLOATS, "bool", "uint8", "uint16", "uint32", "uint64"))


def _power(ctx: Context, call: FlatCall, args: Sequence[Arg]) -> Arg | None:
    return elementwise(ctx, call, args, lambda a, b: tirx.pow(s.real(a), s.real(b))) if is_float(args[0]) else None


def _bits(build: Binary, logic: Binary) -> Lowering:
    return _binary(lambda a, b: logic(a, b) if s.kind(a) == "bool" else build(a, b), FLOATS)


def _logic(build: Binary) -> Lowering:
    return _binary(lambda a, b: build(s.truth(a), s.truth(b)))


def _xor(a: Scalar, b: Scalar) -> Scalar:
    return tirx.any(tirx.all(a, tirx.Not(b)), tirx.all(tirx.Not(a), b))


def _where(ctx: Context, call: FlatCall, args: Sequence[Arg]) -> Arg | None:
    return elementwise(ctx, call, args, lambda c, x, y: s.select(s.truth(c), x, y))


def _along(ctx: Context, vector: Any, axis: int, like: Any) -> Any:
    """A vector shaped so that it broadcasts along an axis."""
    rank = len(shape_of(like))
    return reshape(ctx, vector, [shape_of(vector)[0] if at == axis % rank else 1 for at in range(rank)])


def _bias_add(ctx: Context, call: FlatCall, args: Sequence[Arg]) -> Arg | None:
    if dtype_of(args[0]) in ("bool", "uint64"):
        return None
    return elementwise(ctx, call, [args[0], _along(ctx, args[1], call.attrs.axis, args[0])], s.add)


def _prelu(ctx: Context, call: FlatCall, args: Sequence[Arg]) -> Arg | None:
    if not is_float(args[0]):
        return None
    slope = _along(ctx, args[1], call.attrs.axis, args[0])
    return elementwise(
        ctx, call, [args[0], slope], lambda x, a: s.bind(lambda v: s.select(v > s.number(0, s.kind(v)), v, v * a), x)
    )


LOWERINGS: Mapping[str, Lowering] = MappingProxyType(
    {
        "add": _binary(s.add, ("bool", "uint64")),
        "subtract": _binary(s.subtract, ("bool", "uint64")),
        "multiply": _binary(s.multiply, ("bool", "int64", "uint64")),
        "divide": _division(tirx.truncdiv, lambda a, b: a / b),
        "trunc_divide": _division(tirx.truncdiv, lambda a, b: tirx.trunc(a / b)),
        "floor_divide": _division(tirx.floordiv, lambda a, b: tirx.floor(a / b)),
        "mod": _division(tirx.truncmod, None),
        "trunc_mod": _division(tirx.truncmod, None),
        "floor_mod": _division(tirx.floormod, None),
        "power": _power,
        "maximum": _binary(s.maximum, ("bool",)),
        "minimum": _binary(s.minimum, ("bool",)),
        "left_shift": _shift(True),
        "right_shift": _shift(False),
        "bitwise_and": _bits(lambda a, b: a & b, tirx.all),
        "bitwise_or": _bits(lambda a, b: a | b, tirx.any),
        "bitwise_xor": _bits(lambda a, b: a ^ b, _xor),
        "logical_and": _logic(tirx.all),
        "logical_or": _logic(tirx.any),
        "logical_xor": _logic(_xor),
        "equal": _binary(s.same, ("bool",)),
        "not_equal": _binary(s.not_equal, ("bool",)),
        "less": _binary(lambda a, b: a < b, ("bool",)),
        "less_equal": _binary(lambda a, b: a <= b, ("bool",)),
        "greater": _binary(lambda a, b: a > b, ("bool",)),
        "greater_equal": _binary(lambda a, b: a >= b, ("bool",)),
        "where": _where,
        "nn.prelu": _prelu,
        "nn.bias_add": _bias_add,
    }
)
