"""What a quantized network costs on hardware: cycles and bytes from the cycle simulator, energy from its counters.

In: a float module and its quantized form, configurations. Out: `Cost` on each configuration that suits it, fewest
cycles first, or the reason why there is none.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from numpy.typing import NDArray

from accel.isa.config import AccelConfig
from accel.isa.errors import AccelError
from accel.isa.program import Program, SectionKind
from accel.sim.cycle import CycleDevice
from accel.sim.memory import memory_model
from relay_hw.backend.flat import Machine, evaluate
from relay_hw.compare.energy import Energy, estimate
from relay_hw.compare.work import NIBBLE, Work, network_work
from relay_hw.errors import RelayHwError
from relay_hw.ir.module import IRModule
from relay_hw.quantize import Strategy
from relay_hw.runtime.compile import CompiledModel, compile_model
from relay_hw.runtime.holding import Holding

Array = NDArray[Any]
Tell = Callable[[str], object]

MEMORY: Final = "standard"


@dataclass(frozen=True, slots=True)
class Cost:
    """One run on one configuration, weights that stay on the device loaded before.

    `dram_bytes`: moved in a run, instructions included; `resident_bytes`: moved once before. `accel_macs`: of `macs` in
    all, those on the accelerator. `layers`: operators on accelerator and host. `area`: from synthesis, or empty.
    """

    config: str
    cycles: int
    dram_bytes: int
    resident_bytes: int
    macs: int
    accel_macs: int
    accel_layers: int
    host_layers: int
    compile_seconds: float
    energy: Energy

    @property
    def accel_share(self) -> float:
        """Share of the multiply-accumulates that run on the accelerator."""
        return self.accel_macs / self.macs if self.macs else 0.0


def costs(
    mod: IRModule,
    quantized: IRModule,
    strategy: Strategy,
    configs: Sequence[AccelConfig],
    sample: Mapping[str, Array],
    tell: Tell,
) -> tuple[tuple[Cost, ...], str]:
    """Cost on every configuration that suits the network, fewest cycles first; the reason where there is none.

    `sample`: inputs of one run; they decide how often loops and recursion launch a program.
    """
    if strategy.simulated:
        return (), strategy.simulated
    work = network_work(quantized)
    found: list[Cost] = []
    reasons: list[str] = []
    for config in suiting(work, configs):
        tell(f"compiling for {config.name}")
        try:
            begin = time.perf_counter()
            compiled = compile_model(mod, config=config, strategy=strategy, quantized=quantized, memory=MEMORY)
            found.append(_cost(compiled, work, sample, time.perf_counter() - begin))
        except (RelayHwError, AccelError) as error:
            reasons.append(f"{config.name}: {error}")
    return tuple(sorted(found, key=lambda cost: cost.cycles)), "; ".join(reasons)


def suiting(work: Work, configs: Sequence[AccelConfig]) -> list[AccelConfig]:
    """Configurations with 4-bit multipliers suit networks with layers of 4-bit weights; all others suit every one."""
    has_nibbles = work.macs_of(NIBBLE) > 0
    found = [config for config in configs if has_nibbles or config.wgt_bits > NIBBLE]
    return found or list(configs)


def _cost(compiled: CompiledModel, work: Work, sample: Mapping[str, Array], seconds: float) -> Cost:
    calls = _calls(compiled, sample)
    counters, resident_bytes = _steady(compiled, calls)
    rows = [row for row in compiled.layers if row.where == "accel"]
    once = sum(row.macs for row in rows)
    accel_macs = sum(row.macs * calls.count(row.function) for row in rows)
    accel, host = _shares(work, once, accel_macs)
    return Cost(
        config=compiled.config.name,
        cycles=counters["CYCLES"],
        dram_bytes=_moved(counters),
        resident_bytes=resident_bytes,
        macs=accel_macs + max(0, work.macs - once),
        accel_macs=accel_macs,
        accel_layers=len(rows),
        host_layers=len(compiled.layers) - len(rows),
        compile_seconds=seconds,
        energy=estimate(compiled.config, counters, accel, host),
    )


def _calls(compiled: CompiledModel, sample: Mapping[str, Array]) -> list[str]:
    """Device functions in the order in which one run calls them, by numpy."""
    found: list[str] = []

    def invoke(name: str, args: list[Any]) -> Any:
        found.append(name)
        return evaluate(compiled.functions[name], args)

    host = Machine({name: f for name, f in compiled.functions.items() if name not in compiled.segments})
    host.call(compiled.main, [sample[param.name] for param in compiled.main.params], invoke)
    return found


def _steady(compiled: CompiledModel, calls: Sequence[str]) -> tuple[Counter[str], int]:
    """Counters of a run's launches after one run before; bytes of the loads that came once, before the first."""
    launch = _Launcher(compiled.config)
    holding = Holding(compiled.config)
    runs = [Counter[str](), Counter[str]()]
    once = 0
    for counters in runs:
        for name in calls:
            program = compiled.segments[name].program
            needed = holding.needs(program)
            holding.take(program)
            if needed:
                loaded = launch(name, program, SectionKind.RESIDENT)
                counters.update(loaded)
                once += _moved(loaded) if counters is runs[0] else 0
            holding.hold(program)
            counters.update(launch(name, program, SectionKind.PROGRAM))
    return runs[1], once


class _Launcher:
    """Counters of launches. Time does not depend on data, so each stream is simulated once."""

    def __init__(self, config: AccelConfig) -> None:
        self._device = CycleDevice(config, memory_model(MEMORY), data=False)
        self._known: dict[tuple[str, SectionKind], Counter[str]] = {}

    def __call__(self, name: str, program: Program, section: SectionKind) -> Counter[str]:
        if (name, section) not in self._known:
            self._device.load(program)
            self._known[name, section] = Counter(self._device.launch(section).counters)
        return self._known[name, section]


def _moved(counters: Counter[str]) -> int:
    return counters["READ_BYTES"] + counters["WRITE_BYTES"] + counters["FETCH_BYTES"]


def _shares(work: Work, once: int, called: int) -> tuple[dict[int, float], dict[int, float]]:
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


def with_strategy_bits(strategy: Strategy, configs: Sequence[AccelConfig]) -> Strategy:
    """The strategy with requantization multipliers that all of the configurations have."""
    return replace(strategy, multiplier_bits=min([strategy.multiplier_bits, *(c.multiplier_bits for c in configs)]))
