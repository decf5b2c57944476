"""Patterns over dataflow graphs, as values that are built like the expressions they match."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from relay_hw.ir.expr import Expr, Function
from relay_hw.ir.types import Dim, TensorType, Type


@dataclass(frozen=True, eq=False)
class DFPattern:
    """Base of the patterns. One pattern object stands for one node wherever it occurs in a larger pattern."""

    def __call__(self, *args: DFPattern | None) -> CallPattern:
        """A call of what this pattern matches; `p(None)` leaves the arguments open."""
        return CallPattern(self, None if args == (None,) else _patterns(args))

    def __or__(self, other: DFPattern) -> AltPattern:
        return AltPattern(self, other)

    def __add__(self, other: DFPattern) -> CallPattern:
        return is_op("add")(self, other)

    def __sub__(self, other: DFPattern) -> CallPattern:
        return is_op("subtract")(self, other)

    def __mul__(self, other: DFPattern) -> CallPattern:
        return is_op("multiply")(self, other)

    def __truediv__(self, other: DFPattern) -> CallPattern:
        return is_op("divide")(self, other)

    def has_attr(self, attrs: Mapping[str, Any]) -> AttrPattern:
        """Restrict the pattern to nodes with these attributes."""
        return AttrPattern(self, attrs)

    def has_type(self, ty: Type) -> TypePattern:
        """Restrict the pattern to nodes of this type."""
        return TypePattern(self, ty)

    def has_dtype(self, dtype: str) -> DataTypePattern:
        """Restrict the pattern to tensors of this element type."""
        return DataTypePattern(self, dtype)

    def has_shape(self, shape: Sequence[Dim]) -> ShapePattern:
        """Restrict the pattern to tensors of this shape."""
        return ShapePattern(self, tuple(shape))

    def optional(self, option_constructor: Callable[[DFPattern], DFPattern]) -> DFPattern:
        """This pattern, with what `option_constructor` puts around it or without; with it where both match."""
        return option_constructor(self) | self

    def dominates(self, parent: DFPattern, path: DFPattern | None = None) -> DominatorPattern:
        """A node that matches this pattern and takes in everything made of a `parent`, by nodes that match `path`."""
        return DominatorPattern(parent, path if path is not None else wildcard(), self)

    def match(self, expr: Expr) -> bool:
        """Whether `expr` matches. Types are looked at only where the pattern asks for them."""
        from relay_hw.dataflow_pattern.matcher import match

        return match(self, expr)

    def rewrite(self, rewrite: Any, expr: Expr) -> Expr:
        """`expr` with every match replaced by what `rewrite(pre, post, node_map)` returns."""
        from relay_hw.dataflow_pattern.rewriting import DFPatternCallback
        from relay_hw.dataflow_pattern.rewriting import rewrite as apply

        callback = DFPatternCallback()
        callback.pattern = self
        callback.callback = rewrite
        return apply(callback, expr)

    def partition(
        self,
        expr: Expr,
        attrs: Mapping[str, Any] | None = None,
        check: Callable[[Expr], bool] | None = None,
    ) -> Expr:
        """`expr` with each match that nothing outside reads in part as a call of a function literal."""
        from relay_hw.dataflow_pattern.partitioning import partition

        return partition(self, expr, attrs, check)


def _patterns(items: Sequence[DFPattern | None]) -> tuple[DFPattern, ...]:
    return tuple(item if item is not None else wildcard() for item in items)


@dataclass(frozen=True, eq=False)
class ExprPattern(DFPattern):
    """This node, or an operator, constructor or global of the same name, or an equal constant."""

    expr: Expr


@dataclass(frozen=True, eq=False)
class VarPattern(DFPattern):
    """A variable; with a `name` one of that name."""

    name: str = ""


@dataclass(frozen=True, eq=False)
class ConstantPattern(DFPattern):
    """A constant."""


@dataclass(frozen=True, eq=False)
class CallPattern(DFPattern):
    """A call; `args` None leaves the arguments open."""

    op: DFPattern
    args: tuple[DFPattern, ...] | None


@dataclass(frozen=True, eq=False)
class FunctionPattern(DFPattern):
    """A function literal; `params` None leaves the parameters open."""

    params: Sequence[DFPattern] | None
    body: DFPattern


@dataclass(frozen=True, eq=False)
class IfPattern(DFPattern):
    cond: DFPattern
    true_branch: DFPattern
    false_branch: DFPattern


@dataclass(frozen=True, eq=False)
class LetPattern(DFPattern):
    var: DFPattern
    value: DFPattern
    body: DFPattern


@dataclass(frozen=True, eq=False)
class TuplePattern(DFPattern):
    """A tuple; `fields` None leaves the fields open."""

    fields: tuple[DFPattern, ...] | None


@dataclass(frozen=True, eq=False)
class TupleGetItemPattern(DFPattern):
    """A projection; `index` None takes any."""

    tuple_value: DFPattern
    index: int | None = None


@dataclass(frozen=True, eq=False)
class AltPattern(DFPattern):
    """Either; `left` is tried first."""

    left: DFPattern
    right: DFPattern


@dataclass(frozen=True, eq=False)
class WildcardPattern(DFPattern):
    """Anything; after `redirect_to`, what that pattern matches, so that a pattern can contain itself."""

    target: list[DFPattern] = field(default_factory=list[DFPattern])

    def redirect_to(self, pattern: DFPattern) -> None:
        """Let this wildcard stand for `pattern` from now on."""
        self.target[:] = [pattern]


@dataclass(frozen=True, eq=False)
class TypePattern(DFPattern):
    pattern: DFPattern
    type: Type


@dataclass(frozen=True, eq=False)
class DataTypePattern(DFPattern):
    pattern: DFPattern
    dtype: str


@dataclass(frozen=True, eq=False)
class ShapePattern(DFPattern):
    pattern: DFPattern
    shape: tuple[Dim, ...]


@dataclass(frozen=True, eq=False)
class AttrPattern(DFPattern):
    """`attrs` are attributes of a call or function; of an operator its trait `TOpPattern`."""

    pattern: DFPattern
    attrs: Mapping[str, Any]

    def __post_init__(self) -> None:
        object.__setattr__(self, "attrs", MappingProxyType(dict(self.attrs)))


@dataclass(frozen=True, eq=False)
class DominatorPattern(DFPattern):
    """`child` takes in everything that is made of `parent`, by nodes that match `path`."""

    parent: DFPattern
    path: DFPattern
    child: DFPattern


def wildcard() -> WildcardPattern:
    """Anything."""
    return WildcardPattern()


def is_var(name: str = "") -> VarPattern:
    """A variable, of this name if one is given."""
    return VarPattern(name)


def is_constant() -> ConstantPattern:
    """A constant."""
    return ConstantPattern()


def is_expr(expr: Expr) -> ExprPattern:
    """This very node; for operators and global functions the name decides, for constants the value."""
    return ExprPattern(expr)


def is_op(op_name: str) -> ExprPattern:
    """The operator of this name; call the pattern with patterns of the arguments. Raises UnsupportedError."""
    from relay_hw.op import get

    return ExprPattern(get(op_name))


def is_tuple(fields: Sequence[DFPattern] | None = None) -> TuplePattern:
    """A tuple of these fields, or any."""
    return TuplePattern(None if fields is None else tuple(fields))


def is_tuple_get_item(tuple_value: DFPattern, index: int | None = None) -> TupleGetItemPattern:
    """A projection from what `tuple_value` matches."""
    return TupleGetItemPattern(tuple_value, index)


def is_if(cond: DFPattern, true_branch: DFPattern, false_branch: DFPattern) -> IfPattern:
    """A conditional."""
    return IfPattern(cond, true_branch, false_branch)


def is_let(var: DFPattern, value: DFPattern, body: DFPattern) -> LetPattern:
    """A binding."""
    return LetPattern(var, value, body)


def has_type(ty: Type, pattern: DFPattern | None = None) -> TypePattern:
    """A node of this type."""
    return TypePattern(pattern or wildcard(), ty)


def has_dtype(dtype: str, pattern: DFPattern | None = None) -> DataTypePattern:
    """A tensor of this element type."""
    return DataTypePattern(pattern or wildcard(), str(TensorType((), dtype).dtype))


def has_shape(shape: Sequence[Dim], pattern: DFPattern | None = None) -> ShapePattern:
    """A tensor of this shape."""
    return ShapePattern(pattern or wildcard(), tuple(shape))


def has_attr(attrs: Mapping[str, Any], pattern: DFPattern | None = None) -> AttrPattern:
    """A node with these attributes."""
    return AttrPattern(pattern or wildcard(), attrs)


def dominates(parent: DFPattern, path: DFPattern, child: DFPattern) -> DominatorPattern:
    """`child` takes in everything made of `parent`, by nodes that match `path`."""
    return DominatorPattern(parent, path, child)


def from_expr(expr: Expr) -> DFPattern:
    """The pattern of an expression written with operators: its variables become wildcards."""
    from relay_hw.dataflow_pattern.example import expr_pattern

    return expr_pattern(expr.body if isinstance(expr, Function) else expr)
