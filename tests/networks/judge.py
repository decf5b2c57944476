"""Holds a drawn network to what is promised. In: a recipe. Out: what of it ran where, or the first thing that is wrong.

The imported float module gives onnxruntime's numbers; every device gives the interpreter's bytes; the Verilog takes the
cycle simulator's cycles.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from relay_hw.accel.sim.bounds import cycle_bound
from relay_hw.accel.sim.dram_timing import memory_model
from relay_hw.accel.sim.functional import FunctionalDevice
from relay_hw.accel.sim.names import CYCLE, FUNCTIONAL, RTL
from relay_hw.interp import evaluate
from relay_hw.ir.expr import Call, Function
from relay_hw.ir.visit import post_order
from relay_hw.runtime.artifact import Artifact
from relay_hw.runtime.compile import CompiledModel, compile_model
from relay_hw.runtime.execute import Executor
from relay_hw.runtime.options import CompileOptions
from relay_hw.runtime.result import Result
from relay_hw.target.accel.devices import close_device, open_device
from relay_hw.transform.graph import op_name
from tests.networks.as_onnx import module_of, onnx_of, samples_of
from tests.networks.draw import IN_VERILOG
from tests.networks.recipe import Recipe

CALIBRATION, SAMPLES = 3, 2


class Wrong(Exception):
    """A network whose results differ from what is promised."""


@dataclass(frozen=True, slots=True)
class Judged:
    """What of a network ran on the device: composites, and the operators in them; whether the Verilog ran it."""

    composites: frozenset[str]
    operators: frozenset[str]
    in_verilog: bool


def has_verilog(recipe: Recipe) -> bool:
    """Whether the configuration is among the few whose Verilog is built."""
    return recipe.base == "tiny" and recipe.changes in IN_VERILOG


def judge(recipe: Recipe, verilog: bool) -> Judged:
    """Compile and run the network everywhere, with `verilog` on that, too. Raises Wrong, or what was raised."""
    _float(recipe)
    compiled = compiled_of(recipe)
    _bounded(compiled)
    in_verilog = verilog and has_verilog(recipe) and bool(compiled.segments)
    with tempfile.TemporaryDirectory() as folder:
        build = compiled.save(Path(folder) / "build")
        data = samples_of(recipe, SAMPLES)
        want = Executor(build, None).run(data, keep_regions=True)
        runs = {name: _run(build, name, data, recipe.seed) for name in (FUNCTIONAL, CYCLE, *[RTL] * in_verilog)}
    for name, run in runs.items():
        _equal(name, run, want)
    if in_verilog:
        _same_counts(runs[CYCLE], runs[RTL])
    composites = list(_composites(compiled))
    inside = {op_name(node) for one in composites for node in post_order(one) if isinstance(node, Call)}
    return Judged(
        frozenset(str(one.attrs["Composite"]) for one in composites),
        frozenset(name for name in inside if name),
        in_verilog,
    )


def compiled_of(recipe: Recipe) -> CompiledModel:
    """The network compiled for its configuration."""
    mod, params = module_of(recipe)
    options = CompileOptions(
        config=recipe.config, strategy=recipe.strategy, resident=recipe.resident, host_target="numpy"
    )
    return compile_model(mod, options, params=params, calibration=samples_of(recipe, CALIBRATION))


def _float(recipe: Recipe) -> None:
    mod, params = module_of(recipe)
    data = {name: value[:1] for name, value in samples_of(recipe, SAMPLES).items()}
    value = evaluate(mod, {**data, **params})
    found = value if isinstance(value, tuple) else (value,)
    wanted = onnxruntime_results(onnx_of(recipe).SerializeToString(), data)
    for name, got, want in zip(recipe.results, found, wanted, strict=True):
        scale = float(np.abs(want).max(initial=0))
        if got.shape != want.shape or not np.allclose(got, want, rtol=1e-4, atol=1e-5 * scale + 1e-6):
            raise Wrong(f"float {name}: onnxruntime has other numbers")


def onnxruntime_results(model: bytes, inputs: Mapping[str, Any]) -> list[NDArray[Any]]:
    """What onnxruntime computes, without its own changes of the graph."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model, options, ["CPUExecutionProvider"])
    return session.run(None, dict(inputs))


def _bounded(compiled: CompiledModel) -> None:
    """No sound launch is ended by the watchdog."""
    for segment in compiled.segments.values():
        bound = cycle_bound(compiled.config, memory_model("standard"), segment.program.code.data or b"")
        if segment.cycles >= bound:
            raise Wrong(f"watchdog: {segment.name} takes {segment.cycles} cycles, which must be less than {bound}")


def _run(build: Artifact, name: str, data: Mapping[str, NDArray[Any]], order: int) -> Result:
    # Units in another order for each network, of those that the tokens allow.
    device = FunctionalDevice(build.config, order) if name == FUNCTIONAL else open_device(name, build.config)
    try:
        return Executor(build, device).run(data, keep_regions=True)
    finally:
        close_device(device)


def _equal(device: str, got: Result, want: Result) -> None:
    for region, tensors in want.regions.items():
        for place, pair in enumerate(zip(got.regions[region], tensors, strict=True)):
            _same(f"{device}: result {place} of {region}", *pair)
    for name in want.outputs:
        _same(f"{device}: output {name}", got.outputs[name], want.outputs[name])


def _same(what: str, got: NDArray[Any], want: NDArray[Any]) -> None:
    if got.shape != want.shape or got.tobytes() != want.tobytes():
        raise Wrong(f"{what} has {int(np.sum(got != want))} of {want.size} elements other than the interpreter's")


def _same_counts(cycle: Result, rtl: Result) -> None:
    pairs = zip((*cycle.residents, *cycle.launches), (*rtl.residents, *rtl.launches), strict=True)
    for mine, theirs in pairs:
        if mine.stats.counters != theirs.stats.counters:
            raise Wrong(f"rtl: {mine.function} counts {theirs.stats.counters}, not {mine.stats.counters}")


def _composites(compiled: CompiledModel) -> list[Function]:
    return [
        node
        for name, function in compiled.stages["partitioned"].functions.items()
        if name in compiled.segments
        for node in post_order(function)
        if isinstance(node, Function) and "Composite" in node.attrs
    ]
