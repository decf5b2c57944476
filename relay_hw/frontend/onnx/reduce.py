"""ONNX reductions, whose axes are an attribute in old opsets and an input in new ones; cumulative sums and products."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from relay_hw import op
from relay_hw.errors import UnsupportedError
from relay_hw.frontend.onnx.node import Arguments, Converter, Node
from relay_hw.ir.expr import Expr
from relay_hw.op import const

Axes = tuple[int, ...]
Reduce = Callable[[Expr], Expr]

STATIC: Mapping[str, Callable[[Expr, Axes, bool], Expr]] = {
    "sum": op.sum,
    "mean": op.mean,
    "max": op.max,
    "min": op.min,
    "prod": op.prod,
    "logsumexp": op.logsumexp,
}


def _axes(node: Node, args: Arguments) -> Axes | Expr | None:
    """The reduced axes, an expression if they are dynamic; None if the node does not change its data."""
    given = node.attr("axes")
    axes = args.ints(1) if given is None else tuple(given)
    if axes is None and node.has_input(1) and args.length(1):
        if args.length(1) > args.rank(args[0]):
            raise UnsupportedError(f"it must have at most as many axes as its data, not {args.length(1)}")
        return args[1]
    if axes:
        return axes
    return None if node.attr("noop_with_empty_axes", 0) else tuple(range(args.rank(args[0])))


def _reducer(kind: str, node: Node, args: Arguments, axes: Axes | Expr) -> Reduce:
    keep = bool(node.attr("keepdims", 1))
    if isinstance(axes, Expr):
        return lambda data: op.contraction.reduce(data, axes, kind, keep)
    shape = args.dims(args[0])
    if any(shape[axis] == 0 for axis in axes):
        places = const(np.array(axes, np.int64))
        return lambda data: op.contraction.reduce(data, places, kind, keep)
    return lambda data: STATIC[kind](data, axes, keep)


def _reduction(
    name: str, kind: str, before: Callable[[Expr], Expr] | None = None, after: Callable[[Expr], Expr] | None = None
) -> Converter:
    """A reduction with `before` on each element and `after` on the result; without axes both still apply."""

    def convert(node: Node, args: Arguments) -> Expr:
        axes = _axes(node, args)
        value = args[0] if before is None else before(args[0])
        if axes is not None:
            value = _reducer(kind, node, args, axes)(value)
        value = value if after is None else after(value)
        return op.copy(value) if value is args[0] else value

    return Converter(name, convert)


def _square(data: Expr) -> Expr:
    return op.multiply(data, data)


def _arg(build: Callable[..., Expr]) -> Callable[[Node, Arguments], Expr]:
    def convert(node: Node, args: Arguments) -> Expr:
        keep, last = bool(node.attr("keepdims", 1)), bool(node.attr("select_last_index", 0))
        return op.cast(build(args[0], node.attr("axis", 0), keep, False, last), "int64")

    return convert


def _cumulative(kind: str) -> Callable[[Node, Arguments], Expr]:
    def convert(node: Node, args: Arguments) -> Expr:
        exclusive, reverse = bool(node.attr("exclusive", 0)), bool(node.attr("reverse", 0))
        axis = args.array(1)
        if axis is None:
            return op.contraction.cumulative(args[0], args[1], kind, exclusive, reverse)
        at = int(np.ravel(axis)[0]) % args.rank(args[0])
        data = op.reverse(args[0], at) if reverse else args[0]
        value = (op.cumsum if kind == "sum" else op.cumprod)(data, at, None, exclusive)
        return op.reverse(value, at) if reverse else value

    return convert


CONVERTERS = (
    _reduction("ReduceMean", "mean"),
    _reduction("ReduceSum", "sum"),
    _reduction("ReduceMax", "max"),
    _reduction("ReduceMin", "min"),
    _reduction("ReduceProd", "prod"),
    _reduction("ReduceL1", "sum", op.abs),
    _reduction("ReduceL2", "sum", _square, op.sqrt),
    _reduction("ReduceSumSquare", "sum", _square),
    _reduction("ReduceLogSum", "sum", None, op.log),
    _reduction("ReduceLogSumExp", "logsumexp"),
    Converter("ArgMax", _arg(op.argmax)),
    Converter("ArgMin", _arg(op.argmin)),
    Converter("CumProd", _cumulative("prod")),
    Converter("CumSum", _cumulative("sum")),
)
