"""Finds text that a writer puts into another language without the function that makes it a name there.

In: the source of a module. Out: expressions that may hold a stranger's text: each inside of an f-string, `+`, `.format`
and `%` of texts is followed back to numbers, fixed text, calls of a quoting function, and calls of functions of
writers, which are held to this themselves.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Set
from dataclasses import dataclass

# Formats that text refuses: what they are given is a number.
NUMERIC_FORMAT = re.compile(r"[<>=^+#0-9]*[,.0-9]*[,dfgexXo%]")
# What gives a number, or the text of one, whatever it is given.
NUMBER_CALLS = {"len", "int", "float", "round", "sum", "max", "min", "abs", "hex", "prod"}
# Methods of `Console` and of `Progress`, which show one line, whatever it holds.
SENTENCES = {"note", "warning", "error", "started", "advanced"}
# Annotations of what holds no text of a stranger.
PLAIN_TYPES = {"int", "float", "bool", "None", "Sequence[int]", "Sequence[float]", "tuple[int, ...]", "list[int]"}


@dataclass(frozen=True, slots=True)
class House:
    """`quotes`: functions that make foreign text a name; `written`: functions whose results are text of the language,
    or of numbers; `numbers`: attributes that are numbers wherever they are declared."""

    quotes: Set[str]
    written: Set[str]
    numbers: Set[str]


def foreign_text(source: str, house: House) -> list[str]:
    """The expressions that may hold foreign text, in order."""
    tree = ast.parse(source)
    own = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    found: list[tuple[int, str]] = []
    for scope in [tree, *(node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.Lambda))]:
        check = _Scope(scope, House(house.quotes, house.written | own, house.numbers))
        for node in _nodes_of(scope, house.quotes):
            found += [(part.lineno, ast.unparse(part)) for part in _parts(node) if not check.is_safe(part)]
    return [text for _, text in sorted(set(found))]


def number_names(trees: list[ast.Module]) -> set[str]:
    """Attributes, properties and functions that are or give numbers wherever they are declared."""
    plain: set[str] = set()
    other: set[str] = set()
    for tree in trees:
        for name, annotation in _declared(tree):
            (plain if is_plain(annotation) else other).add(name)
    return plain - other


def is_plain(annotation: str) -> bool:
    """Whether what is annotated so holds no text of a stranger."""
    return {part.strip() for part in annotation.split("|")} <= PLAIN_TYPES


def _declared(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.returns is not None:
            yield node.name, ast.unparse(node.returns)
        elif isinstance(node, ast.ClassDef):
            for item in node.body:
                if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
                    yield item.target.id, ast.unparse(item.annotation)


def _nodes_of(scope: ast.AST, quotes: Set[str]) -> Iterator[ast.AST]:
    """Nodes of a function without those of functions inside of it, of what is quoted as a whole, and of sentences."""
    waiting = list(ast.iter_child_nodes(scope))
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.Lambda | ast.Raise) and _called(node) not in quotes | SENTENCES:
            waiting += ast.iter_child_nodes(node)


def _called(node: ast.AST) -> str:
    """The name of the function or method that a node calls."""
    function = node.func if isinstance(node, ast.Call) else None
    if isinstance(function, ast.Name):
        return function.id
    return function.attr if isinstance(function, ast.Attribute) else ""


def _parts(node: ast.AST) -> Iterator[ast.expr]:
    """Expressions that a node puts into text."""
    if isinstance(node, ast.FormattedValue):
        spec = node.format_spec
        numeric = isinstance(spec, ast.JoinedStr) and NUMERIC_FORMAT.fullmatch(
            "".join(part.value if isinstance(part, ast.Constant) else "0" for part in spec.values)
        )
        if not numeric:
            yield node.value
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) and any(map(_is_text, (node.left, node.right))):
        yield from (side for side in (node.left, node.right) if not _is_text(side))
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod) and _is_text(node.left):
        yield node.right
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "format":
        yield from (*node.args, *(keyword.value for keyword in node.keywords))


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


class _Scope:
    """What the names of one function hold."""

    def __init__(self, scope: ast.AST, house: House) -> None:
        self._house = house
        self._values: dict[str, list[ast.expr | None]] = {}
        self._asked: set[str] = set()
        if isinstance(scope, ast.FunctionDef | ast.Lambda):
            for given in (*scope.args.posonlyargs, *scope.args.args, *scope.args.kwonlyargs):
                plain = given.annotation is not None and is_plain(ast.unparse(given.annotation))
                self._values[given.arg] = [ast.Constant(0) if plain else None]
        for node in _nodes_of(scope, frozenset()):
            self._bind(node)

    def _bind(self, node: ast.AST) -> None:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                self._bind_target(target, node.value)
        elif isinstance(node, ast.AnnAssign | ast.AugAssign | ast.NamedExpr) and node.value is not None:
            self._bind_target(node.target, node.value)
        elif isinstance(node, ast.For | ast.comprehension):
            self._bind_items(node.target, node.iter)

    def _bind_target(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Name):
            self._values.setdefault(target.id, []).append(value)
        elif isinstance(target, ast.Tuple):
            several = isinstance(value, ast.Tuple) and len(value.elts) == len(target.elts)
            for k, part in enumerate(target.elts):
                self._bind_target(part, value.elts[k] if several and isinstance(value, ast.Tuple) else value)

    def _bind_items(self, target: ast.expr, items: ast.expr) -> None:
        """Names of a loop: numbers of `range` and `enumerate`, else whatever the sequence holds."""
        name = items.func.id if isinstance(items, ast.Call) and isinstance(items.func, ast.Name) else ""
        if name == "range":
            self._bind_target(target, ast.Constant(0))
        elif name == "enumerate" and isinstance(target, ast.Tuple) and isinstance(items, ast.Call):
            self._bind_target(target.elts[0], ast.Constant(0))
            self._bind_items(target.elts[1], items.args[0])
        elif name == "zip" and isinstance(target, ast.Tuple) and isinstance(items, ast.Call):
            for part, given in zip(target.elts, items.args, strict=False):
                self._bind_items(part, given)
        else:
            self._bind_target(target, items)

    def is_safe(self, node: ast.expr) -> bool:
        """Whether an expression holds no text of a stranger, or holds it as a name of the language."""
        match node:
            case ast.Constant() | ast.JoinedStr() | ast.Compare():
                return True
            case ast.UnaryOp():
                return True
            case ast.Name(id=name):
                return self._is_safe_name(name)
            case ast.Attribute(attr=attr):
                return attr in self._house.numbers or attr.isupper()
            case ast.Call():
                return self._is_safe_call(node)
            case ast.IfExp(body=body, orelse=other):
                return self.is_safe(body) and self.is_safe(other)
            case ast.BinOp(op=ast.Add(), left=left, right=right):
                return self.is_safe(left) and self.is_safe(right)
            case ast.BinOp(op=ast.Mult(), left=left, right=right):
                return self.is_safe(left) or self.is_safe(right)
            case ast.BinOp():
                return True
            case ast.BoolOp(values=parts) | ast.Tuple(elts=parts) | ast.List(elts=parts):
                return all(map(self.is_safe, parts))
            case ast.Dict(values=parts):
                return all(map(self.is_safe, parts))
            case ast.GeneratorExp(elt=inner) | ast.ListComp(elt=inner) | ast.SetComp(elt=inner):
                return self.is_safe(inner)
            case ast.DictComp(key=key, value=value):
                return self.is_safe(key) and self.is_safe(value)
            case ast.Starred(value=inner) | ast.Subscript(value=inner) | ast.NamedExpr(value=inner):
                return self.is_safe(inner)
            case _:
                return False

    def _is_safe_name(self, name: str) -> bool:
        if name.isupper() or (name.startswith("_") and name.strip("_").isupper()) or name in self._asked:
            return True
        if name not in self._values:
            return False
        self._asked.add(name)
        safe = all(value is not None and self.is_safe(value) for value in self._values[name])
        self._asked.discard(name)
        return safe

    def _is_safe_call(self, node: ast.Call) -> bool:
        function = node.func
        if isinstance(function, ast.Name):
            if function.id in ("str", "list", "tuple", "sorted", "reversed", "next", "iter", "filter", "dict"):
                return all(map(self.is_safe, node.args))
            if function.id == "map":
                return self._is_known(node.args[0]) or all(map(self.is_safe, node.args[1:]))
            return self._is_known(function)
        if isinstance(function, ast.Attribute):
            if function.attr == "join":
                return self.is_safe(node.args[0])
            if function.attr == "index":
                return True
            if function.attr in ("get", "items", "values", "splitlines", "strip", "rstrip", "capitalize", "upper"):
                return self.is_safe(function.value)
            return function.attr in self._house.quotes | self._house.written | self._house.numbers
        return False

    def _is_known(self, function: ast.expr) -> bool:
        known = self._house.quotes | self._house.written | self._house.numbers | NUMBER_CALLS
        return isinstance(function, ast.Name) and function.id in known
