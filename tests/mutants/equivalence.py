"""Whether a mutant that every trial passes does the same: yosys compares the module with and without it.

In: a mutant. Out: a proof for runs of any length, or none. Registers of both modules that have one name are taken as
equal, and yosys shows by induction that they stay so and that every output is equal, whatever the inputs are. What is
undefined counts as zero. It must hold in every shape that instances of the module have in the mutant's
configuration, but that memories are small.
"""

from __future__ import annotations

import json
import re
import shutil
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from typing_extensions import assert_never

from relay_hw.accel.fpga.parts import FlowError
from relay_hw.accel.fpga.tools import run_yosys
from relay_hw.accel.sim.verilator import RTL_DIR
from scripts.formal import needed
from tests.mutants.alone import Fate, at_most, broken_bench, broken_property, mutated
from tests.mutants.build import INCLUDE, SHAPES_AND_SAMPLE, TOP, Mutant, module_text, sites_of, sources

# Steps of the induction.
DEPTH = 4
PREPARE = ("proc", "memory_map", "flatten", "setundef -zero", "opt -full", "clean")
# Modules that hold units: too much for a proof.
LARGE = ("vta_top", "vta_core", "vta_exec", "vta_scratchpads")
# Parameters that make memories small: nothing depends on how many words there are.
SMALL = {"ACC_DEPTH": 16, "INP_DEPTH": 32, "WGT_DEPTH": 8, "OUT_DEPTH": 8, "UOP_DEPTH": 8}


def proof(mutant: Mutant, seconds: float) -> str:
    """Where yosys proves, in some seconds, that nothing changes: an empty text where it cannot.

    It is the mutant's module, or those that hold it: their outputs may have no use for what changes.
    """
    module = mutant.site.place.module
    for outers in ([module], _holders(module)):
        try:
            with at_most(seconds):
                if outers and all(_is_proven(mutant, outer) for outer in outers):
                    return " and ".join(outers)
        except TimeoutError:
            continue
    return ""


def _holders(module: str) -> list[str]:
    """Modules that hold a module; none where one of them is too much for a proof."""
    found = [
        outer
        for outer, path in sources().items()
        if outer != module and re.search(rf"^\s*{module} (?:#\(|[uf]_)", path.read_text(), re.MULTILINE)
    ]
    return [] if set(found) & set(LARGE) else found


def _is_proven(mutant: Mutant, outer: str) -> bool:
    for shape in sizes(mutant.shape).get(outer, ()):
        with TemporaryDirectory() as folder:
            try:
                run_yosys(Path(folder), _steps(mutant, outer, Path(folder), dict(shape)))
            except FlowError:
                return False
    return True


def _steps(mutant: Mutant, outer: str, folder: Path, shape: dict[str, int]) -> list[str]:
    """Write the module `outer` with and without the mutant into a folder; what yosys has to do with them.

    The registers that the mutant writes have other names with it: nothing is said about them, but about what they do.
    """
    module, files = mutant.site.place.module, sources()
    others = sorted(needed(outer, files))
    for path in (*(files[other] for other in others), RTL_DIR / "gen" / "vta_isa.vh"):
        shutil.copyfile(path, folder / path.name)
    tree, _ = sites_of(module)
    (folder / f"{module}.v").write_text(INCLUDE + module_text(tree))
    text = mutated(mutant)
    for register in re.findall(r"\w+_q\b", mutant.site.place.target):
        text = re.sub(rf"\b{register}\b", f"{register}_mutant", text)
    (folder / "mutant.v").write_text(text)
    changed = " -chparam ".join(("", *(f"{key} {value}" for key, value in shape.items())))
    steps = []
    for side, file in (("gold", f"{module}.v"), ("gate", "mutant.v")):
        below = " ".join(file if other == module else f"{other}.v" for other in others)
        steps += [f"read_verilog -sv {below}", f"hierarchy -top {outer}{changed}", *PREPARE]
        steps += [f"rename -top {side}", f"design -stash {side}"]
    steps += [f"design -copy-from {side} -as {side} {side}" for side in ("gold", "gate")]
    return [*steps, "equiv_make gold gate equiv", "hierarchy -top equiv", "equiv_struct", "equiv_simple -short",
            f"equiv_induct -seq {DEPTH}", "equiv_status -assert"]  # fmt: skip


@cache
def sizes(shape: str) -> dict[str, tuple[tuple[tuple[str, int], ...], ...]]:
    """Of each module the parameters of its instances in a configuration; memories are small. Raises FlowError."""
    parameters = SHAPES_AND_SAMPLE[shape].build(RTL_DIR).parameters
    with TemporaryDirectory() as name:
        folder = Path(name)
        for path in (*sources().values(), RTL_DIR / "gen" / "vta_isa.vh"):
            shutil.copyfile(path, folder / path.name)
        chosen = "".join(f" -chparam {key} {value}" for key, value in parameters if value < 1 << 31)
        read = "read_verilog -sv " + " ".join(f"{each}.v" for each in sources())
        run_yosys(folder, [read, f"hierarchy -top {TOP}{chosen}", "proc", "write_json all.json"])
        modules = json.loads((folder / "all.json").read_text())["modules"]
    found: dict[str, set[tuple[tuple[str, int], ...]]] = {}
    for each, facts in modules.items():
        values = {key: int(bits, 2) for key, bits in facts.get("parameter_default_values", {}).items()}
        shown = sorted((values | {key: SMALL[key] for key in values.keys() & SMALL}).items())
        found.setdefault(facts["attributes"].get("hdlname", each).lstrip("\\"), set()).add(
            tuple((key, value) for key, value in shown if value < 1 << 31)
        )
    return {name: tuple(sorted(each)) for name, each in found.items()}


def has_fate(mutant: Mutant, fate: Fate, seconds: float) -> bool:
    """Whether a fate is that of a mutant that every trial passes, each question answered in some seconds."""
    match fate:
        case Fate.BENCH:
            return bool(broken_bench(mutant, seconds))
        case Fate.PROPERTY:
            return bool(broken_property(mutant, seconds))
        case Fate.SAME:
            return bool(proof(mutant, seconds))
        case Fate.OPEN:
            return True
        case _:
            assert_never(fate)
