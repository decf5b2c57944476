"""Compiles flat host functions to GPU kernels and a plan that launches them, by TVM, without needing a GPU.

In: flat functions and a target of kind cuda or opencl. Out: kernel source, nvcc's binary where nvcc is, and a plan.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from relay_hw.backend.flat import FlatCall, FlatFunction, FlatInput, used_operators
from relay_hw.backend.gpu import cuda
from relay_hw.backend.gpu.plan import Plan, plan_bytes
from relay_hw.backend.store import ConstantPool
from relay_hw.backend.tvm import gpu_plan
from relay_hw.backend.tvm.api import dlight, relax, s_tir, tirx, tvm
from relay_hw.backend.tvm.gpu_schedule import ShortSum
from relay_hw.backend.tvm.isolated import leaves
from relay_hw.backend.tvm.lower import lower, refusal
from relay_hw.backend.tvm.target import HostTarget
from relay_hw.support.quote import identifier

# Output channels that threads of one warp compute side by side.
LANES = 32
# What the names of a plan's files end with, behind that of the plan.
SOURCES = {"cuda": ".cu", "opencl": ".cl"}
BINARY, CONSTANTS = ".fatbin", ".constants.bin"


@dataclass(slots=True)
class GpuBuild:
    """`packed`: what numpy computes between kernels; `operators`: per function, those left to it."""

    packed: dict[str, FlatFunction] = field(default_factory=dict)
    operators: dict[str, tuple[str, ...]] = field(default_factory=dict)
    functions: tuple[str, ...] = ()


def build_gpu(functions: Sequence[FlatFunction], path: Path, target: HostTarget) -> GpuBuild:
    """Write the plan `path` and the files that it names beside it.

    A function that no plan can hold (control flow, shapes that are not known) is left out of `GpuBuild.functions`.
    Raises UnsupportedError if nvcc refuses the source.
    """
    taken = [function for function in functions if _holds(function, target)]
    lowered = lower(taken, LANES)
    wanted = _target(target)
    module = _kernels(lowered.module, wanted)
    host, device = _split(module, wanted)
    launches = {name: gpu_plan.read_launches(function) for name, function in host.items()}
    pool = ConstantPool()
    found = [f for _, f in module.functions_items() if isinstance(f, relax.Function)]
    relax_functions = {str(f.attrs["global_symbol"]): f for f in found}
    plans = {f.name: gpu_plan.read_function(relax_functions[f.name], launches, pool) for f in taken}
    generate = tvm.get_global_func(f"target.build.{target.kind}")
    source = generate(device, wanted).inspect_source() if len(device.functions) else ""
    _write(path, Plan(target, path.stem + SOURCES[target.kind], None, path.stem + CONSTANTS, plans), source, pool)
    packed = dict(sorted(lowered.packed.items()))
    return GpuBuild(packed, {name: ops for name, ops in lowered.operators.items() if ops}, tuple(plans))


def without_kernel(functions: Sequence[FlatFunction], target: HostTarget) -> dict[str, tuple[str, ...]]:
    """By function that a GPU cannot run whole: its operators without a kernel, all where no plan can hold it."""
    taken = [function for function in functions if _holds(function, target)]
    names = {function.name for function in taken}
    whole = {f.name: tuple(used_operators(f)) for f in functions if f.name not in names}
    return whole | {name: left for name, left in lower(taken, LANES).operators.items() if left}


def _write(path: Path, plan: Plan, source: str, pool: ConstantPool) -> None:
    folder = path.parent
    # The literal of the smallest int is not an int in C: its digits make a long.
    (folder / plan.source).write_text(re.sub(r"-2147483648\b", "(-2147483647 - 1)", source))
    (folder / plan.constants).write_bytes(bytes(pool))
    binary = None
    if plan.target.kind == "cuda" and cuda.find_nvcc() is not None:
        binary = path.stem + BINARY
        cuda.compile_source(folder / plan.source, folder / binary, plan.target)
    path.write_bytes(plan_bytes(Plan(plan.target, plan.source, binary, plan.constants, plan.functions)))


def _holds(function: FlatFunction, target: HostTarget) -> bool:
    """Whether a plan can represent a function: straight-line, static shapes, types that every device has."""
    if not function.is_straight or refusal(function, {function.name}) is not None:
        return False
    types = [node.type for node in function.nodes if isinstance(node, (FlatInput, FlatCall))]
    # Few OpenCL devices have them.
    rare = ("float16", "bfloat16") if target.kind == "opencl" else ("bfloat16",)
    return not any(leaf.dtype in rare for ty in types for leaf in leaves(ty))


def _target(target: HostTarget) -> Any:
    row: dict[str, Any] = {"kind": target.kind, "host": {"kind": "llvm"}}
    if target.kind == "cuda":
        # Any GPU of the last ten years has these; the tag of one GPU would bind the build to it.
        row |= {"arch": target.gpu, "max_threads_per_block": 1024, "max_shared_memory_per_block": 49152}
        row |= {"thread_warp_size": 32, "max_num_threads": 1024}
    return tvm.target.Target(row)


def _kernels(module: Any, target: Any) -> Any:
    """Operators fused into TIR functions with threads, each under a name that C and OpenCL accept."""
    gpu, passes = dlight.gpu, relax.transform
    rules = (ShortSum(), gpu.Matmul(), gpu.GEMV(), gpu.Reduction(), gpu.GeneralReduction(), gpu.Fallback())
    steps = [
        passes.LegalizeOps(),
        passes.AnnotateTIROpPattern(),
        passes.FoldConstant(),
        passes.FuseOps(),
        passes.FuseTIR(),
        passes.DeadCodeElimination(),
        dlight.ApplyDefaultSchedule(*rules),
    ]
    with target:
        return tvm.transform.Sequential(steps)(module)


def _split(module: Any, target: Any) -> tuple[Mapping[str, Any], Any]:
    """TIR functions by name as they look to the host, with calls of kernels; and the module of all kernels."""
    found = [(gv.name_hint, f) for gv, f in module.functions_items() if isinstance(f, tirx.PrimFunc)]
    renamed = {f"k{i}_{identifier(name)}": (name, f) for i, (name, f) in enumerate(sorted(found, key=lambda x: x[0]))}
    kernels = tvm.IRModule({new: f.with_attr("global_symbol", new) for new, (_, f) in renamed.items()})
    lowered = tvm.transform.Sequential([tirx.transform.BindTarget(target), *_passes()])(kernels)
    host: dict[str, Any] = {}
    device: dict[str, Any] = {}
    for gv, function in lowered.functions_items():
        if gv.name_hint in renamed:
            host[renamed[gv.name_hint][0]] = function
        else:
            device[gv.name_hint] = function
    finish = [tirx.transform.LowerWarpMemory(), tirx.transform.StmtSimplify(), tirx.transform.LowerIntrin()]
    return host, tvm.transform.Sequential(finish)(tvm.IRModule(device))


def _passes() -> list[Any]:
    """TIR with threads to kernels and calls of them: TVM's usual order, up to where it would pack the host's side."""
    s, t = s_tir.transform, tirx.transform
    blocks = [
        s.CanonicalizeLoop(),
        s.LowerCrossThreadReduction(),
        s.LowerInitBlock(),
        s.PlanAndUpdateBufferAllocationLocation(),
        s.ConvertBlocksToOpaque(),
        s.LiftThreadBinding(),
        s.ManifestSharedMemoryLocalStage(),
        s.CompactBufferAllocation(),
        s.LowerAutoCopy(),
        s.UnifyThreadBinding(),
        s.LowerMatchBuffer(),
        s.StmtSimplify(),
        s.InjectSoftwarePipeline(),
        s.LowerOpaqueBlock(),
    ]
    loops = [
        t.FlattenBuffer(),
        t.NarrowDataType(32),
        s.LoopPartition(),
        t.VectorizeLoop(True),
        s.InjectVirtualThread(),
        s.InjectDoubleBuffer(),
        t.StorageRewrite(),
        s.HoistIfThenElse(),
        t.UnrollLoop(),
        s.RenormalizeSplitPattern(),
        t.StmtSimplify(),
        t.RemoveNoOp(),
        s.RewriteUnsafeSelect(),
        t.CommonSubexprElim(),
        t.VerifyMemory(),
        t.AnnotateEntryFunc(),
    ]
    threads = [
        s.ThreadSync("shared"),
        s.ThreadSync("shared.dyn"),
        s.ThreadSync("warp"),
        s.InferFragment(),
        s.LowerThreadAllreduce(),
        s.MergeSharedMemoryAllocations(),
        t.SplitHostDevice(),
    ]
    return [*blocks, *loops, *threads]
