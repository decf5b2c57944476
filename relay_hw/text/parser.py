"""Parses modules. In: text, `#[version = "0.0.5"]`. Out: a typed module, or an expression."""

from __future__ import annotations

from relay_hw.analysis.infer import infer_type
from relay_hw.analysis.rules import uncalled
from relay_hw.analysis.variables import free_vars
from relay_hw.analysis.well_formed import check_well_formed
from relay_hw.errors import RelayHwError, UnsupportedError
from relay_hw.ir.expr import Expr, Function, Op
from relay_hw.ir.module import IRModule
from relay_hw.ir.trampoline import run
from relay_hw.text.expr_parser import ExprParser, FindOp
from relay_hw.text.lexer import Source, TokenKind


def parse(
    text: str,
    source_name: str = "<text>",
    find_op: FindOp | None = None,
    init_module: IRModule | None = None,
) -> IRModule:
    """The typed module that `text` holds; a bare expression becomes its `main`.

    `find_op` finds operators by name, in place of `relay_hw.op`. Functions and types of `init_module` are known to the
    text and part of the result. Raises ParseError for text that cannot be read,
    TypeCheckError and WellFormedError for an ill-formed program; all with place and `detail`.
    """
    source = Source(text, source_name)
    parser = Parser(source, find_op or registered, init_module)
    mod = parser.module()
    try:
        check_well_formed(mod)
        if parser.uncalled is not None:
            raise uncalled(parser.uncalled.text, source.span(parser.uncalled.start, parser.uncalled.end))
        return infer_type(mod)
    except RelayHwError as error:
        if error.span is not None and not error.detail:
            error.detail = source.underline(error.span)
        raise


def parse_expr(
    text: str,
    source_name: str = "<text>",
    find_op: FindOp | None = None,
    init_module: IRModule | None = None,
) -> Expr:
    """The expression that `text` holds, not typed. Free variables are declared with `free_var`. Raises ParseError.

    `init_module` gives the data types; global functions may have any name.
    """
    return Parser(Source(text, source_name), find_op or registered, init_module).bare_expression()


def registered(name: str) -> Op | None:
    """The operator of that name; None if there is none."""
    from relay_hw.op import get

    try:
        return get(name)
    except UnsupportedError:
        return None


class Parser(ExprParser):
    """Parser of one text, which may use definitions of `given`."""

    def __init__(self, source: Source, ops: FindOp, given: IRModule | None = None) -> None:
        super().__init__(source, ops)
        self._given = given or IRModule()
        self.types.update(self._given.types)
        for data in self._given.types.values():
            self.constructors.update((constructor.name_hint, constructor) for constructor in data.constructors)

    def module(self) -> IRModule:
        """Version, then definitions or one expression."""
        has_version = self._version()
        functions = dict(self._given.functions)
        if not self._at_definition() and not self.at_kind(TokenKind.END):
            expr = run(self.expr())
            if "main" in functions:
                raise self.error("@main must be defined once", self.tokens[0])
            functions["main"] = expr if isinstance(expr, Function) else Function(free_vars(expr), expr)
        elif not has_version:
            raise self.error('module must begin with #[version = "0.0.5"]')
        while not self.at_kind(TokenKind.END):
            if not self._at_definition():
                raise self.wanted("def, type or extern", "module")
            self._definition(functions)
        self.check_named_types()
        self._check_globals(functions)
        return IRModule(functions, self.types)

    def bare_expression(self) -> Expr:
        """An optional version, then one expression."""
        self._version()
        expr = run(self.expr())
        if not self.at_kind(TokenKind.END):
            raise self.wanted("its end", "expression")
        return expr

    def _version(self) -> bool:
        if not self.at_kind(TokenKind.VERSION):
            return False
        self.advance()
        return True

    def _at_definition(self) -> bool:
        return self.at("def") or self.at("type") or self.at("extern")

    def _definition(self, functions: dict[str, Function]) -> None:
        if not self.at("def"):
            self.type_definition()
            return
        start = self.advance()
        name = self.expect_kind(TokenKind.GLOBAL, "@name", "definition")
        if name.value in functions:
            raise self.error(f"@{name.value} must be defined once", name)
        self.numbers.clear()
        self.dim_vars.clear()
        functions[str(name.value)] = run(self.function(start))

    def _check_globals(self, functions: dict[str, Function]) -> None:
        for token in self.tokens:
            if token.kind is TokenKind.GLOBAL and token.value not in functions:
                raise self.error(f"@{str(token.value)[:40]} must be defined", token)
