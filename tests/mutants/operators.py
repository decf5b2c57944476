"""Mutations of a module's syntax tree: where one can be, and what stands there then.

In: the tree of a module. Out: its sites. Each is an expression and a changed copy of it; `switch` makes of the
expression a choice by the number of the mutant that is asked for, so that one model holds all of them.

Nothing is changed that the elaboration needs as a constant: parameters, widths, bounds of slices, heads of loops.
No mutation makes a loop of logic: an operand is only replaced by a register.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from pyverilog.vparser import ast

from tests.accel.rtl.syntax import verilog

# What a mutated module reads to know which of its mutants is on; no name of the sources.
CHOICE = "vta_mutant"
# Added to a mutant's number, so that it can be found in generated C++.
MAGIC = 0x4D55_0000


class Operator(Enum):
    """Kinds of mutations."""

    CONDITION = "condition"
    CONSTANT = "constant"
    OPERAND = "operand"
    RESET = "reset"
    ENABLE = "enable"
    SLICE = "slice"
    STATE = "state"


class Subject(Enum):
    """What is special of the place: all mutants of these must be found, but those that change nothing."""

    FAULT = "fault"
    ID = "id"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Place:
    """The surroundings of an expression: the signal that it decides, and the part of the module."""

    module: str
    target: str = ""
    is_clocked: bool = False
    is_reset: bool = False


@dataclass(frozen=True, slots=True)
class Site:
    """One possible mutant. `parent`, `attribute`, `index` say where in the tree; `before` and `after` are text."""

    place: Place
    operator: Operator
    parent: Any = field(repr=False)
    attribute: str
    index: int | None
    mutated: Any = field(repr=False)
    before: str
    after: str

    @property
    def subject(self) -> Subject:
        """Names decide: of modules and signals."""
        target = self.place.target.lower()
        if self.place.module in ("vta_fault", "vta_stop") or any(
            word in target for word in ("fault", "overflow", "illegal", "error", "stop", "code", "clash", "meet")
        ):
            return Subject.FAULT
        if any(word in target for word in ("index", "arid", "awid", "rid", "bid", "unit", "cause")):
            return Subject.ID
        return Subject.OTHER

    @property
    def key(self) -> str:
        """One line that says what it is, without a number of a line, which changes with every comment."""
        return f"{self.place.module} {self.operator.value} {self.place.target}: {self.before} => {self.after}"

    def switch(self, number: int) -> None:
        """Put the choice between original and mutated in its place."""
        chosen = ast.Eq(ast.Identifier(CHOICE), ast.IntConst(f"32'h{MAGIC + number:08x}"))
        self._put(ast.Cond(chosen, self.mutated, self._get()))

    def apply(self) -> None:
        """Put the mutated expression in its place, for good."""
        self._put(self.mutated)

    def _get(self) -> ast.Node:
        held = getattr(self.parent, self.attribute)
        return held if self.index is None else held[self.index]

    def _put(self, node: ast.Node) -> None:
        if self.index is None:
            setattr(self.parent, self.attribute, node)
        else:
            held = list(getattr(self.parent, self.attribute))
            held[self.index] = node
            setattr(self.parent, self.attribute, tuple(held))


Inputs = Callable[[str], frozenset[str]]


def sites(module: ast.ModuleDef, inputs: Inputs) -> list[Site]:
    """All sites of a module, in the order of its text. `inputs`: the input ports of a module by name."""
    return list(_Finder(module, inputs).module())


class _Finder:
    def __init__(self, module: ast.ModuleDef, inputs: Inputs) -> None:
        self._module = module
        self._inputs = inputs
        self._registers = _registers(module)

    def module(self) -> Iterator[Site]:
        for item in self._module.items:
            yield from self._item(item, Place(self._module.name))

    def _item(self, item: Any, place: Place) -> Iterator[Site]:
        """What stands in a module or a generate block: only expressions that are evaluated in every cycle."""
        match item:
            case ast.Assign():
                target = verilog(item.left.var)
                if not target.startswith("unused"):
                    yield from self._expression(item.right, "var", None, replace(place, target=target))
            case ast.Decl() | ast.GenerateStatement() | ast.Block():
                for each in item.list if isinstance(item, ast.Decl) else _body(item):
                    yield from self._item(each, place)
            case ast.IfStatement():
                for each in (item.true_statement, item.false_statement):
                    yield from self._item(each, place)
            case ast.ForStatement():
                yield from self._item(item.statement, place)
            case ast.Always():
                is_clocked = any(each.type == "posedge" for each in item.sens_list.list)
                yield from self._statement(item.statement, replace(place, is_clocked=is_clocked))
            case ast.Function():
                for each in item.statement:
                    yield from self._statement(each, place)
            case ast.InstanceList():
                yield from self._instance(item, place)
            case _:
                return

    def _instance(self, item: ast.InstanceList, place: Place) -> Iterator[Site]:
        if item.module.startswith("ERROR_"):
            return
        inputs = self._inputs(item.module)
        for instance in item.instances:
            for port in instance.portlist:
                if port.portname not in inputs or port.portname == "clk_i":
                    continue
                here = replace(place, target=f"{instance.name}.{port.portname}")
                if port.portname == "rst_ni":
                    yield self._site(here, Operator.RESET, port, "argname", None, ast.IntConst("1'b1"))
                else:
                    yield from self._expression(port, "argname", None, here)

    def _statement(self, item: Any, place: Place) -> Iterator[Site]:
        match item:
            case ast.Block():
                for each in item.statements:
                    yield from self._statement(each, place)
            case ast.IfStatement():
                yield from self._if(item, place)
            case ast.CaseStatement():
                yield from self._expression(item, "comp", None, replace(place, target="case"))
                for each in item.caselist:
                    yield from self._statement(each.statement, place)
            case ast.ForStatement():
                yield from self._statement(item.statement, place)
            case ast.NonblockingSubstitution() | ast.BlockingSubstitution():
                yield from self._assignment(item, place)
            case _:
                return

    def _if(self, item: ast.IfStatement, place: Place) -> Iterator[Site]:
        is_reset = verilog(item.cond) in ("!rst_ni", "(!rst_ni)")
        if is_reset:
            yield from self._statement(item.true_statement, replace(place, is_reset=True))
        else:
            here = replace(place, target=_first_target(item.true_statement))
            if place.is_clocked and item.false_statement is None:
                for constant in ("1'b1", "1'b0"):
                    yield self._site(here, Operator.ENABLE, item, "cond", None, ast.IntConst(constant))
            else:
                negated = ast.Ulnot(copy.deepcopy(item.cond))
                yield self._site(here, Operator.CONDITION, item, "cond", None, negated)
            yield from self._expression(item, "cond", None, here)
            yield from self._statement(item.true_statement, place)
        yield from self._statement(item.false_statement, place)

    def _assignment(self, item: Any, place: Place) -> Iterator[Site]:
        target = verilog(item.left.var)
        here = replace(place, target=target)
        if isinstance(item, ast.NonblockingSubstitution):
            operator = Operator.RESET if place.is_reset else Operator.STATE
            yield self._site(here, operator, item.right, "var", None, _read(item.left.var))
        if not place.is_reset:
            yield from self._expression(item.right, "var", None, here)

    def _expression(self, parent: Any, attribute: str, index: int | None, place: Place) -> Iterator[Site]:
        held = getattr(parent, attribute)
        node = held if index is None else held[index]
        for operator, mutated in self._mutations(node):
            yield self._site(place, operator, parent, attribute, index, mutated)
        match node:
            case ast.Cond():
                for name in ("cond", "true_value", "false_value"):
                    yield from self._expression(node, name, None, place)
            case ast.UnaryOperator():
                yield from self._expression(node, "right", None, place)
            case ast.Operator():
                for name in ("left", "right"):
                    yield from self._expression(node, name, None, place)
            case ast.Repeat():
                yield from self._expression(node, "value", None, place)
            case ast.Concat():
                for at in range(len(node.list)):
                    yield from self._expression(node, "list", at, place)
            case ast.SystemCall() if node.syscall in ("signed", "unsigned"):
                yield from self._expression(node, "args", 0, place)
            case ast.FunctionCall():
                for at in range(len(node.args)):
                    yield from self._expression(node, "args", at, place)
            case _:
                return

    def _mutations(self, node: Any) -> Iterator[tuple[Operator, Any]]:
        """What may stand in the place of an expression itself, not of its parts."""
        kind = type(node)
        if kind in RELATIONS:
            for other in RELATIONS[kind]:
                yield Operator.CONDITION, _with(node, other)
        if kind in (ast.Land, ast.Lor):
            other = ast.Lor if kind is ast.Land else ast.Land
            yield Operator.CONDITION, _with(node, other)
            yield Operator.CONDITION, copy.deepcopy(node.left)
            yield Operator.CONDITION, copy.deepcopy(node.right)
        if kind in (ast.Ulnot, ast.Unot):
            yield Operator.CONDITION, copy.deepcopy(node.right)
        if kind is ast.Cond:
            yield (
                Operator.CONDITION,
                ast.Cond(*(copy.deepcopy(x) for x in (node.cond, node.false_value, node.true_value))),
            )
        if kind in ARITHMETIC:
            yield Operator.OPERAND, _with(node, ARITHMETIC[kind])
            yield Operator.OPERAND, copy.deepcopy(node.left)
        if kind in REDUCTIONS:
            yield Operator.OPERAND, REDUCTIONS[kind](copy.deepcopy(node.right))
        if kind is ast.Identifier and node.name in self._registers:
            yield from ((Operator.OPERAND, ast.Identifier(name)) for name in self._neighbours(node.name))
        if kind is ast.IntConst:
            yield from ((Operator.CONSTANT, ast.IntConst(text)) for text in _other_constants(node.value))
        if kind is ast.Partselect:
            yield from ((Operator.SLICE, other) for other in _moved(node))
        if (
            kind is ast.Pointer
            and isinstance(node.ptr, ast.IntConst)
            and node.ptr.value.isdigit()
            and int(node.ptr.value)
        ):
            yield Operator.SLICE, ast.Pointer(copy.deepcopy(node.var), ast.IntConst(str(int(node.ptr.value) - 1)))

    def _neighbours(self, name: str) -> list[str]:
        """The register of the same width that is declared next."""
        alike = [other for other, width in self._registers.items() if width == self._registers[name]]
        at = alike.index(name)
        return alike[at + 1 : at + 2] or alike[at - 1 : at] if len(alike) > 1 else []

    def _site(
        self, place: Place, operator: Operator, parent: Any, attribute: str, index: int | None, mutated: Any
    ) -> Site:
        held = getattr(parent, attribute)
        before = verilog(held if index is None else held[index])
        return Site(place, operator, parent, attribute, index, mutated, before, verilog(mutated))


RELATIONS = {
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.LessThan: (ast.LessEq, ast.GreaterEq),
    ast.LessEq: (ast.LessThan, ast.GreaterThan),
    ast.GreaterThan: (ast.GreaterEq, ast.LessEq),
    ast.GreaterEq: (ast.GreaterThan, ast.LessThan),
}
ARITHMETIC = {ast.Plus: ast.Minus, ast.Minus: ast.Plus, ast.And: ast.Or, ast.Or: ast.And, ast.Xor: ast.Or,
              ast.Sll: ast.Srl, ast.Srl: ast.Sll}  # fmt: skip
REDUCTIONS = {ast.Uor: ast.Uand, ast.Uand: ast.Uor, ast.Unor: ast.Uor}


def _with(node: Any, kind: type) -> Any:
    return kind(copy.deepcopy(node.left), copy.deepcopy(node.right))


def _body(item: Any) -> tuple[Any, ...]:
    return tuple(item.statements if isinstance(item, ast.Block) else item.items)


def _first_target(item: Any) -> str:
    """The first signal that a statement assigns."""
    while isinstance(item, ast.Block | ast.IfStatement | ast.ForStatement | ast.CaseStatement | ast.Case):
        match item:
            case ast.Block():
                item = item.statements[0] if item.statements else None
            case ast.IfStatement():
                item = item.true_statement
            case ast.CaseStatement():
                item = item.caselist[0]
            case _:
                item = item.statement
    return verilog(item.left.var) if isinstance(item, ast.Substitution) else ""


def _read(target: Any) -> Any:
    """What an assignment's left side holds, as an expression."""
    copied = copy.deepcopy(target)
    return ast.Concat(copied.list) if isinstance(copied, ast.LConcat) else copied


def _registers(module: ast.ModuleDef) -> dict[str, str]:
    """Registers of a module itself with their widths as text; not memories, nor what is signed."""
    found = {}
    for item in module.items:
        for each in item.list if isinstance(item, ast.Decl) else ():
            if isinstance(each, ast.Reg) and each.name.endswith("_q") and not each.signed and each.dimensions is None:
                found[each.name] = verilog(each.width) if each.width else ""
    return found


def _other_constants(text: str) -> Iterator[str]:
    """Constants of the same width, one more and one less: of a single bit the other one."""
    head, mark, digits = text.rpartition("'")
    # 's makes a number signed, and what it is compared with.
    sign = digits[:1] if mark and digits[:1] in "sS" else ""
    digits = digits[len(sign) :]
    base = digits[:1].lower() if mark else "d"
    digits = digits[1:] if mark else text
    if any(letter in "xzXZ" for letter in digits):
        return
    value = int(digits.replace("_", ""), {"b": 2, "d": 10, "h": 16, "o": 8}[base])
    width = int(head) if head else 31
    for other in (value + 1, value - 1):
        if 0 <= other < 1 << width - len(sign):
            yield f"{width}'{sign}d{other}" if mark else str(other)


def _moved(node: ast.Partselect) -> Iterator[ast.Partselect]:
    """A slice with constant bounds one place lower."""
    bounds = (node.msb, node.lsb)
    if all(isinstance(bound, ast.IntConst) and bound.value.isdigit() for bound in bounds):
        high, low = (int(bound.value) for bound in bounds)
        if low > 0:
            yield ast.Partselect(copy.deepcopy(node.var), ast.IntConst(str(high - 1)), ast.IntConst(str(low - 1)))
