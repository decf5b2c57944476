"""Prove the properties of the Verilog's modules: yosys turns a module into formulas, a solver decides them.

In: `tests/accel/rtl/properties/MODULE.v`, which goes into the module in front of its `endmodule`, so that it sees every
register. Its first lines are tasks:

    // induction DEPTH [PARAMETER=VALUE ...]    assertions outside of `ifdef BOUNDED, for runs of any length
    // bounded DEPTH [PARAMETER=VALUE ...]      all assertions, for runs of DEPTH edges
    // cover DEPTH [PARAMETER=VALUE ...]        every cover statement is reached within DEPTH edges

A task that ends in `slow` takes longer than ten seconds of a processor; `--quick` leaves it out.

A line `// abstract: TEXT => OTHER` behind them replaces a text of the module, once: a product by anything, so that what
follows is proven without it. A property is a sentence, `// P1 What holds.`, in front of assertions named p1, p1_too.
Every run begins in reset, if the module has one. Registers of submodules are seen as
`(* hierconn *) wire [3:0] \\u_count.count_q ;`.
Out: a line for each task; 1 if one fails.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from relay_hw.accel.fpga.parts import FlowError
from relay_hw.accel.fpga.tools import run_tool, run_yosys
from relay_hw.accel.sim.verilator import RTL_DIR, rtl_files
from scripts.figures import replaced

ROOT = Path(__file__).resolve().parents[1]
PROPERTIES = ROOT / "tests" / "accel" / "rtl" / "properties"
PAGE = ROOT / "docs" / "verification.md"
HEADER = RTL_DIR / "gen" / "vta_isa.vh"
_EQUAL = "its form for a fabric is proven equal to the one for simulation (`make test-exact`)"
_WIRES = "wires modules that have properties of their own"
# Modules without properties, and what stands in for them.
OPEN = {
    "vta_acc_mem": f"{_EQUAL}, whose bench has a model in Python",
    "vta_compute": "eleven stages that forward sums to one another, over four memories: its walk, lanes, products and "
    "multipliers are proven, the whole is held by its bench and `make test-exact`",
    "vta_core": _WIRES,
    "vta_dot": f"{_EQUAL}; its products out of LUTs are proven (`vta_nibble`, `vta_multiples`)",
    "vta_exec": _WIRES,
    "vta_front": _WIRES,
    "vta_load": "what walk, queue and data side share: they are proven, the order of the whole is held by its bench "
    "and `make test-axi`",
    "vta_load_data": "row buffers, padding and factors at once: where its beats go is proven (`vta_load_place`), what "
    "they hold is held by its bench",
    "vta_output": "nine stages around a product of 32 by 32 bits: its walk and, product abstracted, its lanes are "
    "proven, the whole is held by its bench",
    "vta_read_side": _WIRES,
    "vta_scratchpads": _WIRES,
    "vta_tables": "its memory is two whole tables at least, too many bits for registers: held by its bench, whose "
    "model is in Python",
    "vta_top": _WIRES,
    "vta_update": f"{_EQUAL}; its lanes are proven (`vta_alu_lane`)",
}
KINDS = ("induction", "bounded", "cover")
# In front of a module's properties. `f_started` is low in the first cycle of a run alone.
BEGIN = """
  reg f_started = 1'b0;
  always @(posedge clk_i) f_started <= 1'b1;
"""
RESET = "  always @* if (!f_started) assume (!rst_ni);\n"
# Memories become registers before the hierarchy goes, so that properties can name their words; what is undefined is
# anything.
PREPARE = (
    *("proc", "memory_map", "flatten", "async2sync", "chformal -lower", "opt -full"),
    *("setundef -undriven -anyseq", "dffunmap", "opt_clean", "write_smt2 -wires proof.smt2"),
)


@dataclass(frozen=True, slots=True)
class Property:
    """A sentence about a module, by its number there, and whether it is proven for runs of any length."""

    module: str
    number: int
    sentence: str
    is_unbounded: bool


@dataclass(frozen=True, slots=True)
class Task:
    """One question to the solver: of a module in one shape, to a depth of edges."""

    module: str
    kind: str
    depth: int
    parameters: tuple[tuple[str, int], ...]
    is_slow: bool = False

    def __str__(self) -> str:
        shape = "".join(f" {name}={value}" for name, value in self.parameters)
        return f"{self.module}{shape}: {self.kind} {self.depth}"


def tasks(path: Path) -> Iterator[Task]:
    """Tasks in the first lines of a file of properties. Raises ValueError."""
    for line in path.read_text().splitlines():
        words = line.removeprefix("//").split()
        if not line.startswith("//") or not words or words[0] not in KINDS:
            return
        is_slow = words[-1] == "slow"
        shape = words[2 : len(words) - is_slow]
        pairs = tuple((name, int(value)) for name, _, value in (word.partition("=") for word in shape))
        yield Task(path.stem, words[0], int(words[1]), pairs, is_slow)


def properties(path: Path) -> Iterator[Property]:
    """Sentences of a file, in its order. Raises ValueError where one has no assertion, or an assertion has none."""
    text = path.read_text()
    named = {int(number) for number in re.findall(r"\bp(\d+)\w*: assert", text)}
    is_unbounded = True
    numbers: set[int] = set()
    lines = text.splitlines()
    for at, line in enumerate(lines):
        if line.strip() == "`ifdef BOUNDED":
            is_unbounded = False
        elif line.strip() == "`endif":
            is_unbounded = True
        elif found := re.fullmatch(r"\s*// P(\d+) (.*)", line):
            more = (re.fullmatch(r"\s*//   (.*)", other) for other in lines[at + 1 :])
            words = [found[2]]
            for other in more:
                if other is None:
                    break
                words.append(other[1])
            numbers.add(int(found[1]))
            yield Property(path.stem, int(found[1]), " ".join(words), is_unbounded)
    if named != numbers:
        raise ValueError(
            f"{path.name} must have a sentence for each assertion, not differ in {sorted(named ^ numbers)}"
        )


def with_properties(module: str, text: str) -> str:
    """A module's text with its properties in front of its end. Raises ValueError where an abstraction has no place."""
    added = (PROPERTIES / f"{module}.v").read_text()
    for old, new in re.findall(r"^// abstract: (.*) => (.*)$", added, re.MULTILINE):
        if text.count(old) != 1:
            raise ValueError(f"{module}.v must hold {old!r} once, not {text.count(old)} times")
        text = text.replace(old, new)
    head, end, rest = text.rpartition("endmodule")
    begin = (BEGIN if "clk_i" in text else "") + (RESET if "rst_ni" in text else "")
    return head + begin + added + end + rest


def prove(task: Task, folder: Path, sources: dict[str, Path] | None = None) -> None:
    """Raises FlowError where a property does not hold, or a cover statement is not reached."""
    files = {path.stem: path for path in rtl_files()} | (sources or {})
    for path in (*files.values(), HEADER):
        shutil.copyfile(path, folder / path.name)
    (folder / f"{task.module}.v").write_text(with_properties(task.module, files[task.module].read_text()))
    define = " -D BOUNDED" if task.kind == "bounded" else ""
    files[task.module] = folder / f"{task.module}.v"
    names = sorted(needed(task.module, files))
    read = f"read_verilog -formal -sv{define} " + " ".join(f"{name}.v" for name in names)
    shape = [f"chparam -set {name} {value} {task.module}" for name, value in task.parameters]
    run_yosys(folder, [read, *shape, f"hierarchy -top {task.module}", *PREPARE])
    for mode in {"induction": ([], ["-i"]), "bounded": ([],), "cover": (["-c"],)}[task.kind]:
        run_tool(folder, "yosys-smtbmc", ["-s", "yices", *mode, "-t", str(task.depth), "proof.smt2"])


def page(text: str) -> str:
    """The page with a table of all properties."""
    lines = ["| Module | Property | Proven for |", "|---|---|---|"]
    for path in sorted(PROPERTIES.glob("*.v")):
        depth = max((task.depth for task in tasks(path) if task.kind == "bounded"), default=0)
        for each in sorted(properties(path), key=lambda found: found.number):
            runs = "runs of any length" if each.is_unbounded else f"runs of {depth} edges"
            lines.append(f"| `{each.module}` P{each.number} | {each.sentence} | {runs} |")
    reasons = ["| Module | What stands in for properties |", "|---|---|"]
    reasons += [f"| `{module}` | {reason} |" for module, reason in sorted(OPEN.items())]
    return replaced(replaced(text, "properties", "\n".join(lines) + "\n"), "open", "\n".join(reasons) + "\n")


def needed(module: str, files: dict[str, Path]) -> set[str]:
    """Names of the modules below a module, and its own."""
    found, open_ = {module}, [module]
    while open_:
        text = files[open_.pop()].read_text()
        below = {name for name in re.findall(r"^\s*(vta_\w+) (?:#\(|[uf]_)", text, re.MULTILINE) if name in files}
        open_ += below - found
        found |= below
    return found


def run(task: Task) -> tuple[Task, float, str]:
    """A task with the seconds that it took and why it failed, or an empty text."""
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        try:
            prove(task, Path(folder))
        except FlowError as error:
            return task, time.monotonic() - begin, str(error)
    return task, time.monotonic() - begin, ""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="TEXT", help="tasks whose line holds this text")
    parser.add_argument("--quick", action="store_true", help="without tasks that are marked as slow")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="tasks at a time")
    parser.add_argument("--write", action="store_true", help="only write the table of docs/verification.md")
    options = parser.parse_args(arguments)
    if options.write:
        PAGE.write_text(page(PAGE.read_text()))
        return 0
    paths = sorted(PROPERTIES.glob("*.v"))
    chosen = [task for path in paths for task in tasks(path) if options.only in str(task)]
    chosen = [task for task in chosen if not (options.quick and task.is_slow)]
    failed = 0
    with ThreadPoolExecutor(options.jobs) as pool:
        for task, seconds, why in pool.map(run, chosen):
            failed += bool(why)
            print(f"{task}: {'fails: ' + why if why else 'holds'} ({seconds:.1f} s)", flush=True)
    print(f"{len(chosen) - failed} of {len(chosen)} tasks hold")
    return 1 if failed or not chosen else 0


if __name__ == "__main__":
    sys.exit(main())
