"""Gradients of straight-line programs: operator calls, tuples, lets. The result holds no references and no closures."""

from __future__ import annotations

from typing import Any, cast

from relay_hw.analysis.infer import infer_expr
from relay_hw.analysis.variables import free_vars
from relay_hw.errors import UnsupportedError
from relay_hw.ir.expr import Expr, Function, Let, Tuple, TupleGetItem, Var
from relay_hw.ir.module import IRModule
from relay_hw.ir.types import TupleType, Type
from relay_hw.ir.visit import children, rebuild
from relay_hw.op import ones, ones_like
from relay_hw.op.gradients.accumulate import accumulate, is_real, joined
from relay_hw.op.gradients.common import known_type, number
from relay_hw.transform.checkpointing import within_memory


def first_order_gradient(function: Function, mod: IRModule | None = None, memory: int | None = None) -> Function:
    """`fn (x1: T1, ...) -> R` becomes `fn (x1: T1, ...) -> (R, (T1, ...))` by accumulating adjoints on the graph.

    Arguments and result are tensors or tuples of them; the derivative is that of the sum of the result's elements, of
    a tuple that of its first field's. With `memory`, parts are computed again so that values take at most so many bytes
    at a time. Raises UnsupportedError for control flow, functions, references and data, InputError where `memory` is
    too small.
    """
    graph = infer_expr(_without_lets(function), mod)
    assert isinstance(graph, Function)
    body = graph.body
    if not _is_real(body.type):
        raise UnsupportedError(
            f"result of a differentiated function must be a real tensor, or a tuple that starts with one, "
            f"not {body.type}",
            function.span,
        )
    if memory is not None:
        return within_memory(graph, seed(body), memory, mod)
    found = accumulate(body, seed(body), graph.params)
    slopes = [joined(adjoint, param) for adjoint, param in zip(found, graph.params, strict=True)]
    types = TupleType([param.type for param in graph.params])
    new = Function(
        graph.params,
        Tuple([body, Tuple(slopes)]),
        TupleType([body.type, types]),
        function.type_params,
        function.attrs,
        function.where,
    )
    return cast(Function, infer_expr(new, mod))


def seed(result: Expr) -> Any:
    """Ones for a tensor; for a tuple, those of its first field."""
    if isinstance(result.type, TupleType):
        fields = result.type.fields
        first = TupleGetItem(result, 0, checked_type=fields[0])
        return [seed(first), *(None for _ in fields[1:])]
    ty = known_type(result)
    if ty is None:
        return ones_like(result)
    return ones(ty.static_shape, ty.dtype) if ty.shape else number(1, result)


def _is_real(ty: Type) -> bool:
    return bool(ty.fields) and _is_real(ty.fields[0]) if isinstance(ty, TupleType) else is_real(ty)


def _without_lets(root: Function) -> Expr:
    """A variable becomes the value that its let gives it: the graph says what is shared.

    Only for programs without effects and closures; others are refused when they are differentiated.
    """
    values: dict[Var, Expr] = {}
    memo: dict[Expr, Expr] = {}
    stack: list[tuple[Expr, bool]] = [(root, False)]
    while stack:
        node, is_done = stack.pop()
        if node in memo:
            continue
        if isinstance(node, Let):
            if isinstance(node.value, Function) and node.var in free_vars(node.value):
                raise UnsupportedError(
                    "first-order gradient must be of operator calls, tuples and lets, not contain a recursive Function",
                    node.span,
                )
            values[node.var] = node.value
        parts = _parts(node, values)
        if is_done:
            alias = parts[-1] if isinstance(node, Let) or node in values else None
            memo[node] = memo[alias] if alias is not None else rebuild(node, memo)
            continue
        stack.append((node, True))
        stack.extend((part, False) for part in reversed(parts))
    return memo[root]


def _parts(node: Expr, values: dict[Var, Expr]) -> tuple[Expr, ...]:
    if isinstance(node, Let):
        return (node.value, node.body)
    if isinstance(node, Var) and node in values:
        return (values[node],)
    return children(node)
