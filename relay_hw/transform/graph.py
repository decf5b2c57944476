"""Helpers for passes: queries on nodes, typed calls, use counts.

In: typed expressions. Out: typed expressions; no pass needs inference between two of its own steps.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from relay_hw.errors import TypeCheckError, UnsupportedError
from relay_hw.ir.expr import (
    Call,
    Constant,
    Expr,
    Function,
    GlobalVar,
    Op,
    Trait,
    Tuple,
    TupleGetItem,
    Var,
)
from relay_hw.ir.types import TensorType, TupleType, Type
from relay_hw.ir.visit import Rewriter, children, copy_with, post_order, rebuild
from relay_hw.op import get
from relay_hw.op.base import KnownTypes
from relay_hw.span import Span

E = TypeVar("E", bound=Expr)
Array = NDArray[Any]


def _must_be_equal(left: Type, right: Type) -> None:
    if left != right:
        raise TypeCheckError(f"types must be equal, not {left} and {right}")


def op_name(expr: Expr) -> str:
    """The operator's name if `expr` is a call of an operator, else an empty string."""
    return expr.op.name if isinstance(expr, Call) and isinstance(expr.op, Op) else ""


def is_op(expr: Expr, *names: str) -> bool:
    """Whether `expr` is a call of one of these operators."""
    return op_name(expr) in names


def has_trait(expr: Expr, trait: Trait) -> bool:
    """Whether `expr` is a call of an operator with this trait."""
    return isinstance(expr, Call) and isinstance(expr.op, Op) and expr.op.has(trait)


def is_external(function: Function) -> bool:
    """Whether a function belongs to one side of a partition already; passes leave such functions alone."""
    return "Compiler" in function.attrs


def typed(node: E, ty: Type | None) -> E:
    """A copy of `node` with this type."""
    return node if node.checked_type is ty else copy_with(node, checked_type=ty)


def rebuilt(node: Expr, memo: Mapping[Expr, Expr]) -> Expr:
    """`node` on its operands' places in `memo`, of the same type; a function that was not entered as it is."""
    if isinstance(node, Function) and node.body not in memo:
        return node
    return typed(rebuild(node, memo), node.checked_type)


def with_body(function: Function, body: Expr) -> Function:
    """The function with another body of the same type."""
    return typed(copy_with(function, body=body), function.checked_type)


class TypedRewriter(Rewriter):
    """A rewriting that keeps the types of nodes."""

    def _rewrite_node(self, node: Expr) -> Expr:
        new = super()._rewrite_node(node)
        return new if new.checked_type is not None else typed(new, node.checked_type)


def constant(value: Array | np.generic, span: Span | None = None) -> Constant:
    """A typed constant."""
    data = np.asarray(value)
    return Constant(data, span=span, checked_type=TensorType(data.shape, str(data.dtype)))


def typed_call(op: Op, args: Sequence[Expr], attrs: Any, span: Span | None = None) -> Call:
    """A call with its type. Raises TypeCheckError if the type relation refuses the arguments."""
    result = op.relation([arg.type for arg in args], attrs, KnownTypes(_must_be_equal))
    if result is None:
        raise TypeCheckError(f"{op.name} must have arguments of known type", span)
    return Call(op, args, attrs, span=span, checked_type=result)


def make(name: str, args: Sequence[Expr], *, span: Span | None = None, **attrs: Any) -> Call:
    """A typed call of operator `name` with these attributes."""
    op = get(name)
    return typed_call(op, args, op.attrs_type(**attrs) if op.attrs_type is not None else None, span)


def typed_tuple(parts: Sequence[Expr]) -> Tuple:
    """A tuple with its type."""
    return Tuple(parts, checked_type=TupleType([part.type for part in parts]))


def remake(call: Call, args: Sequence[Expr], attrs: Any = None) -> Call:
    """The same operator on other arguments, with the same attributes unless others are given."""
    assert isinstance(call.op, Op)
    return typed_call(call.op, args, call.attrs if attrs is None else attrs, call.span)


def shape_of(expr: Expr) -> tuple[int, ...] | None:
    """The static shape of a tensor; None for other types and for unknown sizes."""
    ty = expr.checked_type
    if not isinstance(ty, TensorType) or not all(isinstance(dim, int) for dim in ty.shape):
        return None
    return ty.static_shape


def known_shape(expr: Expr) -> tuple[int, ...]:
    """The shape of a tensor whose sizes are known."""
    shape = shape_of(expr)
    assert shape is not None
    return shape


def dtype_of(expr: Expr) -> str:
    """The element type of a tensor, an empty string for other types."""
    ty = expr.checked_type
    return ty.dtype if isinstance(ty, TensorType) else ""


def is_float(expr: Expr) -> bool:
    """Whether `expr` is a tensor of floating-point numbers."""
    return dtype_of(expr).startswith("float")


def constant_value(expr: Expr) -> Array | None:
    """The value of a constant, else None."""
    return expr.data if isinstance(expr, Constant) else None


def scalar_value(expr: Expr) -> float | None:
    """The number that every element of a constant equals, else None."""
    if not isinstance(expr, Constant) or not expr.data.size or expr.data.dtype.kind not in "fiu":
        return None
    first = expr.data.reshape(-1)[0]
    return float(first) if bool((expr.data == first).all()) else None


def count_uses(root: Expr) -> dict[Expr, int]:
    """Number of uses of each node; `root` itself counts one."""
    uses: dict[Expr, int] = {root: 1}
    for node in post_order(root):
        for part in children(node):
            uses[part] = uses.get(part, 0) + 1
    return uses


def calls_that_read(nodes: Iterable[Expr]) -> dict[Expr, list[Expr]]:
    """The calls among `nodes` that take each value, also in a tuple, one for each use."""
    found: dict[Expr, list[Expr]] = {}
    for node in nodes:
        if isinstance(node, Call):
            for arg in node.args:
                for part in arg.fields if isinstance(arg, Tuple) else (arg,):
                    found.setdefault(part, []).append(node)
    return found


def outer_order(root: Expr) -> Iterator[Expr]:
    """Post-order that does not enter function literals: the nodes evaluated along with `root` itself."""
    seen: set[Expr] = set()
    stack: list[tuple[Expr, bool]] = [(root, False)]
    while stack:
        node, is_done = stack.pop()
        if is_done:
            yield node
            continue
        if node in seen:
            continue
        seen.add(node)
        stack.append((node, True))
        if not isinstance(node, Function):
            stack.extend((part, False) for part in reversed(children(node)))


def dataflow_order(root: Expr, what: str) -> list[Expr]:
    """Calls, tuples, projections, constants and variables of a dataflow graph, operands first.

    Operators, and function literals that are called, are not entered. Raises UnsupportedError for control flow,
    references and function values: `what` says who needs a dataflow graph.
    """
    order: list[Expr] = []
    seen: set[Expr] = set()
    stack: list[tuple[Expr, bool]] = [(root, False)]
    while stack:
        node, is_done = stack.pop()
        if is_done:
            order.append(node)
            continue
        if node in seen:
            continue
        seen.add(node)
        stack.append((node, True))
        stack.extend((part, False) for part in reversed(_operands(node, what)))
    return order


def _operands(node: Expr, what: str) -> Sequence[Expr]:
    match node:
        case Call(op=Op() | GlobalVar() | Function(), args=args):
            return args
        case Tuple(fields=parts):
            return parts
        case TupleGetItem(tuple_value=value):
            return (value,)
        case Var() | Constant():
            return ()
        case _:
            kind = type(node).__name__
            raise UnsupportedError(
                f"{what} must be a graph of operator calls and tuples, not contain {kind}", node.span
            )


def leaves(ty: Type) -> Iterator[TensorType]:
    """The tensors of a type, tuples entered."""
    if isinstance(ty, TensorType):
        yield ty
    elif isinstance(ty, TupleType):
        for part in ty.fields:
            yield from leaves(part)
