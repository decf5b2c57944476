"""Compiles host operators by TVM: Relax, LLVM, its virtual machine. The only package that imports `tvm`, lazily.

In: flat host functions. Out: one shared library, and the loaded functions.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from relay_hw.backend.flat import FlatFunction, used_operators
from relay_hw.backend.tvm.target import NUMPY, HostTarget
from relay_hw.errors import UnsupportedError

if TYPE_CHECKING:
    from relay_hw.backend.gpu import PlanLibrary
    from relay_hw.backend.tvm.library import Library

HOW_TO_GET = "pip install 'relay-hw[host]'"
PLAN_SUFFIX = ".json"


@dataclass(frozen=True, slots=True)
class BuiltLibrary:
    """What loading a library needs besides the file: the CPU level, and what each packed function computes.

    `left_to_numpy`: per host function the operators that Relax lacks or means differently. `functions`: those that the
    library holds; numpy computes the others.
    """

    cpu: str
    packed: Mapping[str, FlatFunction] = field(default_factory=dict)
    left_to_numpy: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    functions: tuple[str, ...] = ()


def is_installed() -> bool:
    """Whether `import tvm` would find a package."""
    return importlib.util.find_spec("tvm") is not None


def require(what: str) -> None:
    """Raise UnsupportedError, with the command that helps, unless TVM is installed."""
    if not is_installed():
        raise UnsupportedError(f"TVM must be installed to {what}: {HOW_TO_GET}")


def usual_host() -> HostTarget:
    """The default host target: this machine by TVM if it is installed, else numpy."""
    return HostTarget() if is_installed() else HostTarget(NUMPY)


def library_suffix(target: HostTarget) -> str:
    """The suffix of the file of `build_library`: a shared library, or a plan of kernel launches."""
    return ".so" if target.kind == "llvm" else PLAN_SUFFIX


def build_library(
    functions: Sequence[FlatFunction], path: Path, target: HostTarget | None = None, recursion: bool = False
) -> BuiltLibrary:
    """Compile `functions` into the library `path`; the same functions give the same bytes on the same CPU level.

    For a GPU the library is a plan with kernels in files `host.*` beside it.

    Functions of unknown shapes, with data types or references stay whole with numpy, as does what calls itself unless
    `recursion`: TVM's machine needs native stack for each level, and ends the process where none is left.

    Raises UnsupportedError: TVM or a linker is missing.
    """
    wanted = target or HostTarget()
    require("compile host operators " + ", ".join(sorted({c.op.name for f in functions for c in f.calls})))
    if wanted.kind != "llvm":
        from relay_hw.backend.tvm.gpu import build_gpu

        built = build_gpu(functions, path, wanted)
        return BuiltLibrary("", built.packed, built.operators, built.functions)
    from relay_hw.backend.tvm import library, lower

    cpu = library.build_cpu(wanted)
    taken, refused = lower.divide(functions, recursion)
    lowered = lower.lower(taken, library.processor(cpu))
    library.export(lowered, wanted, cpu, path)
    packed = dict(sorted(lowered.packed.items()))
    left = {name: ops for name, ops in lowered.operators.items() if ops}
    left |= {function.name: tuple(used_operators(function)) for function in refused}
    return BuiltLibrary(cpu, packed, left, tuple(function.name for function in taken))


def load_library(path: Path, built: BuiltLibrary, threads: int | None = None) -> Library | PlanLibrary:
    """Load what `build_library` wrote. A plan needs no TVM.

    Raises UnsupportedError without TVM, or without the GPU that a plan needs; ArtifactError for another kind of CPU.
    """
    if path.suffix == PLAN_SUFFIX:
        from relay_hw.backend.gpu import load_plan

        return load_plan(path, built.packed)
    require("run the host operators of this build")
    from relay_hw.backend.tvm.library import Library

    return Library(path, built.cpu, built.packed, threads)
