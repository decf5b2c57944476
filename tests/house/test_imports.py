"""The import arrows of ARCHITECTURE.md: a room imports only the rooms that this table allows."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# Lowest first. A room may import itself, the rooms before it in its line of the table, and nothing else of ours.
BASE = {"relay_hw.errors", "relay_hw.limits", "relay_hw.span"}
# They know nothing of us, and whoever reads, writes or runs what is not ours needs them.
FOREIGN = {"accel.child", "accel.documents", "accel.durable", "accel.quote"}
ALLOWED: dict[str, set[str]] = {
    **{room: set[str]() for room in FOREIGN},
    "accel.isa": set(),
    "accel.sim": {"accel.isa"},
    "accel.rtl": set(),
    "accel.fpga": {"accel.isa", "accel.sim"},
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
    | {"accel.isa", "accel.sim", "accel.fpga", "tensorize"},
    "relay_hw.qnn": BASE | {"relay_hw.op", "relay_hw.transform"},
    "relay_hw.report": BASE | {"accel.sim"},
    "tensorize": BASE | {"relay_hw.ir", "relay_hw.op", "accel.isa"},
}
# The rooms that see everything but these, which lie above them.
ABOVE: dict[str, set[str]] = {
    "relay_hw.runtime": {"relay_hw.compare", "relay_hw.cli", "relay_hw.compat"},
    "relay_hw.compare": {"relay_hw.cli", "relay_hw.compat"},
    "relay_hw.cli": {"relay_hw.compat"},
    "relay_hw.compat": {"relay_hw.cli"},
    "relay_hw.build_module": {"relay_hw.cli", "relay_hw.compat"},
    "relay_hw": {"relay_hw.cli", "relay_hw.compat"},
}


def room_of(module: str) -> str:
    """The room of a dotted module name: two components, but one for `tensorize`."""
    parts = module.split(".")
    return parts[0] if parts[0] == "tensorize" else ".".join(parts[:2])


def imports_of(path: Path) -> set[str]:
    """Absolute names of our modules that the file imports, wherever in the file."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports must be absolute"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return {name for name in found if name.split(".")[0] in ("relay_hw", "tensorize", "accel")}


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


SOURCES = sorted(p for top in ("relay_hw", "tensorize", "accel") for p in (ROOT / top).rglob("*.py"))


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT)))
def test_a_room_imports_only_lower_rooms(path: Path) -> None:
    room = room_of(module_name(path))
    if room == "accel":
        return
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
        for node in ast.walk(ast.parse(path.read_text())):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not any(name.split(".")[0] in ("tvm", "tvm_ffi") for name in names), f"{path} imports tvm"
