"""The QNN dialect by way of real numbers: `qnn.tanh` and its kind, and quantize and dequantize simulated in floats.

In: types, attributes, arrays. Out: types, arrays, `Call` nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any as AnyValue
from typing import Final

import numpy as np

from relay_hw.errors import TypeCheckError
from relay_hw.ir.expr import Call, Constant, Expr, FusionPattern, Op, Solver
from relay_hw.ir.types import TensorType, Type
from relay_hw.op import activation, elementwise
from relay_hw.op.activation import LEAKY_RELU, LeakyReluAttrs
from relay_hw.op.base import Array, Attrs, Ints, call, full_padding, out_type, round_half_away, spread, tensor
from relay_hw.op.pool import AVG_POOL2D, AvgPool2DAttrs
from relay_hw.op.qnn_scale import (
    QuantizeAttrs,
    axis_size,
    check_param,
    check_params,
    check_quantized,
    dequantize_value,
    fit,
    quantize_value,
)
from relay_hw.op.softmax import SOFTMAX, SoftmaxAttrs

_ELEMENTWISE: Final = ("abs", "erf", "exp", "hardswish", "log", "rsqrt", "sigmoid", "sqrt", "tanh")
_KNOWN: Final = {one.name: one for one in (*elementwise.OPS, *activation.OPS)}

# The operator on real numbers that each operator of the dialect stands for.
FLOATS: Final = MappingProxyType(
    {
        **{f"qnn.{name}": _KNOWN[name] for name in _ELEMENTWISE},
        "qnn.leaky_relu": LEAKY_RELU,
        "qnn.softmax": SOFTMAX,
        "qnn.avg_pool2d": AVG_POOL2D,
    }
)


def _real(name: str, x: TensorType, attrs: AnyValue, solver: Solver) -> TensorType:
    """The type that the operator on real numbers gives."""
    return out_type(FLOATS[name].relation([TensorType(x.shape, "float32")], attrs, solver))  # type: ignore[arg-type]


def _by_floats(name: str) -> Op:
    function = FLOATS[name]

    def relation(types: Sequence[Type], attrs: AnyValue, solver: Solver) -> Type | None:
        x = tensor(name, types, 0)
        if x is None:
            return None
        check_quantized(name, x.dtype)
        check_params(name, solver, "input", types[1:3], 1)
        check_params(name, solver, "output", types[3:5], 1)
        return TensorType(_real(name, x, attrs, solver).shape, x.dtype)

    def reference(attrs: AnyValue, values: Sequence[Array], result: Type) -> Array:
        ty = out_type(result)
        real = dequantize_value(np.asarray(values[0]), values[1], values[2], -1)
        value = function.reference(attrs, [real], TensorType(ty.shape, "float32"))
        return quantize_value(np.asarray(value), values[3], values[4], QuantizeAttrs(ty.dtype))

    return Op(
        name,
        5,
        relation,
        reference,
        attrs_type=function.attrs_type,
        pattern=function.pattern,
        doc=f"{function.doc}; of quantized numbers, quantized",
    )


BY_FLOATS: Final = tuple(_by_floats(name) for name in FLOATS)
_OF: Final = {one.name: one for one in BY_FLOATS}


def _unary_builder(name: str) -> Callable[[Expr, Expr, Expr, Expr, Expr], Call]:
    op = _OF[f"qnn.{name}"]

    def build(x: Expr, scale: Expr, zero_point: Expr, output_scale: Expr, output_zero_point: Expr) -> Call:
        return call(op, (x, scale, zero_point, output_scale, output_zero_point))

    build.__doc__ = op.doc
    build.__name__ = name
    return build


abs, erf, exp, hardswish, log, rsqrt, sigmoid, sqrt, tanh = map(_unary_builder, _ELEMENTWISE)


def leaky_relu(
    x: Expr, alpha: float, scale: Expr, zero_point: Expr, output_scale: Expr, output_zero_point: Expr
) -> Call:
    """Quantized `x` where it stands for a positive number, else `alpha` times it."""
    args = (x, scale, zero_point, output_scale, output_zero_point)
    return call(_OF["qnn.leaky_relu"], args, LeakyReluAttrs(alpha))


def softmax(
    x: Expr, scale: Expr, zero_point: Expr, output_scale: Expr, output_zero_point: Expr, axis: int = -1
) -> Call:
    """Softmax of quantized `x` along `axis`."""
    return call(_OF["qnn.softmax"], (x, scale, zero_point, output_scale, output_zero_point), SoftmaxAttrs(axis))


def avg_pool2d(
    data: Expr,
    input_scale: Expr,
    input_zero_point: Expr,
    output_scale: Expr,
    output_zero_point: Expr,
    pool_size: Ints,
    strides: Ints = (1, 1),
    padding: Ints = (0, 0),
    dilation: Ints = (1, 1),
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    layout: str = "NCHW",
    out_layout: str = "",
) -> Call:
    """The mean of every window of quantized `data`; padding represents 0."""
    geometry = spread(pool_size, 2), spread(strides, 2), spread(dilation, 2), full_padding(padding, 2)
    args = (data, input_scale, input_zero_point, output_scale, output_zero_point)
    return call(
        _OF["qnn.avg_pool2d"], args, AvgPool2DAttrs(*geometry, layout, out_layout, ceil_mode, count_include_pad)
    )


@dataclass(frozen=True, slots=True)
class SimulatedQuantizeAttrs(Attrs):
    axis: int = -1


# The codes of element types that a simulation may be told at run time.
CODES: Final = MappingProxyType({"disable": 0, "int8": 1, "uint8": 2, "int32": 3})
_TYPES: Final = {code: name for name, code in CODES.items()}


def _simulated_type(name: str):
    def relation(types: Sequence[Type], attrs: SimulatedQuantizeAttrs, solver: Solver) -> Type | None:
        x = tensor(name, types, 0)
        if x is None:
            return None
        if not x.dtype.startswith("float"):
            raise TypeCheckError(f"the data of {name} must be floats, not {x.dtype}")
        check_param(name, solver, "element type", types[1], "int32", 1)
        size = axis_size(name, attrs.axis, x)
        check_param(name, solver, "scale", types[2], "float32", size)
        check_param(name, solver, "zero point", types[3], "int32", size)
        return x

    return relation


def _simulated(is_quantize: bool):
    def reference(attrs: SimulatedQuantizeAttrs, values: Sequence[Array], result: Type) -> Array:
        x = np.asarray(values[0])
        dtype = _TYPES.get(int(np.ravel(values[1])[0]), "disable")
        scale, zero = (fit(value, attrs.axis, x.ndim).astype(x.dtype) for value in values[2:])
        if dtype == "disable":
            return x
        if not is_quantize:
            return ((x - zero) * scale).astype(x.dtype)
        info = np.iinfo(dtype)
        with np.errstate(all="ignore"):
            return np.clip(round_half_away(x / scale) + zero, info.min, info.max).astype(x.dtype)

    return reference


SIMULATED_QUANTIZE, SIMULATED_DEQUANTIZE = (
    Op(
        f"qnn.simulated_{word}",
        4,
        _simulated_type(f"qnn.simulated_{word}"),
        _simulated(word == "quantize"),
        attrs_type=SimulatedQuantizeAttrs,
        pattern=FusionPattern.ELEMWISE,
        doc=f"what qnn.{word} computes, in floats, for an element type that is an argument",
    )
    for word in ("quantize", "dequantize")
)


def _code(dtype: str | Expr) -> Expr:
    if isinstance(dtype, Expr):
        return dtype
    if dtype not in CODES:
        raise TypeCheckError(f"a simulated element type must be one of {', '.join(CODES)}, not {dtype}")
    return Constant(np.array(CODES[dtype], np.int32))


def simulated_quantize(
    data: Expr, output_scale: Expr, output_zero_point: Expr, axis: int = -1, out_dtype: str | Expr = "int8"
) -> Call:
    """`data` as quantize would have it, in floats; `out_dtype` may be a run-time number of `CODES`."""
    args = (data, _code(out_dtype), output_scale, output_zero_point)
    return call(SIMULATED_QUANTIZE, args, SimulatedQuantizeAttrs(axis))


def simulated_dequantize(
    data: Expr, input_scale: Expr, input_zero_point: Expr, axis: int = -1, in_dtype: str | Expr = "int8"
) -> Call:
    """What dequantize would give of numbers that simulated_quantize made."""
    args = (data, _code(in_dtype), input_scale, input_zero_point)
    return call(SIMULATED_DEQUANTIZE, args, SimulatedQuantizeAttrs(axis))


OPS = (*BY_FLOATS, SIMULATED_QUANTIZE, SIMULATED_DEQUANTIZE)
