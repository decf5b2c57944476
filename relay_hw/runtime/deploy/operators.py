"""Translates operators at the accelerator's border to calls of the C runtime.

In: a flat call with its operands' types and constants. Out: a C statement over operands and result, or a reason.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relay_hw.backend.flat import FlatCall
from relay_hw.ir.expr import Trait
from relay_hw.ir.types import TensorType
from relay_hw.op import with_trait
from relay_hw.support.quote import c_string

Array = NDArray[Any]
# Values of an operator's constant operands, None if they are computed.
Constants = Sequence[Array | None]
# A constant's address in C.
Keep = Callable[[Array], str]
# A statement with $0 for the first operand and $out for the result; None if the C runtime has no such case.
Statement = Callable[[FlatCall, Sequence[TensorType], Constants, Keep], str | None]
QUANTIZED = ("int8", "uint8")


def _tensor(call: FlatCall) -> TensorType:
    assert isinstance(call.type, TensorType)
    return call.type


def _numbers(call: FlatCall, data: TensorType, constants: Constants, keep: Keep, dtype: str) -> str | None:
    """A `rhw_quant` for the scale and zero point of a call, which range over `dtype`."""
    scale, zero = constants[1], constants[2]
    if scale is None or zero is None:
        return None
    shape = data.static_shape
    count = max(scale.size, zero.size)
    axis = call.attrs.axis % max(len(shape), 1)
    inner = 1 if count == 1 else prod(shape[axis + 1 :])
    both = [np.broadcast_to(value.reshape(-1), (count,)) for value in (scale, zero)]
    info = np.iinfo(dtype)
    even = int(getattr(call.attrs, "rounding", "") == "half_even")
    scales, zeros = keep(both[0].astype(np.float32)), keep(both[1].astype(np.int32))
    return f"&(rhw_quant){{{prod(shape)}, {count}, {inner}, {scales}, {zeros}, {info.min}, {info.max}, {even}}}"


def _quantize(call: FlatCall, types: Sequence[TensorType], constants: Constants, keep: Keep) -> str | None:
    out = _tensor(call).dtype
    if types[0].dtype != "float32" or out not in QUANTIZED:
        return None
    numbers = _numbers(call, types[0], constants, keep, out)
    return None if numbers is None else f"rhw_quantize_{out}($0, $out, {numbers});"


def _dequantize(call: FlatCall, types: Sequence[TensorType], constants: Constants, keep: Keep) -> str | None:
    source = types[0].dtype
    if _tensor(call).dtype != "float32" or source not in (*QUANTIZED, "int32"):
        return None
    numbers = _numbers(call, types[0], constants, keep, "int8")
    return None if numbers is None else f"rhw_dequantize_{source}($0, $out, {numbers});"


def _softmax(logarithm: int) -> Statement:
    def statement(call: FlatCall, types: Sequence[TensorType], constants: Constants, keep: Keep) -> str | None:
        shape = types[0].static_shape
        if types[0].dtype != "float32":
            return None
        axis = call.attrs.axis % len(shape)
        sizes = f"{prod(shape[:axis])}, {shape[axis]}, {prod(shape[axis + 1 :])}"
        return f"rhw_softmax($0, $out, {sizes}, {logarithm});"

    return statement


def _transpose(call: FlatCall, types: Sequence[TensorType], constants: Constants, keep: Keep) -> str | None:
    shape = types[0].static_shape
    rank = len(shape)
    if not 0 < rank <= 8:
        return None
    axes = [axis % rank for axis in call.attrs.axes] if call.attrs.axes else list(range(rank))[::-1]
    size = np.dtype(types[0].dtype).itemsize
    return f"rhw_transpose($0, $out, {rank}, {_sizes(shape)}, {_sizes(axes)}, {size});"


def _sizes(values: Sequence[int]) -> str:
    return f"(const size_t[]){{{', '.join(map(str, values))}}}"


def finite_check(what: str, ty: TensorType) -> str | None:
    """A statement that ends the run if $0 has NaN or infinity; None for a tensor of integers."""
    if np.dtype(ty.dtype).kind != "f":
        return None
    shape = ty.static_shape or (1,)
    sizes = f"{np.dtype(ty.dtype).itemsize}, {len(shape)}, {_sizes(shape)}"
    return f"if (rhw_check_finite(c, {c_string(what)}, $0, {sizes})) return -1;"


STATEMENTS: Mapping[str, Statement] = MappingProxyType(
    {
        "qnn.quantize": _quantize,
        "qnn.dequantize": _dequantize,
        "nn.softmax": _softmax(0),
        "nn.log_softmax": _softmax(1),
        "transpose": _transpose,
    }
)
# Results that are their operand under another shape.
VIEWS = frozenset({*with_trait(Trait.RESHAPES), "copy"})
