"""What a quantized network costs on hardware: cycles and bytes from the cycle simulator, energy from its counters.

In: a float module and its quantized form, configurations. Out: `Cost` on each configuration that suits it, fewest
cycles first, or the reason why there is none.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from accel.isa.config import AccelConfig
from accel.isa.errors import AccelError
from accel.isa.program import Program, SectionKind
from accel.sim.cycle import CycleDevice
from accel.sim.memory import memory_model
from relay_hw.compare.energy import Energy, estimate
from relay_hw.compare.work import NIBBLE, Work, network_work
from relay_hw.errors import RelayHwError
from relay_hw.ir.module import IRModule
from relay_hw.quantize import Strategy
from relay_hw.runtime.compile import CompiledModel, compile_model
from relay_hw.runtime.holding import Holding

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
    mod: IRModule, quantized: IRModule, strategy: Strategy, configs: Sequence[AccelConfig], tell: Tell
) -> tuple[tuple[Cost, ...], str]:
    """Cost on every configuration that suits the network, fewest cycles first; the reason where there is none."""
    if strategy.simulated:
        return (), strategy.simulated
    work = network_work(quantized)
    found: list[Cost] = []
    reasons: list[str] = []
    for config in suiting(work, configs):
        tell(f"compiling for {config.name}")
        try:
            found.append(_cost(mod, quantized, strategy, config, work))
        except (RelayHwError, AccelError) as error:
            reasons.append(f"{config.name}: {error}")
    return tuple(sorted(found, key=lambda cost: cost.cycles)), "; ".join(reasons)


def suiting(work: Work, configs: Sequence[AccelConfig]) -> list[AccelConfig]:
    """Configurations with 4-bit multipliers suit networks with layers of 4-bit weights; all others suit every one."""
    has_nibbles = work.macs_of(NIBBLE) > 0
    found = [config for config in configs if has_nibbles or config.wgt_bits > NIBBLE]
    return found or list(configs)


def _cost(mod: IRModule, quantized: IRModule, strategy: Strategy, config: AccelConfig, work: Work) -> Cost:
    begin = time.perf_counter()
    compiled = compile_model(mod, config=config, strategy=strategy, quantized=quantized)
    seconds = time.perf_counter() - begin
    counters, resident_bytes = _steady(compiled)
    on_device = {row.name for row in compiled.layers if row.where == "accel"}
    accel_macs = sum(row.macs for row in compiled.layers if row.where == "accel")
    accel, host = _shares(work, accel_macs)
    return Cost(
        config=config.name,
        cycles=counters["CYCLES"],
        dram_bytes=_moved(counters),
        resident_bytes=resident_bytes,
        macs=work.macs,
        accel_macs=accel_macs,
        accel_layers=len(on_device),
        host_layers=len(compiled.layers) - len(on_device),
        compile_seconds=seconds,
        energy=estimate(config, counters, accel, host),
    )


def _steady(compiled: CompiledModel) -> tuple[Counter[str], int]:
    """Counters of a run's launches after one run before; bytes of the loads that came once, before the first."""
    device = CycleDevice(compiled.config, memory_model(MEMORY), data=False)
    holding = Holding(compiled.config)
    runs = [Counter[str](), Counter[str]()]
    once = 0
    for counters in runs:
        for segment in compiled.segments.values():
            program = segment.program
            needed = holding.needs(program)
            holding.take(program)
            if needed:
                loaded = _launch(device, program, SectionKind.RESIDENT)
                counters.update(loaded)
                once += _moved(loaded) if counters is runs[0] else 0
            holding.hold(program)
            counters.update(_launch(device, program, SectionKind.PROGRAM))
    return runs[1], once


def _launch(device: CycleDevice, program: Program, section: SectionKind) -> Counter[str]:
    device.load(program)
    return Counter(device.launch(section).counters)


def _moved(counters: Counter[str]) -> int:
    return counters["READ_BYTES"] + counters["WRITE_BYTES"] + counters["FETCH_BYTES"]


def _shares(work: Work, accel_macs: int) -> tuple[dict[int, int], dict[int, int]]:
    """Multiply-accumulates by width on the accelerator and on the host: it takes narrow layers before wide ones."""
    accel: dict[int, int] = {}
    host: dict[int, int] = {}
    left = accel_macs
    for bits in sorted({layer.bits for layer in work.layers}):
        count = work.macs_of(bits)
        accel[bits] = min(left, count)
        host[bits] = count - accel[bits]
        left -= accel[bits]
    return accel, host


def with_strategy_bits(strategy: Strategy, configs: Sequence[AccelConfig]) -> Strategy:
    """The strategy with requantization multipliers that all of the configurations have."""
    return replace(strategy, multiplier_bits=min([strategy.multiplier_bits, *(c.multiplier_bits for c in configs)]))
