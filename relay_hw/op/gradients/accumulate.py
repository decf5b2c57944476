"""Reverse-mode accumulation on a graph of operator calls, tuples and projections. In: typed nodes. Out: adjoints.

Each adjoint is an expression on the nodes of the graph; contributions of several users are added in order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from relay_hw.errors import UnsupportedError
from relay_hw.ir.expr import Call, Constant, Expr, Gradient, Op, Tuple, TupleGetItem, Var
from relay_hw.ir.lazy_import import lazy_import
from relay_hw.ir.types import TensorType, TupleType, Type
from relay_hw.ir.visit import substitute
from relay_hw.op.gradients.common import ops, zeros

# An expression, or for a tuple one adjoint a field; None if nothing flows back.
Adjoint = Any


def is_real(ty: Type | None) -> bool:
    """Whether a tensor has derivatives: its elements are floating-point numbers."""
    return isinstance(ty, TensorType) and str(ty.dtype).startswith(("float", "bfloat"))


def zero_of(ty: Type, like: Expr) -> Expr:
    """Zeros in a type of tensors and tuples; `like` is a value of it."""
    if isinstance(ty, TupleType):
        return Tuple([zero_of(part, _item(like, index, part)) for index, part in enumerate(ty.fields)])
    return zeros(like)


def _item(value: Expr, index: int, ty: Type) -> Expr:
    return value.fields[index] if isinstance(value, Tuple) else TupleGetItem(value, index, checked_type=ty)


def accumulate(result: Expr, seed: Adjoint, wanted: Sequence[Expr]) -> list[Adjoint]:
    """The adjoint of each node of `wanted` when that of `result` is `seed`.

    Raises UnsupportedError for other nodes, and for an operator on the way that has no gradient.
    """
    order = ordered(result)
    alive = alive_nodes(order, wanted)
    found: dict[Expr, Adjoint] = {result: seed}
    for node in reversed(order):
        adjoint = found.get(node)
        if adjoint is None or node not in alive or node in wanted:
            continue
        for part, value in pushed(node, adjoint):
            if part in alive:
                found[part] = add(found.get(part), value, part.type)
    return [found.get(node) for node in wanted]


def ordered(root: Expr) -> list[Expr]:
    """The nodes of a graph, operands first. Raises UnsupportedError for control flow, functions and references."""
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
            stack.extend((part, False) for part in reversed(operands(node)))
    return order


def operands(node: Expr) -> Sequence[Expr]:
    """What a node is computed from. Raises UnsupportedError as `ordered` does."""
    match node:
        case Call(op=Op(), args=args):
            return args
        case Tuple(fields=parts):
            return parts
        case TupleGetItem(tuple_value=value):
            return (value,)
        case Var() | Constant():
            return ()
        case _:
            kind = type(node.op if isinstance(node, Call) else node).__name__
            raise UnsupportedError(
                f"first-order gradient must be of operator calls, tuples and lets, not contain {kind}", node.span
            )


def alive_nodes(order: Sequence[Expr], wanted: Sequence[Expr]) -> set[Expr]:
    """The nodes that depend on a wanted one."""
    alive = set(wanted)
    for node in order:
        if any(part in alive for part in operands(node)) and _has_real(node.type):
            alive.add(node)
    return alive


def _has_real(ty: Type) -> bool:
    return any(map(_has_real, ty.fields)) if isinstance(ty, TupleType) else is_real(ty)


def pushed(node: Expr, adjoint: Adjoint) -> list[tuple[Expr, Adjoint]]:
    """The adjoints that flow from a node to its operands."""
    match node:
        case Call(args=args):
            return list(zip(args, operator_slopes(node, joined(adjoint, node)), strict=True))
        case Tuple(fields=parts):
            return [(part, value) for part, value in zip(parts, fields(adjoint, len(parts)), strict=True)]
        case TupleGetItem(tuple_value=value, index=index):
            ty = value.type
            assert isinstance(ty, TupleType)
            return [(value, [adjoint if place == index else None for place in range(len(ty.fields))])]
        case _:
            return []


def operator_slopes(call: Call, adjoint: Expr) -> Sequence[Expr]:
    """The adjoints of a call's arguments. Raises UnsupportedError for an operator without gradient."""
    assert isinstance(call.op, Op)
    if call.op.gradient is None:
        raise UnsupportedError(f"operator {call.op.name} must have a gradient to be differentiated", call.span)
    return call.op.gradient(call, adjoint)


def fields(adjoint: Adjoint, count: int) -> list[Adjoint]:
    """The adjoints of a tuple's fields."""
    if adjoint is None:
        return [None] * count
    if isinstance(adjoint, Tuple):
        return list(adjoint.fields)
    return adjoint if isinstance(adjoint, list) else [TupleGetItem(adjoint, index) for index in range(count)]


def joined(adjoint: Adjoint, like: Expr) -> Expr:
    """Join adjoints to one expression in the type of `like`, with zeros where nothing flows."""
    ty = like.type
    if isinstance(adjoint, list):
        assert isinstance(ty, TupleType)
        return Tuple([joined(part, _item(like, at, ty.fields[at])) for at, part in enumerate(adjoint)], checked_type=ty)
    if adjoint is None:
        return zero_of(ty, like)
    return adjoint


def add(left: Adjoint, right: Adjoint, ty: Type) -> Adjoint:
    """The sum of two adjoints of a value of type `ty`."""
    if left is None or right is None:
        return right if left is None else left
    if isinstance(ty, TupleType):
        count = len(ty.fields)
        pairs = zip(fields(left, count), fields(right, count), ty.fields, strict=True)
        return [add(a, b, part) for a, b, part in pairs]
    return ops().add(left, right) if is_real(ty) else left


def by_expansion(expand: Callable[..., Expr]) -> Gradient:
    """The gradient of an operator through its definition: `expand(attrs, *arguments)`, typed variables."""

    def gradient(call: Call, adjoint: Expr) -> Sequence[Expr]:
        fresh = [Var(f"x{index}", arg.type, checked_type=arg.type) for index, arg in enumerate(call.args)]
        seed = Var("g", call.type, checked_type=call.type)
        typed = lazy_import("relay_hw.analysis.infer").infer_expr(expand(call.attrs, *fresh))
        slopes = [joined(slope, var) for slope, var in zip(accumulate(typed, seed, fresh), fresh, strict=True)]
        values = dict(zip((*fresh, seed), (*call.args, adjoint), strict=True))
        whole = substitute(Tuple(slopes), values)
        assert isinstance(whole, Tuple)
        return whole.fields

    return gradient
