"""LiftTo2D: one-dimensional convolutions and pools become two-dimensional ones of height 1.

In: a typed module. Out: the same values; operators between such layers follow, so that shapes change only at the ends
of a chain. The quantizer and targets then need to know the two-dimensional form alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from relay_hw.dataflow_pattern.grouping import outside_fused
from relay_hw.ir.expr import Call, Expr, Function, Op, Trait, Tuple, TupleGetItem
from relay_hw.ir.module import IRModule
from relay_hw.ir.types import TensorType, TupleType
from relay_hw.op import get
from relay_hw.op.base import split_padding
from relay_hw.transform.base import FunctionPass
from relay_hw.transform.graph import (
    constant,
    constant_value,
    is_external,
    make,
    rebuilt,
    remake,
    typed_call,
    typed_tuple,
)

# One-dimensional layers and their two-dimensional forms; those of other layouts stay.
LIFTED: Final[Mapping[str, str]] = MappingProxyType(
    {
        f"nn.{name}1d{end}": f"nn.{name}2d{end}"
        for name, end in (
            ("conv", ""),
            ("conv", "_transpose"),
            ("max_pool", ""),
            ("avg_pool", ""),
            ("adaptive_max_pool", ""),
            ("adaptive_avg_pool", ""),
        )
    }
)
# What an attribute says of the axis of height, in front of what it says of the width.
UNITS: Final[Mapping[str, int]] = MappingProxyType(
    {"strides": 1, "dilation": 1, "kernel_size": 1, "pool_size": 1, "output_size": 1, "output_padding": 0}
)
LAYOUTS: Final[Mapping[str, str]] = MappingProxyType({"NCW": "NCHW", "OIW": "OIHW", "IOW": "IOHW", "": ""})
# Where the axis of height goes, and the rank before.
HEIGHT, RANK = 2, 3


class LiftTo2D(FunctionPass):
    """Layers of layout NCW; others stay as they are."""

    name = "lift-to-2d"
    pins_effects = True

    def transform_function(self, function: Function, mod: IRModule) -> Function:
        return function if is_external(function) else _Lifter().lift(function)


class _Lifter:
    """`_lifted` holds values of `RANK` axes with the axis of height; `_memo` every value as its readers know it."""

    def __init__(self) -> None:
        self._memo: dict[Expr, Expr] = {}
        self._lifted: dict[Expr, Expr] = {}
        self._tuples: dict[Expr, Expr] = {}

    def lift(self, root: Function) -> Function:
        for node in outside_fused(root):
            found = self._try(node)
            if found is not None:
                self._lifted[node] = found
                self._memo[node] = make("squeeze", (found,), axis=(HEIGHT,), span=node.span)
            elif node not in self._memo:
                self._memo[node] = rebuilt(node, self._memo)
        new = self._memo[root]
        assert isinstance(new, Function)
        return new

    def _try(self, node: Expr) -> Expr | None:
        """The node with the axis of height; None if it stays."""
        match node:
            case TupleGetItem(tuple_value=value, index=index) if value in self._tuples:
                return self._item(node, self._tuples[value], index)
            case Call(op=Op(name=name)) if name in LIFTED:
                return self._layer(node, LIFTED[name])
            case Call(op=Op() as op, args=args) if args and not op.has(Trait.EFFECT) and self._follows(node):
                return self._follow(node, op)
            case _:
                return None

    def _follows(self, node: Call) -> bool:
        fields_of = node.args[0].fields if isinstance(node.args[0], Tuple) else ()
        return any(arg in self._lifted for arg in (*fields_of, *node.args))

    def _item(self, node: TupleGetItem, whole: Expr, index: int) -> Expr | None:
        assert isinstance(whole.type, TupleType)
        item = TupleGetItem(whole, index, span=node.span, checked_type=whole.type.fields[index])
        if isinstance(item.type, TensorType) and item.type.rank == RANK + 1:
            return item
        # The statistics of a batch norm.
        self._memo[node] = item
        return None

    def _layer(self, node: Call, name: str) -> Expr | None:
        """A convolution, its transpose or a pool."""
        attrs = _two_dimensional(name, node.attrs)
        if attrs is None:
            return None
        args = (self._high(node.args[0]), *(_expand(self._memo[arg], HEIGHT) for arg in node.args[1:]))
        return typed_call(get(name), args, attrs, node.span)

    def _follow(self, node: Call, op: Op) -> Expr | None:
        """Operators that do not care how many spatial axes there are."""
        if op.has(Trait.ALONG_AXIS):
            return self._with_axis(node)
        if op.name == "nn.pad":
            width = (*node.attrs.pad_width[:HEIGHT], (0, 0), *node.attrs.pad_width[HEIGHT:])
            return self._first_only(node, replace(node.attrs, pad_width=width))
        if op.has(Trait.REDUCES):
            return self._reduce(node)
        if op.has(Trait.ELEMENTWISE):
            return self._broadcast(node)
        return None

    def _first_only(self, node: Call, attrs: Any) -> Expr | None:
        if node.args[0] not in self._lifted:
            return None
        rest = (self._memo[arg] for arg in node.args[1:])
        return remake(node, (self._lifted[node.args[0]], *rest), attrs)

    def _with_axis(self, node: Call) -> Expr | None:
        first = node.args[0]
        parts = first.fields if isinstance(first, Tuple) else (first,)
        if not any(part in self._lifted for part in parts) or any(part.tensor_type.rank != RANK for part in parts):
            return None
        high = [self._high(part) for part in parts]
        data = typed_tuple(high) if isinstance(first, Tuple) else high[0]
        attrs = replace(node.attrs, axis=_axis(node.attrs.axis))
        call = remake(node, (data, *(self._memo[arg] for arg in node.args[1:])), attrs)
        if isinstance(node.checked_type, TupleType):
            self._tuples[node] = call
            self._memo[node] = rebuilt(node, self._memo)
            return None
        return call

    def _reduce(self, node: Call) -> Expr | None:
        """Over the width, and so over the height; a result without spatial axes is what it was before."""
        attrs = node.attrs
        given = range(RANK) if attrs.axis is None else (attrs.axis,) if isinstance(attrs.axis, int) else attrs.axis
        axes = {axis % RANK for axis in given}
        axes = set(range(RANK)) - axes if attrs.exclude else axes
        if HEIGHT not in axes:
            return None
        both = (*sorted(axes), HEIGHT + 1)
        call = self._first_only(node, replace(attrs, axis=both, exclude=False))
        if call is None or attrs.keepdims:
            return call
        self._memo[node] = call
        return None

    def _broadcast(self, node: Call) -> Expr | None:
        if not isinstance(node.checked_type, TensorType) or node.checked_type.rank != RANK:
            return None
        if any(not isinstance(arg.checked_type, TensorType) for arg in node.args):
            return None
        return remake(node, [self._high(arg) for arg in node.args], node.attrs)

    def _high(self, arg: Expr) -> Expr:
        """`arg` so that it broadcasts, counted from the last axis."""
        if arg in self._lifted:
            return self._lifted[arg]
        rank = arg.tensor_type.rank
        return self._memo[arg] if rank < HEIGHT else _expand(self._memo[arg], rank - (RANK - HEIGHT))


def _two_dimensional(name: str, attrs: Any) -> Any:
    """Attributes of the two-dimensional operator `name`; None for layouts that have no such form here."""
    found: dict[str, Any] = {}
    for one in fields(attrs):
        value = getattr(attrs, one.name)
        if one.name == "padding":
            before, after = split_padding(name, value, 1)
            value = (0, *before, 0, *after)
        elif one.name in UNITS and value:
            value = (UNITS[one.name], *value)
        elif one.name.endswith("layout"):
            if value not in LAYOUTS:
                return None
            value = LAYOUTS[value]
        found[one.name] = value
    op = get(name)
    assert op.attrs_type is not None
    return op.attrs_type(**found)


def _axis(axis: int) -> int:
    return axis % RANK + (axis % RANK >= HEIGHT)


def _expand(expr: Expr, axis: int) -> Expr:
    value = constant_value(expr)
    if value is not None:
        return constant(np.expand_dims(value, axis), expr.span)
    return make("expand_dims", (expr,), axis=axis, num_newaxis=1, span=expr.span)
