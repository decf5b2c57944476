"""What finds mutants: trials of the Verilog, the cheapest first, each against what the simulators and ISA.md say.

In: a configuration. Out: trials. A trial takes a maker of devices and yields what is wrong. What it expects is made
once, by the functional and the cycle simulator, before any mutant runs.

Registers and memories of the model begin with random bits, so that a reset that is lost is seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from relay_hw.accel.isa.config import AccelConfig
from relay_hw.accel.isa.errors import DeadlockError, Fault, FaultCode
from relay_hw.accel.isa.program import SECTION_ALIGN, Program, Section, SectionKind, align
from relay_hw.accel.isa.spec import Mem, Op
from relay_hw.accel.isa.stream import Instr
from relay_hw.accel.sim.cycle import CycleDevice
from relay_hw.accel.sim.dram_timing import MemoryModel, WriteOrder
from relay_hw.accel.sim.functional import FunctionalDevice
from relay_hw.accel.sim.rtl_device import RtlDevice, Simulation

STANDARD = MemoryModel()
# A memory that is full most of the time, so that addresses wait.
BUSY = MemoryModel(latency=20, read_outstanding=2, write_outstanding=1)
BUSY_BIT, DONE_BIT, FAULT_BIT = 1, 2, 4
# Launch and reset of CONTROL.
LAUNCH, RESET = 1, 2
# Cycles of a launch without a bound of its own.
PATIENCE = 60_000


@dataclass(frozen=True, slots=True)
class Expected:
    """A program with how its launch ends: a fault, or counters and, where the program decides them, bytes."""

    program: Program
    fault: FaultCode | None = None
    index: int | None = None
    counters: tuple[tuple[str, int], ...] = ()
    window: np.ndarray | None = None

    @property
    def watchdog(self) -> int:
        """Cycles that no good launch takes."""
        return 2 * dict(self.counters).get("CYCLES", PATIENCE // 2) + 200


Maker = Callable[[MemoryModel, Simulation], RtlDevice]
Trial = Callable[[Maker], Iterator[str]]


def constants(config: AccelConfig, data: Mapping[Mem, bytes], prm: int) -> tuple[list[Instr], list[Section], int]:
    """LOADs of what memories begin with, parameters at entry `prm`; their sections in DRAM, and where these end.

    The load of accumulators gives a token.
    """
    code, sections, begin = list[Instr](), list[Section](), 0
    for mem, content in data.items():
        sections.append(Section(mem.name, SectionKind.CONSTANTS, begin, len(content), content))
        values = {"mem": mem, "dram": begin, "z": len(content) // config.granule_bytes}
        code.append((Op.LOAD, {**values, "sram": prm if mem is Mem.PRM else 0, "set": int(mem is Mem.ACC)}))
        begin = align(begin + len(content), SECTION_ALIGN)
    return code, sections, begin


def expect(config: AccelConfig, program: Program, memory: MemoryModel, has_bytes: bool) -> Expected:
    """What the simulators say of a program."""
    model = CycleDevice(config, memory, data=False)
    model.load(program)
    try:
        counters = tuple(model.launch().counters.items())
    except DeadlockError:
        return Expected(program, FaultCode.WATCHDOG)
    except Fault as fault:
        return Expected(program, fault.code, fault.index)
    if not has_bytes:
        return Expected(program, counters=counters)
    device = FunctionalDevice(config)
    device.load(program)
    device.launch()
    return Expected(program, counters=counters, window=device.read(0, program.window_bytes))


def refusal(config: AccelConfig, program: Program) -> Expected | None:
    """The fault of a program that the instruction set refuses, whatever the time; None where it does not."""
    device = FunctionalDevice(config)
    device.load(program)
    try:
        device.launch()
    except Fault as fault:
        return Expected(program, fault.code, fault.index)
    except DeadlockError:
        return None
    return None


def launched(device: RtlDevice, expected: Expected, has_time: bool = True) -> Iterator[str]:
    """Launch; what differs. `has_time`: the memory is one whose time the cycle simulator knows."""
    device.load(expected.program)
    yield from ended(device, expected, has_time)


def ended(device: RtlDevice, expected: Expected, has_time: bool) -> Iterator[str]:
    """Launch what was loaded, which may have been changed since; what differs."""
    core, model = device.core, device.model
    watchdog = expected.watchdog * (1 if has_time else 64)
    core.launch(expected.program.code, watchdog)
    if not core.get("STATUS") & BUSY_BIT and watchdog > 500 and expected.fault is None and has_time:
        yield "not busy behind a launch"
    result = model.run(watchdog + 2_000)
    if not result.done or (result.in_flight and expected.fault is None):
        yield f"done {result.done}, {result.in_flight} bursts in flight"
        return
    if result.in_flight:
        model.advance(100)
    status, index = core.get("STATUS"), core.get("FAULT_INDEX")
    wanted = DONE_BIT if expected.fault is None else FAULT_BIT | expected.fault << 8
    if status != wanted:
        yield f"STATUS {status:#x}, not {wanted:#x}"
    if expected.fault is not None:
        if expected.index is not None and index != expected.index:
            yield f"FAULT_INDEX {index}, not {expected.index}"
        core.put("CONTROL", RESET)
        if core.get("STATUS"):
            yield f"STATUS {core.get('STATUS'):#x} after a reset"
        return
    found = core.counters()
    # Time and what waits for time is the memory's where it stalls at random.
    for name, value in expected.counters:
        is_time = name.endswith(("CYCLES", "_BUSY", "_TOKEN", "_MEMORY"))
        if found[name] != value and (has_time or not is_time):
            yield f"{name} {found[name]}, not {value}"
    if expected.window is not None:
        wrong = np.flatnonzero(device.read(0, expected.program.window_bytes) != expected.window)
        if wrong.size:
            yield f"byte {wrong[0]:#x} and {wrong.size - 1} more"


# programs


def in_order(cases: list[Expected], memory: MemoryModel) -> Trial:
    """Good and bad programs one behind the other: counters, bytes, faults."""

    def trial(make: Maker) -> Iterator[str]:
        device = make(memory, Simulation())
        for case in cases:
            yield from launched(device, case)

    return trial


def stalled(cases: list[Expected], order: WriteOrder, seed: int) -> Trial:
    """Every channel waits at random: bytes and what is counted but time."""

    def trial(make: Maker) -> Iterator[str]:
        device = make(replace(BUSY, write_order=order), Simulation(stall_seed=seed))
        for case in cases:
            yield from launched(device, case, has_time=False)

    return trial
