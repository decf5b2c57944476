"""Explains a build's cycles: causes of lost cycles, the effect of other hardware, lower bounds.

In: an artefact and a memory model. Out: an `Explanation` of one inference in steady state. A counterfactual is timed on
the exact simulator, so it is what the Verilog built that way takes; ideal cases that cannot be built are reported as
lower bounds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from relay_hw import tensorize
from relay_hw.accel.isa.config import AccelConfig
from relay_hw.accel.isa.errors import AccelError
from relay_hw.accel.isa.program import Program, SectionKind
from relay_hw.accel.isa.spec import Op, Unit
from relay_hw.accel.sim.causes import LOADS, Cause
from relay_hw.accel.sim.cycle import CycleDevice
from relay_hw.accel.sim.cycle.losses import Account, accounts, together
from relay_hw.accel.sim.dram_timing import MemoryModel, memory_model
from relay_hw.accel.sim.names import CYCLE
from relay_hw.errors import TensorizeError
from relay_hw.ir.expr import Function
from relay_hw.report import Report
from relay_hw.runtime.artifact import Artifact
from relay_hw.runtime.compile import device_functions
from relay_hw.runtime.effects import Spent, reloads_in, spent_in, total_spent
from relay_hw.runtime.explanation import Bound, Explanation, Loss, Outcome
from relay_hw.runtime.profile import measured_report, time_regions
from relay_hw.runtime.region_run import RegionRun
from relay_hw.support.progress import SILENT, Progress
from relay_hw.target.accel.changes import Change, distinct, usual_changes
from relay_hw.target.accel.clock import target_of
from relay_hw.target.accel.residency import Footprints
from relay_hw.target.accel.rules import NAME as ACCEL
from relay_hw.target.accel.steady import steady
from relay_hw.text import parse
from relay_hw.transform.infer_type import InferType

# Causes below this share of the cycles ask for no counterfactual of their own.
LEAST = 0.002
LAYERS = 3
_TRYING: Final = "trying changes"


def explain(
    artifact: Artifact,
    memory: str | None = None,
    changes: Sequence[Change] | None = None,
    progress: Progress = SILENT,
) -> Explanation:
    """Losses, effects of changes and bounds. `changes`: those to try; None: defaults that fit the losses.

    `memory`: name of a memory model; the build's own where none is given.
    """
    memory = memory or artifact.manifest.memory_model
    progress.started("timing the build")
    runs = time_regions(artifact, memory)
    report = replace(measured_report(artifact.manifest, runs), device=CYCLE, memory_model=memory)
    losses = _losses(report, runs)
    base = memory_model(memory)
    if changes is None:
        least = LEAST * (report.cycles or 0)
        wanted = {loss.cause for loss in losses if loss.cycles >= least}
        loads = {name for name, cycles in _whole(runs).loads.items() if cycles >= least}
        changes = [c for c in usual_changes(artifact.config, base) if c.may_help(wanted, loads)]
    compiler = _Compiler(artifact)
    changes = distinct(changes)
    outcomes: list[Outcome] = []
    progress.started(_TRYING, len(changes))
    for number, change in enumerate(changes):
        progress.advanced(_TRYING, number, change.text)
        outcomes.append(try_change(artifact, change, base, compiler))
    spent = _spent_before(artifact, runs)
    return Explanation(report, artifact.config, spent, losses, tuple(outcomes), _bounds(artifact, report, runs, base))


def macs_of(artifact: Artifact, function: str) -> int:
    """Multiply-accumulates of one launch of a region."""
    return sum(row.macs for row in artifact.manifest.layers if row.function == function)


class _Compiler:
    """Compiles a build's regions for other configurations, from its partitioned module, which is read lazily."""

    def __init__(self, artifact: Artifact) -> None:
        self._artifact = artifact
        self._functions: dict[str, Function] | None = None

    def programs(self, config: AccelConfig, memory: MemoryModel) -> dict[str, Program]:
        """A program for each region, made for that memory. Raises TensorizeError."""
        target, make = target_of(config, memory), tensorize.compile_function
        if self._functions is None:
            text = self._artifact.stage_text("partitioned")
            module = InferType()(parse(text, str(self._artifact.path)))
            self._functions = device_functions(module, ACCEL)
        resident = any(program.resident is not None for program in self._artifact.programs.values())
        return {name: make(function, target, name, resident).program for name, function in self._functions.items()}


def try_change(artifact: Artifact, change: Change, memory: MemoryModel, compiler: _Compiler | None = None) -> Outcome:
    """Time every region on the changed hardware, recompiled if programs depend on what changed."""
    config, limits = change.config(artifact.config), change.memory_model(memory)
    try:
        if change.recompiles:
            programs = (compiler or _Compiler(artifact)).programs(config, limits)
        else:
            programs = {name: _made_for(program, config) for name, program in artifact.programs.items()}
        spent = _spent(artifact, programs, config, limits)
    except (TensorizeError, AccelError) as error:
        return Outcome(change, None, str(error), config, limits, {})
    return Outcome(change, spent, "", config, limits, programs)


def _made_for(program: Program, config: AccelConfig) -> Program:
    sizes = tuple(config.sizes.items())
    return replace(program, config=config.name, config_hash=config.hash32, sizes=sizes)


def _spent(artifact: Artifact, programs: Mapping[str, Program], config: AccelConfig, memory: MemoryModel) -> Spent:
    """Cycles and bytes of the build's calls with other programs, in steady state."""
    device = CycleDevice(config, memory, data=False)
    parts: list[Spent] = []
    for name, turns in steady(Footprints(config), programs, artifact.manifest.calls).turns.items():
        device.load(programs[name])
        device.launch()
        parts.append(spent_in(device.timing, macs_of(artifact, name)) * turns.launches)
        if turns.reloads:
            device.launch(SectionKind.RESIDENT)
            parts.append(reloads_in(device.timing) * turns.reloads)
    return total_spent(parts)


def _spent_before(artifact: Artifact, runs: Sequence[RegionRun]) -> Spent:
    """Cycles and bytes of an inference with the build as it is."""
    parts = [spent_in(run.timing, macs_of(artifact, run.function)) * run.turns.launches for run in runs]
    return total_spent(parts + [reloads_in(run.resident) * run.turns.reloads for run in runs if run.resident])


def _whole(runs: Sequence[RegionRun]) -> Account:
    return together(account.times(run.turns.launches) for run in runs for account in accounts(run.stretches).values())


def _losses(report: Report, runs: Sequence[RegionRun]) -> tuple[Loss, ...]:
    whole = _whole(runs)
    found: list[Loss] = []
    for cause, cycles in report.stalls.items():
        rows = [(row.name, row.stalls.get(cause, 0)) for row in report.layers]
        worst = sorted((row for row in rows if row[1]), key=lambda row: -row[1])[:LAYERS]
        parts: Mapping[str, int] = Counter()
        if cause is Cause.QUEUE:
            parts = whole.queues
        elif cause is Cause.FILL:
            parts = {str(part): count for part, count in whole.fill.items()}
        elif cause in LOADS:
            parts = _loaded(runs, cause)
        if cycles:
            found.append(Loss(cause, cycles, tuple(worst), dict(Counter(parts).most_common())))
    return tuple(sorted(found, key=lambda loss: -loss.cycles))


def _loaded(runs: Sequence[RegionRun], cause: Cause) -> Counter[str]:
    """Cycles of a cause of LOADS by the scratchpad that was loaded."""
    parts: Counter[str] = Counter()
    for run in runs:
        for stretch in run.stretches:
            if stretch.cause == cause and not stretch.fill:
                parts[stretch.what] += stretch.cycles * run.turns.launches
    return parts


def _bounds(artifact: Artifact, report: Report, runs: Sequence[RegionRun], memory: MemoryModel) -> tuple[Bound, ...]:
    """Ideal cases, largest first."""
    slots = Counter[Unit | None]()
    beats = Counter[Unit | None]()
    products = 0
    for run in runs:
        for timing, count in ((run.timing, run.turns.launches), (run.resident, run.turns.reloads)):
            for work in timing.works if timing is not None else ():
                slots[work.unit] += count * work.slots
                beats[work.unit] += count * work.beats
                products += count * work.slots if work.op is Op.GEMM and work.products else 0
    fetched = report.traffic.instructions // artifact.config.bus_bytes
    found = [
        Bound("COMPUTE never waits", slots[Unit.COMPUTE]),
        Bound("COMPUTE never waits and makes nothing but products", products),
        Bound("products never wait and use every lane", -(-report.macs // artifact.config.macs_per_cycle)),
        Bound("nothing but the output stage", slots[Unit.OUTPUT]),
        *([Bound("nothing but the row unit", slots[Unit.ROW])] if slots[Unit.ROW] else []),
    ]
    reads, writes = beats[Unit.LOAD] + fetched, beats[Unit.STORE]
    if memory.sdram is None:
        found += [Bound("nothing but reads on the bus", reads), Bound("nothing but writes on the bus", writes)]
    else:
        cycles = (reads + writes) * memory.sdram.beat_cycles(artifact.config)
        found.append(Bound("nothing but reads and writes on the memory chip", cycles))
    return tuple(sorted(found, key=lambda bound: -bound.cycles))
