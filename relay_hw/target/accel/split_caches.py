"""Divides caches that a layer adds rows to, so that what they had before goes from the host to products as it is.

In: an integer graph. Out: one of the same result. A cache, such as the keys of earlier words, comes from the host and
gets the rows of a layer behind it; products read both. Cut behind its last whole block of rows, its first part is an
operand of its own, which the host lays out as weights and transposes where that is asked for. The rest of its rows,
and the new ones, are few. A cache that is a result, too, is put together by the host, which has nearly all of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import lcm

import numpy as np

from relay_hw.accel.isa.config import AccelConfig
from relay_hw.errors import TensorizeError
from relay_hw.ir.expr import Call, Constant, Expr, Function
from relay_hw.ir.visit import post_order
from relay_hw.target.accel.groups import parts_of
from relay_hw.target.accel.move_groups import is_of_host
from relay_hw.tensorize.match.reading import check_products
from relay_hw.transform.graph import (
    calls_that_read,
    constant,
    dtype_of,
    is_op,
    known_shape,
    make,
    rebuilt,
    remake,
    shape_of,
    typed_tuple,
    with_body,
)

_RANK = 3
_ROWS, _COLUMNS = 1, 2


def split_caches(function: Function, config: AccelConfig) -> Function:
    """`function` with products on the parts of caches, where a configuration has products of computed tensors."""
    try:
        check_products(config)
    except TensorizeError:
        return function
    order = list(post_order(function.body))
    # Rows are outputs of one product, and inputs of the other.
    block = lcm(config.block_out, config.block_in)
    caches = {node for node in order if _is_cache(node, block)}
    if not caches:
        return function
    writer = _Writer(caches, calls_that_read(order), block)
    for node in order:
        writer.write(node)
    return with_body(function, writer.plain[function.body])


def _is_cache(node: Expr, block: int) -> bool:
    """Whether the node is int8 [heads, rows, columns], of which the host has the first rows, a block at least."""
    if not isinstance(node, Call) or not is_op(node, "concatenate") or dtype_of(node) != "int8":
        return False
    parts = parts_of(node)
    if len(shape_of(node) or ()) != _RANK or node.attrs.axis % _RANK != _ROWS or len(parts) < 2:
        return False
    return known_shape(parts[0])[_ROWS] >= block and is_of_host(parts[0]) and not any(map(is_of_host, parts[1:]))


@dataclass(frozen=True, slots=True)
class _Halves:
    """The whole blocks of rows that the host has; the rows behind them."""

    whole: Expr
    rest: Expr

    @property
    def rows(self) -> int:
        return known_shape(self.whole)[_ROWS]

    def turned(self) -> tuple[Expr, Expr]:
        """Both with rows and columns swapped."""
        whole, rest = (make("transpose", (part,), axes=(0, 2, 1), span=part.span) for part in (self.whole, self.rest))
        return whole, rest


class _Writer:
    """Writes nodes in order: products that read caches anew, everything else as it was."""

    def __init__(self, caches: set[Expr], readers: Mapping[Expr, Sequence[Expr]], block: int) -> None:
        self._caches = caches
        self._readers = readers
        self._block = block
        self._halves: dict[Expr, _Halves] = {}
        self.plain: dict[Expr, Expr] = {}

    def write(self, node: Expr) -> None:
        """Write `node`, whose operands are written."""
        new = None
        if isinstance(node, Call) and is_op(node, "fixed.requantize"):
            new = self._of_rows(node)
        elif isinstance(node, Call) and is_op(node, "nn.batch_matmul"):
            new = self._of_columns(node)
        self.plain[node] = rebuilt(node, self.plain) if new is None else new

    def _of_rows(self, stage: Call) -> Expr | None:
        """A product with the cache itself, requantized: columns of the result from each part."""
        product = stage.args[0]
        if not isinstance(product, Call) or not is_op(product, "nn.batch_matmul") or len(self._readers[product]) != 1:
            return None
        cache, order = self._read(product)
        if cache is None or order != (0, _ROWS, _COLUMNS):
            return None
        halves = self._cut(cache)
        cuts = (slice(0, halves.rows), slice(halves.rows, None))
        parts: list[Expr] = []
        for part, cut in zip((halves.whole, halves.rest), cuts, strict=True):
            one = remake(product, (self.plain[product.args[0]], part))
            parts.append(_stage(stage, one, cut, known_shape(product)[_COLUMNS]))
        return make("concatenate", (typed_tuple(parts),), axis=_COLUMNS, span=stage.span)

    def _of_columns(self, product: Call) -> Expr | None:
        """A product with the transposed cache: one sum over the channels of both parts."""
        cache, order = self._read(product)
        if cache is None or order != (0, _COLUMNS, _ROWS):
            return None
        parts = self._cut(cache).turned()
        joined = make("concatenate", (typed_tuple(parts),), axis=_COLUMNS, span=product.args[1].span)
        return remake(product, (self.plain[product.args[0]], joined))

    def _read(self, product: Call) -> tuple[Expr | None, tuple[int, ...]]:
        """The cache that is the second operand, where it is one, and its axes as the product has them."""
        operand, order = product.args[1], tuple(range(_RANK))
        while isinstance(operand, Call) and is_op(operand, "transpose"):
            axes = operand.attrs.axes or range(_RANK - 1, -1, -1)
            order = tuple(axes[axis] % _RANK for axis in order)
            operand = operand.args[0]
        plain = not product.attrs.transpose_a and product.attrs.transpose_b
        return (operand if plain and operand in self._caches else None), order

    def _cut(self, cache: Expr) -> _Halves:
        if cache not in self._halves:
            assert isinstance(cache, Call)
            before, *new = (self.plain[part] for part in parts_of(cache))
            count = known_shape(before)[_ROWS]
            whole = count // self._block * self._block
            rest = [*([_rows(before, whole, count)] if whole < count else []), *new]
            joined = rest[0] if len(rest) == 1 else remake(cache, (typed_tuple(rest),))
            self._halves[cache] = _Halves(_rows(before, 0, whole), joined)
        return self._halves[cache]


def _rows(data: Expr, begin: int, end: int) -> Expr:
    if (begin, end) == (0, known_shape(data)[_ROWS]):
        return data
    return make("strided_slice", (data,), begin=(begin,), end=(end,), strides=(1,), axes=(_ROWS,), span=data.span)


def _stage(stage: Call, data: Expr, cut: slice, columns: int) -> Expr:
    """The requantization of some columns of a result."""
    attrs, bias = stage.attrs, stage.args[1]
    if attrs.axis % _RANK != _COLUMNS:
        return remake(stage, (data, bias))
    numbers = {
        name: values[cut] if isinstance(values := getattr(attrs, name), tuple) and len(values) == columns else values
        for name in ("multiplier", "shift")
    }
    return remake(stage, (data, _part(bias, cut)), replace(attrs, **numbers))


def _part(bias: Expr, cut: slice) -> Expr:
    if isinstance(bias, Constant):
        return constant(np.ascontiguousarray(bias.data[cut]), bias.span)
    begin, end, _ = cut.indices(known_shape(bias)[0])
    return make("strided_slice", (bias,), begin=(begin,), end=(end,), strides=(1,), axes=(0,), span=bias.span)
