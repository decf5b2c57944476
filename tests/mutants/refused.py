"""Trials of programs that end in a fault: illegal words, places outside of the window, answers of the bus."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

from relay_hw.accel.isa.config import INSTRUCTION_BYTES, AccelConfig
from relay_hw.accel.isa.errors import FaultCode
from relay_hw.accel.isa.program import Program, WindowPlan
from relay_hw.accel.isa.randprog import random_program
from relay_hw.accel.isa.rules import dram_extent
from relay_hw.accel.isa.spec import Mem, Op
from relay_hw.accel.isa.stream import encode_instructions
from relay_hw.accel.sim.rtl_device import Simulation
from relay_hw.accel.sim.rtl_model import Answer
from tests.accel.sim.beats import beats_of
from tests.mutants.stimuli import (
    BUSY,
    BUSY_BIT,
    DONE_BIT,
    FAULT_BIT,
    RESET,
    STANDARD,
    Expected,
    Maker,
    Trial,
    expect,
    launched,
    refusal,
)


def broken(config: AccelConfig, seed: int) -> Expected | None:
    """A short random program with a wrong bit, where that makes an instruction illegal; None where it does not."""
    rng = random.Random(seed)
    program = random_program(config, seed, 3)
    code = bytearray(program.code.data or b"")
    at = rng.randrange(8 * len(code))
    code[at // 8] ^= 1 << at % 8
    sections = tuple(replace(s, data=bytes(code)) if s is program.code else s for s in program.sections)
    case = refusal(config, replace(program, sections=sections))
    if case is None or case.index != at // (8 * INSTRUCTION_BYTES):
        return None
    # What comes before is as it was, and so ordered; indices of loops are found wrong while others run.
    is_loop = program.instructions[case.index][0] in (Op.GEMM, Op.ALU, Op.REQUANT, Op.ROW)
    return None if is_loop and case.fault is FaultCode.SRAM_RANGE else case


def beyond(config: AccelConfig, seed: int) -> Expected | None:
    """A random program of which one transfer ends behind the window."""
    rng, program = random.Random(seed), random_program(config, seed, 12)
    code = list(program.instructions)
    index = rng.choice([at for at, (op, _) in enumerate(code) if op in (Op.LOAD, Op.STORE, Op.GATHER)])
    op, values = code[index]
    code[index] = op, {**values, "dram": program.window_bytes + config.granule_bytes - dram_extent(config, op, values)}
    data = encode_instructions(code)
    sections = tuple(replace(s, data=data) if s is program.code else s for s in program.sections)
    return refusal(config, replace(program, sections=sections))


def queued(config: AccelConfig) -> list[Expected]:
    """Short transfers one behind the other, none of them behind the window's end, or one; some with long padding."""
    line, size = max(1, config.line_bytes // config.granule_bytes), 1 << 15
    load: dict[str, int] = {"mem": Mem.INP, "z": line}
    store: dict[str, int] = {"mem": Mem.OUT, "z": max(1, config.out_bytes // config.granule_bytes), "dram": 4096}
    found = []
    for values in (load, {**load, "y_pad_0": 60}, {**load, "y_pad_1": 60}, store):
        for wrong in (None, *range(12)):
            code = [(Op.STORE if values is store else Op.LOAD, values)] * 40
            if wrong is not None:
                code[wrong] = code[wrong][0], {**values, "dram": size}
            plan = WindowPlan(window_bytes=size, program_offset=size // 2)
            program = Program.build(config, [*code, (Op.FINISH, {})], plan)
            found.append(refusal(config, program) or expect(config, program, STANDARD, has_bytes=False))
    return found


def behind_padding(config: AccelConfig) -> Trial:
    """A bad answer that comes while the LOAD before still writes padding: the fault is the later one's."""
    line = max(1, config.line_bytes // config.granule_bytes)
    load: dict[str, int] = {"mem": Mem.INP, "z": line}
    code = [(Op.LOAD, {**load, "y_pad_1": 200}), (Op.LOAD, {**load, "dram": 4096}), (Op.FINISH, {})]
    program = Program.build(config, code, WindowPlan(window_bytes=1 << 14, program_offset=1 << 13))

    def trial(make: Maker) -> Iterator[str]:
        device = make(STANDARD, Simulation())
        core = device.core
        for offset in range(4096, 4096 + line * config.granule_bytes, config.bus_bytes):
            device.load(program)
            device.inject_error(offset, Answer.SLVERR)
            core.launch(program.code, 5000)
            device.model.run(7000)
            found = core.get("STATUS") & ~BUSY_BIT, core.get("FAULT_INDEX")
            if found != (FAULT_BIT | FaultCode.AXI_READ << 8, 1):
                yield f"STATUS and FAULT_INDEX {found} of a bad answer behind padding"
            core.put("CONTROL", RESET)
            device.model.advance(100)

    return trial


def outside(config: AccelConfig) -> Trial:
    """Programs that the window ends in: a fault of the first instruction of the burst that is not in it."""
    count, size = 40, 4096
    load: tuple[Op, dict[str, int]] = (
        Op.LOAD,
        {"mem": Mem.INP, "z": max(1, config.line_bytes // config.granule_bytes)},
    )
    code = [load] * (count - 1) + [(Op.FINISH, {})]
    program = Program.build(config, code, WindowPlan(window_bytes=size, program_offset=0))

    def trial(make: Maker) -> Iterator[str]:
        device = make(STANDARD, Simulation())
        core = device.core
        for inside in (*range(count), size // INSTRUCTION_BYTES):
            device.load(program)
            if inside < count:
                core.put("WINDOW_BYTES", INSTRUCTION_BYTES * inside)
            core.launch(program.code, 5000)
            device.model.run(7000)
            device.model.advance(100)
            # Instructions are fetched by eight or not at all.
            first = inside // 8 * 8
            wanted = (FAULT_BIT | FaultCode.DRAM_RANGE << 8, first) if inside < count else (DONE_BIT, 0)
            found = core.get("STATUS"), core.get("FAULT_INDEX") if inside < count else 0
            if found != wanted:
                yield f"{inside} instructions in the window: STATUS and FAULT_INDEX {found}, not {wanted}"
            core.put("CONTROL", RESET)

    return trial


def answered(config: AccelConfig, case: Expected, answer: Answer, seed: int, rounds: int) -> Trial:
    """Beats of the transfers and of the program are answered badly: faults of instructions that have them."""
    program = case.program
    touched = {index: beats_of(config, op, v) for index, (op, v) in enumerate(program.instructions)}
    moving = [index for index, beats in touched.items() if beats]
    stores = {index for index in moving if program.instructions[index][0] is Op.STORE}

    def firsts(offset: int) -> set[int]:
        """The first instruction that reads the beat, and the first that writes it: either may be first in time."""
        there = [index for index in moving if offset in touched[index]]
        return {min(group) for group in (set(there) - stores, set(there) & stores) if group}

    def trial(make: Maker) -> Iterator[str]:
        rng, device = random.Random(seed), make(BUSY, Simulation())
        core = device.core
        for number in range(rounds):
            # The first beat of each of them, or any one.
            index, is_first, is_fetched = moving[5 * number % len(moving)], number % 2 == 1, number == 0
            beats = [min(touched[index])] if is_first else sorted(touched[index])
            offset = program.code.offset + INSTRUCTION_BYTES * index if is_fetched else rng.choice(beats)
            device.load(program)
            device.inject_error(offset + rng.randrange(config.bus_bytes), answer)
            core.launch(program.code, case.watchdog)
            device.model.run(case.watchdog + 2000)
            status, found = core.get("STATUS") & ~BUSY_BIT, core.get("FAULT_INDEX")
            device.inject_error(None)
            if found >= program.count:
                yield f"FAULT_INDEX {found}"
                return
            right = FaultCode.AXI_WRITE if found in stores and not is_fetched else FaultCode.AXI_READ
            is_there = found == index if is_fetched else found in firsts(offset)
            if status != right << 8 | FAULT_BIT or not is_there:
                yield f"{answer.name} at {offset:#x} is STATUS {status:#x} of {found}"
            core.put("CONTROL", RESET)
            device.model.advance(300)
            yield from launched(device, case)

    return trial


def fetched(config: AccelConfig) -> Trial:
    """An instruction is answered badly while a LOAD waits for its beats: the fault is that of the instruction."""
    load: dict[str, int] = {"mem": Mem.INP, "z": max(1, config.line_bytes // config.granule_bytes), "y_pad_1": 4}
    code = [(Op.LOAD, load)] * 31 + [(Op.FINISH, {})]
    program = Program.build(config, code, WindowPlan(window_bytes=1 << 13, program_offset=1 << 12))

    def trial(make: Maker) -> Iterator[str]:
        device = make(STANDARD, Simulation())
        core = device.core
        for index in range(program.count):
            for begin in range(0, INSTRUCTION_BYTES, config.bus_bytes):
                device.load(program)
                device.inject_error(program.code.offset + INSTRUCTION_BYTES * index + begin, Answer.SLVERR)
                core.launch(program.code, 5000)
                device.model.run(7000)
                found = core.get("STATUS") & ~BUSY_BIT, core.get("FAULT_INDEX")
                if found != (FAULT_BIT | FaultCode.AXI_READ << 8, index):
                    yield f"STATUS and FAULT_INDEX {found} of a bad answer to instruction {index}"
                core.put("CONTROL", RESET)
                device.model.advance(100)

    return trial


def waiting(config: AccelConfig) -> Trial:
    """LOADs wait for ever, and the window ends behind what the buffers hold: the watchdog ends that, and no fault."""
    load: dict[str, int] = {"mem": Mem.INP, "z": max(1, config.line_bytes // config.granule_bytes)}
    # Two bursts and a little more leave fetch's buffer, of four bursts, before LOAD waits: a seventh is not asked for.
    burst = 8
    begun = max(0, 2 * burst - config.queue_depth)
    code = [(Op.LOAD, load)] * begun + [(Op.LOAD, {**load, "wait": 1})] * (63 - begun) + [(Op.FINISH, {})]
    program = Program.build(config, code, WindowPlan(window_bytes=4096, program_offset=0))

    def trial(make: Maker) -> Iterator[str]:
        device = make(STANDARD, Simulation())
        core = device.core
        device.load(program)
        core.put("WINDOW_BYTES", INSTRUCTION_BYTES * 6 * burst)
        core.launch(program.code, 1500)
        device.model.run(4000)
        found = core.get("STATUS") & ~BUSY_BIT
        if found != FAULT_BIT | FaultCode.WATCHDOG << 8:
            yield f"STATUS {found:#x} where LOADs wait for ever"
        core.put("CONTROL", RESET)

    return trial
