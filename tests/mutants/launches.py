"""Trials of launches that are cut, and of what the registers say: resets, aborts, the watchdog, dead channels."""

from __future__ import annotations

import random
from collections.abc import Iterator

from relay_hw.accel.isa.config import AccelConfig
from relay_hw.accel.isa.errors import FaultCode
from relay_hw.accel.isa.registers import REGISTER, REGISTERS
from relay_hw.accel.isa.spec import DEVICE_MAGIC, ISA_VERSION
from relay_hw.accel.sim.dram_timing import MemoryModel
from relay_hw.accel.sim.registers import COUNTERS, ProtocolError
from relay_hw.accel.sim.rtl_device import WINDOW_BASE, Simulation
from relay_hw.accel.sim.rtl_model import Channel
from tests.mutants.stimuli import (
    BUSY,
    BUSY_BIT,
    DONE_BIT,
    FAULT_BIT,
    LAUNCH,
    RESET,
    STANDARD,
    Expected,
    Maker,
    Trial,
    launched,
)


def interrupted(config: AccelConfig, case: Expected, seed: int, by_pin: bool) -> Trial:
    """A launch is cut by a reset, of the chip or by CONTROL; then the program runs as on a new device."""
    cycles = dict(case.counters)["CYCLES"]

    def trial(make: Maker) -> Iterator[str]:
        rng, device = random.Random(seed), make(BUSY, Simulation())
        core, model = device.core, device.model
        for _ in range(6):
            device.load(case.program)
            core.launch(case.program.code, 0)
            model.advance(rng.randrange(1, cycles))
            if by_pin:
                model.reset()
                wrong = [name for name in ("STATUS", "CYCLES", "FAULT_INDEX") if core.get(name)]
                yield from (f"{name} is not 0 after the chip's reset" for name in wrong)
            else:
                core.put("CONTROL", RESET)
                for _ in range(500):
                    if not core.get("STATUS"):
                        break
                else:
                    yield f"STATUS {core.get('STATUS'):#x} long after CONTROL's reset"
            yield from launched(device, case)

    return trial


def again(case: Expected, memory: MemoryModel, seed: int, is_cut: bool) -> Trial:
    """A launch waits at the bus while another one ends, by an abort or of itself: nothing of that one is left in it."""
    cycles, control = dict(case.counters)["CYCLES"], REGISTER["CONTROL"].offset

    def trial(make: Maker) -> Iterator[str]:
        rng, device = random.Random(seed), make(memory, Simulation())
        core, model = device.core, device.model
        device.load(case.program)
        for number in range(40):
            core.launch(case.program.code, 0)
            model.advance(rng.randrange(1, cycles) if is_cut else cycles - 30 + number % 8)
            if is_cut:
                core.put("CONTROL", RESET)
            # CYCLES stands still in a launch that is cut.
            for _ in range(200):
                for _ in range(14):
                    model.write_register(control, LAUNCH)
                if core.get("CYCLES") < core.get("CYCLES"):
                    break
            if not model.run(case.watchdog).done or core.get("STATUS") != DONE_BIT:
                yield f"STATUS {core.get('STATUS'):#x} of a launch right behind another one"
                core.put("CONTROL", RESET)
                return
            found = core.counters()
            wrong = [f"{name} {found[name]}, not {value}" for name, value in case.counters if found[name] != value]
            yield from (f"{text} right behind another launch" for text in wrong)
        yield from launched(device, case)

    return trial


def untouched(config: AccelConfig, case: Expected) -> Trial:
    """A register that nobody wrote since the chip's reset counts as 0 in a launch, and not as what it was before."""
    window = case.program.window_bytes
    # What a launch ends with where one register is 0: the program does not begin at 0, nor ends in an empty window.
    wanted = {"WINDOW_BYTES": FAULT_BIT | FaultCode.DRAM_RANGE << 8, "COUNT": FAULT_BIT | FaultCode.ILLEGAL_OPCODE << 8}
    wanted |= {"WINDOW_BASE": DONE_BIT, "WATCHDOG": DONE_BIT, "PROGRAM": FAULT_BIT | FaultCode.ILLEGAL_OPCODE << 8}

    def trial(make: Maker) -> Iterator[str]:
        device = make(STANDARD, Simulation())
        core, model = device.core, device.model
        code = case.program.code
        values = {"WINDOW_BYTES": window, "PROGRAM": code.offset, "COUNT": case.program.count, "WATCHDOG": 7}
        for name, status in wanted.items():
            device.load(case.program)
            for key, value in values.items():
                core.put(key, value)
            model.reset()
            base = 0 if name == "WINDOW_BASE" else WINDOW_BASE
            written = {**values, "WINDOW_BASE": base, "WATCHDOG": case.watchdog}
            content = device.read(0, window)
            content[0] = 0  # no operation, where the program would begin at 0
            model.window(content, base)
            for key, value in written.items():
                if key != name:
                    core.put(key, value)
            core.put("CONTROL", LAUNCH)
            model.run(case.watchdog + 2000)
            if core.get("STATUS") & ~BUSY_BIT != status:
                yield f"STATUS {core.get('STATUS'):#x}, not {status:#x} where {name} was not written"
            core.put("CONTROL", RESET)
            model.advance(100)

    return trial


def by_watchdog(case: Expected, seed: int) -> Trial:
    """A launch ends at the watchdog's cycle and no other; a second fault does not hide the first one."""

    def trial(make: Maker) -> Iterator[str]:
        rng, device = random.Random(seed), make(BUSY, Simulation())
        core, model = device.core, device.model
        for _ in range(4):
            limit = rng.randrange(20, dict(case.counters)["CYCLES"] - 20)
            device.load(case.program)
            core.launch(case.program.code, limit)
            begin = model.clock_cycles
            if not model.run(limit + 3000).done:
                yield f"the watchdog of {limit} cycles did not end it"
                return
            wanted = FaultCode.WATCHDOG << 8 | FAULT_BIT
            status, index = core.get("STATUS") & ~BUSY_BIT, core.get("FAULT_INDEX")
            if status != wanted or index >= case.program.count:
                yield f"STATUS {status:#x}, FAULT_INDEX {index} of a watchdog"
            if not limit - 20 < model.clock_cycles - begin < limit + 1500:
                yield f"the watchdog of {limit} cycles took {model.clock_cycles - begin}"
            core.put("CONTROL", RESET)
            model.advance(500)
            yield from launched(device, case)

    return trial


def silent(case: Expected, seed: int) -> Trial:
    """Channels die in mid-run: a watchdog's fault that stays until they live again, or until the chip's reset."""
    stuck = FaultCode.WATCHDOG << 8 | BUSY_BIT | FAULT_BIT
    cycles = dict(case.counters)["CYCLES"]

    def trial(make: Maker) -> Iterator[str]:
        rng, device = random.Random(seed), make(BUSY, Simulation())
        core, model = device.core, device.model
        for number in range(5):
            device.load(case.program)
            core.launch(case.program.code, cycles + 100)
            model.advance(rng.randrange(cycles))
            model.silence(Channel(1 << number))
            if not model.run(cycles + 500).done:
                yield "the watchdog did not stop it"
            status = core.get("STATUS")
            if status not in (stuck, stuck & ~BUSY_BIT, DONE_BIT):
                yield f"STATUS {status:#x} on a dead bus"
            if status & FAULT_BIT and core.get("FAULT_INDEX") >= case.program.count:
                yield f"FAULT_INDEX {core.get('FAULT_INDEX')}"
            core.put("CONTROL", RESET)
            if core.get("STATUS") != (stuck if status == stuck else 0):
                yield f"STATUS {core.get('STATUS'):#x} after CONTROL's reset on a dead bus"
            if number % 2:
                model.reset()
            model.silence(Channel(0))
            model.advance(1000)
            if core.get("STATUS"):
                yield f"STATUS {core.get('STATUS'):#x} when all channels live"
            yield from launched(device, case)

    return trial


WRITABLE = {"WINDOW_BASE": 0xFFFF_F000, "WINDOW_BYTES": 0xFFFF_FFFF, "PROGRAM": 0xFFFF_FFE0}
# Every gap of the table, the words behind its end, and addresses in which one more bit is set.
NO_REGISTERS = (
    *sorted(set(range(0, REGISTERS[-1].offset + 12, 4)) - {register.offset for register in REGISTERS}),
    *(0x100, 0x140, 0x800, 0xFFC),
)
WRITABLE |= {"COUNT": 0xFFFF_FFFF, "WATCHDOG": 0xFFFF_FFFF}


def registers(config: AccelConfig, case: Expected) -> Trial:
    """Every bit of every register; what a launch keeps from changing; addresses that are no register."""

    def trial(make: Maker) -> Iterator[str]:
        device = make(STANDARD, Simulation())
        core, model = device.core, device.model
        facts = {"MAGIC": DEVICE_MAGIC, "VERSION": ISA_VERSION, "CONFIG_HASH": config.hash32, "STATUS": 0}
        yield from (f"{name} is not {value:#x}" for name, value in facts.items() if core.get(name) != value)
        yield from (f"{name} is not 0" for name in (*COUNTERS, *WRITABLE, "FAULT_INDEX") if core.get(name))
        for name, mask in WRITABLE.items():
            for pattern in (0, 0xFFFF_FFFF, 0x5555_5555, 0xAAAA_AAAA, *(1 << bit for bit in range(32))):
                core.put(name, pattern & mask)
                if core.get(name) != pattern & mask:
                    yield f"{name} keeps {core.get(name):#x}, not {pattern & mask:#x}"
        for number, name in enumerate(WRITABLE):
            core.put(name, 0x1111_1111 * (number + 1) & WRITABLE[name])
        for number, name in enumerate(WRITABLE):
            if core.get(name) != 0x1111_1111 * (number + 1) & WRITABLE[name]:
                yield f"{name} changes when others are written"
        for offset in NO_REGISTERS:
            for access in (model.read_register, lambda offset: model.write_register(offset, 1)):
                try:
                    access(offset)
                    yield f"an access to {offset:#x}, which is no register, is answered OKAY"
                except ProtocolError as error:
                    if "must be answered OKAY, not 2" not in str(error):
                        yield str(error)
        yield from launched(device, case)
        # In a launch registers keep their values, and a second launch changes nothing.
        device.load(case.program)
        core.launch(case.program.code, case.watchdog)
        kept = {name: core.get(name) for name in WRITABLE}
        for name in (*WRITABLE, "CONTROL"):
            core.put(name, LAUNCH)
        yield from (f"{name} changed in a launch" for name, value in kept.items() if core.get(name) != value)
        model.run(case.watchdog + 2000)
        if core.get("STATUS") != DONE_BIT or core.counters()["CYCLES"] != dict(case.counters)["CYCLES"]:
            yield "a launch that registers were written in ends otherwise"

    return trial
