"""The import arrows of ARCHITECTURE.md: a room imports only the rooms that this table allows."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.house.arrows import MODULES, SOURCES, Arrow, How, arrows, arrows_of, module_name, module_of
from tests.house.sources import ROOT, nodes_of

# Lowest first. A room may import itself, the rooms before it in its line of the table, and nothing else of ours.
BASE = {"relay_hw.errors", "relay_hw.limits", "relay_hw.rounding", "relay_hw.span"}
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
    "relay_hw.tensorize": TENSORS | {f"relay_hw.tensorize.{room}" for room in (*STAGES, "validate")},
    **{
        f"relay_hw.tensorize.{room}": TENSORS | {f"relay_hw.tensorize.{one}" for one in STAGES[:at]}
        for at, room in enumerate(STAGES)
    },
    # Stands apart from the stages, whose work it proves.
    "relay_hw.tensorize.validate": TENSORS,
    "relay_hw.rounding": set(),
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
    # What a stranger would see, and no part of our own accelerator.
    "relay_hw.vta": BASE
    | {"relay_hw.ir", "relay_hw.op", "relay_hw.transform", "relay_hw.dataflow_pattern", "relay_hw.target"},
    "relay_hw.qnn": BASE | {"relay_hw.op", "relay_hw.transform"},
    "relay_hw.report": BASE | ISA | {"relay_hw.accel.sim"},
    "relay_hw.sweep": BASE | ISA,
}
# What shows results to people, above all that computes them.
SHOWS = {"relay_hw.explore", "relay_hw.mcp", "relay_hw.cli", "relay_hw.compat"}
# The rooms that see everything but these, which lie above them.
ABOVE: dict[str, set[str]] = {
    "relay_hw.runtime": {"relay_hw", "relay_hw.build_module", "relay_hw.compare", "relay_hw.demo", *SHOWS},
    "relay_hw.compare": {"relay_hw.build_module", "relay_hw.demo", *SHOWS},
    "relay_hw.explore": {"relay_hw.build_module", "relay_hw.demo", "relay_hw.mcp", "relay_hw.cli", "relay_hw.compat"},
    "relay_hw.demo": {"relay_hw.build_module", "relay_hw.compare", *SHOWS},
    "relay_hw.build_module": {"relay_hw.compare", "relay_hw.demo", *SHOWS},
    "relay_hw.mcp": {"relay_hw.build_module", "relay_hw.compare", "relay_hw.demo", *SHOWS} - {"relay_hw.mcp"},
    "relay_hw.cli": {"relay_hw.compat"},
    "relay_hw.compat": {"relay_hw.cli"},
    "relay_hw": {"relay_hw.cli"},
}
# What nodes offer by means of rooms above them (`x + y`, `mod.astext()`), and gradients by means of the operators that
# are built with them: these modules are loaded when a user asks for the service.
LATE: dict[str, set[str]] = {
    "relay_hw.ir.expr": {"relay_hw.op", "relay_hw.text"},
    "relay_hw.ir.module": {"relay_hw.prelude", "relay_hw.text"},
    "relay_hw.op.gradients.accumulate": {"relay_hw.analysis.infer"},
    "relay_hw.op.gradients.common": {"relay_hw.op"},
}


def room_of(module: str) -> str:
    """The longest name of a room that a dotted module name begins with; else two components."""
    rooms = [room for room in ALLOWED if f"{module}.".startswith(f"{room}.")]
    return max(rooms, key=len, default=".".join(module.split(".")[:2]))


def breaches(own: str, found: Iterable[Arrow]) -> list[str]:
    """What the file of module `own` names and may not see, a sentence for each."""
    room = room_of(own)
    assert room in {*ABOVE, *ALLOWED}, f"{room} is a new room: it needs a line in ARCHITECTURE.md and in this table"

    def may(target: str) -> bool:
        return target not in ABOVE[room] if room in ABOVE else target == room or target in ALLOWED[room] | FOREIGN

    seen = (arrow for arrow in found if arrow.how is not How.LATE and not may(room_of(arrow.name)))
    return sorted(f"{own} {arrow.how.value} {arrow.name}" for arrow in seen)


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT)))
def test_a_room_imports_only_lower_rooms(path: Path) -> None:
    assert breaches(module_name(path), arrows_of(path)) == []


@pytest.mark.parametrize(
    ("own", "source", "name"),
    [
        ("runtime.ports", "from relay_hw.cli import console", "imports relay_hw.cli.console"),
        ("runtime.ports", "def late_one():\n    import relay_hw.cli.main", "imports relay_hw.cli.main"),
        ("runtime.ports", "import_module('relay_hw.compare.main')", "names in a string relay_hw.compare.main"),
        ("runtime.ports", "run([sys.executable, '-m', 'relay_hw.cli'])", "names in a string relay_hw.cli"),
        ("runtime.ports", "run('python -m relay_hw.cli.main doctor')", "names in a string relay_hw.cli.main"),
        ("runtime.ports", "load('relay_hw.cli.main:main')", "names in a string relay_hw.cli.main"),
        ("runtime.ports", "HOME = ('demo',)\nimport_module(f'relay_hw.{name}')", "names in a string relay_hw.demo"),
        ("ir.expr", "HOME = {'x': 'relay_hw.op'}", "names in a string relay_hw.op"),
        ("ir.expr", "if TYPE_CHECKING:\n    import relay_hw.text", "imports, for types alone, relay_hw.text"),
        ("tensorize.tiles.cost", "import relay_hw.tensorize.emit", "imports relay_hw.tensorize.emit"),
        ("explore.main", "from relay_hw import compat", "imports relay_hw.compat"),
    ],
)
def test_what_is_refused(own: str, source: str, name: str) -> None:
    own = f"relay_hw.{own}"
    assert breaches(own, arrows(ast.walk(ast.parse(source)), own)) == [f"{own} {name}"]


@pytest.mark.parametrize(
    ("own", "source"),
    [
        ("runtime.ports", "from relay_hw.target import records"),
        ("runtime.ports", "name = 'relay_hw.h'; other = 'see relay_hw.cli'; group = 'relay_hw.targets'"),
        ("quantize", "HOME = {'x': 'main'}\nimport_module(f'{__name__}.{HOME[name]}')"),
    ],
)
def test_what_is_allowed(own: str, source: str) -> None:
    own = f"relay_hw.{own}"
    assert breaches(own, arrows(ast.walk(ast.parse(source)), own)) == []


def test_names_that_are_put_together_are_found() -> None:
    source = "HOME = {'x': 'main'}\nimport_module(f'{__name__}.{HOME[name]}')"
    found = arrows(ast.walk(ast.parse(source)), "relay_hw.quantize")
    assert found == {Arrow("relay_hw.quantize.main", How.TEXT)}


def test_what_is_bound_late_is_listed() -> None:
    found = {own: {one.name for one in arrows_of(path) if one.how is How.LATE} for own, path in MODULES.items()}
    assert {own: names for own, names in found.items() if names} == LATE
    binding = Arrow("relay_hw.ir.lazy_import.lazy_import", How.IMPORT)
    users = {own for own, path in MODULES.items() if binding in arrows_of(path)}
    assert users == set(LATE), "lazy_import must be called with the name of a module"


def test_commands_of_the_package_are_those_of_the_command_line() -> None:
    section = (ROOT / "pyproject.toml").read_text().split("[project.scripts]")[1].split("\n[")[0]
    scripts = re.findall(r'= "(relay_hw[\w.]*):\w+"', section)
    assert scripts == ["relay_hw.cli.main"] and module_of(scripts[0]) == scripts[0]


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
    assert not [arrow for arrow in arrows_of(path) if arrow.name.split(".")[0] in ("accel", "tensorize")]


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT)))
def test_no_room_of_tensorize_calls_the_walk(path: Path) -> None:
    if room_of(module_name(path)) in {f"relay_hw.tensorize.{room}" for room in STAGES}:
        assert not {module_of(arrow.name) for arrow in arrows_of(path)} & WALK
