"""Flat functions: the host's programs, as lists of nodes in the order of evaluation and of effects.

One form serves numpy (`reference.py`), TVM, the stored build (`store.py`) and the executor. A branch, an arm and the
body of a closure are flat functions of their own, whose first parameters are what they capture: there are no scopes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from numpy.typing import NDArray

from relay_hw.ir.expr import Constructor, Op
from relay_hw.ir.types import Type

Value = Any  # an array, a tuple of values, a ConstructorValue, a RefValue, or a closure


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


@dataclass(frozen=True, slots=True, eq=False)
class FlatIf:
    """One of two branches; the parameters of both are the values `captured`."""

    cond: int
    captured: tuple[int, ...]
    then: FlatFunction
    otherwise: FlatFunction
    type: Type


@dataclass(frozen=True, slots=True)
class FlatGlobal:
    """The module's function `function` as a value."""

    function: str
    type: Type


@dataclass(frozen=True, slots=True, eq=False)
class FlatClosure:
    """A local function. The parameters of `function` are the values `captured`, the closure itself where
    `is_recursive`, and the arguments of a call, in this order."""

    function: FlatFunction
    captured: tuple[int, ...]
    is_recursive: bool
    type: Type


@dataclass(frozen=True, slots=True)
class FlatApply:
    """A call of a function value."""

    callee: int
    args: tuple[int, ...]
    type: Type


@dataclass(frozen=True, slots=True)
class FlatConstruct:
    """A value of a data type."""

    constructor: Constructor
    fields: tuple[int, ...]
    type: Type


@dataclass(frozen=True, slots=True)
class FlatAny:
    """A pattern that matches everything; `binds`: the value is a parameter of the arm."""

    binds: bool = False


@dataclass(frozen=True, slots=True)
class FlatFields:
    """A pattern of a value with fields: of that constructor, or a tuple where `constructor` is None."""

    constructor: str | None
    patterns: tuple[FlatPattern, ...]


FlatPattern = FlatAny | FlatFields


@dataclass(frozen=True, slots=True, eq=False)
class FlatArm:
    """The parameters of `body`: the values that the match captures, then what the pattern binds, left to right."""

    pattern: FlatPattern
    body: FlatFunction


@dataclass(frozen=True, slots=True, eq=False)
class FlatMatch:
    """The first arm whose pattern matches the value of `data`."""

    data: int
    captured: tuple[int, ...]
    arms: tuple[FlatArm, ...]
    type: Type


@dataclass(frozen=True, slots=True)
class FlatRefNew:
    """A new reference."""

    value: int
    type: Type


@dataclass(frozen=True, slots=True)
class FlatRefRead:
    ref: int
    type: Type


@dataclass(frozen=True, slots=True)
class FlatRefWrite:
    """Its value is the empty tuple."""

    ref: int
    value: int


FlatNode = (
    FlatInput
    | FlatConstant
    | FlatCall
    | FlatInvoke
    | FlatTuple
    | FlatGet
    | FlatIf
    | FlatGlobal
    | FlatClosure
    | FlatApply
    | FlatConstruct
    | FlatMatch
    | FlatRefNew
    | FlatRefRead
    | FlatRefWrite
)
# Nodes of which a function consists that has neither branches nor effects nor calls of other functions.
STRAIGHT = (FlatInput, FlatConstant, FlatCall, FlatTuple, FlatGet)


@dataclass(frozen=True, slots=True, eq=False)
class FlatFunction:
    """`nodes[i]` uses only nodes before i; the parameters come first; `result` is the node returned.

    A node that is the result and the last one is in tail position: nothing of this function is needed after it.
    """

    name: str
    nodes: tuple[FlatNode, ...]
    result: int

    @property
    def params(self) -> tuple[FlatInput, ...]:
        """Parameters in order."""
        return tuple(node for node in self.nodes if isinstance(node, FlatInput))

    @property
    def calls(self) -> tuple[FlatCall, ...]:
        """Operator calls in order, those of branches, arms and closures included."""
        found: list[FlatCall] = []
        for function in nested(self):
            found += [node for node in function.nodes if isinstance(node, FlatCall)]
        return tuple(found)

    @property
    def is_straight(self) -> bool:
        """Whether it is a graph of operator calls: no branches, closures, data types, references or other functions."""
        return all(isinstance(node, STRAIGHT) for node in self.nodes)


def uses(node: FlatNode) -> Sequence[int]:
    """Nodes whose values `node` needs."""
    match node:
        case FlatCall() | FlatInvoke():
            return node.args
        case FlatTuple() | FlatConstruct():
            return node.fields
        case FlatGet():
            return (node.source,)
        case FlatIf():
            return (node.cond, *node.captured)
        case FlatMatch():
            return (node.data, *node.captured)
        case FlatClosure():
            return node.captured
        case FlatApply():
            return (node.callee, *node.args)
        case FlatRefNew():
            return (node.value,)
        case FlatRefRead():
            return (node.ref,)
        case FlatRefWrite():
            return (node.ref, node.value)
        case FlatInput() | FlatConstant() | FlatGlobal():
            return ()


def renumber(node: FlatNode, to: Callable[[int], int]) -> FlatNode:
    """`node` with its operands renumbered by `to`."""
    match node:
        case FlatCall() | FlatInvoke():
            return replace(node, args=tuple(map(to, node.args)))
        case FlatTuple() | FlatConstruct():
            return replace(node, fields=tuple(map(to, node.fields)))
        case FlatGet():
            return replace(node, source=to(node.source))
        case FlatIf():
            return replace(node, cond=to(node.cond), captured=tuple(map(to, node.captured)))
        case FlatMatch():
            return replace(node, data=to(node.data), captured=tuple(map(to, node.captured)))
        case FlatClosure():
            return replace(node, captured=tuple(map(to, node.captured)))
        case FlatApply():
            return replace(node, callee=to(node.callee), args=tuple(map(to, node.args)))
        case FlatRefNew():
            return replace(node, value=to(node.value))
        case FlatRefRead():
            return replace(node, ref=to(node.ref))
        case FlatRefWrite():
            return replace(node, ref=to(node.ref), value=to(node.value))
        case FlatInput() | FlatConstant() | FlatGlobal():
            return node


def inner_functions(node: FlatNode) -> tuple[FlatFunction, ...]:
    """The branches, arms or body that a node holds."""
    match node:
        case FlatIf():
            return (node.then, node.otherwise)
        case FlatMatch():
            return tuple(arm.body for arm in node.arms)
        case FlatClosure():
            return (node.function,)
        case _:
            return ()


def nested(function: FlatFunction) -> list[FlatFunction]:
    """`function` and every function inside of it, outer ones first."""
    found = [function]
    for outer in found:
        for node in outer.nodes:
            found += inner_functions(node)
    return found


def binders(pattern: FlatPattern) -> int:
    """How many values a pattern binds."""
    count, stack = 0, [pattern]
    while stack:
        match stack.pop():
            case FlatAny(binds=binds):
                count += binds
            case FlatFields(patterns=inner):
                stack += inner
    return count
