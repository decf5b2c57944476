"""Parses what holds no other expression: variables, numbers, names, and the attributes of a call.

In: tokens. Out: nodes with spans.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from relay_hw.ir.expr import Constant, Expr, Op, Var
from relay_hw.op.attributes import AttributeFault, build_attributes
from relay_hw.text.lexer import Token, TokenKind
from relay_hw.text.strict import StrictParser

_LONE = frozenset((TokenKind.LOCAL, TokenKind.GLOBAL, TokenKind.GRAPH, TokenKind.INT, TokenKind.FLOAT))


class LeafParser(StrictParser):
    """Reads the leaves of expressions."""

    def _lone_leaf(self) -> Expr | None:
        """A variable or number that is a whole argument: the common case, without a trampoline step."""
        if self.ahead().text in (",", ")") and self.token.kind in _LONE:
            return self._leaf(self.advance())
        return None

    def _leaf(self, token: Token) -> Expr:
        span = self.source.span(token.start, token.end)
        value: Any = token.value
        match token.kind:
            case TokenKind.LOCAL:
                return self.local(token)
            case TokenKind.GLOBAL:
                return self.global_var(token)
            case TokenKind.GRAPH:
                return self.graph[value] if value in self.graph else self._missing(token)
            case TokenKind.INT:
                return Constant(np.asarray(value[0], f"int{value[1]}"), span=span)
            case TokenKind.FLOAT:
                return Constant(self._float(token, value[0], value[1]), span=span)
            case TokenKind.META:
                return self._constant_entry(token)
            case TokenKind.NAME if token.text in ("True", "False"):
                return Constant(np.asarray(token.text == "True"), span=span)
            case TokenKind.NAME:
                return self.constructors.get(token.text) or self._require_op(token.text, token)
            case TokenKind.KEYWORD | TokenKind.STRING | TokenKind.VERSION | TokenKind.SYMBOL | TokenKind.END:
                self.place -= token.kind is not TokenKind.END
                hint = "; there is no sign before it: write negative(...)" if token.text == "-" else ""
                found = token.text.split("\n")[0][:40]
                raise self.error(f"text must have an expression here, not {found}{hint}", token)

    def _float(self, token: Token, value: float, bits: int) -> np.ndarray:
        with np.errstate(over="ignore"):
            array = np.asarray(value, f"float{bits}")
        if np.isinf(array) and "inf" not in token.text:
            raise self.error(f"number must fit float{bits}, not {token.text[:40]}", token)
        return array

    def _require_op(self, name: str, token: Token) -> Op:
        op = self.find_op(name)
        if op is None:
            raise self.error(self._no_operator(name), token)
        return op

    def _free_var(self) -> Var:
        self.advance()
        token = self.expect_kind(TokenKind.LOCAL, "%name", "free_var")
        var = Var(str(token.value), self.optional_type(), span=self.source.span(token.start, token.end))
        if var.name_hint in self.free:
            raise self.error(f"%{var.name_hint[:40]} must be declared free once", token)
        self.free[var.name_hint] = var
        return var

    def _param(self, before: set[str]) -> Var:
        token = self.expect_kind(TokenKind.LOCAL, "%name", "parameter")
        if token.value in before:
            raise self.error(f"parameter %{str(token.value)[:40]} must be declared once", token)
        if self.take("{"):
            # Where a value lives is of no concern here.
            self.skip_attributes()
            self.expect("}", "parameter")
        return Var(str(token.value), self.optional_type(), span=self.source.span(token.start, token.end))

    def _record(self, callee: Expr, attrs: dict[str, Any], places: dict[str, Token], start: Token) -> Any:
        if not isinstance(callee, Op):
            if attrs:
                token = next(iter(places.values()))
                raise self.error(f"attribute {token.text[:40]} must belong to a call of an operator", token)
            return None
        try:
            return build_attributes(callee, attrs)
        except AttributeFault as fault:
            raise self.error(str(fault), places.get(fault.name, start)) from None
