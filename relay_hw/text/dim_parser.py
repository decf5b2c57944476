"""Parses shapes: dimensions, arithmetic on them, conditions. In: tokens. Out: dimensions."""

from __future__ import annotations

from collections.abc import Callable

from relay_hw.ir.dims import dim_add, dim_floordiv, dim_mod, dim_mul, dim_sub
from relay_hw.ir.expr import Op
from relay_hw.ir.types import (
    ANY,
    Comparison,
    Condition,
    Dim,
    DimType,
    DimVar,
    Kind,
    TypeVar,
)
from relay_hw.text.cursor import Cursor
from relay_hw.text.lexer import Source, Token, TokenKind

_FUNCTIONS = {"floordiv": dim_floordiv, "floormod": dim_mod}
# Each is multiplied with the product of those before it.
MAX_FACTORS = 256
_COMPARISONS = {comparison.value: comparison for comparison in Comparison}


class DimParser(Cursor):
    """Reads shapes."""

    def __init__(self, source: Source, ops: Callable[[str], Op | None]) -> None:
        super().__init__(source, ops)
        # Undeclared symbolic dimensions of the current definition, by name.
        self.dim_vars: dict[str, DimVar] = {}

    def is_dim(self, token: Token) -> bool:
        """Whether `token` begins a dimension in a place where types are allowed too."""
        if token.kind is TokenKind.NAME:
            var = self.type_var(token.text)
            return token.text in (*_FUNCTIONS, *self.dim_vars) if var is None else var.kind is Kind.DIM
        return token.kind is TokenKind.INT or token.text == "?"

    def checked_kind(self, var: TypeVar, kind: Kind, token: Token) -> TypeVar:
        """`var`, which must be of `kind`."""
        if var.kind is not kind:
            raise self.error(f"type parameter {var.name} must have kind {kind.value} here, not {var.kind.value}", token)
        return var

    def where(self) -> tuple[Condition, ...]:
        """`where (n == 2 * m, ...)` if it is there."""
        if self.token.text != "where" or self.token.kind is not TokenKind.NAME:
            return ()
        self.advance()
        self.expect("(", "where")
        found: list[Condition] = []
        while not self.at(")"):
            found.append(self._condition())
            if not self.take_comma(")", "where"):
                break
        self.expect(")", "where")
        return tuple(found)

    def _condition(self) -> Condition:
        left = self.dim()
        token = self.advance()
        comparison = _COMPARISONS.get(token.text)
        if comparison is None:
            self.place -= token.kind is not TokenKind.END
            raise self.wanted("a comparison of dimensions", "where")
        return Condition(DimType(left), comparison, DimType(self.dim()))

    def _whole_shape(self) -> tuple[Dim, ...] | None:
        """The shape of a parameter of kind Shape, if one is next."""
        token = self.token
        if token.kind is not TokenKind.NAME:
            return None
        self.advance()
        var = self.type_var(token.text)
        if var is None:
            raise self.error(f"shape {token.text[:40]} must be a type parameter of kind Shape", token)
        return self.checked_kind(var, Kind.SHAPE, token).shape

    def _shape(self) -> list[Dim]:
        self.expect("(", "tensor type")
        shape: list[Dim] = []
        while not self.at(")"):
            shape.append(self.dim())
            if not self.take_comma(")", "shape"):
                break
        self.expect(")", "shape")
        return shape

    def dim(self) -> Dim:
        """A sum of products. Raises ParseError."""
        token = self.token
        try:
            found = self.nested(self._sum)
        except ValueError as error:
            raise self.error(str(error), token) from None
        if isinstance(found, int) and found < 0:
            raise self.error(f"dimension must be an integer of at least 0 or ?, not {found}", token)
        return found

    def _sum(self) -> Dim:
        # Added all at once: each sum is put in order.
        parts = [dim_sub(0, self._product()) if self.take("-") else self._product()]
        while True:
            if self.take("+"):
                parts.append(self._product())
            elif self.take("-"):
                parts.append(dim_sub(0, self._product()))
            elif self.at_kind(TokenKind.INT) and self.token.text.startswith("-"):
                parts.append(self._product())
            else:
                return dim_add(*parts)

    def _product(self) -> Dim:
        total = self._factor()
        for _ in range(MAX_FACTORS):
            if not self.take("*"):
                return total
            total = dim_mul(total, self._factor())
        raise self.error(f"dimension must have at most {MAX_FACTORS} factors in a product")

    def _factor(self) -> Dim:
        token = self.token
        if self.take("?"):
            return ANY
        if self.take("("):
            inner = self.nested(self._sum)
            self.expect(")", "dimension")
            return inner
        if token.kind is TokenKind.NAME:
            self.advance()
            return self._function(token) if token.text in _FUNCTIONS and self.at("(") else self._variable(token)
        value = token.value[0] if token.kind is TokenKind.INT else None
        if token.kind is TokenKind.META:
            value = self.entry(token)
        if not isinstance(value, int):
            raise self.error(f"dimension must be an integer of at least 0 or ?, not {token.text[:40]}")
        self.advance()
        return value

    def _variable(self, token: Token) -> Dim:
        var = self.type_var(token.text)
        if var is not None:
            return self.checked_kind(var, Kind.DIM, token).dim
        return self.dim_vars.setdefault(token.text, DimVar(token.text))

    def _function(self, token: Token) -> Dim:
        self.expect("(", token.text)
        left = self.nested(self._sum)
        self.expect(",", token.text)
        right = self.nested(self._sum)
        self.expect(")", token.text)
        try:
            return _FUNCTIONS[token.text](left, right)
        except ZeroDivisionError:
            raise self.error(f"divisor of a dimension must be at least 1, not {right}", token) from None
