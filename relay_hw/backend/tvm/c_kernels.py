"""Compiles flat host functions to plain C functions and a plan that calls them, by TVM's C code generator.

In: flat functions. Out: C99 source without any runtime, and the plan; every buffer is an argument.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from relay_hw.backend.flat import FlatFunction
from relay_hw.backend.gpu.plan import KernelLaunch, PlanFunction
from relay_hw.backend.store import ConstantPool
from relay_hw.backend.tvm import gpu_plan
from relay_hw.backend.tvm.api import ScheduleRule, dlight, relax, s_tir, tirx, tvm
from relay_hw.backend.tvm.lower import lower

# Interleaved output channels, which C compilers vectorise.
LANES = 8
HEADER = "#include <math.h>\n#include <stdbool.h>\n#include <stdint.h>\n"
ALONE = (1, 1, 1)


@dataclass(frozen=True, slots=True)
class CKernels:
    """`source`: C99; `prototypes`: of its functions, by name; `packed`: what the plans leave to others, by name."""

    source: str
    prototypes: Mapping[str, str]
    functions: Mapping[str, PlanFunction]
    packed: Mapping[str, FlatFunction]


def build_c(functions: Sequence[FlatFunction], pool: ConstantPool) -> CKernels:
    """C functions for host functions; constants go to `pool`. Raises UnsupportedError if Relax lacks something."""
    lowered = lower(functions, LANES)
    target = tvm.target.Target({"kind": "c"})
    passes = relax.transform
    steps = [
        passes.LegalizeOps(),
        passes.AnnotateTIROpPattern(),
        passes.FoldConstant(),
        passes.FuseOps(),
        passes.FuseTIR(),
        passes.DeadCodeElimination(),
        dlight.ApplyDefaultSchedule(InitFirst()),
    ]
    with target:
        module = tvm.transform.Sequential(steps)(lowered.module)
    plain, launches = _plain(module, target)
    found = [f for _, f in module.functions_items() if isinstance(f, relax.Function)]
    relax_functions = {str(f.attrs["global_symbol"]): f for f in found}
    plans = {f.name: gpu_plan.read_function(relax_functions[f.name], launches, pool) for f in functions}
    source, prototypes = _tidy(tvm.get_global_func("target.build.c")(plain, target).inspect_source())
    return CKernels(source, prototypes, plans, lowered.packed)


class InitFirst(ScheduleRule):
    """Sums are cleared before they are built up, not in the innermost loop; lanes are innermost."""

    def apply(self, func: Any, target: Any, _tunable: bool) -> Any:
        """A schedule, or None for what is no TIR function."""
        if not isinstance(func, tirx.PrimFunc):
            return None
        sch = s_tir.Schedule(func)
        for block in sch.get_child_blocks(sch.get_sblock("root")):
            axes, loops = sch.get(block).iter_vars, sch.get_loops(block)
            reduce = [loop for axis, loop in zip(axes, loops, strict=False) if axis.iter_type == 2]
            spatial = [loop for axis, loop in zip(axes, loops, strict=False) if axis.iter_type == 0]
            if len(axes) != len(loops) or not reduce or len(reduce) + len(spatial) != len(loops):
                continue
            if len(spatial) > 1:
                sch.reorder(*spatial[:-1], *reduce, spatial[-1])
            sch.decompose_reduction(block, reduce[0])
        return sch


def _plain(module: Any, target: Any) -> tuple[Any, dict[str, gpu_plan.Launches]]:
    """TIR functions of addresses, and how a plan calls each."""
    found = {gv.name_hint: f for gv, f in module.functions_items() if isinstance(f, tirx.PrimFunc)}
    names = {old: f"host_k{i}" for i, old in enumerate(sorted(found))}
    kernels = tvm.IRModule({names[old]: f.with_attr("global_symbol", names[old]) for old, f in found.items()})
    lowered = tvm.transform.Sequential([tirx.transform.BindTarget(target), *_passes()])(kernels)
    functions: dict[str, Any] = {}
    launches: dict[str, gpu_plan.Launches] = {}
    for gv, function in lowered.functions_items():
        old = next(name for name, new in names.items() if new == gv.name_hint)
        plain, temporaries = _of_addresses(function)
        functions[gv.name_hint] = plain.with_attr("global_symbol", gv.name_hint).with_attr("target", target)
        count = len(function.params)
        kernel = KernelLaunch(gv.name_hint, ALONE, ALONE, tuple(range(count + len(temporaries))))
        launches[old] = gpu_plan.Launches(count, tuple(temporaries), (kernel,))
    return tirx.transform.LowerIntrin()(tvm.IRModule(functions)), launches


def _of_addresses(function: Any) -> tuple[Any, list[tuple[str, int]]]:
    """The function with an address for each buffer, those first that it allocated itself last; and what these hold."""
    pointers = {param: _pointer(param.name, str(param.ty.dtype)) for param in function.params}
    params = list(pointers.values())
    temporaries: list[tuple[str, int]] = []
    statements: list[Any] = []
    body = function.body
    for statement in body.seq if type(body).__name__ == "SeqStmt" else [body]:
        kind = type(statement).__name__
        if kind == "AllocBuffer":
            dtype, elements = gpu_plan.buffer_size(statement.buffer)
            temporaries.append((dtype, elements))
            params.append(_pointer(statement.buffer.name, dtype))
            statements.append(tirx.DeclBuffer(statement.buffer, data=params[-1]))
        elif kind == "DeclBuffer" and type(statement.data).__name__ == "Call" and statement.data.args[0] in pointers:
            statements.append(tirx.DeclBuffer(statement.buffer, data=pointers[statement.data.args[0]]))
        else:
            statements.append(statement)
    return tirx.PrimFunc(params, tirx.SeqStmt(statements)).with_attr("tirx.noalias", True), temporaries


def _pointer(name: str, dtype: str) -> Any:
    return tirx.Var(f"{name}_ptr", tvm.ir.PointerType(tvm.ir.PrimType(dtype)))


def _passes() -> list[Any]:
    """TIR to loops over flat buffers."""
    s, t = s_tir.transform, tirx.transform
    return [
        s.CanonicalizeLoop(),
        s.LowerInitBlock(),
        s.PlanAndUpdateBufferAllocationLocation(),
        s.ConvertBlocksToOpaque(),
        s.CompactBufferAllocation(),
        s.LowerMatchBuffer(),
        s.StmtSimplify(),
        s.LowerOpaqueBlock(),
        t.FlattenBuffer(),
        t.NarrowDataType(32),
        s.LoopPartition(),
        t.StorageRewrite(),
        s.HoistIfThenElse(),
        t.UnrollLoop(),
        s.RenormalizeSplitPattern(),
        t.StmtSimplify(),
        t.RemoveNoOp(),
        s.RewriteUnsafeSelect(),
        t.CommonSubexprElim(),
    ]


def _tidy(source: str) -> tuple[str, dict[str, str]]:
    """TVM's C without TVM's headers; and a prototype for each function."""
    kept: list[str] = []
    prototypes: dict[str, str] = {}
    skipped = ("#define TVM_EXPORTS", "#include", "void* __tvm_ffi", "#ifdef __cplusplus", 'extern "C"', "#endif", "//")
    for line in source.splitlines():
        if line.startswith(skipped):
            continue
        plain = line.removeprefix("TVM_DLL ")
        if plain.endswith(");") and line != plain:
            prototypes[plain.split("(")[0].split()[-1]] = plain
            continue
        kept.append(plain)
    return HEADER + "\n" + "\n".join(prototypes.values()) + "\n\n" + "\n".join(kept).strip() + "\n", prototypes
