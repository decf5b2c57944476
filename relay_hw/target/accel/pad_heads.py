"""PadHeads: makes the heads of attention whole blocks of channels, by channels of zero weights.

In: an integer graph. Out: one of the same result, and how many products each wider layer has without its zeros. A head
of 36 channels begins inside a block of 16; the layer that makes heads then makes 48 channels for each, and every
operator up to the sums over a head's channels, or up to the layer behind the heads, is as much wider.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from math import prod
from operator import mul
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from relay_hw.analysis.products import call_macs
from relay_hw.ir.expr import Call, Constant, Expr, Function, Op
from relay_hw.ir.visit import children, post_order
from relay_hw.op.slices import slices
from relay_hw.transform.graph import (
    constant,
    dtype_of,
    is_op,
    known_shape,
    make,
    op_name,
    rebuilt,
    remake,
    shape_of,
    with_body,
)

_LAYER: Final = "nn.dense"
_ELEMENTWISE: Final = ("fixed.add", "fixed.mul", "fixed.table", "clip")


@dataclass(frozen=True, slots=True, eq=False)
class Wide:
    """A tensor with more channels: along `axis`, groups of `each` channels became groups of `wide`.

    `fill`: what the channels behind a group's own hold, None if that is not one number; `origins`: the layers that make
    more channels for it.
    """

    expr: Expr
    axis: int
    each: int
    wide: int
    fill: int | None
    origins: frozenset[Expr]

    def spread(self, value: NDArray[Any], axis: int) -> NDArray[Any]:
        """A constant with as many groups along `axis`, 0 in the channels that are added."""
        axis %= value.ndim
        groups = value.shape[axis] // self.each
        shape = (*value.shape[:axis], groups, self.each, *value.shape[axis + 1 :])
        padding = [(0, 0)] * len(shape)
        padding[axis + 1] = (0, self.wide - self.each)
        return np.pad(value.reshape(shape), padding).reshape(*value.shape[:axis], -1, *value.shape[axis + 1 :])

    def is_like(self, other: Wide) -> bool:
        """Whether channels were added in the same places."""
        return (self.axis, self.each, self.wide) == (other.axis, other.each, other.wide)


@dataclass(frozen=True, slots=True, eq=False)
class Padded:
    """The function, and for each layer in it that became wider its products without what was added."""

    function: Function
    macs: Mapping[Expr, int]


def pad_heads(function: Function, align: int) -> Padded:
    """`function`, a dataflow graph of integers, with heads in whole blocks of `align` channels where that can be."""
    widths = dict(_heads(function.body, align))
    while widths:
        writer = _Writer(widths, align)
        refused = writer.write(function.body)
        if not refused:
            return Padded(with_body(function, writer.plain[function.body]), writer.macs)
        widths = {layer: width for layer, width in widths.items() if layer not in refused}
    return Padded(function, {})


def _heads(body: Expr, align: int) -> Iterator[tuple[Expr, int]]:
    """Layers with constant weights whose channels are cut into heads of no whole blocks, and the channels of a head."""
    for node in post_order(body):
        shape = shape_of(node)
        if not is_op(node, "reshape") or dtype_of(node) != "int8" or not shape or shape[-1] % align == 0:
            continue
        assert isinstance(node, Call)
        data = node.args[0]
        given = shape_of(data)
        if not given or given[-1] <= shape[-1] or given[-1] not in accumulate(reversed(shape), mul):
            continue
        while isinstance(data, Call) and is_op(data, "strided_slice", "reshape", "fixed.table", "fixed.requantize"):
            data = data.args[0]
        if isinstance(data, Call) and is_op(data, _LAYER) and isinstance(data.args[1], Constant):
            yield data, shape[-1]


class _Writer:
    """Walks a graph, operands first. `plain`: what each node became that has its old type; `_wide`: other ones.

    `macs`: products of the layers that became wider, without their zeros.
    """

    def __init__(self, widths: Mapping[Expr, int], align: int) -> None:
        self._widths = widths
        self._align = align
        self._wide: dict[Expr, Wide] = {}
        self.plain: dict[Expr, Expr] = {}
        self.macs: dict[Expr, int] = {}

    def write(self, body: Expr) -> frozenset[Expr]:
        """Rewrite the graph. The layers that cannot become wider, because of what reads them, where there are some."""
        for node in post_order(body):
            origins = frozenset[Expr]().union(
                *(self._wide[part].origins for part in children(node) if part in self._wide)
            )
            if not origins and node not in self._widths:
                self.plain[node] = rebuilt(node, self.plain)
                continue
            new = self._rewritten(node, origins) if isinstance(node, Call) else None
            match new:
                case None:
                    return origins or frozenset([node])
                case Wide():
                    self._wide[node] = new
                case Expr():
                    self.plain[node] = new
        return self._wide[body].origins if body in self._wide else frozenset()

    def _rewritten(self, call: Call, origins: frozenset[Expr]) -> Wide | Expr | None:
        """What becomes of a call with wide operands, or of a layer that makes heads; None if it knows no such ones."""
        match op_name(call):
            case "nn.dense":
                return self._dense(call)
            case "nn.batch_matmul":
                return self._product(call)
            case name if name in _ELEMENTWISE:
                return self._elementwise(call, origins)
            case "fixed.requantize" | "reshape" | "strided_slice" | "transpose":
                data = self._wide.get(call.args[0])
                return None if data is None else _MOVES[op_name(call)](call, data)
            case _:
                return None

    def _dense(self, call: Call) -> Wide | Expr | None:
        """The sums behind heads, which have weights of 0 for what was added; those that make heads make more."""
        data, weights = self._wide.get(call.args[0]), call.args[1]
        if not isinstance(weights, Constant) or (data is not None and data.axis != len(known_shape(call)) - 1):
            return None
        value = weights.data if data is None else data.spread(weights.data, 1)
        source = self.plain[call.args[0]] if data is None else data.expr
        each = self._widths.get(call)
        if each is None:
            return self._counted(call, remake(call, (source, constant(value, weights.span))))
        wide = Wide(call, len(known_shape(call)) - 1, each, -(-each // self._align) * self._align, 0, frozenset([call]))
        value = wide.spread(value, 0)
        attrs = replace(call.attrs, units=value.shape[0])
        return replace(wide, expr=self._counted(call, remake(call, (source, constant(value, weights.span)), attrs)))

    def _product(self, call: Call) -> Wide | Expr | None:
        """A product of activations: sums over added channels add 0, which one of both has there; others are added."""
        x, y = (self._wide.get(arg) for arg in call.args)
        sums = 1 if call.attrs.transpose_a else 2, 2 if call.attrs.transpose_b else 1
        args = [self.plain[arg] if wide is None else wide.expr for arg, wide in zip(call.args, (x, y), strict=True)]
        if x is not None and y is not None:
            is_even = (x.axis, y.axis) == sums and (x.each, x.wide) == (y.each, y.wide) and 0 in (x.fill, y.fill)
            return self._counted(call, remake(call, args)) if is_even else None
        at, wide = (0, x) if x is not None else (1, y)
        if wide is None or wide.axis in (0, sums[at]):
            return None
        made = self._counted(call, remake(call, args))
        return replace(wide, expr=made, axis=at + 1, fill=0 if wide.fill == 0 else None)

    def _elementwise(self, call: Call, origins: frozenset[Expr]) -> Wide | None:
        """A function of each element of one or two tensors with channels in the same places, or of a constant."""
        count = 1 if op_name(call) == "fixed.table" else len(call.args)
        found = [self._wide.get(arg) for arg in call.args[:count]]
        first = next(wide for wide in found if wide is not None)
        args, fills = list[Expr](), list[int | None]()
        for arg, wide in zip(call.args, found, strict=False):
            if wide is not None and wide.is_like(first):
                args.append(wide.expr)
                fills.append(wide.fill)
            elif isinstance(arg, Constant):
                args.append(constant(first.spread(arg.data, first.axis), arg.span))
                fills.append(0)
            else:
                return None
        rest = call.args[count:]
        return replace(first, expr=remake(call, (*args, *rest)), fill=_filled(call, fills, rest), origins=origins)

    def _counted(self, old: Call, new: Call) -> Call:
        self.macs[new] = call_macs(old)
        return new


def _filled(call: Call, fills: Sequence[int | None], rest: Sequence[Expr]) -> int | None:
    """What an operator makes of what is in added channels."""
    values = [np.full(1, fill, np.int8) for fill in fills if fill is not None]
    values += [arg.data for arg in rest if isinstance(arg, Constant)]
    if len(values) != len(call.args):
        return None
    assert isinstance(call.op, Op)
    return int(np.asarray(call.op.reference(call.attrs, values, call.type)).reshape(-1)[0])


def _requantized(call: Call, data: Wide) -> Wide | None:
    attrs, bias = call.attrs, call.args[1]
    if not isinstance(bias, Constant):
        return None
    value, fill = bias.data, None
    if data.fill == 0 and (attrs.axis % len(known_shape(call)) == data.axis or not value.any()):
        fill = min(max(attrs.zero_point, attrs.a_min), attrs.a_max)
    if attrs.axis % len(known_shape(call)) == data.axis:
        value = data.spread(value, 0)
        if len(attrs.multiplier) > 1:
            pairs = (data.spread(np.asarray(numbers, np.int64), 0) for numbers in (attrs.multiplier, attrs.shift))
            multiplier, shift = (tuple(numbers.tolist()) for numbers in pairs)
            attrs = replace(attrs, multiplier=multiplier, shift=shift)
    return replace(data, expr=remake(call, (data.expr, constant(value, bias.span)), attrs), fill=fill)


def _reshaped(call: Call, data: Wide) -> Wide | None:
    """The axis of the result whose steps are as long as the wide axis' were."""
    source, shape = known_shape(call.args[0]), known_shape(call)
    inner = prod(source[data.axis + 1 :])
    fitting = (
        axis
        for axis, size in reversed(list(enumerate(shape)))
        if prod(shape[axis + 1 :]) == inner and size and size % data.each == 0
    )
    axis = next(fitting, None)
    if axis is None:
        return None
    wider = (*shape[:axis], shape[axis] // data.each * data.wide, *shape[axis + 1 :])
    return replace(data, expr=make("reshape", (data.expr,), newshape=wider, span=call.span), axis=axis)


def _sliced(call: Call, data: Wide) -> Wide | None:
    """Whole groups, and any part of other axes."""
    source = known_shape(call.args[0])
    ranges = [cut.indices(size) for cut, size in zip(slices(call.attrs, len(source)), source, strict=True)]
    begin, end, stride = ranges[data.axis]
    if stride != 1 or begin % data.each or end % data.each or end <= begin:
        return None
    ranges[data.axis] = (begin // data.each * data.wide, end // data.each * data.wide, 1)
    if any(stride < 1 for _, _, stride in ranges):
        return None
    begins, ends, strides = zip(*ranges, strict=True)
    new = make("strided_slice", (data.expr,), begin=begins, end=ends, strides=strides, span=call.span)
    return replace(data, expr=new)


def _transposed(call: Call, data: Wide) -> Wide | None:
    rank = len(known_shape(call))
    axes = [axis % rank for axis in call.attrs.axes or range(rank - 1, -1, -1)]
    return replace(data, expr=remake(call, (data.expr,)), axis=axes.index(data.axis))


_MOVES: Final[Mapping[str, Callable[[Call, Wide], Wide | None]]] = {
    "fixed.requantize": _requantized,
    "reshape": _reshaped,
    "strided_slice": _sliced,
    "transpose": _transposed,
}
