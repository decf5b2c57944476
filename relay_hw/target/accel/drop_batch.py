"""Drops the batch axis of tensors of tokens, which are no images.

In: an integer graph. Out: one of the same result. A tensor of four axes lies in memory as an image does, its second
axis innermost: the channels. Heads of attention, [1, heads, tokens, channels], are no image; without their first axis
they lie as rows. Where a layer of images makes or reads such a tensor, all that are computed together keep the axis.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Final

from relay_hw.ir.expr import Call, Constant, Expr, Function, Tuple
from relay_hw.ir.visit import post_order
from relay_hw.op.slices import slices
from relay_hw.transform.graph import (
    calls_that_read,
    constant,
    dtype_of,
    is_op,
    known_shape,
    make,
    op_name,
    rebuilt,
    remake,
    shape_of,
    typed_tuple,
    with_body,
)

_RANK: Final = 4
_ELEMENTWISE: Final = ("clip", "fixed.add", "fixed.mul", "fixed.table")
_MOVES: Final = ("concatenate", "expand_dims", "reshape", "reverse", "squeeze", "strided_slice", "transpose")
_ROWS: Final = ("fixed.layer_norm", "fixed.rms_norm", "fixed.softmax")


def drop_batch(function: Function) -> Function:
    """`function`, a graph of integers, with three axes where four are one more than needed."""
    members = _members(function.body)
    if not members:
        return function
    writer = _Writer(members)
    return with_body(function, writer.write(function.body))


def _members(body: Expr) -> set[Expr]:
    """Tensors that can do without their first axis: what they are made of can, and what is made of them."""
    order = list(post_order(body))
    readers = calls_that_read(order)
    found: set[Expr] = set()
    for node in order:
        if isinstance(node, Call) and _is_one_sample(node) and (_is_source(node, found) or _follows(node, found)):
            found.add(node)
    while refused := {node for node in found if not _stands(node, found, readers.get(node, ()))}:
        found -= refused
    return found


def _is_one_sample(call: Call) -> bool:
    shape = shape_of(call)
    return dtype_of(call) == "int8" and shape is not None and len(shape) == _RANK and shape[0] == 1


def _is_source(call: Call, found: Collection[Expr]) -> bool:
    """Whether the host, or a reshape of tokens, gives the tensor four axes."""
    return is_op(call, "qnn.quantize") or (is_op(call, "reshape") and _is_of_tokens(call.args[0], found))


def _is_of_tokens(expr: Expr, found: Collection[Expr]) -> bool:
    """Whether what only moves elements of other tensors moves those of rows, not of an image."""
    stack = [expr]
    while stack:
        node = stack.pop()
        if node in found:
            continue
        if isinstance(node, Tuple):
            stack.extend(node.fields)
        elif isinstance(node, Call) and is_op(node, *_MOVES):
            stack.append(node.args[0])
        elif len(shape_of(node) or (0,) * _RANK) >= _RANK:
            return False
    return True


def _follows(call: Call, found: Collection[Expr]) -> bool:
    """Whether the call makes the same of tensors without their first axis."""
    data = _data(call)
    if not any(arg in found for arg in data) or not all(arg in found or isinstance(arg, Constant) for arg in data):
        return False
    match op_name(call):
        case "transpose":
            return _axes(call)[0] == 0
        case "strided_slice":
            return slices(call.attrs, _RANK)[0].indices(1) == (0, 1, 1)
        case "concatenate":
            return call.attrs.axis % _RANK != 0
        case name:
            return name in (*_ELEMENTWISE, *_ROWS)


def _stands(node: Expr, found: Collection[Expr], readers: Sequence[Expr]) -> bool:
    """Whether nothing that reads the tensor wants an image, and what it is made of has three axes too."""
    assert isinstance(node, Call)
    plain = all(reader in found or is_op(reader, "reshape", "qnn.dequantize") for reader in readers)
    return plain and (_is_source(node, found) or _follows(node, found))


def _data(call: Call) -> Sequence[Expr]:
    """The operands that have the result's axes."""
    first = call.args[0]
    if isinstance(first, Tuple):
        return first.fields
    return call.args if is_op(call, "fixed.add", "fixed.mul") else (first,)


def _axes(call: Call) -> list[int]:
    return [axis % _RANK for axis in call.attrs.axes or range(_RANK - 1, -1, -1)]


class _Writer:
    """Writes each node as it was, and each member without its first axis as well."""

    def __init__(self, members: Collection[Expr]) -> None:
        self._members = members
        self._plain: dict[Expr, Expr] = {}
        self._flat: dict[Expr, Expr] = {}

    def write(self, body: Expr) -> Expr:
        """The graph."""
        for node in post_order(body):
            if node in self._members and is_op(node, "qnn.quantize"):
                self._plain[node] = rebuilt(node, self._plain)
                self._flat[node] = _reshaped(self._plain[node], known_shape(node)[1:], node)
            elif isinstance(node, Call) and node in self._members:
                self._flat[node] = self._without(node)
                self._plain[node] = _reshaped(self._flat[node], known_shape(node), node)
            elif isinstance(node, Call) and is_op(node, "reshape") and node.args[0] in self._flat:
                self._plain[node] = _reshaped(self._flat[node.args[0]], known_shape(node), node)
            else:
                self._plain[node] = rebuilt(node, self._plain)
        return self._plain[body]

    def _without(self, call: Call) -> Expr:
        data, rest = _data(call), call.args[1:]
        match op_name(call):
            case "reshape":
                source = self._flat.get(data[0], self._plain[data[0]])
                return _reshaped(source, known_shape(call)[1:], call)
            case "transpose":
                axes = tuple(axis - 1 for axis in _axes(call)[1:])
                return remake(call, (self._flat[data[0]],), replace(call.attrs, axes=axes))
            case "strided_slice":
                sizes = known_shape(data[0])
                ranges = [_range(cut, size) for cut, size in zip(slices(call.attrs, _RANK), sizes, strict=True)]
                begin, end, strides = zip(*ranges[1:], strict=True)
                return make(
                    "strided_slice", (self._flat[data[0]],), begin=begin, end=end, strides=strides, span=call.span
                )
            case "concatenate":
                parts = typed_tuple([self._operand(arg) for arg in data])
                return remake(call, (parts,), replace(call.attrs, axis=call.attrs.axis % _RANK - 1))
            case _:
                return remake(call, (*map(self._operand, data), *(rest if len(data) == 1 else ())))

    def _operand(self, arg: Expr) -> Expr:
        return constant(arg.data[0], arg.span) if isinstance(arg, Constant) else self._flat[arg]


def _range(cut: slice, size: int) -> tuple[int, int, int]:
    """Begin, end and stride of a slice as attributes; an end in front of the first element is no -1, the last one."""
    begin, end, stride = cut.indices(size)
    return begin, end if end >= 0 else -size - 1, stride


def _reshaped(data: Expr, shape: tuple[int, ...], source: Expr) -> Expr:
    return data if shape_of(data) == shape else make("reshape", (data,), newshape=shape, span=source.span)
