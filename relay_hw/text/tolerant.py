"""The tolerant parser, for text of papers, guides and older versions. In: text. Out: a module, notes on repairs.

What the strict format lacks is repaired: for example, undefined names become parameters.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from relay_hw.analysis.infer import infer_type
from relay_hw.errors import RelayHwError
from relay_hw.ir.expr import (
    Call,
    Clause,
    Expr,
    Function,
    Let,
    Op,
    RefRead,
    RefWrite,
    Var,
)
from relay_hw.ir.module import IRModule
from relay_hw.ir.trampoline import Recursion
from relay_hw.ir.types import TensorType
from relay_hw.op.attributes import build_attributes
from relay_hw.span import Span
from relay_hw.text.lexer import Source, Token, TokenKind
from relay_hw.text.metadata import Entry
from relay_hw.text.parser import Parser, registered

# Names of operators in the first sketches of the language.
ALIASES = {"mul": "multiply", "sub": "subtract", "div": "divide", "neg": "negative", "pow": "power"}


@dataclass(frozen=True, slots=True)
class Note:
    """One repair, and where."""

    message: str
    span: Span

    def __str__(self) -> str:
        return f"{self.span}: {self.message}"


@dataclass(frozen=True, slots=True, eq=False)
class Repaired:
    """A module from repaired text. `problem`: why it has no types, if it has none."""

    mod: IRModule
    notes: tuple[Note, ...]
    problem: RelayHwError | None = None


def parse_tolerant(
    text: str, source_name: str = "<text>", find_op: Callable[[str], Op | None] = registered
) -> Repaired:
    """Read text that the strict parser refuses; typed if it has enough types. Raises ParseError."""
    parser = TolerantParser(Source(text, source_name), find_op)
    mod = parser.module()
    notes = tuple(sorted(parser.notes, key=lambda note: (note.span.line, note.span.column)))
    try:
        return Repaired(infer_type(mod), notes)
    except RelayHwError as error:
        return Repaired(mod, notes, error)


class TolerantParser(Parser):
    """Reads one text and records its repairs."""

    def __init__(self, source: Source, ops: Callable[[str], Op | None]) -> None:
        super().__init__(source, ops)
        self.notes: list[Note] = []
        self._params: dict[str, Var] = {}
        self._last: Expr | None = None

    def _note(self, message: str, token: Token) -> None:
        self.notes.append(Note(message, self.source.span(token.start, token.end)))

    # Modules

    def _version(self) -> bool:
        if not super()._version() and self._at_definition():
            self._note('version "0.0.5" is taken', self.token)
        return True

    def function(self, start: Token) -> Recursion[Function]:
        is_definition = start.text == "def"
        if is_definition:
            self._params.clear()
        found = yield super().function(start)
        if not is_definition or not self._params:
            return found
        params = (*found.params, *self._params.values())
        return Function(params, found.body, found.ret_type, found.type_params, found.attrs, span=found.span)

    def _param(self, before: set[str]) -> Var:
        while self.at("..."):
            self._note("parameters are left out here; those that are used follow at the end", self.advance())
            self.take(",")
        return super()._param(before)

    # Statements

    def _end_binding(self, where: str) -> None:
        if not self.take(";"):
            self._note("; is put at the end of this binding", self.tokens[max(self.place - 1, 0)])
        self._skip_elisions()

    def _skip_elisions(self) -> None:
        while self.at("..."):
            self._note("statements are left out here", self.advance())
            self.take(";")

    def _graph_binding(self) -> Recursion[None]:
        token = self.token
        yield super()._graph_binding()
        self._last = self.graph[token.value]

    def _left_out(self) -> Expr | None:
        if not self.at("}") or self._last is None:
            return None
        self._note("the result is the last binding", self.token)
        return self._last

    def expr(self) -> Recursion[Expr]:
        self._skip_elisions()
        if self.at("fn") and self.ahead().kind is TokenKind.LOCAL:
            return (yield self._named_function())
        if self.at("}"):
            return self._placeholder("body", self.token)
        return (yield super().expr())

    def _named_function(self) -> Recursion[Expr]:
        """`fn %f(...) {...} rest` binds the name, as a let does."""
        start = self.advance()
        token = self.advance()
        var = Var(str(token.value), span=self.source.span(token.start, token.end))
        self._note("the function's name is bound by a let", token)
        self.push_local(var)
        value = yield self.function(start)
        self.take(";")
        rest = yield self.expr()
        self.pop_local(var)
        return Let(var, value, rest, span=self.span_from(start))

    def _has_arguments(self) -> bool:
        """Whether an argument list follows; without `;`, a parenthesis on a new line begins a new expression."""
        before = self.tokens[max(self.place - 1, 0)]
        is_same_line = "\n" not in self.source.text[before.end : self.token.start]
        return is_same_line and self.at("(")

    # Undefined names

    def _placeholder(self, name: str, token: Token) -> Var:
        found = self._params.get(name)
        if found is None:
            self._note(f"{token.text[:40]} is not defined: it becomes parameter %{name}", token)
            found = self._params[name] = Var(name, span=self.source.span(token.start, token.end))
        return found

    def _missing(self, token: Token) -> Expr:
        return self._placeholder(f"v{token.value}", token)

    def local(self, token: Token) -> Var:
        name = str(token.value)
        return super().local(token) if self.is_bound(name) else self._placeholder(name, token)

    def entry(self, token: Token) -> Entry | Var:  # type: ignore[override]
        key, index = self._meta_key(token)
        found = self.metadata.get((key, index)) or self.metadata.get((f"relay.{key}", index))
        return found if found is not None else self._placeholder(f"constant_{index}", token)

    def _constant_entry(self, token: Token) -> Expr:
        found = self.entry(token)
        if not isinstance(found, Expr):
            raise self.error(f"{token.text[:60]} must be a constant", token)
        return found

    # Operators and signs

    def _require_op(self, name: str, token: Token) -> Op:
        alias = ALIASES.get(name)
        if alias is not None and self.find_op(name) is None:
            self._note(f"{name} is called {alias}", token)
            return super()._require_op(alias, token)
        return super()._require_op(name, token)

    def _item(self) -> Recursion[Expr]:
        start = self.token
        left = yield super()._item()
        if not self.take(":="):
            return left
        self._note("e := e is written ref_write(e, e)", start)
        right = yield self._binop()
        return RefWrite(left, right, span=self.span_from(start))

    def _call(self) -> Recursion[Expr]:
        start = self.token
        if self.take("-"):
            self._note("-e is written negative(e)", start)
            operand = yield self._call()
            return Call(self._require_op("negative", start), (operand,), span=self.span_from(start))
        return (yield super()._call())

    def _atom(self) -> Recursion[Expr]:
        start = self.token
        if not self.take("!"):
            return (yield super()._atom())
        self._note("!e is written ref_read(e)", start)
        return RefRead((yield self._atom()), span=self.span_from(start))

    def _leaf(self, token: Token) -> Expr:
        if token.kind is TokenKind.NAME and token.text == "Zero":
            return self._zero(token)
        if token.kind is TokenKind.NAME and token.text == "sq" and self.at("("):
            self._note("sq(e) is a product", token)
            x = Var("x")
            return Function((x,), Call(self._require_op("multiply", token), (x, x)))
        return super()._leaf(token)

    def _zero(self, token: Token) -> Expr:
        """`Zero Tensor[(2), int8]`: the zero of a tensor type."""
        self._note("Zero T is written zeros(shape=..., dtype=...)", token)
        ty = self.type()
        if not isinstance(ty, TensorType) or not all(isinstance(dim, int) for dim in ty.shape):
            raise self.error(f"type after Zero must be a tensor of fixed sizes, not {ty}", token)
        zeros = self._require_op("zeros", token)
        attrs = build_attributes(zeros, {"shape": ty.shape, "dtype": ty.dtype})
        return Call(zeros, (), attrs, span=self.span_from(token))

    def _arm(self) -> Recursion[Clause]:
        if self.at("|"):
            self._note("| before an arm is left out", self.advance())
        return (yield super()._arm())

    def _arrow(self) -> None:
        if self.at("->"):
            self._note("-> of an arm is written =>", self.advance())
            return
        super()._arrow()

    def _next_arm(self) -> bool:
        return self.at("|") or super()._next_arm()
