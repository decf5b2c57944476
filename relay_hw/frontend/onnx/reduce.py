"""ONNX reductions over axes, which are an attribute in old opsets and an input in new ones."""

from __future__ import annotations

from collections.abc import Callable

from relay_hw import op
from relay_hw.frontend.onnx.node import Arguments, Converter, Node, known_inputs
from relay_hw.ir.expr import Expr

Axes = tuple[int, ...]
Build = Callable[[Expr, Axes, bool], Expr]


def _axes(node: Node, args: Arguments) -> Axes | None:
    """The axes that go; None if the node leaves its data alone."""
    given = node.attr("axes")
    axes = args.ints(1) if given is None else tuple(given)
    if axes:
        return axes
    return None if node.attr("noop_with_empty_axes", 0) else tuple(range(args.rank(args[0])))


def _reduction(name: str, build: Build) -> Converter:
    def convert(node: Node, args: Arguments) -> Expr:
        axes = _axes(node, args)
        # Without axes nothing is summed, but squares, logarithms and magnitudes are still taken.
        return build(args[0], axes, bool(node.attr("keepdims", 1))) if axes is not None else _elementwise(name, args[0])

    return Converter(name, convert, known_inputs(1))


def _elementwise(name: str, data: Expr) -> Expr:
    match name:
        case "ReduceL1" | "ReduceL2":
            return op.abs(data)
        case "ReduceSumSquare":
            return op.multiply(data, data)
        case "ReduceLogSum":
            return op.log(data)
        case _:
            return op.copy(data)


def _arg(build: Callable[..., Expr]) -> Callable[[Node, Arguments], Expr]:
    def convert(node: Node, args: Arguments) -> Expr:
        keep, last = bool(node.attr("keepdims", 1)), bool(node.attr("select_last_index", 0))
        return op.cast(build(args[0], node.attr("axis", 0), keep, False, last), "int64")

    return convert


def _square_sum(data: Expr, axes: Axes, keep: bool) -> Expr:
    return op.sum(op.multiply(data, data), axes, keep)


CONVERTERS = (
    _reduction("ReduceMean", op.mean),
    _reduction("ReduceSum", op.sum),
    _reduction("ReduceMax", op.max),
    _reduction("ReduceMin", op.min),
    _reduction("ReduceProd", op.prod),
    _reduction("ReduceL1", lambda data, axes, keep: op.sum(op.abs(data), axes, keep)),
    _reduction("ReduceL2", lambda data, axes, keep: op.sqrt(_square_sum(data, axes, keep))),
    _reduction("ReduceSumSquare", _square_sum),
    _reduction("ReduceLogSum", lambda data, axes, keep: op.log(op.sum(data, axes, keep))),
    _reduction("ReduceLogSumExp", op.logsumexp),
    Converter("ArgMax", _arg(op.argmax)),
    Converter("ArgMin", _arg(op.argmin)),
)
