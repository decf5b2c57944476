"""Runs host functions on a GPU without TVM: plans of kernel launches, and launchers for CUDA and OpenCL.

In: what `relay_hw.backend.tvm` wrote for `--host cuda` or `--host opencl`. Out: the loaded functions.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from relay_hw.backend.flat import FlatFunction
from relay_hw.backend.gpu.launch import Launcher, PlanLibrary
from relay_hw.backend.gpu.plan import Plan, read_plan

__all__ = ["Launcher", "Plan", "PlanLibrary", "load_plan", "open_launcher", "read_plan"]


def load_plan(path: Path, packed: Mapping[str, FlatFunction]) -> PlanLibrary:
    """The functions of the plan `path`, ready to be called.

    Raises UnsupportedError if the GPU, its driver or a package is missing, ArtifactError for a damaged plan.
    """
    plan = read_plan(path)
    return PlanLibrary(plan, open_launcher(plan, path.parent), packed, path.parent)


def open_launcher(plan: Plan, folder: Path) -> Launcher:
    """A launcher with the kernels of the plan. Raises UnsupportedError."""
    if plan.target.kind == "cuda":
        from relay_hw.backend.gpu.cuda import CudaLauncher

        return CudaLauncher(plan, folder)
    from relay_hw.backend.gpu.opencl import OpenClLauncher

    return OpenClLauncher((folder / plan.source).read_text())
