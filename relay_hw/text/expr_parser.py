"""Parses expressions. In: tokens. Out: nodes with spans.

They may nest to any depth: each rule is a step of `ir.trampoline`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from relay_hw.ir.expr import (
    Call,
    Clause,
    Constant,
    Constructor,
    Expr,
    Function,
    If,
    Let,
    Match,
    Op,
    RefCreate,
    RefRead,
    RefWrite,
    Tuple,
    TupleGetItem,
    Var,
)
from relay_hw.ir.trampoline import Recursion
from relay_hw.ir.types import TensorType, Type
from relay_hw.op.attributes import build_attributes
from relay_hw.text.leaf_parser import LeafParser
from relay_hw.text.lexer import Source, Token, TokenKind
from relay_hw.text.strict import INFIX

# Of a constant: files of constants hold no more.
MAX_RANK = 32

FindOp = Callable[[str], Op | None]


class ExprParser(LeafParser):
    """Reads expressions."""

    def __init__(self, source: Source, ops: FindOp) -> None:
        super().__init__(source, ops)
        # Graph variables of the current definition; one of an earlier definition may be defined anew.
        self.numbers: set[int] = set()
        # The first operator that is used as a value: it has no span of its own.
        self.uncalled: Token | None = None

    def expr(self) -> Recursion[Expr]:
        """Items and bindings up to the end of the scope."""
        lets: list[tuple[Var, Expr, Token]] = []
        named: list[Var] = []
        while True:
            start = self.token
            if self.at("let"):
                var, value = yield self._let(named)
                lets.append((var, value, start))
                continue
            if start.kind is TokenKind.GRAPH and self.ahead().text == "=":
                yield self._graph_binding()
                continue
            if self.at("free_var"):
                item: Expr = self._free_var()
                if self.take(";"):
                    continue
            else:
                item = self._left_out() or (yield self._item())
                if self.take(";"):
                    lets.append((Var("_", span=item.span), item, start))
                    continue
            break
        for var in named:
            self.pop_local(var)
        for var, value, start in reversed(lets):
            item = Let(var, value, item, span=self.span_from(start))
        return item

    def _let(self, named: list[Var]) -> Recursion[tuple[Var, Expr]]:
        self.advance()
        token = self.expect_kind(TokenKind.LOCAL, "%name", "let")
        annotation = self.optional_type()
        var = Var(str(token.value), annotation, span=self.source.span(token.start, token.end))
        self.expect("=", "let")
        # In scope in its own value: a function may call itself.
        self.push_local(var)
        named.append(var)
        value = yield self._binop()
        self._end_binding("let")
        return var, value

    def _graph_binding(self) -> Recursion[None]:
        token = self.advance()
        self.advance()
        value = yield self._binop()
        number: Any = token.value
        if number in self.numbers:
            raise self.error(f"%{number} must be defined once", token)
        self.numbers.add(number)
        self.graph[number] = value
        self._end_binding("definition of a graph variable")

    def _item(self) -> Recursion[Expr]:
        if self.take("{"):
            inner = yield self.expr()
            self.expect("}", "block")
            return inner
        if self.at("match") or self.at("match?"):
            return (yield self._match())
        return (yield self._binop())

    def _block(self, where: str) -> Recursion[Expr]:
        self.expect("{", where)
        body = yield self.expr()
        self.expect("}", where)
        return body

    def _match(self) -> Recursion[Expr]:
        start = self.advance()
        data = yield self._atom()
        self.expect("{", "match")
        clauses: list[Clause] = []
        while not self.at("}"):
            clauses.append((yield self._arm()))
            if not self._next_arm():
                break
        self.expect("}", "match")
        return Match(data, tuple(clauses), start.text == "match", span=self.span_from(start))

    def _arm(self) -> Recursion[Clause]:
        bound: list[Var] = []
        pattern = self.pattern(bound)
        self._arrow()
        for var in bound:
            self.push_local(var)
        body = yield self.expr()
        for var in bound:
            self.pop_local(var)
        return Clause(pattern, body)

    def _binop(self) -> Recursion[Expr]:
        start = self.token
        operands: list[Expr] = [(yield self._call())]
        pending: list[tuple[str, int]] = []
        while self.at_kind(TokenKind.SYMBOL) and self.token.text in INFIX:
            name, precedence = INFIX[self.token.text]
            while pending and pending[-1][1] >= precedence:
                self._reduce(operands, pending, start)
            self._require_op(name, self.token)
            self.advance()
            pending.append((name, precedence))
            operands.append((yield self._call()))
        while pending:
            self._reduce(operands, pending, start)
        return operands[0]

    def _reduce(self, operands: list[Expr], pending: list[tuple[str, int]], start: Token) -> None:
        right, left = operands.pop(), operands.pop()
        op = self._require_op(pending.pop()[0], start)
        operands.append(Call(op, (left, right), span=self.span_from(start)))

    def _call(self) -> Recursion[Expr]:
        start = self.token
        callee = yield self._atom()
        while self._has_arguments():
            types = self._type_arguments() if self.at("[") else ()
            if types and isinstance(callee, Constructor) and not callee.inputs and not self.at("("):
                return Call(callee, (), None, types, span=self.span_from(start))
            callee = yield self._arguments(callee, start, types)
        if isinstance(callee, Constructor) and not callee.inputs:
            return Call(callee, (), span=self.span_from(start))
        if isinstance(callee, Op) and self.uncalled is None:
            self.uncalled = start
        return callee

    def _type_arguments(self) -> tuple[Type, ...]:
        self.expect("[", "call")
        found = [self.type_argument()]
        while self.take_comma("]", "type arguments"):
            found.append(self.type_argument())
        self.expect("]", "type arguments")
        return tuple(found)

    def _arguments(self, callee: Expr, start: Token, types: tuple[Type, ...]) -> Recursion[Expr]:
        self.expect("(", "call")
        args: list[Expr] = []
        attrs: dict[str, Any] = {}
        places: dict[str, Token] = {}
        while not self.at(")"):
            if self.at_attribute():
                self.attributes(attrs, places)
                break
            args.append(self._lone_leaf() or (yield self.expr()))
            if not self.take_comma(")", "call"):
                break
        self.expect(")", "call")
        record = self._record(callee, attrs, places, start)
        return Call(callee, tuple(args), record, types, span=self.span_from(start))

    # Atoms

    def _atom(self) -> Recursion[Expr]:
        start = self.token
        value = yield self._base()
        while self.at(".") and self.ahead().kind is TokenKind.INT:
            self.advance()
            number: Any = self.advance().value
            value = TupleGetItem(value, number[0], span=self.span_from(start))
        return value

    def _base(self) -> Recursion[Expr]:
        token = self.token
        match token.kind:
            case TokenKind.SYMBOL if token.text == "(":
                return (yield self._parenthesised())
            case TokenKind.SYMBOL if token.text == "[":
                return (yield self._tensor_literal())
            case TokenKind.KEYWORD:
                return (yield self._keyword())
            case (
                TokenKind.LOCAL | TokenKind.GLOBAL | TokenKind.GRAPH | TokenKind.NAME | TokenKind.INT | TokenKind.FLOAT
                | TokenKind.STRING | TokenKind.META | TokenKind.VERSION | TokenKind.SYMBOL | TokenKind.END
            ):  # fmt: skip
                return self._leaf(self.advance())

    def _parenthesised(self) -> Recursion[Expr]:
        start = self.advance()
        fields: list[Expr] = []
        is_tuple = self.at(")")
        while not self.at(")"):
            fields.append((yield self.expr()))
            if not self.take(","):
                break
            is_tuple = True
        self.expect(")", "parentheses")
        return Tuple(tuple(fields), span=self.span_from(start)) if is_tuple else fields[0]

    def _tensor_literal(self) -> Recursion[Expr]:
        """`[a, b]`: stacked tensors of one type; a constant if all are constants."""
        start = self.advance()
        parts: list[Expr] = []
        while not self.at("]"):
            parts.append((yield self.expr()))
            if not self.take_comma("]", "tensor"):
                break
        self.expect("]", "tensor")
        if not parts:
            raise self.error("tensor must have at least one element", start)
        span = self.span_from(start)
        arrays = [part.data for part in parts if isinstance(part, Constant)]
        if max((array.ndim for array in arrays), default=0) >= MAX_RANK:
            raise self.error(f"tensor must have at most {MAX_RANK} dimensions", start)
        if len(arrays) < len(parts):
            stack = self._require_op("stack", start)
            return Call(stack, (Tuple(tuple(parts), span=span),), build_attributes(stack, {"axis": 0}), span=span)
        for array in arrays:
            if (array.shape, array.dtype) != (arrays[0].shape, arrays[0].dtype):
                shown = [str(TensorType(a.shape, str(a.dtype))) for a in (arrays[0], array)]
                raise self.error(f"elements of a tensor must have one type, not {shown[0]} and {shown[1]}", start)
        return Constant(np.stack(arrays), span=span)

    def _keyword(self) -> Recursion[Expr]:
        token = self.token
        match token.text:
            case "fn":
                return (yield self.function(self.advance()))
            case "if":
                return (yield self._if())
            case "ref" | "ref_read" | "ref_write":
                return (yield self._reference())
            case _:
                raise self.wanted("an expression", "text")

    def _if(self) -> Recursion[Expr]:
        start = self.advance()
        self.expect("(", "if")
        cond = yield self.expr()
        self.expect(")", "if")
        then = yield self._block("if")
        self.expect("else", "if")
        other = yield self._block("else")
        return If(cond, then, other, span=self.span_from(start))

    def _reference(self) -> Recursion[Expr]:
        start = self.advance()
        self.expect("(", start.text)
        first = yield self.expr()
        second: Expr | None = None
        if start.text == "ref_write":
            self.expect(",", start.text)
            second = yield self.expr()
        self.expect(")", start.text)
        span = self.span_from(start)
        if second is not None:
            return RefWrite(first, second, span=span)
        return RefCreate(first, span=span) if start.text == "ref" else RefRead(first, span=span)

    def function(self, start: Token) -> Recursion[Function]:
        type_params = self.type_params()
        self.expect("(", "function")
        params: list[Var] = []
        names: set[str] = set()
        attrs: dict[str, Any] = {}
        while not self.at(")"):
            if self.at_attribute():
                self.attributes(attrs, {})
                break
            params.append(self._param(names))
            names.add(params[-1].name_hint)
            if not self.take_comma(")", "function"):
                break
        self.expect(")", "function")
        ret = self.type() if self.take("->") else None
        where = self.where()
        for param in params:
            self.push_local(param)
        body = yield self._block("function")
        for param in params:
            self.pop_local(param)
        self.drop_type_params(type_params)
        return Function(tuple(params), body, ret, type_params, attrs, where, span=self.span_from(start))
