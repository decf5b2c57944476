"""A first-order function as a flat list of operator calls: what the host runs.

In: a typed Relay function of calls, tuples, lets and inner functions. Out: `FlatFunction`, which numpy evaluates, TVM
compiles and the artefact stores; results of earlier nodes are named by their index.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relay_hw.errors import UnsupportedError
from relay_hw.ir.expr import Call, Constant, Expr, Function, GlobalVar, Let, Op, Tuple, TupleGetItem, Var
from relay_hw.ir.types import Type

Value = Any  # an array, or a Python tuple of values


@dataclass(frozen=True, slots=True)
class FlatInput:
    """A parameter."""

    name: str
    type: Type


@dataclass(frozen=True, slots=True, eq=False)
class FlatConstant:
    data: NDArray[Any]


@dataclass(frozen=True, slots=True)
class FlatCall:
    """An operator applied to the values of earlier nodes."""

    op: Op
    args: tuple[int, ...]
    attrs: Any
    type: Type


@dataclass(frozen=True, slots=True)
class FlatInvoke:
    """A call of the module's function `function`."""

    function: str
    args: tuple[int, ...]
    type: Type


@dataclass(frozen=True, slots=True)
class FlatTuple:
    fields: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class FlatGet:
    source: int
    index: int


FlatNode = FlatInput | FlatConstant | FlatCall | FlatInvoke | FlatTuple | FlatGet


@dataclass(frozen=True, slots=True, eq=False)
class FlatFunction:
    """`nodes[i]` uses only nodes before i; the parameters come first; `result` is the node returned."""

    name: str
    nodes: tuple[FlatNode, ...]
    result: int

    @property
    def params(self) -> tuple[FlatInput, ...]:
        """Parameters in order."""
        return tuple(node for node in self.nodes if isinstance(node, FlatInput))

    @property
    def calls(self) -> tuple[FlatCall, ...]:
        """Operator calls in order."""
        return tuple(node for node in self.nodes if isinstance(node, FlatCall))


def flatten(function: Function, name: str) -> FlatFunction:
    """Flatten a typed function; inner functions that are called are inlined. Raises UnsupportedError for the rest."""
    builder = _Builder(name)
    scope: dict[Expr, int] = {var: builder.add(FlatInput(var.name_hint, _type(var))) for var in function.params}
    result = builder.walk(function.body, [scope])
    return FlatFunction(name, tuple(builder.nodes), result)


def _type(expr: Expr) -> Type:
    if expr.checked_type is not None:
        return expr.checked_type
    if isinstance(expr, Var) and expr.type_annotation is not None:
        return expr.type_annotation
    raise ValueError("a host function must have types: run InferType first")


class _Builder:
    """Iterative in the depth of the graph, recursive only in the nesting of inner functions."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.nodes: list[FlatNode] = []

    def add(self, node: FlatNode) -> int:
        self.nodes.append(node)
        return len(self.nodes) - 1

    def walk(self, root: Expr, scopes: list[dict[Expr, int]]) -> int:
        done = scopes[-1]

        def find(expr: Expr) -> int | None:
            return next((scope[expr] for scope in reversed(scopes) if expr in scope), None)

        stack = [root]
        while stack:
            expr = stack[-1]
            if find(expr) is not None:
                stack.pop()
                continue
            missing = [child for child in self._children(expr, find, done) if find(child) is None]
            if missing:
                stack.extend(reversed(missing))
                continue
            done[expr] = self._emit(expr, find, scopes)
            stack.pop()
        return done[root] if root in done else _found(find(root))

    def _children(self, expr: Expr, find: Callable[[Expr], int | None], done: dict[Expr, int]) -> Sequence[Expr]:
        match expr:
            case Call():
                return expr.args
            case Tuple():
                return expr.fields
            case TupleGetItem():
                return (expr.tuple_value,)
            case Let():
                value = find(expr.value)
                if value is None:
                    return (expr.value,)
                done[expr.var] = value
                return (expr.body,)
            case _:
                return ()

    def _emit(self, expr: Expr, find: Callable[[Expr], int | None], scopes: list[dict[Expr, int]]) -> int:
        match expr:
            case Constant():
                return self.add(FlatConstant(expr.data))
            case Tuple():
                return self.add(FlatTuple(tuple(_found(find(field)) for field in expr.fields)))
            case TupleGetItem():
                return self.add(FlatGet(_found(find(expr.tuple_value)), expr.index))
            case Let():
                return _found(find(expr.body))
            case Call():
                return self._emit_call(expr, tuple(_found(find(arg)) for arg in expr.args), scopes)
            case _:
                raise self._refuse(expr)

    def _emit_call(self, call: Call, args: tuple[int, ...], scopes: list[dict[Expr, int]]) -> int:
        match call.op:
            case Op():
                return self.add(FlatCall(call.op, args, call.attrs, _type(call)))
            case GlobalVar():
                return self.add(FlatInvoke(call.op.name_hint, args, _type(call)))
            case Function():
                inner: dict[Expr, int] = dict(zip(call.op.params, args, strict=True))
                return self.walk(call.op.body, [*scopes, inner])
            case _:
                raise self._refuse(call.op)

    def _refuse(self, expr: Expr) -> UnsupportedError:
        what = type(expr).__name__
        return UnsupportedError(
            f"function @{self.name} must be made of operator calls, tuples and lets to run on the host, not {what}",
            expr.span,
        )


def _found(index: int | None) -> int:
    assert index is not None
    return index


Invoke = Callable[[str, list[Value]], Value]


def evaluate_node(node: FlatNode, values: Sequence[Value], invoke: Invoke | None = None) -> Value:
    """Value of a node other than a parameter from the values of the nodes before it."""
    match node:
        case FlatConstant():
            return node.data
        case FlatCall():
            return node.op.meaning(node.attrs, [values[i] for i in node.args], node.type)
        case FlatInvoke():
            assert invoke is not None
            return invoke(node.function, [values[i] for i in node.args])
        case FlatTuple():
            return tuple(values[i] for i in node.fields)
        case FlatGet():
            return values[node.source][node.index]
        case FlatInput():
            raise ValueError("a parameter has no value of its own")


def evaluate(function: FlatFunction, args: Sequence[Value]) -> Value:
    """Run by the operators' numpy meaning: arrays in, array or tuple out. `args`: one value per parameter."""
    values: list[Value] = list(args)
    for node in function.nodes[len(values) :]:
        values.append(evaluate_node(node, values))
    return values[function.result]


def used_operators(function: FlatFunction) -> Mapping[str, int]:
    """Operator names and how often each is called, in order of first use."""
    counts: dict[str, int] = {}
    for call in function.calls:
        counts[call.op.name] = counts.get(call.op.name, 0) + 1
    return counts


def as_array(value: Value) -> NDArray[Any]:
    """A tensor value as a contiguous array; numpy scalars become rank 0."""
    return np.ascontiguousarray(value) if np.ndim(value) else np.asarray(value)
