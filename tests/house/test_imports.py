"""The import arrows of ARCHITECTURE.md: a room imports only the rooms that this table allows."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

from tests.house.sources import ROOT, nodes_of

# Lowest first. A room may import itself, the rooms before it in its line of the table, and nothing else of ours.
BASE = {"relay_hw.errors", "relay_hw.limits", "relay_hw.span"}
# Knows nothing of us, and whoever reads, writes or runs what is not ours needs it.
FOREIGN = {"relay_hw.support"}
# The rooms of tensorize, in the order in which a function walks through them.
STAGES = ("match", "tiles", "lower", "schedule", "emit")
# The walk itself, which no room may call.
WALK = {f"relay_hw.tensorize.{name}" for name in ("compile", "refine", "packing")}
ISA = {"relay_hw.accel.isa"}
TENSORS = BASE | ISA | {"relay_hw.ir", "relay_hw.op", "relay_hw.tensorize"}
ALLOWED: dict[str, set[str]] = {
    "relay_hw.support": set(),
    "relay_hw.accel": set(),
    "relay_hw.accel.isa": set(),
    "relay_hw.accel.sim": ISA,
    "relay_hw.accel.rtl": set(),
    "relay_hw.accel.fpga": ISA | {"relay_hw.accel.sim"},
    # Files of the folder itself: what all its rooms share, and the walk through them.
    "relay_hw.tensorize": TENSORS | {f"relay_hw.tensorize.{room}" for room in STAGES},
    **{
        f"relay_hw.tensorize.{room}": TENSORS | {f"relay_hw.tensorize.{one}" for one in STAGES[:at]}
        for at, room in enumerate(STAGES)
    },
    "relay_hw.span": set(),
    "relay_hw.errors": {"relay_hw.span"},
    "relay_hw.limits": {"relay_hw.errors", "relay_hw.span"},
    "relay_hw.ir": BASE,
    "relay_hw.op": BASE | {"relay_hw.ir"},
    "relay_hw.analysis": BASE | {"relay_hw.ir", "relay_hw.op"},
    "relay_hw.interp": BASE | {"relay_hw.ir", "relay_hw.op", "relay_hw.analysis"},
    "relay_hw.text": BASE | {"relay_hw.ir", "relay_hw.op", "relay_hw.analysis"},
    "relay_hw.prelude": BASE | {"relay_hw.ir", "relay_hw.op", "relay_hw.analysis", "relay_hw.interp", "relay_hw.text"},
    "relay_hw.dataflow_pattern": BASE | {"relay_hw.ir", "relay_hw.op", "relay_hw.analysis"},
    "relay_hw.transform": BASE
    | {"relay_hw.ir", "relay_hw.op", "relay_hw.analysis", "relay_hw.interp", "relay_hw.dataflow_pattern"},
    "relay_hw.quantize": BASE
    | {"relay_hw.ir", "relay_hw.op", "relay_hw.analysis", "relay_hw.interp", "relay_hw.transform"},
    # Its Python half runs what it translates.
    "relay_hw.frontend": BASE
    | {"relay_hw.ir", "relay_hw.op", "relay_hw.analysis", "relay_hw.interp", "relay_hw.prelude"}
    | {"relay_hw.transform", "relay_hw.backend"},
    "relay_hw.backend": BASE
    | {"relay_hw.ir", "relay_hw.op", "relay_hw.analysis", "relay_hw.interp", "relay_hw.transform"},
    "relay_hw.target": BASE
    | {"relay_hw.ir", "relay_hw.op", "relay_hw.analysis", "relay_hw.transform", "relay_hw.report"}
    | {"relay_hw.accel.isa", "relay_hw.accel.sim", "relay_hw.accel.fpga", "relay_hw.tensorize"}
    | {f"relay_hw.tensorize.{room}" for room in STAGES},
    "relay_hw.qnn": BASE | {"relay_hw.op", "relay_hw.transform"},
    "relay_hw.report": BASE | ISA | {"relay_hw.accel.sim"},
}
# The rooms that see everything but these, which lie above them.
ABOVE: dict[str, set[str]] = {
    "relay_hw.runtime": {"relay_hw.compare", "relay_hw.explore", "relay_hw.cli", "relay_hw.compat"},
    "relay_hw.compare": {"relay_hw.explore", "relay_hw.cli", "relay_hw.compat"},
    "relay_hw.explore": {"relay_hw.cli", "relay_hw.compat"},
    "relay_hw.cli": {"relay_hw.compat"},
    "relay_hw.compat": {"relay_hw.cli"},
    "relay_hw.demo": {"relay_hw.compare", "relay_hw.cli", "relay_hw.compat"},
    "relay_hw.build_module": {"relay_hw.cli", "relay_hw.compat"},
    "relay_hw": {"relay_hw.cli", "relay_hw.compat"},
}


def room_of(module: str) -> str:
    """The longest name of a room that a dotted module name begins with; else two components."""
    rooms = [room for room in ALLOWED if f"{module}.".startswith(f"{room}.")]
    return max(rooms, key=len, default=".".join(module.split(".")[:2]))


@cache
def imports_of(path: Path) -> set[str]:
    """Absolute names of our modules that the file imports, wherever in the file."""
    found: set[str] = set()
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports must be absolute"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return {name for name in found if name.split(".")[0] in ("relay_hw", "tensorize", "accel")}


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    return name if name.split(".")[0] == "relay_hw" else f"relay_hw.{name}"


SOURCES = sorted(p for top in ("relay_hw", "tensorize", "accel") for p in (ROOT / top).rglob("*.py"))


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT)))
def test_a_room_imports_only_lower_rooms(path: Path) -> None:
    room = room_of(module_name(path))
    if room in ABOVE:
        upward = {name for name in imports_of(path) if room_of(name) in ABOVE[room]}
        assert not upward, f"{path.relative_to(ROOT)} imports {', '.join(sorted(upward))}, which lies above"
        return
    assert room in ALLOWED, f"{room} is a new room: give it a line in ARCHITECTURE.md and in this table"
    for name in imports_of(path):
        target = room_of(name)
        assert target == room or target in ALLOWED[room] | FOREIGN, f"{path.relative_to(ROOT)} imports {name}"


def test_tvm_is_imported_by_its_backend_alone() -> None:
    for path in SOURCES:
        if "backend" in path.parts:
            continue
        for node in nodes_of(path):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not any(name.split(".")[0] in ("tvm", "tvm_ffi") for name in names), f"{path} imports tvm"


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT)))
def test_folders_beside_the_package_are_imported_through_it(path: Path) -> None:
    """By their own names they would be second modules, whose classes differ."""
    assert not [name for name in imports_of(path) if name.split(".")[0] in ("accel", "tensorize")]


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT)))
def test_no_room_of_tensorize_calls_the_walk(path: Path) -> None:
    if room_of(module_name(path)) in {f"relay_hw.tensorize.{room}" for room in STAGES}:
        assert not {name.rsplit(".", 1)[0] for name in imports_of(path)} & WALK
