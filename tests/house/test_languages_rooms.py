"""The rooms of the language know no accelerator: neither its modules, also by name, nor its operators or sizes."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from relay_hw.accel.isa.config import config_names
from tests.house.sources import ROOT, nodes_of

ROOMS = ("ir", "text", "op", "analysis", "interp", "transform", "quantize")
ROOMS += ("frontend", "backend", "prelude", "dataflow_pattern")
# Modules of the accelerator and of what compiles for it, and the first part of its operators' names.
OURS = re.compile(r"(?<![\w.])(relay_hw\.(accel|tensorize|target)|accel|tensorize)(?!\w)")
# "default" is a word of many.
SIZES = frozenset(config_names()) - {"default"}


def imported(node: ast.AST) -> Iterator[str]:
    """Dotted names that a statement imports, or that an expression reads."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        yield from (f"{node.module}.{alias.name}" for alias in node.names)
    elif isinstance(node, ast.Attribute):
        yield ast.unparse(node)


def known(nodes: Iterable[ast.AST]) -> list[str]:
    """What of the accelerator a file names, and in which line."""
    found = []
    for node in nodes:
        names = [name for name in imported(node) if OURS.match(name)]
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            names += [match.group() for match in OURS.finditer(node.value)]
            names += [node.value] if node.value in SIZES else []
        found += [f"{getattr(node, 'lineno', 0)}: {name}" for name in names]
    return found


SOURCES = sorted(path for room in ROOMS for path in (ROOT / "relay_hw" / room).rglob("*.py"))
PROGRAMS = sorted(path for room in ROOMS for path in (ROOT / "relay_hw" / room).rglob("*.relay"))


def test_every_room_has_files() -> None:
    assert {path.relative_to(ROOT / "relay_hw").parts[0] for path in SOURCES} == set(ROOMS)


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_room_of_the_language_knows_no_accelerator(path: Path) -> None:
    assert known(nodes_of(path)) == []


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_prelude_knows_no_accelerator(path: Path) -> None:
    assert not OURS.search(path.read_text())


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("from relay_hw.accel.isa import config", "relay_hw.accel.isa.config"),
        ("def late() -> None:\n    import relay_hw.tensorize.compile", "relay_hw.tensorize.compile"),
        ("from relay_hw import target", "relay_hw.target"),
        ("import relay_hw\nrelay_hw.target.registry", "relay_hw.target.registry"),
        ("import accel.isa", "accel.isa"),
        ("import_module('relay_hw.accel.isa')", "relay_hw.accel"),
        ("import_module(f'relay_hw.tensorize.{name}')", "relay_hw.tensorize"),
        ("make('accel.conv2d', ())", "accel"),
        ("name.startswith('accel.')", "accel"),
        ("{'Compiler': 'accel'}", "accel"),
        ("reason = 'it must be read by one accel.conv2d'", "accel"),
        ("load_config('ecp5x2')", "ecp5x2"),
    ],
)
def test_what_is_found(source: str, name: str) -> None:
    assert [one.split(": ")[1] for one in known(ast.walk(ast.parse(source)))][:1] == [name]


@pytest.mark.parametrize(
    "source", ["from relay_hw.op import fixed", "'an accelerator'", "make('fixed.add', ())", "self.target", "'target'"]
)
def test_what_is_not(source: str) -> None:
    assert known(ast.walk(ast.parse(source))) == []
