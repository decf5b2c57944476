"""Relay expressions: immutable nodes that compare by identity, so that sharing in the graph is kept.

Every node carries the place it came from (`span`) and, after type inference, its type (`checked_type`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, IntEnum, auto
from types import MappingProxyType
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from relay_hw.ir.lazy_import import lazy_import
from relay_hw.ir.types import Condition, FuncType, GlobalTypeVar, TensorType, Type, TypeVar
from relay_hw.span import Span

# Attribute of a composite function with zeros among its channels: its multiply-accumulates without them.
MACS: Final = "Macs"

Attrs = Any  # a frozen dataclass, one class per operator family
Array = NDArray[Any]


def _read_only(data: Array) -> Array:
    if not data.flags.writeable:
        return data
    copy: Array = np.array(data)
    copy.flags.writeable = False
    return copy


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Expr:
    """Base of every expression. `x + y`, `f(x)`, `t[0]` build nodes; comparison stays Python's, by identity."""

    span: Span | None = None
    checked_type: Type | None = None

    # The parts are left out: a shared part would be written once for each path to it.
    def __repr__(self) -> str:
        name: object = getattr(self, "name_hint", None) or getattr(self, "name", None)
        return f"<{type(self).__name__}{f' {name}' if name else ''}>"

    def astext(self, show_types: bool = False, show_meta_data: bool = True) -> str:
        """The expression in Relay's text format, its free variables declared first.

        With `show_types` every type stands in a comment; `show_meta_data` False leaves the section of large constants
        out, and the text cannot be read again.
        """
        return lazy_import("relay_hw.text").print_expr(self, show_types, show_meta_data)

    def __str__(self) -> str:
        return self.astext(show_meta_data=False)

    def _repr_html_(self) -> str:
        """Rich display in notebooks: the text, coloured."""
        return lazy_import("relay_hw.text").highlighted(str(self))

    @property
    def type(self) -> Type:
        """The inferred type. Raises ValueError before inference."""
        if self.checked_type is None:
            raise ValueError("expression has no type yet: run InferType first")
        return self.checked_type

    @property
    def tensor_type(self) -> TensorType:
        """The inferred type, which must be a tensor's."""
        ty = self.type
        if not isinstance(ty, TensorType):
            raise ValueError(f"expression must be a tensor, not {ty}")
        return ty

    def __add__(self, other: object) -> Call:
        return _call("add", self, other)

    def __radd__(self, other: object) -> Call:
        return _call("add", other, self)

    def __sub__(self, other: object) -> Call:
        return _call("subtract", self, other)

    def __rsub__(self, other: object) -> Call:
        return _call("subtract", other, self)

    def __mul__(self, other: object) -> Call:
        return _call("multiply", self, other)

    def __rmul__(self, other: object) -> Call:
        return _call("multiply", other, self)

    def __truediv__(self, other: object) -> Call:
        return _call("divide", self, other)

    def __rtruediv__(self, other: object) -> Call:
        return _call("divide", other, self)

    def __neg__(self) -> Call:
        return _call("negative", self)

    def __call__(self, *args: Expr) -> Call:
        return Call(self, args)

    def __getitem__(self, index: int) -> TupleGetItem:
        return TupleGetItem(self, index)

    # Without it Python would iterate by __getitem__ and never end.
    __iter__ = None

    def astype(self, dtype: str) -> Call:
        """The tensor with its elements cast to `dtype`."""
        return lazy_import("relay_hw.op").cast(self, dtype)


def _call(name: str, *operands: object) -> Call:
    operators = lazy_import("relay_hw.op")
    return getattr(operators, name)(*(x if isinstance(x, Expr) else operators.const(x) for x in operands))


@dataclass(frozen=True, eq=False, repr=False)
class Var(Expr):
    name_hint: str
    type_annotation: Type | None = None


@dataclass(frozen=True, eq=False, repr=False)
class GlobalVar(Expr):
    """A reference to a function of the module; equal names are the same function."""

    name_hint: str


@dataclass(frozen=True, eq=False, repr=False)
class Constant(Expr):
    """A tensor value. `data` is read-only."""

    data: Array

    def __post_init__(self) -> None:
        object.__setattr__(self, "data", _read_only(np.asarray(self.data)))


@dataclass(frozen=True, eq=False, repr=False)
class Tuple(Expr):
    fields: Sequence[Expr]

    def __post_init__(self) -> None:
        object.__setattr__(self, "fields", tuple(self.fields))


@dataclass(frozen=True, eq=False, repr=False)
class TupleGetItem(Expr):
    tuple_value: Expr
    index: int


@dataclass(frozen=True, eq=False, repr=False)
class Call(Expr):
    """`op` is an Op, GlobalVar, Constructor, Var, Function or any expression of function type."""

    op: Expr
    args: Sequence[Expr]
    attrs: Attrs = None
    type_args: Sequence[Type] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "args", tuple(self.args))
        object.__setattr__(self, "type_args", tuple(self.type_args or ()))


@dataclass(frozen=True, eq=False, repr=False)
class Let(Expr):
    var: Var
    value: Expr
    body: Expr


@dataclass(frozen=True, eq=False, repr=False)
class If(Expr):
    cond: Expr
    true_branch: Expr
    false_branch: Expr


@dataclass(frozen=True, eq=False, repr=False)
class Function(Expr):
    """`attrs` holds function attributes such as `Primitive`, `Compiler`, `Composite`, `global_symbol`.

    `where` is what callers must show of the symbolic dimensions, and the body may assume.
    """

    params: Sequence[Var]
    body: Expr
    ret_type: Type | None = None
    type_params: Sequence[TypeVar] = ()
    attrs: Mapping[str, Any] = field(default_factory=dict[str, Any])
    where: Sequence[Condition] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "params", tuple(self.params))
        object.__setattr__(self, "where", tuple(self.where))
        object.__setattr__(self, "type_params", tuple(self.type_params or ()))
        object.__setattr__(self, "attrs", MappingProxyType(dict(self.attrs or {})))

    @property
    def func_type(self) -> FuncType:
        """The inferred function type. Raises ValueError before inference."""
        ty = self.type
        if not isinstance(ty, FuncType):
            raise ValueError(f"function must have a function type, not {ty}")
        return ty


@dataclass(frozen=True, eq=False, repr=False)
class RefCreate(Expr):
    value: Expr


@dataclass(frozen=True, eq=False, repr=False)
class RefRead(Expr):
    ref: Expr


@dataclass(frozen=True, eq=False, repr=False)
class RefWrite(Expr):
    ref: Expr
    value: Expr


@dataclass(frozen=True, eq=False, repr=False)
class Constructor(Expr):
    """A constructor of the data type `belong_to`; `inputs` are its fields' types."""

    name_hint: str
    inputs: Sequence[Type]
    belong_to: GlobalTypeVar
    tag: int = -1

    def __post_init__(self) -> None:
        object.__setattr__(self, "inputs", tuple(self.inputs))


@dataclass(frozen=True, eq=False)
class Pattern:
    """Base of the patterns of a match."""


@dataclass(frozen=True, eq=False)
class PatternWildcard(Pattern):
    pass


@dataclass(frozen=True, eq=False)
class PatternVar(Pattern):
    var: Var


@dataclass(frozen=True, eq=False)
class PatternConstructor(Pattern):
    constructor: Constructor
    patterns: Sequence[Pattern] = ()


@dataclass(frozen=True, eq=False)
class PatternTuple(Pattern):
    patterns: Sequence[Pattern]


@dataclass(frozen=True, eq=False)
class Clause:
    lhs: Pattern
    rhs: Expr


@dataclass(frozen=True, eq=False, repr=False)
class Match(Expr):
    data: Expr
    clauses: Sequence[Clause]
    complete: bool = True


class FusionPattern(IntEnum):
    """How an operator fuses, with Relay's own numbering."""

    ELEMWISE = 0
    BROADCAST = 1
    INJECTIVE = 2
    COMM_REDUCE = 3
    OUT_ELEMWISE_FUSABLE = 4
    TUPLE = 7
    OPAQUE = 8


class Trait(Enum):
    """A property of operators, so that passes need no lists of names; it must hold for all attribute values."""

    EFFECT = auto()  # a call does more than make its result
    MARK = auto()  # gives back its argument, and says where or by whom that is computed
    MOVES = auto()  # of one tensor: elements of the first argument, whatever their values; others say which
    PERMUTES = auto()  # MOVES each of them to one place
    RESHAPES = auto()  # PERMUTES, keeps their order, and gives them another shape
    KEEPS_SCALE = auto()  # of one tensor: elements of the first argument, chosen by place or by how large they are
    ELEMENTWISE = auto()  # each element from those at its own place, arguments broadcast, counted from the last axis
    KEEPS_AXES = auto()  # every axis of the result is that axis of the first argument, if of another size
    ALONG_AXIS = auto()  # KEEPS_AXES, and all but the attribute `axis` are alike
    ON_CHANNELS = auto()  # has a vector of one number a channel, which `axis` counts
    REDUCES = auto()  # each element from all along some axes, whatever their order
    POOLS = auto()  # windows over the spatial axes of `layout`, each of one channel
    ANCHOR = auto()  # sums of products: what layers are built around


class Solver(Protocol):
    """The interface of type inference for type relations."""

    def unify(self, left: Type, right: Type) -> Type:
        """Make both types equal, filling holes. Raises TypeCheckError."""
        ...

    def resolve(self, ty: Type) -> Type:
        """The type with all known holes filled."""
        ...


# (argument types, attributes, solver) -> result type, or None while the arguments are not known well enough.
TypeRelation = Callable[[Sequence[Type], Attrs, Solver], Type | None]
# (attributes, argument values, result type) -> value; tuples are Python tuples of arrays.
Reference = Callable[[Attrs, Sequence[Any], Type], Any]
# (call, adjoint of the result) -> adjoint of each argument.
Gradient = Callable[[Call, Expr], Sequence[Expr]]


@dataclass(frozen=True, eq=False, repr=False)
class Op(Expr):
    """An operator: attributes, type relation, reference semantics in numpy, gradient, traits."""

    name: str
    num_inputs: int  # -1: any number
    relation: TypeRelation
    reference: Reference
    attrs_type: type | None = None
    pattern: FusionPattern = FusionPattern.OPAQUE
    gradient: Gradient | None = None
    traits: frozenset[Trait] = frozenset()
    doc: str = ""

    def has(self, trait: Trait) -> bool:
        """Whether it has a trait."""
        return trait in self.traits
