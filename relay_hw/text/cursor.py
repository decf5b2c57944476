"""Base of all parsers: reads tokens one by one, and keeps the names in scope."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from relay_hw.errors import ParseError
from relay_hw.ir.expr import Constructor, Expr, GlobalVar, Op, Var
from relay_hw.ir.module import TypeData
from relay_hw.ir.types import TypeVar as RelayTypeVar
from relay_hw.span import Span
from relay_hw.support.names import did_you_mean
from relay_hw.text.lexer import Source, Token, TokenKind, tokenize
from relay_hw.text.metadata import Entry, MetadataError, read_metadata

T = TypeVar("T")

# Types, patterns and attribute values nest in Python's stack; expressions do not.
MAX_NESTING = 100


class Cursor:
    """A place in the tokens of one source."""

    def __init__(self, source: Source, ops: Callable[[str], Op | None]) -> None:
        self.source = source
        self.tokens, section = tokenize(source)
        self.metadata = self._read_metadata(section)
        self.place = 0
        self.depth = 0
        self.find_op = ops
        self.types: dict[str, TypeData] = {}
        self.constructors: dict[str, Constructor] = {}
        self.global_vars: dict[str, GlobalVar] = {}
        self.graph: dict[int, Expr] = {}
        self.free: dict[str, Var] = {}
        self.named_types: list[tuple[str, Token]] = []
        self._locals: dict[str, list[Var]] = {}
        self._type_vars: dict[str, list[RelayTypeVar]] = {}

    # Tokens

    @property
    def token(self) -> Token:
        return self.tokens[self.place]

    def ahead(self, count: int = 1) -> Token:
        """The token `count` places further on, END beyond the end."""
        return self.tokens[min(self.place + count, len(self.tokens) - 1)]

    def advance(self) -> Token:
        token = self.tokens[self.place]
        if token.kind is not TokenKind.END:
            self.place += 1
        return token

    def at(self, text: str) -> bool:
        """Whether the next token is the symbol or keyword `text`."""
        token = self.tokens[self.place]
        return token.text == text and token.kind in (TokenKind.SYMBOL, TokenKind.KEYWORD)

    def at_kind(self, kind: TokenKind) -> bool:
        return self.tokens[self.place].kind is kind

    def take(self, text: str) -> bool:
        """Consume the symbol or keyword `text` if it is next."""
        if not self.at(text):
            return False
        self.place += 1
        return True

    def expect(self, text: str, where: str) -> Token:
        if not self.at(text):
            raise self.wanted(text, where)
        return self.advance()

    def expect_kind(self, kind: TokenKind, what: str, where: str) -> Token:
        if not self.at_kind(kind):
            raise self.wanted(what, where)
        return self.advance()

    def take_comma(self, close: str, where: str) -> bool:
        """After an element: True if another one follows, False at `close`, which stays. A last comma is allowed."""
        if self.take(","):
            return not self.at(close)
        if self.at(close):
            return False
        raise self.wanted(f", or {close}", where)

    # Errors and places

    def error(self, message: str, token: Token | None = None) -> ParseError:
        token = token or self.token
        return self.source.error(message, token.start, token.end)

    def wanted(self, what: str, where: str) -> ParseError:
        found = self.token.text.split("\n")[0][:40]
        return self.error(f"{where} must have {what} here, not {found}")

    def span_from(self, start: Token) -> Span:
        """The span from `start` up to the last token read."""
        return self.source.span(start.start, self.tokens[max(self.place - 1, 0)].end)

    def nested(self, read: Callable[[], T]) -> T:
        """`read()` one level deeper. Raises ParseError beyond MAX_NESTING levels."""
        if self.depth >= MAX_NESTING:
            raise self.error(f"types, patterns and attributes must be nested at most {MAX_NESTING} deep")
        self.depth += 1
        result = read()
        self.depth -= 1
        return result

    # Names

    def push_local(self, var: Var) -> None:
        self._locals.setdefault(var.name_hint, []).append(var)

    def pop_local(self, var: Var) -> None:
        self._locals[var.name_hint].pop()

    def is_bound(self, name: str) -> bool:
        """Whether a variable of that name is in scope."""
        return bool(self._locals.get(name)) or name in self.free

    def local(self, token: Token) -> Var:
        name = str(token.value)
        found = self._locals.get(name)
        if found:
            return found[-1]
        if name in self.free:
            return self.free[name]
        hint = did_you_mean(name, [known for known, open_vars in self._locals.items() if open_vars], "%")
        raise self.error(f"%{name} must be bound before it is used{hint}", token)

    def push_type_var(self, var: RelayTypeVar) -> None:
        self._type_vars.setdefault(var.name, []).append(var)

    def pop_type_var(self, var: RelayTypeVar) -> None:
        self._type_vars[var.name].pop()

    def type_var(self, name: str) -> RelayTypeVar | None:
        found = self._type_vars.get(name)
        return found[-1] if found else None

    def global_var(self, token: Token) -> GlobalVar:
        name = str(token.value)
        if name not in self.global_vars:
            self.global_vars[name] = GlobalVar(name, span=self.source.span(token.start, token.end))
        return self.global_vars[name]

    # Metadata

    def entry(self, token: Token) -> Entry:
        """The value of a `meta[key][index]` token."""
        key, index = self._meta_key(token)
        found = self.metadata.get((key, index))
        if found is None:
            raise self.error(f"meta[{key}][{index}] must be a value of the metadata section", token)
        return found

    def _meta_key(self, token: Token) -> tuple[str, int]:
        value: Any = token.value
        return value

    def _read_metadata(self, section: Token | None) -> dict[tuple[str, int], Entry]:
        if section is None:
            return {}
        try:
            return read_metadata(section.text)
        except MetadataError as error:
            raise self.source.error(str(error), section.start, section.start + 1) from None
