"""What outlives a process is put in its place by support/durable.py alone; what others write is in no place yet."""

from __future__ import annotations

import ast

import pytest

from tests.house.sources import calls_of
from tests.house.test_names_are_data import SOURCES, trees

OWN = "relay_hw/support/durable.py"
MOVES = {"os.rename", "os.replace", "os.renames", "os.link", "os.symlink", "shutil.move", "tempfile.mkstemp",
         "tempfile.mkdtemp", "tempfile.NamedTemporaryFile"}  # fmt: skip
# Files that write with their own hands, with the reason why nobody meets a half.
WRITERS = {
    "relay_hw/runtime/module.py": "in a new folder",
    "relay_hw/runtime/deploy/__init__.py": "in a new folder",
    "relay_hw/runtime/artifact.py": "in a new folder",
    "relay_hw/cli/fpga.py": "in a new folder",
    "relay_hw/backend/native/library.py": "in a temporary folder",
    "relay_hw/backend/tvm/gpu.py": "in the new folder of a build",
    "accel/fpga/flow.py": "in a stage, which is marked when it is done",
    "accel/fpga/route.py": "in a stage, which is marked when it is done",
    "accel/fpga/synth.py": "in a stage, which is marked when it is done",
    "accel/fpga/tools.py": "in a stage, which is marked when it is done",
    "accel/fpga/vendor/estimate.py": "in a stage, which is marked when it is done",
    "accel/fpga/sim/activity.py": "in a new folder",
    "accel/fpga/sim/board.py": "in a new folder",
    "accel/fpga/sim/netlist.py": "in a temporary folder",
    "accel/isa/gen_verilog.py": "a source, renewed by hand",
    "accel/isa/gen_timing.py": "a source, renewed by hand",
    "accel/isa/gen_docs.py": "a source, renewed by hand",
    "accel/sim/rtl_model.py": "emptied before the simulator writes waves there",
    "accel/sim/verilator.py": "in a new folder",
    "accel/sim/result_cache.py": "a lock, which is empty",
    "accel/sim/bench/bench_acc_mem.py": "the bytes of a memory",
    "accel/sim/bench/runner.py": "in a folder of a test",
    "relay_hw/compare/store.py": "into memory",
    "relay_hw/vta/board.py": "on a board, without this package",
    "relay_hw/runtime/untrusted.py": "in a temporary folder",
}


def moves(tree: ast.AST) -> list[str]:
    """Calls that put something into its place, or make a temporary file that stays."""
    found: list[str] = []
    for name, node in calls_of(tree):
        if not isinstance(node.func, ast.Attribute):
            continue
        # Strings replace one text by another: two arguments.
        is_path = node.func.attr in ("rename", "replace", "hardlink_to", "symlink_to") and len(node.args) == 1
        if name in MOVES or (is_path and not node.keywords and not name.startswith(("durable.", "dataclasses."))):
            found.append(name)
    return found


def writes(tree: ast.AST) -> bool:
    """Whether a module writes files with its own hands."""
    for name, node in calls_of(tree):
        modes = [*node.args, *(keyword.value for keyword in node.keywords if keyword.arg == "mode")]
        given = {mode.value for mode in modes if isinstance(mode, ast.Constant) and isinstance(mode.value, str)}
        is_open = name.split(".")[-1] == "open" and given & {"w", "wb", "a", "ab", "x", "xb", "r+", "r+b", "w+b"}
        archive = name.startswith(("tarfile.", "zipfile.", "archive."))
        if (is_open and not archive) or name.endswith((".write_text", ".write_bytes", ".touch")):
            return True
        if name in ("np.save", "np.savez", "np.savez_compressed", "shutil.copyfile", "shutil.copy", "shutil.copy2"):
            return True
    return False


# Who starts programs without support/child.py, with the reason why none of them outlives this process for long.
STARTERS = {
    "relay_hw/support/child.py": "the rule itself",
    "accel/sim/verilator.py": "--version",
    "accel/fpga/tools.py": "--version",
    "accel/fpga/sim/board.py": "a board, which ends with its standard input",
    "relay_hw/cli/doctor.py": "--version",
}


def starts(tree: ast.AST) -> bool:
    """Whether a module starts programs with its own hands."""
    names = {name for name, _ in calls_of(tree)}
    modules = ("subprocess.", "os.spawn", "os.exec", "os.system", "os.popen", "os.posix_spawn")
    return any(name.startswith(modules) and name != "subprocess.CompletedProcess" for name in names)


def test_who_starts_programs_is_known() -> None:
    assert {path for path, tree in trees().items() if starts(tree)} == STARTERS.keys()
    assert starts(ast.parse("subprocess.run(x)")) and not starts(ast.parse("run_child(x)"))


@pytest.mark.parametrize("path", sorted(SOURCES))
def test_one_module_puts_things_in_their_place(path: str) -> None:
    assert path == OWN or moves(trees()[path]) == []


def test_who_writes_is_known() -> None:
    found = {path for path, tree in trees().items() if writes(tree)} - {OWN}
    assert found - WRITERS.keys() == set()
    assert WRITERS.keys() - found == set(), "no longer needed"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("os.rename(a, b)", ["os.rename"]),
        ("os.replace(a, b)", ["os.replace"]),
        ("path.rename(other)", ["path.rename"]),
        ("path.replace(other)", ["path.replace"]),
        ("tempfile.mkdtemp(dir=folder)", ["tempfile.mkdtemp"]),
        ("text.replace('a', 'b')", []),
        ("replace(row, name='x')", []),
        ("durable.rename(a, b)", []),
    ],
)
def test_what_puts_something_in_its_place(text: str, found: list[str]) -> None:
    assert moves(ast.parse(text)) == found


@pytest.mark.parametrize("text", ["path.write_text('')", "open(p, 'w')", "path.open('wb')", "np.savez(s)", "p.touch()"])
def test_what_writes(text: str) -> None:
    assert writes(ast.parse(text)) and not writes(ast.parse("path.read_text(); open(p); path.open('rb')"))
