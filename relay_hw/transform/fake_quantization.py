"""Fake quantization: float operators between dequantize and quantize become integer operators of the QNN dialect."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from relay_hw.errors import UnsupportedError
from relay_hw.ir.expr import Call, Constant, Expr, Function, Trait, Tuple
from relay_hw.ir.module import IRModule
from relay_hw.ir.visit import Rewriter
from relay_hw.op import with_trait
from relay_hw.transform.base import FunctionPass
from relay_hw.transform.graph import (
    constant,
    constant_value,
    dtype_of,
    is_external,
    is_op,
    make,
    op_name,
    typed,
    typed_tuple,
)


class FakeQuantizationToInteger(FunctionPass):
    """Each `qnn.quantize` whose operand is made of `qnn.dequantize` and constants by known operators only becomes the
    same computation on integers. Results may differ from the float computation by a rounding step.

    With `hard_fail` a part that cannot be rewritten raises UnsupportedError.
    """

    name = "fake-quantization-to-integer"
    opt_level = 0
    pins_effects = True

    def __init__(self, hard_fail: bool = False) -> None:
        self.hard_fail = hard_fail

    def transform_function(self, function: Function, mod: IRModule) -> Function:
        if is_external(function):
            return function
        new = _Rewriter(self.hard_fail).rewrite(function)
        assert isinstance(new, Function)
        return new


@dataclass(frozen=True, slots=True)
class Affine:
    """Affine quantization of a tensor: q represents scale * (q - zero), with one pair or one per index of `axis`."""

    scale: Expr
    zero: Expr
    dtype: str
    axis: int = -1

    @property
    def is_per_tensor(self) -> bool:
        return all(int(np.prod(part.tensor_type.static_shape)) == 1 for part in (self.scale, self.zero))


@dataclass(frozen=True, slots=True)
class Quantized:
    """Integers with their quantization; for a tuple, its fields."""

    expr: Expr
    affine: Affine
    parts: tuple[Quantized, ...] = ()


class _Refusal(Exception):
    pass


class _Rewriter(Rewriter):
    def __init__(self, hard_fail: bool) -> None:
        super().__init__()
        self._hard_fail = hard_fail

    def _rewrite_node(self, node: Expr) -> Expr:
        return typed(super()._rewrite_node(node), node.checked_type)

    def rewrite_call(self, old: Call, new: Call) -> Expr:
        if not is_op(old, "qnn.quantize"):
            return new
        target = Affine(new.args[1], new.args[2], new.attrs.out_dtype, new.attrs.axis)
        try:
            return self._integers(old, target)
        except _Refusal as refusal:
            if self._hard_fail:
                raise UnsupportedError(f"fake quantization must be free of {refusal}", old.span) from None
            return new

    def _integers(self, quantize: Call, target: Affine) -> Expr:
        done: dict[Expr, Quantized] = {}
        for node in _island(quantize.args[0]):
            if isinstance(node, Call) and is_op(node, "qnn.dequantize"):
                data, scale, zero = (self._memo[arg] for arg in node.args)
                done[node] = Quantized(data, Affine(scale, zero, dtype_of(node.args[0]), node.attrs.axis))
            elif isinstance(node, Tuple):
                parts = tuple(_quantized(part, done, target) for part in node.fields)
                done[node] = Quantized(typed_tuple([part.expr for part in parts]), target, parts)
            elif isinstance(node, Call) and op_name(node) in RULES:
                done[node] = RULES[op_name(node)](node, done, target)
            elif not isinstance(node, Constant):
                raise _Refusal(op_name(node) or type(node).__name__)
        found = done.get(quantize.args[0])
        if found is None or is_op(quantize.args[0], "qnn.dequantize"):
            raise _Refusal("operators")
        return _to(found, target, quantize)


def _island(root: Expr) -> list[Expr]:
    """The nodes that `root` depends on, down to the dequantizes, operands first."""
    order: list[Expr] = []
    seen: set[Expr] = set()
    stack: list[tuple[Expr, bool]] = [(root, False)]
    while stack:
        node, is_done = stack.pop()
        if is_done:
            order.append(node)
        elif node not in seen:
            seen.add(node)
            stack.append((node, True))
            parts: Sequence[Expr] = ()
            if isinstance(node, Call) and op_name(node) in RULES:
                parts = node.args
            elif isinstance(node, Tuple):
                parts = node.fields
            stack.extend((part, False) for part in reversed(parts))
    return order


Rule = Callable[[Call, Mapping[Expr, Quantized], Affine], Quantized]


def _quantized(expr: Expr, done: Mapping[Expr, Quantized], target: Affine) -> Quantized:
    """An operand; constants are quantized like the result."""
    if expr in done:
        return done[expr]
    value, scale, zero = constant_value(expr), constant_value(target.scale), constant_value(target.zero)
    if value is None or scale is None or zero is None or not target.is_per_tensor:
        raise _Refusal("operands that are neither dequantized nor constants")
    # The scale of a constant is its own: it loses nothing that the result could show.
    info = np.iinfo(target.dtype)
    middle = 0 if info.min < 0 else (info.max + 1) // 2
    own = np.float32((float(np.abs(value).max(initial=0.0)) or 1.0) / (info.max - middle))
    q = np.clip(np.rint(value / own) + middle, info.min, info.max).astype(target.dtype)
    return Quantized(constant(q), Affine(constant(own), constant(np.int32(middle)), target.dtype))


def _data(call: Call, done: Mapping[Expr, Quantized]) -> Quantized:
    found = done.get(call.args[0])
    if found is None:
        raise _Refusal("operands that are not dequantized")
    return found


def _to(given: Quantized, target: Affine, span: Call) -> Expr:
    """`given` requantized to the scale, zero point and element type of `target`."""
    a = given.affine
    if _same(a, target):
        return given.expr
    if not target.is_per_tensor:
        raise _Refusal("results that are quantized by channel")
    args = (given.expr, a.scale, a.zero, target.scale, target.zero)
    record: dict[str, Any] = {"rounding": "None", "compute_dtype": "None", "out_dtype": target.dtype}
    return make("qnn.requantize", args, axis=a.axis, span=span.span, **record)


def _same(a: Affine, b: Affine) -> bool:
    pairs = ((a.scale, b.scale), (a.zero, b.zero))
    return a.dtype == b.dtype and all(
        x is y or (isinstance(x, Constant) and isinstance(y, Constant) and np.array_equal(x.data, y.data))
        for x, y in pairs
    )


def _again(call: Call, args: Sequence[Expr], **changes: Any) -> Call:
    return make(op_name(call), args, span=call.span, **_record(call) | changes)


def _record(call: Call) -> dict[str, Any]:
    """The attributes of a call by name."""
    names = [field.name for field in fields(call.attrs)] if call.attrs is not None else []
    return {name: getattr(call.attrs, name) for name in names}


def _move(call: Call, done: Mapping[Expr, Quantized], target: Affine) -> Quantized:
    """Operators that move or select elements."""
    data = _data(call, done)
    if not data.affine.is_per_tensor:
        raise _Refusal(f"{op_name(call)} of a tensor that is quantized by channel")
    return replace(data, expr=_again(call, (data.expr, *call.args[1:])))


def _relu(call: Call, done: Mapping[Expr, Quantized], target: Affine) -> Quantized:
    data = _data(call, done)
    zero = constant_value(data.affine.zero)
    if zero is None or zero.size != 1:
        raise _Refusal("nn.relu with several zero points")
    if not zero.any():
        return replace(data, expr=_again(call, (data.expr,)))
    least = constant(zero.reshape(()).astype(data.affine.dtype))
    return replace(data, expr=make("maximum", (data.expr, least), span=call.span))


def _clip(call: Call, done: Mapping[Expr, Quantized], target: Affine) -> Quantized:
    data = _data(call, done)
    scale, zero = constant_value(data.affine.scale), constant_value(data.affine.zero)
    if scale is None or zero is None or scale.size != 1 or zero.size != 1:
        raise _Refusal("clip of a tensor that is quantized by channel")
    info = np.iinfo(data.affine.dtype)

    def bound(value: float) -> float:
        exact = np.rint(np.float64(value) / float(scale.reshape(()))) + float(zero.reshape(()))
        return float(np.clip(exact, info.min, info.max))

    new = _again(call, (data.expr,), a_min=bound(call.attrs.a_min), a_max=bound(call.attrs.a_max))
    return replace(data, expr=new)


def _average(call: Call, done: Mapping[Expr, Quantized], target: Affine) -> Quantized:
    """Sums in float keep the rounding where the result is quantized: integers are averaged in float32 exactly."""
    data = _data(call, done)
    if not data.affine.is_per_tensor:
        raise _Refusal(f"{op_name(call)} of a tensor that is quantized by channel")
    wide = make("cast", (data.expr,), dtype="float32")
    mean = make("round", (_again(call, (wide,)),))
    return replace(data, expr=make("cast", (mean,), dtype=data.affine.dtype))


def _pad(call: Call, done: Mapping[Expr, Quantized], target: Affine) -> Quantized:
    data, value = _data(call, done), constant_value(call.args[1])
    scale, zero = constant_value(data.affine.scale), constant_value(data.affine.zero)
    if value is None or scale is None or zero is None or scale.size != 1 or zero.size != 1:
        raise _Refusal("nn.pad with an unknown value")
    info = np.iinfo(data.affine.dtype)
    q = np.clip(np.rint(value.reshape(()) / scale.reshape(())) + zero.reshape(()), info.min, info.max)
    return replace(data, expr=_again(call, (data.expr, constant(q.astype(data.affine.dtype)))))


def _layer(call: Call, done: Mapping[Expr, Quantized], target: Affine) -> Quantized:
    """Convolutions and dense layers: int32 sums at the product of both scales."""
    data, weight = _data(call, done), done.get(call.args[1])
    if weight is None or not data.affine.is_per_tensor:
        raise _Refusal(f"{op_name(call)} with a weight that is not dequantized")
    a, b = data.affine, weight.affine
    args = (data.expr, weight.expr, a.zero, b.zero, a.scale, b.scale)
    record = _record(call)
    product = make(f"qnn.{op_name(call).removeprefix('nn.')}", args, span=call.span, **record | {"out_dtype": "int32"})
    is_dense = op_name(call) == "nn.dense"
    axis = -1 if is_dense else (call.attrs.out_layout or call.attrs.data_layout).index("C")
    scale = _scale_product(a.scale, b.scale)
    return Quantized(product, Affine(scale, constant(np.int32(0)), "int32", axis))


def _scale_product(left: Expr, right: Expr) -> Expr:
    a, b = constant_value(left), constant_value(right)
    if a is not None and b is not None:
        return constant((a.reshape(()) * b).astype(np.float32))
    return make("multiply", (left, right))


def _bias(call: Call, done: Mapping[Expr, Quantized], target: Affine) -> Quantized:
    data, rank = _data(call, done), call.tensor_type.rank
    scale, bias = constant_value(data.affine.scale), done.get(call.args[1])
    value = constant_value(call.args[1])
    if data.affine.dtype != "int32" or call.attrs.axis % rank != data.affine.axis % rank:
        raise _Refusal("nn.bias_add of anything but int32 sums")
    if bias is not None:
        if bias.affine.dtype != "int32":
            raise _Refusal("nn.bias_add of another element type")
        # Both have the same scale if the model was quantized as a whole.
        wide = make("qnn.requantize", (bias.expr, bias.affine.scale, bias.affine.zero, *_single(data.affine)),
                    axis=bias.affine.axis, rounding="None", compute_dtype="None", out_dtype="int32")  # fmt: skip
        return replace(data, expr=_again(call, (data.expr, wide)))
    if scale is None or value is None:
        raise _Refusal("nn.bias_add of a vector that is no constant")
    q = np.clip(np.rint(value / scale.astype(np.float64).reshape(-1)), -(2**31), 2**31 - 1).astype(np.int32)
    return replace(data, expr=_again(call, (data.expr, constant(q))))


def _single(affine: Affine) -> tuple[Expr, Expr]:
    if not affine.is_per_tensor:
        raise _Refusal("a bias beside weights that are quantized by channel")
    return affine.scale, affine.zero


def _binary(call: Call, done: Mapping[Expr, Quantized], target: Affine) -> Quantized:
    if not target.is_per_tensor:
        raise _Refusal("results that are quantized by channel")
    left, right = (_quantized(arg, done, target) for arg in call.args)
    wanted = replace(target, axis=-1)
    sides = [_narrow(side, target, call) for side in (left, right)]
    params = [part for side in sides for part in (side.affine.scale, side.affine.zero)]
    name = {"add": "qnn.add", "subtract": "qnn.subtract", "multiply": "qnn.mul"}[op_name(call)]
    args = (sides[0].expr, sides[1].expr, *params, target.scale, target.zero)
    new = make(name, args, lhs_axis=sides[0].affine.axis, rhs_axis=sides[1].affine.axis, span=call.span)
    return Quantized(new, wanted)


def _narrow(side: Quantized, target: Affine, call: Call) -> Quantized:
    """An operand in the element type of the result."""
    if side.affine.dtype == target.dtype and side.affine.is_per_tensor:
        return side
    return Quantized(_to(side, target, call), replace(target, axis=-1))


def _extreme(call: Call, done: Mapping[Expr, Quantized], target: Affine) -> Quantized:
    sides = [_to(_quantized(arg, done, target), target, call) for arg in call.args]
    return Quantized(_again(call, sides), target)


def _concatenate(call: Call, done: Mapping[Expr, Quantized], target: Affine) -> Quantized:
    parts = _data(call, done).parts
    if not parts:
        raise _Refusal("a concatenation of an unknown tuple")
    sides = [_to(part, target, call) for part in parts]
    return Quantized(_again(call, (typed_tuple(sides),)), target)


RULES: Mapping[str, Rule] = {
    **dict.fromkeys(with_trait(Trait.KEEPS_SCALE), _move),
    **dict.fromkeys(("nn.avg_pool2d", "nn.global_avg_pool2d", "nn.adaptive_avg_pool2d", "mean"), _average),
    **dict.fromkeys(("nn.conv2d", "nn.dense"), _layer),
    **dict.fromkeys(("add", "subtract", "multiply"), _binary),
    **dict.fromkeys(("maximum", "minimum"), _extreme),
    "nn.relu": _relu,
    "clip": _clip,
    "nn.pad": _pad,
    "nn.bias_add": _bias,
    "concatenate": _concatenate,
}
