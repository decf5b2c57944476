"""Gradients of straight-line programs within a bound on memory: parts of the program are computed again.

The calls are cut into segments of about equal bytes. What a segment hands on is kept; what is inside of it is computed
again, from copies, when the adjoints come back to it. The last segment is only computed once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

from relay_hw.analysis.infer import infer_expr
from relay_hw.analysis.live_bytes import bytes_of, peak_bytes
from relay_hw.errors import InputError
from relay_hw.ir.expr import Call, Constant, Expr, Function, Tuple, TupleGetItem, Var
from relay_hw.ir.module import IRModule
from relay_hw.ir.types import TupleType, Type
from relay_hw.ir.visit import copy_with
from relay_hw.op import copy
from relay_hw.op.gradients.accumulate import Adjoint, add, alive_nodes, joined, operands, ordered, pushed
from relay_hw.transform.dead_code import DeadCodeElimination
from relay_hw.transform.normal_form import ATOMS, normalize
from relay_hw.transform.redirect import redirect
from relay_hw.transform.reverse_symbols import Bindings


def within_memory(graph: Function, seed: Adjoint, memory: int, mod: IRModule | None) -> Function:
    """The gradient of a typed function without lets, whose values take at most `memory` bytes at a time.

    Arguments and constants do not count. Takes as few segments as will do. Raises InputError if none will, and
    UnsupportedError for sizes known only at run time.
    """
    order = ordered(graph.body)
    calls = [node for node in order if isinstance(node, Call)]
    least: int | None = None
    for count in _counts(len(calls)):
        new = _straight(_Segments(graph, order, _cut(calls, count)).gradient(seed), mod)
        peak = peak_bytes(new)
        if peak <= memory:
            return new
        least = peak if least is None else min(least, peak)
    raise InputError(f"memory of this gradient must be at least {least or 0:,} bytes, not {memory:,}")


def _counts(calls: int) -> Iterator[int]:
    """1, 2, 3, 4, 6, 9, ... segments, at most one a call."""
    count = 1
    while count <= max(calls, 1):
        yield count
        count = max(count + 1, count * 3 // 2)


def _cut(calls: Sequence[Call], count: int) -> list[int]:
    """The segment of each call."""
    total = sum(bytes_of(call.type) for call in calls) or 1
    found, before = [], 0
    for call in calls:
        size = bytes_of(call.type)
        found.append(min((before + size // 2) * count // total, count - 1))
        before += size
    return found


def _straight(function: Function, mod: IRModule | None) -> Function:
    """Every call with a name, none that nobody reads; typed."""
    typed = cast(Function, infer_expr(function, mod))
    named = normalize(typed, lambda node: not isinstance(node, ATOMS))
    whole = IRModule({"main": named}, {} if mod is None else mod.types)
    return cast(Function, infer_expr(DeadCodeElimination()(whole)["main"], mod))


class _Segments:
    """Writes forward and backward bindings. `numbers`: the segment of each call, in order."""

    def __init__(self, graph: Function, order: Sequence[Expr], numbers: Sequence[int]) -> None:
        self._graph = graph
        self._order = order
        self._alive = alive_nodes(order, graph.params)
        self._block = Bindings()
        self._values: dict[Expr, Expr] = {}
        self._found: dict[Expr, Adjoint] = {}
        self._parts: list[list[Expr]] = [[] for _ in range(max(numbers, default=0) + 1)]
        given = iter(numbers)
        at = 0
        for node in order:
            # Fields and tuples belong to the segment of the call before them.
            at = next(given) if isinstance(node, Call) else at
            self._parts[at].append(node)

    def gradient(self, seed: Adjoint) -> Function:
        """The whole function."""
        graph = self._graph
        for part in self._parts:
            self._forward(part, self._values)
        result = self._values[graph.body]
        self._found[graph.body] = _replaced(seed, graph.body, result)
        for part in reversed(self._parts):
            self._backward(part, is_last=part is self._parts[-1])
        slopes = [joined(self._found.get(param), param) for param in graph.params]
        ret = TupleType([graph.body.type, TupleType([param.type for param in graph.params])])
        body = self._block.close(Tuple([result, Tuple(slopes)]))
        return Function(graph.params, body, ret, graph.type_params, graph.attrs, graph.where)

    def _forward(self, part: Sequence[Expr], values: dict[Expr, Expr]) -> None:
        for node in part:
            if node not in values:
                values[node] = self._computed(node, values)

    def _computed(self, node: Expr, values: dict[Expr, Expr]) -> Expr:
        match node:
            case Call(args=args):
                call = copy_with(node, args=tuple(values[arg] for arg in args))
                return self._block.emit(call, node.type)
            case Tuple(fields=fields):
                return copy_with(node, fields=tuple(values[field] for field in fields))
            case TupleGetItem(tuple_value=value):
                return copy_with(node, tuple_value=values[value])
            case _:
                return node

    def _backward(self, part: Sequence[Expr], is_last: bool) -> None:
        if not any(node in self._found and node in self._alive for node in part):
            return
        values = self._values if is_last else self._again(part)
        for node in reversed(part):
            adjoint = self._found.get(node)
            if adjoint is None or node not in self._alive or isinstance(node, Var):
                continue
            del self._found[node]
            self._push(node, adjoint, values)

    def _again(self, part: Sequence[Expr]) -> dict[Expr, Expr]:
        """The values of a segment computed once more. Copies keep passes from finding them equal to the first ones."""
        inside = set(part)
        values: dict[Expr, Expr] = {}
        for outer in dict.fromkeys(arg for node in part for arg in operands(node) if arg not in inside):
            kept = self._values[outer]
            is_whole = isinstance(outer, Constant) or isinstance(outer.type, TupleType)
            values[outer] = kept if is_whole else self._block.emit(copy(kept), outer.type, "again")
        self._forward(part, values)
        return values

    def _push(self, node: Expr, adjoint: Adjoint, values: dict[Expr, Expr]) -> None:
        own = node
        if isinstance(node, Call):
            own = copy_with(node, args=tuple(values[arg] for arg in node.args))
        shares = pushed(own, adjoint)
        for arg, (_, share) in zip(operands(node), shares, strict=True):
            if arg in self._alive:
                share = _replaced(share, own, values[node]) if isinstance(node, Call) else share
                total = add(self._found.get(arg), share, arg.type)
                self._found[arg] = self._named(total, arg.type)

    def _named(self, adjoint: Adjoint, ty: Type) -> Adjoint:
        """Bound here, so that what it is made of need not stay."""
        if isinstance(adjoint, list) and isinstance(ty, TupleType):
            return [self._named(part, own) for part, own in zip(adjoint, ty.fields, strict=True)]
        if not isinstance(adjoint, Expr) or isinstance(adjoint, Var):
            return adjoint
        return self._block.emit(adjoint, ty, "slope")


def _replaced(share: Adjoint, old: Expr, new: Expr) -> Adjoint:
    """An adjoint that reads `new` where it read `old`."""
    if isinstance(share, list):
        return [_replaced(part, old, new) for part in share]
    return redirect(share, {old: new}.get) if isinstance(share, Expr) else share
