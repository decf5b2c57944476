"""ONNX If, Loop and Scan: conditionals, and tail-recursive functions whose parameters are the loop variables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from relay_hw import op
from relay_hw.errors import InputError, TypeCheckError, UnsupportedError
from relay_hw.frontend.onnx.loops import Loop, Rows, fix, number, row, run, variable, widened
from relay_hw.frontend.onnx.node import Arguments, Check, Converter, Known, Node, Subgraph, all_of
from relay_hw.frontend.onnx.sequence import ListedRows, as_type
from relay_hw.frontend.onnx.typer import join
from relay_hw.ir.expr import Call, Constant, Expr, If, Op, Tuple, TupleGetItem, Var
from relay_hw.ir.types import TensorType, Type
from relay_hw.op import const


def _truth(value: Expr, args: Arguments) -> Expr:
    """A condition or count as a scalar, also from a vector of one element."""
    return op.reshape(value, ()) if args.rank(value) else value


def _if(node: Node, args: Arguments) -> list[Expr]:
    then, other = node.attr("then_branch"), node.attr("else_branch")
    given = args.array(0)
    if given is not None:
        return args.scope.nested(then if bool(given.reshape(())) else other, {})
    sides = [args.scope.nested(graph, {}) for graph in (then, other)]
    if len(sides[0]) != len(sides[1]):
        raise InputError(
            f"branches of If must have as many outputs, not {len(sides[0])} and {len(sides[1])}", node.span
        )
    types = [join(args.any_type(left), args.any_type(right)) for left, right in zip(*sides, strict=True)]
    left, right = (
        Tuple([as_type(args, value, ty) for value, ty in zip(side, types, strict=True)], span=node.span)
        for side in sides
    )
    whole = If(_truth(args[0], args), left, right, span=node.span)
    return [TupleGetItem(whole, index) for index in range(len(types))]


@dataclass(frozen=True, slots=True)
class _Body:
    """A conversion of a loop body: the variables of its inputs, and its results."""

    carried: list[Var]
    captured: dict[Var, Expr]
    step: list[Expr]
    rows: list[Expr]


Trial = Callable[[Sequence[Type]], _Body]
# Types of carried values widen at most once an axis; deeper nesting of lists widens inside.
_MAX_TRIALS = 20


def _is_true(value: Expr | None) -> bool:
    return value is None or (isinstance(value, Constant) and bool(np.all(value.data)))


def _original(value: Expr) -> Expr:
    """The value behind Identity nodes."""
    while isinstance(value, Call) and isinstance(value.op, Op) and value.op.name == "copy":
        value = value.args[0]
    return value


def _loop(node: Node, args: Arguments) -> list[Expr]:
    graph: Subgraph = node.attr("body")
    inits = [args[index] for index in range(2, len(args))]
    index = variable(args, "i", TensorType((), "int64"))
    start = _truth(args[1], args) if node.has_input(1) else const(np.array(True))
    go = variable(args, "go", TensorType((), "bool"))
    shape = args.dims(args[1]) if node.has_input(1) else ()
    shown: Expr = op.reshape(go, (1,)) if shape else go

    def trial(types: Sequence[Type]) -> _Body:
        carried = [variable(args, name, ty) for name, ty in zip(graph.inputs[2:], types, strict=True)]
        captured: dict[Var, Expr] = {}
        bound = dict(zip(graph.inputs, (index, shown, *carried), strict=True))
        made = args.scope.nested(graph, bound, captured)
        return _Body(carried, captured, made[: 1 + len(inits)], made[1 + len(inits) :])

    body = _settled(args, inits, trial, 1)
    cond = body.step[0]
    is_counted = _is_true(start if node.has_input(1) else None) and (_is_true(cond) or _original(cond) is shown)
    limit = args.array(0)
    count = int(limit.reshape(())) if limit is not None and is_counted else None
    count = None if count is None else max(count, 0)
    fixed = dict(body.captured)
    carried: dict[Var, Expr] = {index: number(0)}
    step: list[Expr] = [op.add(index, number(1))]
    tests: list[Expr] = []
    if node.has_input(0):
        tests.append(op.less(index, fix(args, _truth(args[0], args), "limit", fixed)))
    if not is_counted:
        carried[go] = start
        step.append(_truth(cond, args))
        tests.insert(0, go)
    if not tests:
        raise UnsupportedError("it must have an end: a number of iterations or a condition")
    test = tests[0] if len(tests) == 1 else op.logical_and(*tests)
    carried |= dict(zip(body.carried, inits, strict=True))
    step += body.step[1:]
    rows = [_collector(args, value, count) for value in body.rows]
    collected = [variable(args, "rows", made.type) for made in rows]
    carried |= {var: made.start() for var, made in zip(collected, rows, strict=True)}
    step += [made.push(var, value) for made, var, value in zip(rows, collected, body.rows, strict=True)]
    results = run(args, Loop("loop", carried, fixed, test, step, [*body.carried, *collected]))
    split = len(inits)
    return [*results[:split], *(made.finish(value) for made, value in zip(rows, results[split:], strict=True))]


def _settled(args: Arguments, inits: Sequence[Expr], trial: Trial, before: int) -> _Body:
    """The body with stable types of loop variables. `before`: number of outputs before them."""
    types = [args.any_type(value) for value in inits]
    for _ in range(_MAX_TRIALS):
        body = trial(types)
        try:
            wider = widened(args, types, body.step[before:])
        except TypeCheckError as error:
            raise UnsupportedError(f"what it carries must keep its type: {error.message}") from None
        if wider == types:
            return body
        types = wider
    raise UnsupportedError("the types of what it carries must settle")


def _collector(args: Arguments, value: Expr, count: int | None) -> Rows | ListedRows:
    ty = args.any_type(value)
    if not isinstance(ty, TensorType):
        raise UnsupportedError(f"what it collects must be tensors, not {ty}")
    is_static = all(isinstance(dim, int) for dim in ty.shape)
    return _rows(args, value, count) if is_static else ListedRows(args, ty)


def _rows(args: Arguments, value: Expr, count: int | None) -> Rows:
    ty = args.any_type(value)
    if not isinstance(ty, TensorType) or not all(isinstance(dim, int) for dim in ty.shape):
        raise UnsupportedError(f"what it collects must be tensors of known shape, not {ty}")
    args.reserve((count or 0, *ty.static_shape), ty.dtype)
    return Rows(ty, count)


def _directions(node: Node, name: str, count: int) -> list[int]:
    return list(node.attr(name, ())) or [0] * count


def _scanned_inputs(node: Node, args: Arguments) -> int:
    count = node.attr("num_scan_inputs")
    if not 1 <= count <= len(args):
        raise InputError(f"num_scan_inputs must be from 1 to its {len(args)} inputs, not {count}", node.span)
    return count


def _scan(node: Node, args: Arguments) -> list[Expr]:
    if node.opset < 9:
        return _batched_scan(node, args)
    reverse = _directions(node, "scan_input_directions", _scanned_inputs(node, args))
    axes = _directions(node, "scan_input_axes", len(reverse))
    split = len(args) - len(reverse)
    inits, data = [args[k] for k in range(split)], [args[k] for k in range(split, len(args))]
    return _scanned(node, args, inits, data, axes, reverse)


def _batched_scan(node: Node, args: Arguments) -> list[Expr]:
    """Scan of opset 8: axis 0 is the batch, axis 1 the sequence; one loop for each element of the batch."""
    reverse = _directions(node, "directions", _scanned_inputs(node, args))
    split = len(args) - len(reverse)
    inits, data = [args[k] for k in range(1, split)], [args[k] for k in range(split, len(args))]
    args.scope.ledger.parts(args.shape(data[0])[0], node.span)
    each = [
        _scanned(node, args, [row(v, number(b)) for v in inits], [row(v, number(b)) for v in data], [0] * 9, reverse)
        for b in range(args.shape(data[0])[0])
    ]
    return [op.stack(list(parts), 0) for parts in zip(*each, strict=True)]


def _scanned(
    node: Node, args: Arguments, inits: Sequence[Expr], data: Sequence[Expr], axes: Sequence[int],
    reverse: Sequence[int],
) -> list[Expr]:  # fmt: skip
    graph: Subgraph = node.attr("body")
    axes = [axis % args.rank(value) for axis, value in zip(axes, data, strict=False)]
    sizes = [args.dims(value)[axis] for axis, value in zip(axes, data, strict=True)]
    count = next((size for size in sizes if isinstance(size, int)), None)
    if count is None:
        raise UnsupportedError("the number of steps must be known")
    index = variable(args, "i", TensorType((), "int64"))
    fixed: dict[Var, Expr] = {}
    sources = [fix(args, value, "data", fixed) for value in data]
    last = op.subtract(number(count - 1), index)
    slices = [
        row(value, last if back else index, axis) for value, back, axis in zip(sources, reverse, axes, strict=True)
    ]

    def trial(types: Sequence[Type]) -> _Body:
        carried = [variable(args, name, ty) for name, ty in zip(graph.inputs, types, strict=False)]
        captured: dict[Var, Expr] = {}
        made = args.scope.nested(graph, dict(zip(graph.inputs, (*carried, *slices), strict=True)), captured)
        return _Body(carried, captured, made[: len(inits)], made[len(inits) :])

    body = _settled(args, inits, trial, 0)
    outputs = len(body.rows)
    backwards = _directions(node, "scan_output_directions", outputs)
    rows = [
        Rows(_rows(args, value, count).row, count, bool(back)) for value, back in zip(body.rows, backwards, strict=True)
    ]
    collected = [variable(args, "rows", made.type) for made in rows]
    carried = {index: number(0), **dict(zip(body.carried, inits, strict=True))}
    carried |= {var: made.start() for var, made in zip(collected, rows, strict=True)}
    step = [op.add(index, number(1)), *body.step]
    step += [made.push(var, value) for made, var, value in zip(rows, collected, body.rows, strict=True)]
    test = op.less(index, number(count))
    results = run(args, Loop("scan", carried, fixed | body.captured, test, step, [*body.carried, *collected]))
    out_axes = _directions(node, "scan_output_axes", outputs)
    moved = [_moved(args, value, axis) for value, axis in zip(results[len(inits) :], out_axes, strict=True)]
    return [*results[: len(inits)], *moved]


def _moved(args: Arguments, value: Expr, axis: int) -> Expr:
    """Move the first axis to position `axis`."""
    rank = args.rank(value)
    axis %= rank
    if not axis:
        return value
    return op.transpose(value, (*range(1, axis + 1), 0, *range(axis + 1, rank)))


def _required(*names: str) -> Check:
    """A check that these attributes are there."""

    def check(node: Node, known: Known) -> str | None:
        missing = [name for name in names if name not in node.attrs]
        return f"attribute {missing[0]} must be given" if missing else None

    return check


def _check_scan(node: Node, known: Known) -> str | None:
    if node.opset < 9 and node.has_input(0):
        return "sequence_lens must be left out"
    return None


CONVERTERS = (
    Converter("If", _if, _required("then_branch", "else_branch")),
    Converter("Loop", _loop, _required("body")),
    Converter("Scan", _scan, all_of(_required("body", "num_scan_inputs"), _check_scan)),
)
