"""What a file imports of ours, in every way that Python has; and the circles that files make.

In: syntax trees. Out: arrows to modules; groups of files that reach each other.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache
from pathlib import Path

from tests.house.sources import ROOT, nodes_of

TOPS = ("relay_hw", "tensorize", "accel")
SOURCES = sorted(path for top in TOPS for path in (ROOT / top).rglob("*.py"))
# A module as text, with an attribute or without: `relay_hw.cli`, `relay_hw.cli.main:main`.
_NAME = re.compile(r"(relay_hw(?:\.\w+)+)(?::\w+)?")
# A module that a command line runs.
_RUN = re.compile(r"(?:^|\s)-m\s+(relay_hw(?:\.\w+)*)")


class How(Enum):
    """In which way a file names a module."""

    IMPORT = "imports"
    TYPE = "imports, for types alone,"
    TEXT = "names in a string"
    LATE = "binds late"


@dataclass(frozen=True, slots=True)
class Arrow:
    """A file names `name`: a module of ours, or something in one."""

    name: str
    how: How


def module_name(path: Path) -> str:
    """The dotted name under which the file is imported."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    return name if name.split(".")[0] == "relay_hw" else f"relay_hw.{name}"


MODULES = {module_name(path): path for path in SOURCES}


def module_of(name: str) -> str | None:
    """The module that `name` is, or is in; None where none of ours is."""
    while name and name not in MODULES:
        name = name.rpartition(".")[0]
    return name or None


def arrows(nodes: Iterable[ast.AST], own: str) -> set[Arrow]:
    """All arrows of the file of module `own`: imports anywhere in it, and strings that name a module.

    A string counts by itself, as part of a command line, or as the end of an f-string that begins with a package.
    """
    nodes = tuple(nodes)
    typed = {id(part) for node in nodes if _is_for_types(node) for one in node.body for part in ast.walk(one)}
    late = {id(node.args[0]) for node in nodes if _is_late(node)}
    found: set[Arrow] = set()
    for node in nodes:
        found |= {Arrow(name, How.TYPE if id(node) in typed else How.IMPORT) for name in _imported(node, own)}
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            how = How.LATE if id(node) in late else How.TEXT
            found |= {Arrow(name, how) for name in _named(node.value)}
    words = {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    words -= {"__main__"}
    for package in {package for node in nodes for package in _begun(node, own)}:
        found |= {Arrow(f"{package}.{word}", How.TEXT) for word in words if f"{package}.{word}" in MODULES}
    return found


@cache
def arrows_of(path: Path) -> frozenset[Arrow]:
    """All arrows of a file."""
    return frozenset(arrows(nodes_of(path), module_name(path)))


def _is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test).split(".")[-1] == "TYPE_CHECKING"


def _is_late(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "lazy_import"


def _imported(node: ast.AST, own: str) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names if alias.name.split(".")[0] in TOPS)
    elif isinstance(node, ast.ImportFrom):
        assert node.level == 0 and node.module, f"{own}: imports must be absolute"
        if node.module.split(".")[0] in TOPS:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _named(text: str) -> Iterator[str]:
    whole = _NAME.fullmatch(text)
    names = [whole[1]] if whole else _RUN.findall(text)
    # What is in no module of ours is the name of something else: a file, a logger, a group of entry points.
    yield from (name for name in names if module_of(name) not in (None, "relay_hw"))


def _begun(node: ast.AST, own: str) -> Iterator[str]:
    """The package whose module is put together: `f"relay_hw.cli.{name}"`, `f"{__name__}.{name}"`."""
    if not isinstance(node, ast.JoinedStr):
        return
    head = ast.unparse(node)[2:-1].replace("{__name__}", own)
    begun = re.match(r"(relay_hw(?:\.\w+)*)\.\{", head)
    if begun and begun[1] in MODULES:
        yield begun[1]


def file_arrows(hows: frozenset[How]) -> dict[str, set[str]]:
    """For each module, the other modules that its file names in one of these ways.

    A string that names the package around the file is no arrow: that package is loaded before, and has its data.
    """
    graph: dict[str, set[str]] = {}
    for own, path in MODULES.items():
        around = {Arrow(name, How.TEXT) for name in MODULES if own.startswith(f"{name}.")}
        ends = {module_of(arrow.name) for arrow in arrows_of(path) - around if arrow.how in hows}
        graph[own] = {end for end in ends if end is not None} - {own}
    return graph


def circles(graph: Mapping[str, set[str]]) -> set[frozenset[str]]:
    """Groups of at least two that reach each other."""
    core = {node: set(ends) for node, ends in graph.items()}
    while True:
        reached = set[str]().union(*core.values())
        kept = {node for node, ends in core.items() if ends and node in reached}
        if len(kept) == len(core):
            break
        core = {node: core[node] & kept for node in kept}
    reach = {node: _reach(core, node) for node in core}
    groups = {frozenset(other for other in reach[node] if node in reach[other]) for node in core}
    return {group for group in groups if len(group) > 1}


def _reach(graph: Mapping[str, set[str]], start: str) -> set[str]:
    found, waiting = set[str](), [start]
    while waiting:
        new = graph.get(waiting.pop(), set()) - found
        found |= new
        waiting += new
    return found
