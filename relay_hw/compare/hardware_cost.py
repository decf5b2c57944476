"""The hardware cost of a quantized network: cycles and bytes from the cycle simulator, energy from its counters.

In: a float module and its quantized form, places. Out: `Cost` in each place that suits it, the fastest first, or the
reason why there is none.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypedDict

import numpy as np
from numpy.typing import NDArray

from relay_hw.accel.isa.errors import AccelError
from relay_hw.accel.isa.program import SectionKind
from relay_hw.accel.sim.cycle import CycleDevice
from relay_hw.accel.sim.dram_timing import memory_model
from relay_hw.compare.energy import Energy, estimate
from relay_hw.compare.network_work import NIBBLE, Work, network_work
from relay_hw.compare.places import Place
from relay_hw.compare.stored import stored_bytes
from relay_hw.compare.targets import instructions_of
from relay_hw.errors import RelayHwError
from relay_hw.ir.module import IRModule
from relay_hw.quantize import Strategy
from relay_hw.report import Report
from relay_hw.runtime.compile import CompiledModel, compile_model
from relay_hw.runtime.machine import machine_name
from relay_hw.runtime.options import CompileOptions
from relay_hw.runtime.widths import no_gain
from relay_hw.support.progress import Progress
from relay_hw.target.accel.clock import STANDARD
from relay_hw.target.accel.residency import Footprints
from relay_hw.target.accel.steady import steady
from relay_hw.target.partition import HOST
from relay_hw.target.records import LayerInfo

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Cost:
    """Cost of one steady-state inference on one configuration; `launches` include those that reload constants.

    `dram_bytes`: moved in it, instructions included; `resident_bytes`: moved once before. `accel_macs`: of `macs` in
    all, those on the accelerator. `host_seconds`: wall-clock, of the host's part by numpy on `machine`. `layers`:
    operators on accelerator and host. `memory`: the name of its model; `board` and `clock_hz`: where there is one.
    `weight_bytes`: of all weights as it stores them; `no_gain`: widths that it stores in wider integers, in a sentence.
    `area`: of the configuration, from synthesis. `instructions`: of all layers on the accelerator.
    """

    config: str
    cycles: int
    launches: int
    dram_bytes: int
    resident_bytes: int
    macs: int
    accel_macs: int
    accel_layers: int
    host_layers: int
    compile_seconds: float
    energy: Energy
    host_seconds: float
    machine: str
    weight_bytes: int = 0
    no_gain: str = ""
    memory: str = STANDARD
    board: str = ""
    clock_hz: int | None = None
    area: Mapping[str, int] = field(default_factory=dict)
    instructions: int = 0

    @property
    def samples_per_second(self) -> float | None:
        """Inferences per second, one after another; None without a board's clock."""
        return self.clock_hz / self.cycles if self.clock_hz and self.cycles else None

    @property
    def accel_share(self) -> float:
        """Share of the multiply-accumulates that run on the accelerator."""
        return self.accel_macs / self.macs if self.macs else 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Built:
    """A build that was measured: its cost, and its report."""

    cost: Cost
    report: Report


def costs(
    mod: IRModule,
    quantized: IRModule,
    strategy: Strategy,
    where: Sequence[Place],
    sample: Mapping[str, Array],
    progress: Progress,
) -> tuple[tuple[Built, ...], str]:
    """Builds for every suitable place, fastest first, or the reason why there is none.

    `sample`: inputs of one run; they decide how often loops and recursion launch a program.
    """
    if strategy.simulated:
        return (), strategy.simulated
    work = network_work(quantized)
    found: list[Built] = []
    reasons: list[str] = []
    for place in suiting(work, where):
        config = place.config
        progress.started(f"compiling for {config.name}")
        try:
            begin = time.perf_counter()
            compiled = compile_model(
                mod, CompileOptions(config=config, strategy=strategy, memory=place.memory), quantized=quantized
            )
            cost = _cost(compiled, work, sample, time.perf_counter() - begin)
            stored, wider = stored_bytes(quantized, config), no_gain(strategy, config)
            rest = {"board": place.board, "clock_hz": place.clock_hz, "weight_bytes": stored, "no_gain": wider}
            found.append(Built(replace(cost, **rest), compiled.report))
        except (RelayHwError, AccelError) as error:
            reasons.append(f"{config.name}: {error}")
    return tuple(sorted(found, key=lambda built: _time(built.cost))), "; ".join(reasons)


def _time(cost: Cost) -> float:
    """Seconds of an inference, or its cycles if no place has a clock."""
    return cost.cycles / cost.clock_hz if cost.clock_hz else cost.cycles


def suiting(work: Work, where: Sequence[Place]) -> list[Place]:
    """Places asked for by name, and others that suit: those with 4-bit multipliers only for 4-bit weights."""
    has_nibbles = work.macs_of(NIBBLE) > 0
    found = [place for place in where if place.is_named or has_nibbles or place.config.wgt_bits > NIBBLE]
    return found or list(where)


class Counted(TypedDict):
    """What an inference of a build takes, by the names that `Cost` has for it."""

    cycles: int
    launches: int
    dram_bytes: int
    resident_bytes: int
    macs: int
    accel_macs: int
    energy: Energy


def counted(compiled: CompiledModel, work: Work, calls: Sequence[str]) -> Counted:
    """What a steady-state inference takes that calls the programs in the order of `calls`."""
    counters, launches, resident_bytes = counters_of(compiled, calls)
    rows = _on_accelerator(compiled)
    once = sum(row.macs for row in rows)
    accel_macs = sum(row.macs * calls.count(row.function) for row in rows)
    accel, host = shares(work, once, accel_macs)
    return Counted(
        cycles=counters["CYCLES"],
        launches=launches,
        dram_bytes=moved_bytes(counters),
        resident_bytes=resident_bytes,
        macs=accel_macs + max(0, work.macs - once),
        accel_macs=accel_macs,
        energy=estimate(compiled.config, counters, accel, host),
    )


def _on_accelerator(compiled: CompiledModel) -> list[LayerInfo]:
    return [row for row in compiled.layers if row.where != HOST]


def _cost(compiled: CompiledModel, work: Work, sample: Mapping[str, Array], seconds: float) -> Cost:
    data = {name: np.asarray(value)[None] for name, value in sample.items()}
    accel_layers = len(_on_accelerator(compiled))
    return Cost(
        config=compiled.config.name,
        accel_layers=accel_layers,
        host_layers=len(compiled.layers) - accel_layers,
        compile_seconds=seconds,
        host_seconds=compiled.caller.host_seconds(compiled.inputs, data, _zeros(compiled)),
        machine=machine_name(),
        memory=compiled.memory_model,
        instructions=instructions_of(compiled),
        **counted(compiled, work, compiled.caller.calls(compiled.inputs, data).order),
    )


def _zeros(compiled: CompiledModel) -> dict[str, Any]:
    """Zeros in the shape of each region's result, by region."""
    found: dict[str, Any] = {}
    for name, segment in compiled.segments.items():
        values = tuple(np.zeros(port.shape, np.int8) for port in segment.outputs)
        found[name] = values[0] if len(values) == 1 else values
    return found


def counters_of(compiled: CompiledModel, calls: Sequence[str]) -> tuple[Counter[str], int, int]:
    """Counters and number of launches of a steady-state inference; bytes of one-time loads."""
    programs = {name: segment.program for name, segment in compiled.segments.items()}
    device = CycleDevice(compiled.config, memory_model(compiled.memory_model), data=False)

    def launched(name: str, kind: SectionKind) -> Mapping[str, int]:
        device.load(programs[name])
        return device.launch(kind).counters

    total, once = Counter[str](), 0
    state = steady(Footprints(compiled.config), programs, calls)
    for name, turns in state.turns.items():
        stays = programs[name].resident is not None
        reload = launched(name, SectionKind.RESIDENT) if stays else {}
        total.update(turns.counters(launched(name, SectionKind.PROGRAM), reload))
        once += turns.once * moved_bytes(Counter(reload))
    return total, state.launches, once


def moved_bytes(counters: Mapping[str, int]) -> int:
    """Bytes between DRAM and the accelerator, instructions included."""
    return counters["READ_BYTES"] + counters["WRITE_BYTES"] + counters["FETCH_BYTES"]


def shares(work: Work, once: int, called: int) -> tuple[dict[int, float], dict[int, float]]:
    """Multiply-accumulates by width on the accelerator and on the host, narrow layers first on the accelerator.

    `once`: those on the accelerator, each layer counted once; `called`: as often as it is called.
    """
    accel: dict[int, float] = {}
    host: dict[int, float] = {}
    left = once
    for bits in sorted({layer.bits for layer in work.layers}):
        count = work.macs_of(bits)
        taken = min(left, count)
        accel[bits] = taken * called / once if once else 0.0
        host[bits] = count - taken
        left -= taken
    return accel, host


def with_strategy_bits(strategy: Strategy, where: Sequence[Place]) -> Strategy:
    """The strategy with requantization multipliers narrow enough for every configuration."""
    bits = [place.config.multiplier_bits for place in where]
    return replace(strategy, multiplier_bits=min([strategy.multiplier_bits, *bits]))
