"""Lowers operator calls on tensors of known shape: to expressions, to views of them, to sums and products.

In: a call, the values of its arguments. Out: a value; None where the reference semantics must compute it.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from relay_hw.backend.native.nodes import (
    Check,
    Compute,
    Element,
    Expression,
    Fill,
    Number,
    Piece,
    Product,
    Read,
    Reduce,
)
from relay_hw.backend.native.scalars import MAY_FAIL, compute
from relay_hw.backend.native.values import (
    Fields,
    Lazy,
    Value,
    dtype_of,
    moved,
    native_type,
    row_major,
    spread,
    with_strides,
)
from relay_hw.backend.native.writer import Writer
from relay_hw.backend.nodes import FlatCall
from relay_hw.ir.expr import Trait
from relay_hw.ir.types import TensorType, TupleType, Type
from relay_hw.op.reduce import reduced_axes

# Operators in one expression, and elements of a tensor that numpy computes faster than one core with plain loops.
_MOST_OPERATORS = 48
_FILLED = {"zeros": 0, "ones": 1, "zeros_like": 0, "ones_like": 1}
_REDUCTIONS = ("sum", "prod", "max", "min", "mean", "all", "any")
_QUANTIZERS = ("qnn.quantize", "qnn.dequantize")
_EXACT = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


def operate(writer: Writer, call: FlatCall, args: Sequence[Value], types: Sequence[Type]) -> Value | None:
    """The value of a call, lazy where that is possible; `types`: of the arguments."""
    name = call.op.name
    result = native_type(call.type)
    if name == "qnn.quantize" and (what := writer.label()) is not None:
        checked = writer.object(args[0])
        args = [checked, *args[1:]]
        writer.emit(Check(checked, f"the input of {what}"))
    if name == "split":
        return _split(writer, call, args[0], native_type(types[0]))
    if result is None:
        return None
    if name in ("concatenate", "stack"):
        return _joined(writer, call, args[0], types[0], result)
    known = [ty for one in types if (ty := native_type(one)) is not None]
    if len(known) != len(types):
        return None
    if name in _FILLED:
        return Lazy(Number(_FILLED[name], result.dtype), result.static_shape)
    if name == "full" and known[0].dtype == result.dtype:
        return Lazy(writer.view(args[0], known[0]).value, result.static_shape)
    if name in _REDUCTIONS:
        return _reduced(writer, call, args[0], known[0], result)
    if name == "take":
        return _taken(writer, call, args, known, result)
    if name == "nn.bias_add":
        return _biased(writer, call, args, known, result)
    if name in ("nn.dense", "nn.matmul", "nn.batch_matmul"):
        return _product(writer, call, args, known, result)
    if name in _QUANTIZERS:
        return _quantized(writer, call, args, known, result)
    if call.op.has(Trait.ELEMENTWISE):
        return _elementwise(writer, call, args, known, result)
    if call.op.has(Trait.MOVES) and len(args) == 1:
        return _moved(writer, call, args[0], known[0], result)
    return None


def _moved(writer: Writer, call: FlatCall, arg: Value, ty: TensorType, result: TensorType) -> Value | None:
    """A view; of a copy where strides cannot say it of what is a view already."""
    view = writer.view(arg, ty)
    found = moved(view, call.op, call.attrs, [result], result)
    if found is None and call.op.has(Trait.RESHAPES):
        found = moved(writer.lazy(writer.object(view), ty), call.op, call.attrs, [result], result)
    return None if found is None else found[0]


def _elementwise(
    writer: Writer, call: FlatCall, args: Sequence[Value], types: Sequence[TensorType], result: TensorType
) -> Value | None:
    kinds = [ty.dtype for ty in types]
    if compute(call.op.name, call.attrs, result.dtype, kinds, ["x"] * len(args)) is None:
        return None
    shape = result.static_shape
    parts = [_broadcast(writer, arg, ty, shape) for arg, ty in zip(args, types, strict=True)]
    size = 1 + sum(part.size for part in parts)
    lazy = Lazy(Compute(call.op.name, call.attrs, result.dtype, tuple(part.value for part in parts)), shape, size)
    may_fail = call.op.name in MAY_FAIL and result.dtype in _EXACT
    return writer.form(lazy, dtype_of(result)) if may_fail or not shape or size > _MOST_OPERATORS else lazy


def _broadcast(writer: Writer, arg: Value, ty: TensorType, shape: tuple[int, ...]) -> Lazy:
    if ty.static_shape == shape:
        return writer.lazy(arg, ty)
    view = writer.view(arg, ty)
    return Lazy(spread(view.value, view.shape, shape), shape)


def _biased(
    writer: Writer, call: FlatCall, args: Sequence[Value], types: Sequence[TensorType], result: TensorType
) -> Value | None:
    if result.dtype == "bool":
        return None
    shape = result.static_shape
    bias = _along(writer, args[1], types[1], call.attrs.axis, len(shape))
    data = writer.lazy(args[0], types[0])
    return Lazy(Compute("add", None, result.dtype, (data.value, bias)), shape, data.size + 1)


def _quantized(
    writer: Writer, call: FlatCall, args: Sequence[Value], types: Sequence[TensorType], result: TensorType
) -> Value | None:
    """Between floats and integers, by scales and zero points that are one number or follow an axis."""
    shape = result.static_shape
    if "int" not in (result.dtype if call.op.name == "qnn.quantize" else types[0].dtype):
        return None
    lazy = writer.lazy(args[0], types[0])
    along = [_along(writer, arg, ty, call.attrs.axis, len(shape)) for arg, ty in zip(args[1:], types[1:], strict=True)]
    value = Compute(call.op.name, call.attrs, result.dtype, (lazy.value, *along))
    return _settled(writer, Lazy(value, shape, lazy.size + 1))


def _along(writer: Writer, arg: Value, ty: TensorType, axis: int, rank: int) -> Expression:
    """A number, or a vector along an axis."""
    value = writer.view(arg, ty).value
    if not isinstance(value, Element):
        return value
    strides = [0] * rank
    if rank and prod(ty.static_shape) > 1:
        strides[axis] = value.strides[0]
    return with_strides(value, value.offset, tuple(strides))


def _split(writer: Writer, call: FlatCall, arg: Value, ty: TensorType | None) -> Value | None:
    if ty is None or not isinstance(call.type, TupleType):
        return None
    results = [one for field in call.type.fields if (one := native_type(field)) is not None]
    found = moved(writer.view(arg, ty), call.op, call.attrs, results, call.type)
    return None if found is None else Fields(tuple(found))


def _joined(writer: Writer, call: FlatCall, arg: Value, ty: Type, result: TensorType) -> Value | None:
    """Each part fills a box of the result."""
    if not isinstance(ty, TupleType) or any(native_type(field) is None for field in ty.fields):
        return None
    shape, stacks = result.static_shape, call.op.name == "stack"
    axis, strides = call.attrs.axis % len(shape), row_major(result.static_shape)
    pieces: list[Piece] = []
    at = 0
    for index, field in enumerate(ty.fields):
        tensor = native_type(field)
        assert tensor is not None
        part = writer.lazy(writer.field(arg, index, field), tensor)
        own = strides[:axis] + strides[axis + 1 :] if stacks else strides
        pieces.append(Piece(part.value, part.shape, at * strides[axis], own))
        at += 1 if stacks else part.shape[axis]
    to = writer.fresh()
    writer.emit(Fill(to, shape, result.dtype, tuple(pieces)))
    return to


def _reduced(writer: Writer, call: FlatCall, arg: Value, ty: TensorType, result: TensorType) -> Value | None:
    name, source = call.op.name, ty.static_shape
    axes = reduced_axes(name, call.attrs, len(source))
    is_real, is_logic = ty.dtype.startswith("float"), name in ("all", "any")
    if prod(source) == 0 or (name == "mean" and not is_real) or is_logic != (ty.dtype == "bool"):
        return None
    if name == "prod" and is_real:
        return None
    to = writer.fresh()
    value = writer.lazy(arg, ty).value
    writer.emit(Reduce(to, name, result.dtype, value, source, axes, result.static_shape))
    return writer.typed(to, result)


def _taken(
    writer: Writer, call: FlatCall, args: Sequence[Value], types: Sequence[TensorType], result: TensorType
) -> Value | None:
    """One place along an axis: a view whose offset is computed."""
    data, attrs = types[0], call.attrs
    if attrs.axis is None or types[1].shape or not data.static_shape[attrs.axis] or types[1].dtype == "uint64":
        return None
    source, axis = writer.view(args[0], data), attrs.axis % len(data.shape)
    strides = tuple(stride for k, stride in enumerate(getattr(source.value, "strides", ())) if k != axis)
    if not isinstance(source.value, Element):
        return Lazy(source.value, result.static_shape)
    if source.value.shift is not None:
        source = writer.lazy(writer.object(source), data)
        assert isinstance(source.value, Element)
        strides = tuple(stride for k, stride in enumerate(source.value.strides) if k != axis)
    element = source.value
    index = Read(writer.number(args[1], types[1].dtype), types[1].dtype)
    bounds = (data.static_shape[axis], element.strides[axis], attrs.mode)
    shift = writer.number(Lazy(Compute("take", bounds, "int64", (index,)), ()), "int64")
    view = Element(element.local, element.dtype, element.count, element.offset, strides, shift)
    return _settled(writer, Lazy(view, result.static_shape))


def _settled(writer: Writer, value: Lazy) -> Value:
    """A single element is read at once."""
    return writer.number(value, value.value.dtype) if not value.shape else value


def _product(
    writer: Writer, call: FlatCall, args: Sequence[Value], types: Sequence[TensorType], result: TensorType
) -> Value | None:
    shape, kinds = result.static_shape, {ty.dtype for ty in types}
    is_exact = kinds <= set(_EXACT) and result.dtype in _EXACT
    if not is_exact and (kinds != {result.dtype} or not result.dtype.startswith("float")):
        return None
    batched = call.op.name == "nn.batch_matmul"
    if len(types[0].shape) < 2 or (batched and types[0].shape[0] != types[1].shape[0]):
        return None
    left, right = (_tensor(writer, arg, ty) for arg, ty in zip(args, types, strict=True))
    flips = [False, True] if call.op.name == "nn.dense" else [call.attrs.transpose_a, call.attrs.transpose_b]
    *lead, rows, inner = left.strides
    first, depth = (inner, rows) if flips[0] else (rows, inner)
    second, columns = (right.strides[-1], right.strides[-2]) if flips[1] else right.strides[-2:]
    count = types[0].static_shape[-2 if flips[0] else -1]
    behind = right.strides[:1] if batched else (0,) * len(lead)
    a = with_strides(left, left.offset, (*lead, first, 0, depth))
    b = with_strides(right, right.offset, (*behind, 0, columns, second))
    to = writer.fresh()
    writer.emit(Product(to, shape, result.dtype, count, a, b))
    return to


def _tensor(writer: Writer, arg: Value, ty: TensorType) -> Element:
    """A view of a tensor in memory."""
    view = writer.view(arg, ty)
    if isinstance(view.value, Element):
        return view.value
    element = writer.lazy(writer.object(view), ty).value
    assert isinstance(element, Element)
    return element
