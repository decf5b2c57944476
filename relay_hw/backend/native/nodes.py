"""The lowered form of native code: functions of structured statements over numbered locals, printed as text.

A local holds a number, unboxed, where its type is a tensor of rank 0 and of a type that C has; else a counted object:
a tensor, a tuple, a value of a data type, a function or a reference. `ownership.py` adds `Keep` and `Drop`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any

# What C calls the element types that native code computes with; others are left to the reference semantics.
C_TYPES = {
    "bool": "uint8_t",
    **{f"int{bits}": f"int{bits}_t" for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": f"uint{bits}_t" for bits in (8, 16, 32, 64)},
    "float32": "float",
    "float64": "double",
}


@dataclass(frozen=True, slots=True)
class Local:
    """A variable: a number of element type `dtype`, or an object where that is None."""

    number: int
    dtype: str | None = None

    def __str__(self) -> str:
        return f"%{self.number}" if self.dtype is None else f"%{self.number}:{self.dtype}"


# Expressions: one number, or one element at the index of the loop around


@dataclass(frozen=True, slots=True)
class Number:
    """A constant."""

    value: bool | int | float
    dtype: str


@dataclass(frozen=True, slots=True)
class Read:
    """The number in a local."""

    local: Local
    dtype: str


@dataclass(frozen=True, slots=True)
class Element:
    """An element of the tensor in `local`, `count` elements large: at `offset`, plus the local `shift` where there is
    one, plus the sum of the loop's indices times `strides`."""

    local: Local
    dtype: str
    count: int
    offset: int
    strides: tuple[int, ...]
    shift: Local | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Compute:
    """An elementwise operator applied to expressions."""

    op: str
    attrs: Any
    dtype: str
    args: tuple[Expression, ...]


Expression = Number | Read | Element | Compute


def locals_of(root: Expression) -> Iterator[Local]:
    """The locals that an expression reads, as often as it does."""
    waiting: list[Expression] = [root]
    while waiting:
        match waiting.pop():
            case Read(local=local):
                yield local
            case Element(local=local, shift=shift):
                yield local
                if shift is not None:
                    yield shift
            case Compute(args=args):
                waiting.extend(args)
            case Number():
                pass


# Statements


class Kind(Enum):
    """What an object with fields is."""

    TUPLE = "tuple"
    DATA = "data"
    FUNCTION = "function"
    REF = "ref"


@dataclass(frozen=True, slots=True)
class Set:
    """A local takes over the value of another one: how a branch gives its result."""

    to: Local
    value: Local


@dataclass(frozen=True, slots=True)
class Constant:
    """An entry of the program's table of constants."""

    to: Local
    index: int


@dataclass(frozen=True, slots=True)
class Scalar:
    """A number computed from numbers and single elements."""

    to: Local
    value: Expression


@dataclass(frozen=True, slots=True)
class Box:
    """A tensor of rank 0 that holds a number."""

    to: Local
    value: Local


@dataclass(frozen=True, slots=True)
class Unbox:
    """The number in a tensor of rank 0."""

    to: Local
    value: Local


@dataclass(frozen=True, slots=True)
class Piece:
    """A box of a tensor, and the expression that fills it: `strides` are those of the box in the tensor."""

    value: Expression
    shape: tuple[int, ...]
    offset: int
    strides: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Fill:
    """A new tensor, filled piece by piece."""

    to: Local
    shape: tuple[int, ...]
    dtype: str
    pieces: tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class Reduce:
    """A new tensor: `op` over some `axes` of what an expression gives for the indices of `source`."""

    to: Local
    op: str
    dtype: str
    value: Expression
    source: tuple[int, ...]
    axes: tuple[int, ...]
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Product:
    """A new tensor: sums of `depth` products. `left` and `right` have a stride for each axis of `shape`, and a last one
    for the depth."""

    to: Local
    shape: tuple[int, ...]
    dtype: str
    depth: int
    left: Element
    right: Element


@dataclass(frozen=True, slots=True)
class Check:
    """Refuses NaN and infinity in a tensor of floats that is about to be quantized; `what` names it."""

    value: Local
    what: str


@dataclass(frozen=True, slots=True)
class Callback:
    """Entry `number` of the program's table of calls that the caller of the program answers."""

    to: Local
    number: int
    args: tuple[Local, ...]


@dataclass(frozen=True, slots=True)
class Make:
    """A new object with fields. `tag`: the constructor, or the function."""

    to: Local
    kind: Kind
    tag: int
    fields: tuple[Local, ...]


@dataclass(frozen=True, slots=True)
class Field:
    """A field of an object."""

    to: Local
    value: Local
    index: int


@dataclass(frozen=True, slots=True)
class Store:
    """The field of a reference takes a new value."""

    ref: Local
    value: Local


@dataclass(frozen=True, slots=True)
class Invoke:
    """A call of a function of the program, by its number."""

    to: Local
    function: int
    args: tuple[Local, ...]


@dataclass(frozen=True, slots=True)
class Apply:
    """A call of a function object."""

    to: Local
    callee: Local
    args: tuple[Local, ...]


@dataclass(frozen=True, slots=True)
class Branch:
    """One of two blocks; `to` is set in both, where there is one."""

    to: Local | None
    cond: Local
    then: Block
    otherwise: Block


@dataclass(frozen=True, slots=True)
class Test:
    """Whether the object at the end of a path of fields is of constructor `tag`."""

    path: tuple[int, ...]
    tag: int


@dataclass(frozen=True, slots=True)
class Arm:
    """A block, for a value that passes all tests."""

    tests: tuple[Test, ...]
    block: Block


@dataclass(frozen=True, slots=True)
class Match:
    """The first arm whose tests pass; `to` is set in each, where there is one."""

    to: Local | None
    value: Local
    arms: tuple[Arm, ...]


@dataclass(frozen=True, slots=True)
class Return:
    """The end of a function."""

    value: Local


@dataclass(frozen=True, slots=True)
class Again:
    """A call of the function itself in its own place: its parameters take new values."""

    args: tuple[Local, ...]


@dataclass(frozen=True, slots=True)
class TailInvoke:
    """A call of another function in this one's place."""

    function: int
    args: tuple[Local, ...]


@dataclass(frozen=True, slots=True)
class TailApply:
    """A call of a function object in this function's place."""

    callee: Local
    args: tuple[Local, ...]


@dataclass(frozen=True, slots=True)
class Keep:
    """One more holder of an object."""

    value: Local


@dataclass(frozen=True, slots=True)
class Drop:
    """One holder of an object less; the last one frees it."""

    value: Local


End = Return | Again | TailInvoke | TailApply
# Statements without blocks inside.
Leaf = (
    Set | Constant | Scalar | Box | Unbox | Fill | Reduce | Product | Callback | Make | Field | Store | Invoke | Apply
    | Check | Keep | Drop | End
)  # fmt: skip
Statement = Leaf | Branch | Match
Block = tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class NativeFunction:
    """`result`: the element type of what it returns, None for an object."""

    number: int
    name: str
    params: tuple[Local, ...]
    result: str | None
    body: Block


def blocks_of(statement: Statement) -> tuple[Block, ...]:
    """The blocks inside of a statement."""
    if isinstance(statement, Branch):
        return statement.then, statement.otherwise
    if isinstance(statement, Match):
        return tuple(arm.block for arm in statement.arms)
    # The type checker refuses a new statement that is neither.
    _leaf: Leaf = statement
    return ()


def statements(block: Block) -> Iterator[Statement]:
    """All statements of a block and of the blocks inside."""
    waiting = list(reversed(block))
    while waiting:
        statement = waiting.pop()
        yield statement
        for inner in reversed(blocks_of(statement)):
            waiting.extend(reversed(inner))
