"""Host operators through TVM: Relax, LLVM, its virtual machine. The only room that imports `tvm`, and only when asked.

In: flat host functions. Out: one shared library, and the loaded functions.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from relay_hw.backend.flat import FlatFunction
from relay_hw.backend.tvm.target import HostTarget
from relay_hw.errors import UnsupportedError

if TYPE_CHECKING:
    from relay_hw.backend.tvm.library import Library

REQUIREMENT = "apache-tvm==0.27.0.post1 apache-tvm-ffi==0.1.14.post1"


@dataclass(frozen=True, slots=True)
class BuiltLibrary:
    """What loading needs besides the file: the CPU level, and what each packed function computes.

    `left_to_numpy`: per host function the operators that Relax lacks or means differently.
    """

    cpu: str
    packed: Mapping[str, FlatFunction] = field(default_factory=dict)
    left_to_numpy: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def is_installed() -> bool:
    """Whether `import tvm` would find a package."""
    return importlib.util.find_spec("tvm") is not None


def require(what: str) -> None:
    """Raise UnsupportedError, with the command that helps, unless TVM is installed."""
    if not is_installed():
        raise UnsupportedError(f"TVM must be installed to {what}: pip install {REQUIREMENT}")


def build_library(functions: Sequence[FlatFunction], path: Path, target: HostTarget | None = None) -> BuiltLibrary:
    """Compile `functions` into the shared library `path`; the same functions give the same bytes on the same CPU level.

    Raises UnsupportedError: TVM or a linker is missing, a target that cannot be compiled for here, an unknown shape.
    """
    wanted = target or HostTarget()
    if wanted != HostTarget():
        raise UnsupportedError(f"host operators must be compiled for llvm on this machine, not for {wanted}")
    require("compile host operators " + ", ".join(sorted({c.op.name for f in functions for c in f.calls})))
    from relay_hw.backend.tvm import library, lower, schedule

    cpu = library.build_cpu()
    lowered = lower.lower(functions, schedule.vector_lanes(cpu))
    library.export(lowered, cpu, path)
    packed = dict(sorted(lowered.packed.items()))
    return BuiltLibrary(cpu, packed, {name: ops for name, ops in lowered.operators.items() if ops})


def load_library(path: Path, built: BuiltLibrary) -> Library:
    """Load what `build_library` wrote. Raises UnsupportedError without TVM, ArtifactError for another kind of CPU."""
    require("run the host operators of this build")
    from relay_hw.backend.tvm.library import Library

    return Library(path, built.cpu, built.packed)
