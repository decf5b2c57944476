"""The C text of each elementwise operator on numbers, as the operators' reference semantics have it.

In: an operator, its attributes, C texts of its arguments. Out: a C expression, or None for what C is not used for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from relay_hw.backend.native.nodes import C_TYPES

Text = Callable[[Any, str, Sequence[str]], str | None]
_REAL = {"float32": "f", "float64": ""}
_COMPARE = {"equal": "==", "not_equal": "!=", "less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">="}
_LOGIC = {"logical_and": "&&", "logical_or": "||", "logical_xor": "!="}
_BITS = {"bitwise_and": "&", "bitwise_or": "|", "bitwise_xor": "^"}
_ARITHMETIC = {"add": "+", "subtract": "-", "multiply": "*"}
_DIVISION = {
    "divide": "divide", "trunc_divide": "divide", "floor_divide": "floor_divide",
    "mod": "mod", "trunc_mod": "mod", "floor_mod": "floor_mod",
}  # fmt: skip
# Functions of math.h, and those of the runtime in their place for float32, which give the same bits everywhere.
_MATH = {
    "acos": "acos", "acosh": "acosh", "asin": "asin", "asinh": "asinh", "atan": "atan", "atanh": "atanh", "cos": "cos",
    "cosh": "cosh", "log": "log", "log10": "log10", "log2": "log2", "sin": "sin", "sinh": "sinh", "sqrt": "sqrt",
    "tan": "tan", "exp": "exp", "fast_exp": "exp", "tanh": "tanh", "fast_tanh": "tanh", "erf": "erf", "fast_erf": "erf",
}  # fmt: skip
_OWN = {"exp", "fast_exp", "tanh", "fast_tanh"}
_WHOLE = {"ceil": "ceil", "floor": "floor", "trunc": "trunc", "round": "round"}
_TESTS = {"isnan": "({0} != {0})", "isinf": "({0} == {0} && {0} - {0} != 0)", "isfinite": "({0} - {0} == 0)"}
# Operators that fail for some numbers: they are computed where they stand.
MAY_FAIL = frozenset(_DIVISION)


def compute(op: str, attrs: Any, dtype: str, kinds: Sequence[str], args: Sequence[str]) -> str | None:
    """C for a number of type `dtype`: `op` on numbers of types `kinds`, which `args` are the texts of."""
    if any(kind not in C_TYPES for kind in (dtype, *kinds)):
        return None
    kind = kinds[0]
    match op:
        case "qnn.quantize":
            return quantize(dtype, attrs.rounding == "half_even", *args)
        case "qnn.dequantize":
            x, scale, zero = args
            return f"({C_TYPES[dtype]})((float)((int64_t){x} - {zero}) * {scale})"
        case _:
            pass
    text = _binary(op, kind, args) if len(args) == 2 else _other(op, attrs, dtype, kind, args)
    return None if text is None else f"({C_TYPES[dtype]}){text}"


def quantize(kind: str, half_even: bool, x: str, scale: str, zero: str) -> str:
    """C for the integer of type `kind` that stands for a float."""
    info = np.iinfo(kind)
    ends = f"INT64_C({info.min}), INT64_C({info.max})"
    return f"({C_TYPES[kind]})rhw_quantized((float){x}, {scale}, {zero}, {ends}, {int(half_even)})"


def number(value: bool | int | float, dtype: str) -> str:
    """C for a constant."""
    if dtype not in _REAL:
        if dtype == "uint64":
            return f"UINT64_C({int(value)})"
        least = "(-INT64_C(9223372036854775807) - 1)" if value == -(2**63) else f"INT64_C({int(value)})"
        return f"({C_TYPES[dtype]}){least}"
    if math.isnan(value):
        return f"({C_TYPES[dtype]})NAN"
    if math.isinf(value):
        return f"({C_TYPES[dtype]}){'-' * (value < 0)}INFINITY"
    return f"({float(value).hex()}{_REAL[dtype]})"


def _binary(op: str, kind: str, args: Sequence[str]) -> str | None:
    a, b = args
    if op in _COMPARE:
        return f"({a} {_COMPARE[op]} {b})"
    if op in _LOGIC:
        return f"(({a} != 0) {_LOGIC[op]} ({b} != 0))"
    if kind == "bool":
        return f"({a} {_BITS[op]} {b})" if op in _BITS else None
    if op in _ARITHMETIC:
        return f"({_promoted(kind, a)} {_ARITHMETIC[op]} {_promoted(kind, b)})"
    if op in _BITS:
        return None if kind in _REAL else f"({a} {_BITS[op]} {b})"
    if op in ("maximum", "minimum"):
        sign = ">" if op == "maximum" else "<"
        return f"rhw_{op}_{kind}({a}, {b})" if kind in _REAL else f"({a} {sign} {b} ? {a} : {b})"
    if op in _DIVISION:
        return _divided(op, kind, a, b)
    if op in ("left_shift", "right_shift") and kind not in _REAL:
        return f"rhw_{op}_{kind}({a}, {b})"
    return f"pow{_REAL[kind]}({a}, {b})" if op == "power" and kind in _REAL else None


def _promoted(kind: str, text: str) -> str:
    """Narrow unsigned factors would be multiplied as signed numbers."""
    return f"(uint32_t){text}" if kind == "uint16" else text


def _divided(op: str, kind: str, a: str, b: str) -> str:
    if kind not in _REAL:
        return f'rhw_{_DIVISION[op]}_{kind}(r, {a}, {b}, "{op}")'
    suffix = _REAL[kind]
    whole = {"divide": "", "trunc_divide": f"trunc{suffix}", "floor_divide": f"floor{suffix}"}.get(op)
    if whole is not None:
        return f"{whole}({a} / {b})"
    return f"fmod{suffix}({a}, {b})" if _DIVISION[op] == "mod" else f"rhw_floor_mod_{kind}({a}, {b})"


def _other(op: str, attrs: Any, dtype: str, kind: str, args: Sequence[str]) -> str | None:
    x = args[0]
    match op:
        case "where":
            return f"({x} != 0 ? {args[1]} : {args[2]})"
        case "copy" | "annotation.stop_fusion":
            return x
        case "cast":
            return f"({x} != 0)" if dtype == "bool" else x if not _is_narrowing(kind, dtype) else f"(int64_t){x}"
        case "logical_not":
            return f"({x} == 0)"
        case "bitwise_not":
            return f"({x} == 0)" if kind == "bool" else None if kind in _REAL else f"(~{x})"
        case "isnan" | "isinf" | "isfinite":
            return _TESTS[op].format(x) if kind in _REAL else str(int(op == "isfinite"))
        case _ if kind == "bool":
            return None
        case "clip":
            return _clipped(attrs, kind, x)
        case "negative":
            return f"(-{x})"
        case _ if kind in _REAL:
            return _real(op, attrs, kind, x)
        case _:
            return _integer(op, kind, x)


def _is_narrowing(kind: str, dtype: str) -> bool:
    """A float that does not fit a narrow integer must not be undefined in C where it wraps in numpy."""
    return kind in _REAL and dtype in ("int8", "int16", "uint8", "uint16", "uint32")


def _integer(op: str, kind: str, x: str) -> str | None:
    match op:
        case "abs":
            return x if kind.startswith("u") else f"({x} < 0 ? -{x} : {x})"
        case "sign":
            return f"(({x} > 0) - ({x} < 0))"
        case "nn.relu":
            return f"({x} > 0 ? {x} : 0)"
        case _:
            return x if op in _WHOLE else None


def _real(op: str, attrs: Any, kind: str, x: str) -> str | None:
    suffix = _REAL[kind]
    if op in _OWN and kind == "float32":
        return f"rhw_{_MATH[op]}f({x})"
    if _MATH.get(op) == "erf":
        return f"erf((double){x})"
    if op in _MATH or op in _WHOLE:
        return f"{(_MATH | _WHOLE)[op]}{suffix}({x})"
    match op:
        case "abs":
            return f"fabs{suffix}({x})"
        case "sign":
            return f"rhw_sign_{kind}({x})"
        case "rsqrt":
            return f"(1 / sqrt{suffix}({x}))"
        case "sigmoid":
            return f"(1 / (1 + {'rhw_expf' if kind == 'float32' else 'exp'}(-{x})))"
        case "nn.relu":
            return f"rhw_maximum_{kind}({x}, 0)"
        case "hardswish":
            return f"({x} * (rhw_minimum_{kind}(rhw_maximum_{kind}({x} + 3, 0), 6) / 6))"
        case "nn.leaky_relu":
            return f"({x} > 0 ? {x} : {x} * {number(float(np.dtype(kind).type(attrs.alpha)), kind)})"
        case _:
            return None


def _clipped(attrs: Any, kind: str, x: str) -> str:
    low, high = attrs.a_min, attrs.a_max
    if kind in _REAL:
        bounds = [number(float(np.dtype(kind).type(bound)), kind) for bound in (low, high)]
        return f"rhw_minimum_{kind}(rhw_maximum_{kind}({x}, {bounds[0]}), {bounds[1]})"
    info = np.iinfo(kind)
    least = number(max(math.ceil(low), int(info.min)), kind)
    most = number(min(math.floor(high), int(info.max)), kind)
    return f"({x} < {least} ? {least} : {x} > {most} ? {most} : {x})"
