"""Whether a mutant that every trial passes does the same: yosys compares the module with and without it.

In: a mutant. Out: a proof for runs of any length, or none. Registers of both modules that have one name are taken as
equal, and yosys shows by induction that they stay so and that every output is equal, whatever the inputs are, but for
what `premises` says of them. Registers that may differ are left out, until all others are proven. What is undefined
counts as zero. It must hold in every shape that instances of the module have in the mutant's configuration, but that
memories are small.
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
from tests.mutants.premises import APART, PREMISES

# Steps of the induction, and how often registers are left out.
DEPTH, ROUNDS = 4, 4
# Behind it only registers and ports have names of their own, by which both sides are compared.
PREPARE = (
    *("chformal -lower", "setundef -zero", "opt -full", "clean"),
    *("select -set states t:$*ff* %co1:+[Q] w:* %i", "rename -hide w:* @states %d"),
)
COMPARE = (
    *("equiv_make gold gate equiv", "hierarchy -top equiv", "equiv_struct", "equiv_simple -short -set-assumes"),
    *(f"equiv_induct -seq {DEPTH} -set-assumes", "tee -o status.txt equiv_status"),
)
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
                if not _is_equal(mutant, outer, Path(folder), dict(shape)):
                    return False
            except FlowError:
                return False
    return True


def _is_equal(mutant: Mutant, outer: str, folder: Path, shape: dict[str, int]) -> bool:
    """Whether the module `outer` of a shape is proven to be the same with and without the mutant."""
    shutil.copyfile(RTL_DIR / "gen" / "vta_isa.vh", folder / "vta_isa.vh")
    steps = []
    for side, text in zip(("gold", "gate"), _texts(mutant), strict=True):
        steps += [*_read(side, mutant.site.place.module, text, outer, folder, shape), "design -reset"]
    run_yosys(folder, steps)
    free = set[str]()
    for _ in range(ROUNDS):
        hide = ["rename -hide " + " ".join(f"w:{name}" for name in sorted(free))] if free else []
        steps = []
        for side in ("gold", "gate"):
            steps += [f"read_rtlil {side}.il", *hide, f"design -stash {side}", "design -reset"]
        steps += [f"design -copy-from {side} -as {side} {side}" for side in ("gold", "gate")]
        run_yosys(folder, [*steps, *COMPARE])
        differ = set(re.findall(r"Unproven \$equiv \S+: \\?(\S+)_gold", (folder / "status.txt").read_text()))
        if not differ or differ <= free:
            return "Equivalence successfully proven!" in (folder / "status.txt").read_text()
        free |= differ
    return False


def _texts(mutant: Mutant) -> tuple[str, str]:
    """The mutant's module without and with it."""
    tree, _ = sites_of(mutant.site.place.module)
    return INCLUDE + module_text(tree), mutated(mutant)


def _read(side: str, module: str, text: str, outer: str, folder: Path, shape: dict[str, int]) -> list[str]:
    """Write the module `outer` and those below it, with the text of one of them, into a folder; what yosys does."""
    files = sources()
    names = sorted(needed(outer, files))
    for name in names:
        content = text if name == module else files[name].read_text()
        if name == outer:
            head, end, rest = content.rpartition("endmodule")
            rules = "".join(f"  always @* assume ({premise.rule});\n" for premise in PREMISES.get(outer, ()))
            content = head + rules + end + rest
        (folder / f"{side}_{name}.v").write_text(content)
    changed = " -chparam ".join(("", *(f"{key} {value}" for key, value in shape.items())))
    steps = ["read_verilog -formal -sv " + " ".join(f"{side}_{name}.v" for name in names)]
    steps += [f"hierarchy -top {outer}{changed}", "proc"]
    steps += [f"blackbox A:hdlname={name} ={name}" for name in APART.get(outer, ())]
    steps += ["memory_map", "flatten", *(["expose -evert c:*"] if outer in APART else [])]
    return [*steps, *PREPARE, f"rename -top {side}", f"write_rtlil {side}.il"]


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
