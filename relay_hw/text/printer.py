"""Prints Relay text. In: modules and expressions. Out: text that parses to an equal program.

One line a node: every operand that is not a name or literal becomes `%N`, and so does every node with several uses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from relay_hw.analysis.scope import Scopes, find_scopes
from relay_hw.analysis.variables import free_vars, mentions
from relay_hw.ir.expr import (
    Call,
    Clause,
    Constant,
    Constructor,
    Expr,
    Function,
    GlobalVar,
    If,
    Let,
    Match,
    Op,
    Pattern,
    PatternConstructor,
    PatternTuple,
    PatternVar,
    RefCreate,
    RefRead,
    RefWrite,
    Tuple,
    TupleGetItem,
    Var,
)
from relay_hw.ir.module import IRModule, TypeData
from relay_hw.ir.trampoline import Recursion, run
from relay_hw.ir.type_text import result_text, type_params_text, type_text, where_text
from relay_hw.ir.types import FuncType, TupleType, Type, TypeVar
from relay_hw.op.attributes import shown_attributes
from relay_hw.text.literals import Literals
from relay_hw.text.names import Names

VERSION = '#[version = "0.0.5"]'

# Deeper blocks are not moved further to the right.
_MAX_INDENT = 40


def print_module(mod: IRModule, show_types: bool = False, show_meta_data: bool = True) -> str:
    """`mod` as text; with `show_types` each type in a comment. Attributes of the module are left out.

    Without `show_meta_data` a comment stands in the place of the metadata section.
    """
    return f"{VERSION}\n{_printed(mod, show_types).text(show_meta_data)}"


def print_with_lines(mod: IRModule) -> tuple[str, dict[Expr, tuple[int, str]]]:
    """`mod` as text, and the line (number from 1, text) of each expression that has its own."""
    printer = _printed(mod, show_types=False)
    # The version is printed above.
    lines = {node: (number + 1, text.strip()) for node, (number, text) in printer.lines.items()}
    return f"{VERSION}\n{printer.text(True)}", lines


def _printed(mod: IRModule, show_types: bool) -> Printer:
    printer = Printer(mod, show_types)
    for data in mod.types.values():
        printer.type_data(data)
    for name, function in mod.functions.items():
        printer.definition(name, function)
    return printer


def print_expr(expr: Expr, show_types: bool = False, show_meta_data: bool = True) -> str:
    """`expr` as text, its free variables declared first; the rest as for a module."""
    printer = Printer(IRModule(), show_types)
    printer.expression(expr)
    return printer.text(show_meta_data)


@dataclass(frozen=True, slots=True)
class _Target:
    """Where a value is written: `before` and `after` it on the line; `node` needs its own number."""

    before: str = ""
    after: str = ""
    node: Expr | None = None
    is_tail: bool = False


class Printer:
    """Collects the lines of one text. `lines`: the number, from 1 on, and text of the line of an expression."""

    def __init__(self, mod: IRModule, show_types: bool) -> None:
        self.lines: dict[Expr, tuple[int, str]] = {}
        self._show_types = show_types
        self._names = Names(frozenset(mod.types))
        self._literals = Literals()
        self._lines: list[str] = []
        self._bound: dict[Expr, str] = {}
        self._count = 0
        self._indent = 0
        self._plan: Scopes = find_scopes(Tuple(()))

    def text(self, show_meta_data: bool) -> str:
        """All lines, and the metadata section, or a remark that it is missing."""
        section = self._literals.section()
        if section and not show_meta_data:
            section = "/* The metadata section is left out: astext() writes it. */"
        return "\n".join(self._lines) + ("\n" + section if section else "") + "\n"

    # Definitions

    def type_data(self, data: TypeData) -> None:
        """A type definition."""
        self._names.begin_definition()
        params = self._type_params(data.type_vars)
        if data.extern:
            self._line(f"extern type {data.header.name}{params}")
        elif not data.constructors:
            self._line(f"type {data.header.name}{params}")
        else:
            self._line(f"type {data.header.name}{params} {{")
            for constructor in data.constructors:
                fields = f"({', '.join(map(self._type, constructor.inputs))})" if constructor.inputs else ""
                self._lines.append(f"  {constructor.name_hint}{fields},")
            self._line("}")

    def definition(self, name: str, function: Function) -> None:
        """A global function."""
        self._bound.clear()
        self._names.begin_definition()
        self._plan = find_scopes(function)
        run(self._function_lines(function, _Target(f"def {self._names.global_var(name)}"), is_definition=True))

    def expression(self, expr: Expr) -> None:
        """Free variables, then the expression."""
        self._plan = find_scopes(expr)
        for var in free_vars(expr):
            ty = var.type_annotation or var.checked_type
            self._line(f"free_var {self._names.var(var)}{f': {self._type(ty)}' if ty else ''};")
        run(self._value(expr, _Target(is_tail=True)))

    # Values

    def _value(self, node: Expr, target: _Target) -> Recursion[None]:
        """Write `node` to `target`, after its operands."""
        atom = self._atom(node)
        if atom is None and self._plan.uses.get(node, 1) > 1 and target.node is None:
            atom = yield self._operand(node)
        if atom is not None:
            self._line(f"{self._open(target)}{atom}{target.after}")
            return
        match node:
            case Let():
                yield self._let(node, target)
            case Function():
                yield self._function_lines(node, target)
            case If():
                yield self._if(node, target)
            case Match():
                yield self._match(node, target)
            case _:
                text = yield self._inline(node)
                self._line(f"{self._open(target)}{text}{self._comment(node)}{target.after}")
                self.lines[node] = len(self._lines), self._lines[-1]

    def _operand(self, node: Expr) -> Recursion[str]:
        """A name or literal for `node`, which is first written to its own line if necessary."""
        atom = self._atom(node)
        if atom is None:
            yield self._value(node, _Target(after=";", node=node))
            atom = self._bound[node]
        return atom

    def _operands(self, nodes: Sequence[Expr]) -> Recursion[list[str]]:
        found: list[str] = []
        for node in nodes:
            atom = self._atom(node)
            found.append(atom if atom is not None else (yield self._operand(node)))
        return found

    def _hoisted(self, node: Expr) -> Recursion[None]:
        for shared in self._plan.hoisted.get(node, ()):
            yield self._operand(shared)

    def _atom(self, node: Expr) -> str | None:
        if node in self._bound:
            return self._bound[node]
        match node:
            case Var():
                return self._names.var(node)
            case GlobalVar(name_hint=name):
                return self._names.global_var(name)
            case Op(name=name) | Constructor(name_hint=name):
                return name
            case Constant():
                return self._literals.constant(node)
            case Tuple(fields=()):
                return "()"
            case _:
                return None

    def _inline(self, node: Expr) -> Recursion[str]:
        """`node` on one line."""
        match node:
            case Call(op=op, args=args):
                callee = self._atom(op) or (yield self._operand(op))
                parts = yield self._operands(args)
                if isinstance(op, Op):
                    parts += self._attributes(shown_attributes(op, node.attrs))
                is_plain = isinstance(op, Constructor) and not op.inputs
                callee += self._type_args(node)
                return callee if is_plain else f"{callee}({', '.join(parts)})"
            case Tuple(fields=fields):
                parts = yield self._operands(fields)
                return f"({parts[0]},)" if len(parts) == 1 else f"({', '.join(parts)})"
            case TupleGetItem(tuple_value=value, index=index):
                inner = yield self._operand(value)
                return f"{inner}.{index}"
            case RefCreate(value=value):
                return f"ref({(yield self._operand(value))})"
            case RefRead(ref=ref):
                return f"ref_read({(yield self._operand(ref))})"
            case RefWrite(ref=ref, value=value):
                parts = yield self._operands((ref, value))
                return f"ref_write({', '.join(parts)})"
            case _:
                raise TypeError(f"expression must be a node of Relay, not {type(node).__name__}")

    # Values of several lines

    def _let(self, node: Let, target: _Target) -> Recursion[None]:
        if not target.is_tail:
            self._line(f"{self._open(target)}(")
            self._indent += 1
        last: Expr = node
        while isinstance(last, Let) and (last is node or self._plan.uses.get(last) == 1):
            annotation = last.var.type_annotation
            typed = f": {self._type(annotation)}" if annotation is not None else ""
            name = f"let {self._names.var(last.var)}{typed} = "
            yield self._value(last.value, _Target(name, ";"))
            last = last.body
        if target.is_tail:
            yield self._value(last, target)
            return
        yield self._value(last, _Target(is_tail=True))
        self._indent -= 1
        self._line(f"){target.after}")

    def _block(self, body: Expr) -> Recursion[None]:
        self._indent += 1
        yield self._value(body, _Target(is_tail=True))
        self._indent -= 1

    def _function_lines(self, node: Function, target: _Target, is_definition: bool = False) -> Recursion[None]:
        yield self._hoisted(node)
        start = self._open(target)
        start += "" if is_definition else "fn "
        type_params = self._type_params(node.type_params)
        params = [self._param(param) for param in node.params] + self._attributes(dict(node.attrs))
        name = self._names.type_var
        ret = where_text(node.where, name)
        if node.ret_type is not None:
            ret = f" -> {result_text(node.ret_type, node.where, name)}"
        self._line(f"{start}{type_params}({', '.join(params)}){ret} {{")
        yield self._block(node.body)
        self._line(f"}}{'' if is_definition else self._comment(node)}{target.after}")

    def _param(self, param: Var) -> str:
        ty = param.type_annotation
        return self._names.var(param) + (f": {self._type(ty)}" if ty is not None else "")

    def _if(self, node: If, target: _Target) -> Recursion[None]:
        cond = yield self._operand(node.cond)
        yield self._hoisted(node)
        self._line(f"{self._open(target)}if ({cond}) {{")
        yield self._block(node.true_branch)
        self._line("} else {")
        yield self._block(node.false_branch)
        self._line(f"}}{self._comment(node)}{target.after}")

    def _match(self, node: Match, target: _Target) -> Recursion[None]:
        data = yield self._operand(node.data)
        yield self._hoisted(node)
        # A match needs no parentheses only at the start of an expression.
        open_text, close_text = ("", "") if target.is_tail else ("(", ")")
        self._line(f"{self._open(target)}{open_text}{'match' if node.complete else 'match?'} ({data}) {{")
        self._indent += 1
        for clause in node.clauses:
            yield self._clause(clause)
        self._indent -= 1
        self._line(f"}}{close_text}{self._comment(node)}{target.after}")

    def _clause(self, clause: Clause) -> Recursion[None]:
        self._line(f"{self._pattern(clause.lhs)} => {{")
        yield self._block(clause.rhs)
        self._line("},")

    # Parts of lines

    def _line(self, text: str) -> None:
        self._lines.append("  " * min(self._indent, _MAX_INDENT) + text)

    def _open(self, target: _Target) -> str:
        """The start of the line; a node that needs a number gets the next one."""
        if target.node is None:
            return target.before
        self._bound[target.node] = f"%{self._count}"
        self._count += 1
        return f"{self._bound[target.node]} = "

    def _comment(self, node: Expr) -> str:
        if not self._show_types or node.checked_type is None:
            return ""
        return f" /* ty={self._type(node.checked_type)} */"

    def _type(self, ty: Type) -> str:
        return type_text(ty, self._names.type_var)

    def _type_params(self, params: Sequence[TypeVar]) -> str:
        return type_params_text(params, self._names.type_var)

    def _type_args(self, node: Call) -> str:
        """Type arguments that inference cannot recover from the arguments' types."""
        ty = node.op.checked_type
        if not node.type_args or not isinstance(ty, FuncType) or isinstance(node.op, Constructor):
            return ""
        if all(mentions(TupleType(ty.arg_types), var) for var in ty.type_params):
            return ""
        return f"[{', '.join(map(self._type, node.type_args))}]"

    def _attributes(self, attrs: dict[str, object]) -> list[str]:
        return [f"{name}={self._literals.attribute(value)}" for name, value in attrs.items()]

    def _pattern(self, pattern: Pattern) -> str:
        match pattern:
            case PatternVar(var=var):
                return self._param(var)
            case PatternConstructor(constructor=constructor, patterns=()):
                return constructor.name_hint
            case PatternConstructor(constructor=constructor, patterns=inner):
                return f"{constructor.name_hint}({', '.join(map(self._pattern, inner))})"
            case PatternTuple(patterns=(only,)):
                return f"({self._pattern(only)},)"
            case PatternTuple(patterns=inner):
                return f"({', '.join(map(self._pattern, inner))})"
            case _:
                return "_"
