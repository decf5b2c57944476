"""The source of a decorated function: its syntax tree, and places in its file for errors.

In: a Python function. Out: `Source`. Errors show the Python line with the place underlined.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, NoReturn

from relay_hw.errors import RelayHwError, UnsupportedError
from relay_hw.span import Span


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """One function: `tree` with places counted in `file`."""

    function: Callable[..., Any]
    tree: ast.FunctionDef
    file: str
    lines: tuple[str, ...]
    first_line: int
    indent: int

    def span(self, node: ast.AST) -> Span:
        """The place of a node."""
        line = getattr(node, "lineno", 1)
        return Span(
            self.file,
            line + self.first_line - 1,
            getattr(node, "col_offset", 0) + self.indent + 1,
            (getattr(node, "end_lineno", None) or line) + self.first_line - 1,
            (getattr(node, "end_col_offset", None) or 0) + self.indent + 1,
        )

    def detail(self, node: ast.AST) -> str:
        """The line of a node, the node underlined."""
        line = getattr(node, "lineno", 1)
        text = self.lines[line - 1].rstrip("\n") if line <= len(self.lines) else ""
        begin = getattr(node, "col_offset", 0) + self.indent
        is_one_line = getattr(node, "end_lineno", line) == line
        end = getattr(node, "end_col_offset", begin) + self.indent if is_one_line else len(text)
        return f"{text}\n{' ' * begin}{'^' * max(end - begin, 1)}"

    def refuse(self, node: ast.AST, message: str) -> NoReturn:
        """Raise UnsupportedError at the node."""
        raise UnsupportedError(message, self.span(node), self.detail(node))

    def place(self, error: RelayHwError, node: ast.AST) -> RelayHwError:
        """The same error with the node's span."""
        return type(error)(error.message, self.span(node), self.detail(node))


def read_source(function: Callable[..., Any]) -> Source:
    """The source of `function`. Raises UnsupportedError if Python has none, as for functions typed at a prompt."""
    try:
        lines, first = inspect.getsourcelines(function)
        file = inspect.getsourcefile(function) or "<python>"
    except (OSError, TypeError):
        raise UnsupportedError(f"source of {function.__name__} must be in a file") from None
    text = textwrap.dedent("".join(lines))
    tree = ast.parse(text).body[0]
    indent = len(lines[0]) - len(lines[0].lstrip())
    if not isinstance(tree, ast.FunctionDef):
        raise UnsupportedError(f"{function.__name__} must be a function written with def", Span(file, first))
    # Programs that carry the place must not differ from machine to machine.
    return Source(function, tree, PurePath(file).name, tuple(lines), first, indent)


def assigned_names(body: list[ast.stmt]) -> list[str]:
    """The names that statements bind or change, in order of appearance; not those of functions in them."""
    found: dict[str, None] = {}

    def target(node: ast.expr) -> None:
        match node:
            case ast.Name(id=name):
                found[name] = None
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                for part in parts:
                    target(part)
            case _:
                pass

    for statement in body:
        match statement:
            case ast.Assign(targets=targets):
                for one in targets:
                    target(one)
            case ast.AugAssign(target=one) | ast.AnnAssign(target=one):
                target(one)
            case ast.For(target=one, body=inner):
                target(one)
                found.update(dict.fromkeys(assigned_names(inner)))
            case ast.While(body=inner):
                found.update(dict.fromkeys(assigned_names(inner)))
            case ast.If(body=then, orelse=other):
                found.update(dict.fromkeys([*assigned_names(then), *assigned_names(other)]))
            case ast.FunctionDef(name=name):
                found[name] = None
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="append"))):
                found[name] = None
            case ast.Expr(value=ast.Call(func=ast.Attribute(attr="update_model_params"), args=[ast.Name(id=name), *_])):
                found[name] = None
            case _:
                pass
    return list(found)


def captured_and_changed(node: ast.FunctionDef, around: ast.FunctionDef) -> str | None:
    """A variable of `around` that `node` reads and that is assigned more than once: Python reads its last value."""
    stored = [
        name.id for name in ast.walk(around) if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)
    ] + [argument.arg for argument in around.args.args]
    own = {*assigned_names(node.body), *(argument.arg for argument in node.args.args)}
    for name in ast.walk(node):
        if isinstance(name, ast.Name) and name.id not in own and stored.count(name.id) > 1:
            return name.id
    return None


def has_jump(body: list[ast.stmt], is_loop: bool = False) -> bool:
    """Whether statements leave by return, or by break or continue of a loop around them."""
    for statement in body:
        match statement:
            case ast.Return():
                return True
            case ast.Break() | ast.Continue():
                if not is_loop:
                    return True
            case ast.If(body=then, orelse=other):
                if has_jump(then, is_loop) or has_jump(other, is_loop):
                    return True
            case ast.For(body=inner) | ast.While(body=inner):
                if has_jump(inner, True):
                    return True
            case _:
                pass
    return False


def has_return(body: list[ast.stmt]) -> bool:
    """Whether statements contain a return, also in loops."""
    return has_jump(body, True)


def always_jumps(body: list[ast.stmt]) -> bool:
    """Whether control never reaches the end of the statements."""
    match body[-1] if body else None:
        case ast.Return() | ast.Break() | ast.Continue():
            return True
        case ast.If(body=then, orelse=other):
            return always_jumps(then) and always_jumps(other)
        case _:
            return False
