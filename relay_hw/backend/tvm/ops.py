"""Relay operators as Relax expressions, one small function a family.

In: a flat call and its arguments as Relax expressions. Out: an expression, or None where Relax's own operator means
something else (integer pooling sums in int8, integer division traps), so that the call keeps its numpy meaning.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from relay_hw.backend.flat import FlatCall
from relay_hw.backend.tvm.api import relax, te, tirx, topi
from relay_hw.backend.tvm.api import relax_op as rx
from relay_hw.backend.tvm.schedule import pack_weight, packed_conv2d
from relay_hw.ir.types import TensorType, TupleType, Type

Arg = Any  # a Relax expression, or a tuple of them
FLOATS = ("float16", "float32", "float64")


@dataclass(frozen=True, slots=True)
class Context:
    """What a lowering may use: the block builder, vector lanes of the CPU, and numpy values of constant arguments."""

    builder: Any
    lanes: int
    constants: Mapping[int, Any]
    types: Sequence[Type]

    def constant(self, node: int) -> Any:
        """The value of an argument if it is known now, else None."""
        return self.constants.get(node)


Lowering = Callable[[Context, FlatCall, Sequence[Arg]], Arg | None]


def tensor(ty: Type) -> TensorType:
    """A type that must be a tensor's."""
    assert isinstance(ty, TensorType)
    return ty


def _dtype(expr: Any) -> str:
    return str(expr.ty.dtype)


def _shape(expr: Any) -> tuple[int, ...]:
    return tuple(int(d) for d in expr.ty.shape)


def _is_float(*exprs: Any) -> bool:
    return all(_dtype(expr) in FLOATS for expr in exprs)


def _floats(build: Callable[..., Any]) -> Lowering:
    """An operator of tensors without attributes that Relax has for floats only."""
    return lambda ctx, call, args: build(*args) if _is_float(*args) else None


def _any(build: Callable[..., Any]) -> Lowering:
    return lambda ctx, call, args: build(*args)


def _wrapping(build: Callable[[Any, Any], Any]) -> Lowering:
    """int32 sums and products wrap here; LLVM may assume that they never do, so they are made in int64."""

    def lower(ctx: Context, call: FlatCall, args: Sequence[Arg]) -> Arg | None:
        if _dtype(args[0]) == "int32":
            wide = [ctx.builder.normalize(rx.astype(arg, "int64")) for arg in args]
            return rx.astype(ctx.builder.normalize(build(*wide)), "int32")
        return None if _dtype(args[0]) in ("int64", "bool") else build(*args)

    return lower


def _relu(ctx: Context, call: FlatCall, args: Sequence[Arg]) -> Arg | None:
    return rx.maximum(args[0], relax.const(np.zeros((), _dtype(args[0]))))


def _clip(ctx: Context, call: FlatCall, args: Sequence[Arg]) -> Arg | None:
    return rx.clip(args[0], call.attrs.a_min, call.attrs.a_max) if _is_float(args[0]) else None


def _cast(ctx: Context, call: FlatCall, args: Sequence[Arg]) -> Arg | None:
    source, target = _dtype(args[0]), call.attrs.dtype
    # Out of range, a float has no defined integer.
    if (source in FLOATS and target not in FLOATS) or "bool" in (source, target):
        return None
    return rx.astype(args[0], target)


def _leaky_relu(ctx: Context, call: FlatCall, args: Sequence[Arg]) -> Arg | None:
    return rx.nn.leakyrelu(args[0], call.attrs.alpha) if _is_float(args[0]) else None


def _along(axis: int, rank: int) -> tuple[int, ...]:
    """A shape that puts a vector along `axis`."""
    return tuple(-1 if i == axis % rank else 1 for i in range(rank))


def _bias_add(ctx: Context, call: FlatCall, args: Sequence[Arg]) -> Arg | None:
    shape = _along(call.attrs.axis, len(_shape(args[0])))
    return _wrapping(rx.add)(ctx, call, [args[0], ctx.builder.normalize(rx.reshape(args[1], shape))])


def _accumulates(args: Sequence[Arg], out: str) -> bool:
    """Float in float out, or int8 in int32 out: sums that cannot overflow."""
    kinds = {_dtype(arg) for arg in args}
    return (kinds == {out} and out in FLOATS) or (kinds <= {"int8", "uint8"} and out == "int32")


def _dense(ctx: Context, call: FlatCall, args: Sequence[Arg]) -> Arg | None:
    out = tensor(call.type).dtype
    return rx.linear(*args, out_dtype=out) if _accumulates(args, out) else None


def _matmul(ctx: Context, call: FlatCall, args: Sequence[Arg]) -> Arg | None:
    out = tensor(call.type).dtype
    if not _accumulates(args, out):
        return None
    flags = (call.attrs.transpose_a, call.attrs.transpose_b)
    pairs = zip(args, flags, strict=True)
    left, right = (ctx.builder.normalize(_swap_last(arg)) if flag else arg for arg, flag in pairs)
    return rx.matmul(left, right, out_dtype=out)


def _swap_last(expr: Any) -> Any:
    axes = list(range(len(_shape(expr))))
    return rx.permute_dims(expr, axes[:-2] + [axes[-1], axes[-2]])


def padding4(padding: Sequence[int]) -> tuple[int, int, int, int]:
    """Top, left, bottom, right from a padding of 1, 2 or 4 numbers."""
    match tuple(padding):
        case (both,):
            return both, both, both, both
        case (height, width):
            return height, width, height, width
        case (top, left, bottom, right):
            return top, left, bottom, right
        case other:
            raise ValueError(f"padding must have 1, 2 or 4 numbers, not {other}")


def _two(values: Sequence[int]) -> tuple[int, int]:
    return (values[0], values[0]) if len(values) == 1 else (values[0], values[1])


def _conv2d(ctx: Context, call: FlatCall, args: Sequence[Arg]) -> Arg | None:
    a, out = call.attrs, tensor(call.type)
    if not _accumulates(args, out.dtype) or a.out_layout not in ("", a.data_layout):
        return None
    strides, dilation, padding = _two(a.strides), _two(a.dilation), padding4(a.padding)
    weight = ctx.constant(call.args[1])
    if weight is not None and a.groups == 1 and (a.data_layout, a.kernel_layout) == ("NCHW", "OIHW"):
        packed = relax.const(pack_weight(weight, ctx.lanes))
        return ctx.builder.call_te(
            packed_conv2d, args[0], packed, strides, padding, dilation, weight.shape[0], out.dtype
        )
    if (a.data_layout, a.kernel_layout) not in (("NCHW", "OIHW"), ("NHWC", "HWIO"), ("NHWC", "OHWI")):
        return None
    return rx.nn.conv2d(
        *args, strides, padding, dilation, a.groups, a.data_layout, a.kernel_layout, out_dtype=out.dtype
    )


def _conv2d_transpose(ctx: Context, call: FlatCall, args: Sequence[Arg]) -> Arg | None:
    a, out = call.attrs, tensor(call.type)
    if (a.data_layout, a.kernel_layout) != ("NCHW", "IOHW") or not _is_float(*args) or max(a.dilation) > 1:
        return None
    return rx.nn.conv2d_transpose(
        *args, _two(a.strides), padding4(a.padding), _two(a.output_padding), (1, 1), a.groups, out_dtype=out.dtype
    )


def _pool(ctx: Context, call: FlatCall, args: Sequence[Arg], build: Callable[..., Any], **extra: Any) -> Arg | None:
    a = call.attrs
    if a.layout not in ("NCHW", "NHWC") or a.out_layout not in ("", a.layout) or a.ceil_mode:
        return None
    window = (_two(a.pool_size), _two(a.strides), padding4(a.padding), _two(a.dilation))
    return build(args[0], *window, layout=a.layout, **extra)


def _max_pool2d(ctx: Context, call: FlatCall, args: Sequence[Arg]) -> Arg | None:
    return _pool(ctx, call, args, rx.nn.max_pool2d)


def _avg_pool2d(ctx: Context, call: FlatCall, args: Sequence[Arg]) -> Arg | None:
    if not _is_float(args[0]):
        return None
    return _pool(ctx, call, args, rx.nn.avg_pool2d, count_include_pad=call.attrs.count_include_pad)


def _global_pool(build: Callable[..., Any], floats_only: bool) -> Lowering:
    def lower(ctx: Context, call: FlatCall, args: Sequence[Arg]) -> Arg | None:
        layout = call.attrs.layout
        if layout not in ("NCHW", "NHWC") or (floats_only and not _is_float(args[0])):
            return None
        return build(args[0], axis=[layout.index("H"), layout.index("W")], keepdims=True)

    return lower


def _softmax(build: Callable[..., Any]) -> Lowering:
    return lambda ctx, call, args: build(args[0], axis=call.attrs.axis) if _is_float(args[0]) else None


def _pad(ctx: Context, call: FlatCall, args: Sequence[Arg]) -> Arg | None:
    value = ctx.constant(call.args[1])
    if call.attrs.pad_mode != "constant" or value is None:
        return None
    before, after = zip(*call.attrs.pad_width, strict=True)
    fill = tirx.const(np.asarray(value).item(), _dtype(args[0]))
    return ctx.builder.call_te(lambda x: topi.nn.pad(x, list(before), list(after), pad_value=fill), args[0])


def _to_result_shape(ctx: Context, call: FlatCall, args: Sequence[Arg]) -> Arg | None:
    """Reshape, flatten, squeeze, expand: inference has found the new shape already."""
    return rx.reshape(args[0], tensor(call.type).static_shape)


def _transpose(ctx: Context, call: FlatCall, args: Sequence[Arg]) -> Arg | None:
    rank = len(_shape(args[0]))
    axes = call.attrs.axes
    return rx.permute_dims(args[0], [a % rank for a in axes] if axes else list(range(rank))[::-1])


def _concatenate(ctx: Context, call: FlatCall, args: Sequence[Arg]) -> Arg | None:
    return rx.concat(list(args[0]), axis=call.attrs.axis)


def _split(ctx: Context, call: FlatCall, args: Sequence[Arg]) -> Arg | None:
    given = call.attrs.indices_or_sections
    sections = given if isinstance(given, int) else list(given)
    whole = ctx.builder.emit(rx.split(args[0], sections, call.attrs.axis))
    assert isinstance(call.type, TupleType)
    return tuple(relax.TupleGetItem(whole, i) for i in range(len(call.type.fields)))


def _reduce(build: Callable[..., Any]) -> Lowering:
    """Float reductions; Relax sums integers in their own narrow type."""

    def lower(ctx: Context, call: FlatCall, args: Sequence[Arg]) -> Arg | None:
        a, rank = call.attrs, len(_shape(args[0]))
        if not _is_float(args[0]):
            return None
        given = range(rank) if a.axis is None else [a.axis] if isinstance(a.axis, int) else a.axis
        axes = sorted(axis % rank for axis in given)
        if a.exclude and a.axis is not None:
            axes = [axis for axis in range(rank) if axis not in axes]
        return build(args[0], axis=axes, keepdims=bool(a.keepdims)) if axes else None

    return lower


def _layer_norm(ctx: Context, call: FlatCall, args: Sequence[Arg]) -> Arg | None:
    a = call.attrs
    return rx.nn.layer_norm(*args, axes=[a.axis], epsilon=a.epsilon, center=a.center, scale=a.scale)


def _rounded_shift(value: Any, shift: Any, rounding: str) -> Any:
    """TE: int64 `value` shifted right by int64 `shift`, rounded as named."""
    one = tirx.const(1, "int64")
    half = tirx.if_then_else(shift > 0, one << tirx.max(shift - one, tirx.const(0, "int64")), tirx.const(0, "int64"))
    match rounding:
        case "half_up":
            return (value + half) >> shift
        case "half_away":
            return (value + half - tirx.if_then_else(tirx.all(value < 0, shift > 0), one, one - one)) >> shift
        case "half_even":
            odd = (value >> shift) & one
            return (value + half - tirx.if_then_else(shift > 0, one - odd, one - one)) >> shift
        case _:
            return value >> shift


def _saturate(value: Any, zero_point: int, a_min: int, a_max: int) -> Any:
    shifted = value + tirx.const(zero_point, "int64")
    limited = tirx.min(tirx.max(shifted, tirx.const(a_min, "int64")), tirx.const(a_max, "int64"))
    return limited.astype("int8")


def _requantize(ctx: Context, call: FlatCall, args: Sequence[Arg]) -> Arg | None:
    a, out = call.attrs, tensor(call.type)
    channels = out.static_shape[a.axis]
    table = np.empty((2, channels), np.int64)
    table[0], table[1] = a.multiplier, a.shift

    def compute(acc: Any, bias: Any, numbers: Any) -> Any:
        def element(*index: Any) -> Any:
            c = index[a.axis]
            total = (acc(*index).astype("int64") + bias(c).astype("int64")).astype("int32").astype("int64")
            return _saturate(
                _rounded_shift(total * numbers(0, c), numbers(1, c), a.rounding), a.zero_point, a.a_min, a.a_max
            )

        return te.compute(acc.shape, element, name="requantize")

    return ctx.builder.call_te(compute, args[0], args[1], relax.const(table))


def _accel_add(ctx: Context, call: FlatCall, args: Sequence[Arg]) -> Arg | None:
    a = call.attrs

    def compute(y: Any, r: Any) -> Any:
        def element(*index: Any) -> Any:
            left = (y(*index).astype("int64") - a.y_zero_point) * tirx.const(a.y_multiplier, "int64")
            right = (r(*index).astype("int64") - a.r_zero_point) * tirx.const(a.r_multiplier, "int64")
            total = _rounded_shift(left + right, tirx.const(a.shift, "int64"), a.rounding)
            return _saturate(total, a.zero_point, a.a_min, a.a_max)

        return te.compute(y.shape, element, name="accel_add")

    return ctx.builder.call_te(compute, *args)


_UNARY_NAMES = (
    "abs",
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "ceil",
    "cos",
    "cosh",
    "erf",
    "exp",
    "floor",
    "log",
    "rsqrt",
    "sigmoid",
    "sin",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
    "trunc",
)
_UNARY = {name: _floats(getattr(rx, name)) for name in _UNARY_NAMES}
_COMPARE = {
    name: _any(getattr(rx, name)) for name in ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
}

LOWERINGS: Mapping[str, Lowering] = MappingProxyType(
    _UNARY
    | _COMPARE
    | {
        "negative": _floats(rx.negative),
        "nn.relu": _relu,
        "nn.leaky_relu": _leaky_relu,
        "clip": _clip,
        "cast": _cast,
        "add": _wrapping(rx.add),
        "subtract": _wrapping(rx.subtract),
        "multiply": _wrapping(rx.multiply),
        "divide": _floats(rx.divide),
        "power": _floats(rx.power),
        "maximum": _any(rx.maximum),
        "minimum": _any(rx.minimum),
        "nn.bias_add": _bias_add,
        "nn.dense": _dense,
        "nn.matmul": _matmul,
        "nn.batch_matmul": _matmul,
        "nn.conv2d": _conv2d,
        "nn.conv2d_transpose": _conv2d_transpose,
        "nn.max_pool2d": _max_pool2d,
        "nn.avg_pool2d": _avg_pool2d,
        "nn.global_avg_pool2d": _global_pool(rx.mean, floats_only=True),
        "nn.global_max_pool2d": _global_pool(rx.max, floats_only=False),
        "nn.softmax": _softmax(rx.nn.softmax),
        "nn.log_softmax": _softmax(rx.nn.log_softmax),
        "nn.layer_norm": _layer_norm,
        "nn.pad": _pad,
        "nn.batch_flatten": _to_result_shape,
        "reshape": _to_result_shape,
        "squeeze": _to_result_shape,
        "expand_dims": _to_result_shape,
        "transpose": _transpose,
        "concatenate": _concatenate,
        "split": _split,
        "sum": _reduce(rx.sum),
        "mean": _reduce(rx.mean),
        "max": _reduce(rx.max),
        "min": _reduce(rx.min),
        "accel.requantize": _requantize,
        "accel.add": _accel_add,
    }
)
