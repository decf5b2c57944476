"""Whether a mutant that every trial passes does the same: a solver compares the module with and without it.

In: a mutant. Out: a proof for runs of any length, or none. Both forms stand side by side (`miter`), with the same
inputs in every cycle and, where a run begins, anything in their registers, but the same in both. What `premises` says
of the rest is assumed of the form without the mutant. ABC, a part of yosys, shows that no output ever differs. What is
undefined counts as zero. It must hold in every shape that instances of the module have in the mutant's configuration,
but that memories are small.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from typing_extensions import assert_never

from relay_hw.accel.fpga.parts import FlowError
from relay_hw.accel.fpga.tools import run_yosys
from relay_hw.accel.sim.verilator import RTL_DIR
from scripts.formal import BEGIN, RESET, needed
from tests.mutants.alone import Fate, at_most, broken_bench, broken_property, mutated
from tests.mutants.build import INCLUDE, SHAPES_AND_SAMPLE, TOP, Mutant, inputs, module_text, sites_of, sources
from tests.mutants.miter import COUNTS, miter, read_circuit
from tests.mutants.premises import CARES, PREMISES, SCENES, Scene

# What makes gates of a module, without looking for better ones.
GATES = (
    *("async2sync", "chformal -lower", "setundef -zero", "opt_expr", "opt_clean", "dffunmap", "simplemap"),
    *("techmap", "opt_clean", "aigmap", "opt_clean"),
)
# ABC runs inside of yosys, on a module of its own, and reads the circuit itself.
FRAME = "module frame (input a, input b, output c);\n  assign c = a ^ b;\nendmodule\n"
ASK = "read_aiger miter.aig\ndprove\nwrite_status status.txt\n"
# Modules that hold units: too much for a proof, but as a scene.
LARGE = ("vta_top", "vta_core", "vta_exec", "vta_scratchpads")
# Parameters that make memories small: nothing depends on how many words there are.
SMALL = {"ACC_DEPTH": 16, "INP_DEPTH": 32, "WGT_DEPTH": 8, "OUT_DEPTH": 8, "UOP_DEPTH": 8}


def proof(mutant: Mutant, seconds: float) -> str:
    """Where it is proven, in some seconds each, that nothing changes: an empty text where it is not.

    It is the mutant's module, or those that hold it, whose outputs may have no use for what changes, or a scene.
    """
    for scenes in stages(mutant.site.place.module):
        try:
            with at_most(seconds):
                if all(_is_proven(mutant, scene) for scene in scenes):
                    return " and ".join(map(str, scenes))
        except TimeoutError:
            continue
    return ""


def stages(module: str) -> Iterator[list[Scene]]:
    """Scenes that are a proof together, the smallest first."""
    holders = [
        outer
        for outer, path in sources().items()
        if outer != module and re.search(rf"^\s*{module} (?:#\(|[uf]_)", path.read_text(), re.MULTILINE)
    ]
    yield from ([scene] for scene in SCENES.get(module, ()))
    if module not in LARGE:
        yield [Scene(module)]
    if holders and not set(holders) & set(LARGE):
        yield [_scene_of(outer, module) for outer in holders]


def _scene_of(outer: str, module: str) -> Scene:
    """The largest scene of a module that shows one below it."""
    shown = [scene for scene in SCENES.get(outer, ()) if module in (scene.whole or ())]
    return shown[-1] if shown else Scene(outer)


def _is_proven(mutant: Mutant, scene: Scene) -> bool:
    for shape in sizes(mutant.shape).get(scene.outer, ()):
        with TemporaryDirectory() as folder:
            try:
                if not is_equal(mutant, scene, Path(folder), dict(shape)):
                    return False
            except (FlowError, ValueError):  # yosys gives no name to an output that has become a constant
                return False
    return True


def is_equal(mutant: Mutant, scene: Scene, folder: Path, shape: dict[str, int]) -> bool:
    """Whether a scene of some shape is proven to be the same with and without the mutant. Raises FlowError and
    ValueError."""
    shutil.copyfile(RTL_DIR / "gen" / "vta_isa.vh", folder / "vta_isa.vh")
    tree, _ = sites_of(mutant.site.place.module)
    texts = {"gold": INCLUDE + module_text(tree), "gate": mutated(mutant)}
    steps = []
    for side, text in texts.items():
        _write(side, mutant.site.place.module, text, scene, folder)
        steps += [*_circuit(side, scene, shape), "design -reset"]
    run_yosys(folder, steps)
    gold, gate = (read_circuit(folder / f"{side}.aag", folder / f"{side}.map") for side in texts)
    (folder / "miter.aig").write_bytes(miter(gold, gate))
    return never_differs(folder)


def gates(side: str) -> list[str]:
    """What yosys does to write a module without hierarchy for `miter`."""
    return [*GATES, f"write_aiger -ascii -map {side}.map {side}.aag"]


def never_differs(folder: Path) -> bool:
    """Whether ABC proves that the output of `miter.aig` is never high. Raises FlowError."""
    (folder / "frame.v").write_text(FRAME)
    (folder / "ask.abc").write_text(ASK)
    status = folder / "status.txt"
    try:
        run_yosys(folder, ["read_verilog frame.v", "proc", "simplemap", "abc -script ask.abc"])
    except FlowError:  # yosys does not find its own module in what ABC leaves
        if not status.exists():
            raise
    return status.read_text().startswith("snl_UNSAT")


def _write(side: str, module: str, text: str, scene: Scene, folder: Path) -> None:
    """Write a scene's modules into a folder, with the text of one of them; the premises into that without a mutant."""
    files = sources()
    for name in needed(scene.outer, files):
        content = text if name == module else files[name].read_text()
        if side == "gold" and name == scene.outer:
            content = _with_premises(name, content)
        (folder / f"{side}_{name}.v").write_text(content)


def _with_premises(module: str, text: str) -> str:
    """A module's text with its premises, and an output COUNTS + NAME for each output that counts at times only."""
    cares = CARES.get(module, ())
    rules = [premise.rule for premise in PREMISES.get(module, ())]
    past = sorted(set(re.findall(r"\bpast_(\w+)", " ".join([*rules, *(care.counts for care in cares)]))))
    added = (BEGIN if "clk_i" in inputs(module) else "") + (RESET if "rst_ni" in inputs(module) else "")
    added += "".join(f"  reg past_{name};\n  always @(posedge clk_i) past_{name} <= {name};\n" for name in past)
    added += "".join(f"  always @* assume ({rule});\n" for rule in rules)
    added += "".join(f"  assign {COUNTS}{care.output} = f_started && {care.counts};\n" for care in cares)
    ports = "".join(f",\n  output wire {COUNTS}{care.output}" for care in cares)
    head, end, rest = text.replace("\n);", f"{ports}\n);", 1).rpartition("endmodule")
    return head + added + end + rest


def _circuit(side: str, scene: Scene, shape: dict[str, int]) -> list[str]:
    """What yosys does to make a circuit of a scene."""
    names = sorted(needed(scene.outer, sources()))
    changed = " -chparam ".join(("", *(f"{key} {value}" for key, value in shape.items())))
    steps = ["read_verilog -formal -sv " + " ".join(f"{side}_{name}.v" for name in names)]
    steps += [f"hierarchy -top {scene.outer}{changed}", "proc"]
    apart = [name for name in names if scene.whole is not None and name not in (scene.outer, *scene.whole)]
    steps += [f"blackbox A:hdlname={name} ={name}" for name in apart]
    steps += ["memory_map", "flatten", *(["expose -evert c:*"] if apart else [])]
    return [*steps, *gates(side)]


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
