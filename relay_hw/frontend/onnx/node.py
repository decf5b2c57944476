"""The interface of converters: an ONNX node, its arguments as expressions or known arrays, and their types."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from relay_hw.errors import InputError, UnsupportedError
from relay_hw.ir.expr import (
    Call,
    Constant,
    Expr,
    Function,
    GlobalVar,
    Tuple,
    TupleGetItem,
    Var,
)
from relay_hw.ir.types import Dim, TensorType, Type
from relay_hw.limits import MOST_AXES
from relay_hw.op.base import const, show_shape
from relay_hw.op.sizes import shape_of
from relay_hw.op.slices import strided_slice
from relay_hw.span import Span

if TYPE_CHECKING:
    from relay_hw.frontend.onnx.budget import Ledger
    from relay_hw.frontend.onnx.typer import Typer
    from relay_hw.prelude import Prelude

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Node:
    """A node of the graph. `name` is never empty; an omitted input is an empty name."""

    operator: str
    name: str
    domain: str
    opset: int
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attrs: Mapping[str, Any]

    @property
    def span(self) -> Span:
        return Span(self.name)

    def attr(self, key: str, default: Any = None) -> Any:
        """An attribute: number, string, list, or array."""
        return self.attrs.get(key, default)

    def has_input(self, index: int) -> bool:
        """Whether input `index` is given."""
        return index < len(self.inputs) and bool(self.inputs[index])

    def has_output(self, index: int) -> bool:
        """Whether output `index` is used."""
        return index < len(self.outputs) and bool(self.outputs[index])


@dataclass(frozen=True, slots=True)
class Subgraph:
    """A graph in an attribute: a loop body or branch. It may read names of surrounding graphs."""

    name: str
    nodes: tuple[Node, ...]
    arrays: Mapping[str, Array]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


def count_nodes(nodes: Sequence[Node]) -> int:
    """Number of nodes, including those of inner graphs."""
    inner = (value for node in nodes for value in node.attrs.values() if isinstance(value, Subgraph))
    return len(nodes) + sum(count_nodes(graph.nodes) for graph in inner)


class Scope(Protocol):
    """The import's services for converters."""

    ledger: Ledger

    def nested(
        self, graph: Subgraph, inputs: Mapping[str, Expr], captured: dict[Var, Expr] | None = None
    ) -> list[Expr]:
        """The outputs of `graph`. With `captured`, outer values become variables, collected there."""
        ...

    def fresh(self, name: str) -> str:
        """A unique name that is legal in Relay text."""
        ...

    def define(self, name: str, function: Function) -> GlobalVar:
        """Add a function to the module; its parameters and its result must be annotated."""
        ...

    def library(self, name: str = "prelude") -> Prelude:
        """Add the prelude, and another library by name, to the module."""
        ...


@dataclass(frozen=True, slots=True)
class Value:
    """A tensor of the graph: an expression, and its value if that is known at import."""

    expr: Expr
    array: Array | None = None
    # The dimensions that an integer vector holds, where some are no numbers.
    sizes: NDArray[np.object_] | None = None


class Arguments:
    """The arguments of a node under conversion; a weight becomes a parameter when its expression is used."""

    def __init__(
        self,
        node: Node,
        fetch: Callable[[str], Expr],
        arrays: Sequence[Array | None],
        typer: Typer,
        scope: Scope,
        sizes: Sequence[NDArray[np.object_] | None] = (),
    ) -> None:
        self.node = node
        self._sizes = sizes
        # Shapes that say more than the types of their expressions.
        self.assumed: list[tuple[Expr, Sequence[Dim]]] = []
        self.scope = scope
        self._fetch = fetch
        self._arrays = arrays
        self._typer = typer

    def __len__(self) -> int:
        return len(self._arrays)

    def __getitem__(self, index: int) -> Expr:
        """Input `index`. Raises InputError if the node leaves it out."""
        if not self.node.has_input(index):
            raise InputError(f"{self.node.operator} must have input {index}, not leave it out", self.node.span)
        return self._fetch(self.node.inputs[index])

    def all(self) -> list[Expr]:
        """Every input."""
        return [self[index] for index in range(len(self._arrays))]

    def get(self, index: int) -> Expr | None:
        """Input `index`, or None if it is left out."""
        return self[index] if self.node.has_input(index) else None

    def array(self, index: int) -> Array | None:
        """The value of input `index`, or None if it is left out. `check_known` ensures that it is known."""
        return self._arrays[index] if self.node.has_input(index) else None

    def ints(self, index: int) -> tuple[int, ...] | None:
        """The integers of input `index`, or None if it is left out."""
        found = self.array(index)
        return None if found is None else tuple(int(item) for item in np.ravel(found))

    def any_type(self, expr: Expr) -> Type:
        """The type of an expression, which may be a list or an option."""
        return self._typer(expr)

    def type(self, expr: Expr) -> TensorType:
        """The type of a tensor. Raises InputError for anything else."""
        found = self._typer(expr)
        if not isinstance(found, TensorType):
            raise InputError(f"{self.node.operator} must read tensors, not {found}", self.node.span)
        return found

    def shape(self, expr: Expr, rank: int | None = None, what: str = "its data") -> tuple[int, ...]:
        """The shape of an expression. Raises UnsupportedError if it is dynamic, or for another rank."""
        found = self.type(expr)
        if rank is not None and found.rank != rank:
            raise UnsupportedError(f"{what} must have {rank} axes, not the shape {show_shape(found.shape)}")
        if not all(isinstance(dim, int) for dim in found.shape):
            raise UnsupportedError(f"the shape of its data must be known, not {show_shape(found.shape)}")
        return found.static_shape

    def dims(self, expr: Expr) -> tuple[Dim, ...]:
        """The shape of an expression; ANY for dynamic sizes."""
        return self.type(expr).shape

    def is_static(self, expr: Expr) -> bool:
        """Whether every dimension is known at import."""
        return all(isinstance(dim, int) for dim in self.type(expr).shape)

    def open_ints(self, index: int) -> tuple[Dim, ...] | None:
        """The dimensions that input `index` holds, some of them dynamic; None if nothing is known."""
        found = self._sizes[index] if self.node.has_input(index) and index < len(self._sizes) else None
        return None if found is None or found.ndim != 1 else tuple(found)

    def reserve(self, sizes: Iterable[int], dtype: str, passes: bool = False) -> None:
        """Check the limits for a constant of these sizes; `passes`: it is temporary. Raises InputError."""
        self.scope.ledger.reserve(sizes, dtype, self.node.span, passes)

    def assume(self, expr: Expr, dims: Sequence[Dim]) -> Expr:
        """`expr`, a result of the node, whose shape is known to be `dims`."""
        self.assumed.append((expr, dims))
        return expr

    def sizes(self, expr: Expr, begin: int = 0, end: int | None = None) -> Expr:
        """The sizes of axes [begin, end) as an int64 vector: a constant if they are known at import."""
        dims = self.type(expr).shape[begin:end]
        known = [dim for dim in dims if isinstance(dim, int)]
        if len(known) == len(dims):
            return const(np.array(known, np.int64))
        whole = shape_of(expr, "int64")
        return whole if len(dims) == self.rank(expr) else strided_slice(whole, (begin,), (begin + len(dims),), (1,))

    def length(self, index: int) -> int:
        """The length of input `index`, a vector of sizes, axes or pairs of widths.

        Raises UnsupportedError if that is open, InputError if no tensor has so many axes.
        """
        shape = self.type(self[index]).shape
        if len(shape) != 1 or not isinstance(shape[0], int):
            raise UnsupportedError(f"input {index} must have one axis of known size, not {show_shape(shape)}")
        if shape[0] > 2 * MOST_AXES:
            what = f"input {index} of {self.node.operator} must have at most two numbers for each of {MOST_AXES} axes"
            raise InputError(f"{what}, not {shape[0]:,}", self.node.span)
        return shape[0]

    def rank(self, expr: Expr) -> int:
        """The number of axes of an expression."""
        return self.type(expr).rank

    def dtype(self, expr: Expr) -> str:
        """The element type of an expression."""
        return self.type(expr).dtype

    def scalar(self, value: float, like: Expr) -> Constant:
        """A number in the element type of `like`."""
        return const(value, self.dtype(like))


Known = AbstractSet[str]  # names whose values are known at import
Convert = Callable[[Node, Arguments], Expr | Sequence[Expr]]
Check = Callable[[Node, Known], str | None]


@dataclass(frozen=True, slots=True)
class Converter:
    """Converts one operator. `check` gives the reason why a node cannot be imported, or None, before any work."""

    operator: str
    convert: Convert
    check: Check | None = None
    domain: str = "ai.onnx"


def known_inputs(*indices: int, since: int = 1, what: str = "") -> Check:
    """A check that these inputs, if given, are known at import; `since` is the opset that made them inputs."""

    def check(node: Node, known: Known) -> str | None:
        for index in indices:
            if node.opset >= since and node.has_input(index) and node.inputs[index] not in known:
                return f"input {index} ({node.inputs[index]}{what}) must be a constant"
        return None

    return check


def all_of(*checks: Check) -> Check:
    """Combine checks: the first reason that one gives."""

    def check(node: Node, known: Known) -> str | None:
        return next((reason for one in checks if (reason := one(node, known)) is not None), None)

    return check


def only_output(node: Node, known: Known) -> str | None:
    """A check that only the first output is used."""
    extra = [name for index, name in enumerate(node.outputs) if index and node.has_output(index)]
    return f"outputs other than the first must not be used, unlike {', '.join(extra)}" if extra else None


def stamp(exprs: Sequence[Expr], span: Span) -> list[Expr]:
    """`exprs` with `span` set on every node without one; shared nodes stay shared."""
    memo: dict[int, Expr] = {}
    waiting = list(exprs)
    while waiting:
        node = waiting[-1]
        parts = [part for part in _stamped(node) if part.span is None and id(part) not in memo]
        if node.span is None and id(node) not in memo and parts:
            waiting += parts
            continue
        if node.span is None and id(node) not in memo:
            memo[id(node)] = _rebuilt(node, memo, span)
        waiting.pop()
    return [memo.get(id(expr), expr) for expr in exprs]


def _stamped(node: Expr) -> Sequence[Expr]:
    match node:
        case Call(args=parts) | Tuple(fields=parts):
            return parts
        case TupleGetItem(tuple_value=value):
            return (value,)
        case _:
            return ()


def _rebuilt(node: Expr, new: Mapping[int, Expr], span: Span) -> Expr:
    match node:
        case Call(args=args):
            return replace(node, args=tuple(new.get(id(arg), arg) for arg in args), span=span)
        case Tuple(fields=fields):
            return replace(node, fields=tuple(new.get(id(field), field) for field in fields), span=span)
        case TupleGetItem(tuple_value=value):
            return replace(node, tuple_value=new.get(id(value), value), span=span)
        case _:
            return replace(node, span=span)
