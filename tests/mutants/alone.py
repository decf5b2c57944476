"""What becomes of a mutant in its module alone, where no trial of the whole finds it: by the module's bench, by its
properties, by a proof that nothing changes.

In: a mutant. Out: what failed or was proven, or an empty text.
"""

from __future__ import annotations

import re
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from tempfile import TemporaryDirectory

from pyverilog.vparser import ast

from relay_hw.accel.fpga.parts import FlowError
from relay_hw.accel.sim.bench.runner import BenchError, run_bench
from relay_hw.accel.sim.rtl_device import Sources
from relay_hw.accel.sim.verilator import RTL_DIR, Form
from scripts.formal import PROPERTIES, prove, tasks
from tests.accel.rtl.test_benches import BENCHES, QUICK_SHAPES
from tests.mutants.build import INCLUDE, Mutant, module_text, sites_of, sources


class Fate(Enum):
    """What became of a mutant that every trial passes."""

    BENCH = "bench"
    PROPERTY = "property"
    SAME = "same"
    OPEN = "open"


def mutated(mutant: Mutant) -> str:
    """The text of the mutant's module with the mutation, for good."""
    tree, found = sites_of(mutant.site.place.module)
    next(site for site in found if site.key == mutant.site.key).apply()
    return whole_text(tree)


def whole_text(tree: ast.ModuleDef) -> str:
    """A module's tree as a file that is read alone. Instances begin as they do in the sources."""
    text = re.sub(r"^(\s*vta_\w+)\n\s*(?=#\(|[uf]_)", r"\1 ", module_text(tree), flags=re.MULTILINE)
    return INCLUDE + text


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Raises TimeoutError in the block after some seconds; for a process's first thread."""

    def late(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def broken_bench(mutant: Mutant, seconds: float) -> str:
    """Whether the bench of the module fails, as `make test` runs it, in some seconds: in which shape."""
    module = mutant.site.place.module
    bench, shapes = BENCHES[module]
    with TemporaryDirectory() as name:
        rtl = Path(name) / "rtl"
        shutil.copytree(RTL_DIR, rtl)
        (rtl / sources()[module].relative_to(RTL_DIR)).write_text(mutated(mutant))
        for shape in shapes[:QUICK_SHAPES]:
            try:
                with at_most(seconds):
                    run_bench(module, bench, shape, Path(name), Sources(rtl, Form.FABRIC))
            except (BenchError, TimeoutError):
                return f"{bench} {shape}"
    return ""


def broken_property(mutant: Mutant, seconds: float) -> str:
    """The first task of `make formal` that fails within seconds with the mutant in its module, or an empty text.

    Raises FlowError where a task cannot be asked: that is no answer.
    """
    return broken_task(mutant.site.place.module, mutated(mutant), seconds)


def broken_task(module: str, text: str, seconds: float) -> str:
    """The first task of `make formal` that fails within seconds with another text of a module, or an empty text."""
    path = PROPERTIES / f"{module}.v"
    if not path.exists():
        return ""
    for task in sorted(tasks(path), key=lambda task: task.is_slow):
        if task.kind == "cover":
            continue
        with TemporaryDirectory() as folder, TemporaryDirectory() as changed:
            source = Path(changed) / f"{module}.v"
            source.write_text(text)
            try:
                with at_most(seconds):
                    prove(task, Path(folder), {module: source})
            except TimeoutError:
                continue
            except ValueError:  # what the properties abstract from is what changes
                return ""
            except FlowError as error:
                if "FAILED" not in str(error):
                    raise
                return str(task)
    return ""
