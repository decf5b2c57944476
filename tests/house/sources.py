"""Our Python files as syntax trees, each read once for all tests of the house."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]


@cache
def tree_of(path: Path) -> ast.Module:
    """The file's syntax tree. Nobody may change it."""
    return ast.parse(path.read_text())


@cache
def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    """All nodes of the tree, as `ast.walk` gives them."""
    return tuple(ast.walk(tree_of(path)))


@cache
def calls_of(tree: ast.AST) -> tuple[tuple[str, ast.Call], ...]:
    """All calls of a tree, each with the text of what is called."""
    return tuple((ast.unparse(node.func), node) for node in ast.walk(tree) if isinstance(node, ast.Call))
