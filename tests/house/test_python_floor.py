"""Nothing is imported that Python 3.10, the oldest that is supported, does not have."""

from __future__ import annotations

import ast

import pytest

from tests.house.sources import ROOT, tree_of

FOLDERS = ("relay_hw", "tensorize", "accel", "scripts", "tests", "examples")
# What came with 3.11, 3.12 and 3.13, as far as a package like this would want it.
LATER = {
    "typing": {"assert_never", "assert_type", "LiteralString", "Never", "NotRequired", "override", "Required",
               "reveal_type", "Self", "TypeVarTuple", "Unpack"},
    "enum": {"EnumCheck", "ReprEnum", "StrEnum", "member", "nonmember", "verify"},
    "datetime": {"UTC"},
    "itertools": {"batched"},
    "contextlib": {"chdir"},
    "hashlib": {"file_digest"},
    "asyncio": {"Runner", "TaskGroup", "timeout"},
    "tomllib": {"load", "loads"},
}  # fmt: skip
MODULES = ("tomllib",)


def later_names(tree: ast.AST) -> list[str]:
    """Imports and attributes of modules that 3.10 lacks; in a branch that asks for the version they are allowed."""
    guarded = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If | ast.Try)
        for inner in ast.walk(node)
    }  # fmt: skip
    found: list[str] = []
    for node in ast.walk(tree):
        if id(node) in guarded:
            continue
        if isinstance(node, ast.ImportFrom) and node.module in LATER:
            found += [f"{node.module}.{alias.name}" for alias in node.names if alias.name in LATER[node.module]]
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in LATER:
            found += [f"{node.value.id}.{node.attr}"] if node.attr in LATER[node.value.id] else []
        elif isinstance(node, ast.Import):
            found += [alias.name for alias in node.names if alias.name in MODULES]
    return found


@pytest.mark.parametrize("folder", FOLDERS)
def test_names_that_the_oldest_python_has(folder: str) -> None:
    files = sorted((ROOT / folder).rglob("*.py"))
    assert files
    wrong = {str(path.relative_to(ROOT)): later_names(tree_of(path)) for path in files}
    assert {path: names for path, names in wrong.items() if names} == {}


def test_what_is_found() -> None:
    text = "from typing import Any, Self\nimport enum\nclass A(enum.StrEnum): pass\nimport tomllib\n"
    assert later_names(ast.parse(text)) == ["typing.Self", "tomllib", "enum.StrEnum"]
    assert later_names(ast.parse("try:\n    import tomllib\nexcept ImportError:\n    import tomli")) == []
