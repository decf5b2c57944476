"""Trials in which units meet: in an accumulator bank, at a semaphore."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations, product

from typing_extensions import assert_never

from relay_hw.accel.isa.alu import AluOp
from relay_hw.accel.isa.config import SEMAPHORE_MAX, SEMAPHORES, AccelConfig
from relay_hw.accel.isa.errors import FaultCode
from relay_hw.accel.isa.program import Program, Section, SectionKind, WindowPlan
from relay_hw.accel.isa.records import encode_uops
from relay_hw.accel.isa.registers import REGISTER
from relay_hw.accel.isa.spec import Dst, Form, Mem, Op, RowKind, Unit
from relay_hw.accel.isa.stream import Instr
from relay_hw.accel.sim.rtl_device import RtlDevice, Simulation
from tests.mutants.stimuli import DONE_BIT, FAULT_BIT, LAUNCH, RESET, STANDARD, Expected, Maker, Trial, expect

UOPS = Section("uops", SectionKind.UOPS, 0, 64, encode_uops(0, [0] * 8, [0] * 8, [0] * 8).tobytes())
LOAD_UOPS: Instr = (Op.LOAD, {"mem": Mem.UOP, "z": 1})


def program(config: AccelConfig, code: list[Instr]) -> Program:
    """A program in a window of 16 KiB, with eight micro-ops of zeros at its begin."""
    plan = WindowPlan([UOPS], window_bytes=1 << 15, program_offset=1 << 14)
    return Program.build(config, [*code, (Op.FINISH, {})], plan)


def outcome(device: RtlDevice, what: Program, watchdog: int = 9000) -> tuple[int, int]:
    """STATUS and FAULT_INDEX of a launch, behind which the core is reset."""
    core = device.core
    device.load(what)
    core.launch(what.code, watchdog)
    device.model.run(watchdog + 2000)
    device.model.advance(50)
    found = core.get("STATUS"), core.get("FAULT_INDEX")
    core.put("CONTROL", RESET)
    return found


def fault(code: FaultCode, index: int) -> tuple[int, int]:
    """STATUS and FAULT_INDEX of a fault."""
    return FAULT_BIT | code << 8, index


def meetings(config: AccelConfig) -> Trial:
    """An entry is written a cycle later each time: it meets every beat of a LOAD into its bank, and no other."""
    bank, granule = config.acc_bank_depth, config.granule_bytes
    alu = {"alu_op": AluOp.ADD, "use_imm": 1, "uop_end": 1}
    programs = []
    delay: Instr = (Op.LOAD, {"mem": Mem.INP, "dram": 1024, "z": 64})
    for slots in range(16, 176):
        code: list[Instr] = [(Op.LOAD, {"mem": Mem.UOP, "z": 1, "set": 1}), delay]
        code += [(Op.LOAD, {"mem": Mem.ACC, "dram": 1024, "z": 4})]
        code += [(Op.ALU, {**alu, "iter_in": slots, "dst_base": bank, "wait": 1}), (Op.ALU, alu)]
        programs.append(program(config, code))

    def trial(make: Maker) -> Iterator[str]:
        device, met = make(STANDARD, Simulation()), 0
        for each in programs:
            status, index = outcome(device, each)
            if status != DONE_BIT:
                met += 1
                if (status, index) != fault(FaultCode.ACC_BANK, 2):
                    yield f"STATUS and FAULT_INDEX {status:#x}, {index} where ALU and LOAD meet"
        if met != 4 * granule // config.bus_bytes:
            yield f"{met} beats meet, not {4 * granule // config.bus_bytes}"

    return trial


def clashes(config: AccelConfig) -> Trial:
    """Two units begin together on a bank, one of them longer each time: from some length on they meet, and stay so."""
    bank = config.acc_bank_depth
    start: list[Instr] = [LOAD_UOPS, (Op.LOAD, {"mem": Mem.INP, "dram": 1024, "z": 4, "set": 3})]
    alu = {"alu_op": AluOp.ADD, "use_imm": 1, "uop_end": 1, "wait": 1}
    pas = {"form": Form.PASS, "wait": 2, "clip_hi": 9}

    def compute(n: int) -> Instr:
        return Op.ALU, {**alu, "iter_in": n}

    def load(n: int) -> Instr:
        return Op.LOAD, {"mem": Mem.ACC, "dram": 1024, "z": n}

    def writes(n: int) -> Instr:
        return Op.REQUANT, {**pas, "iter_in": n, "dst": Dst.ACC, "acc_base": bank}

    def reads(n: int) -> Instr:
        return Op.REQUANT, {**pas, "iter_in": n, "dst": Dst.OUT}

    series = []
    for one, other in ((compute, writes), (writes, compute), (load, writes), (writes, load), (compute, reads)):
        for growing in (0, 1):
            for first in (0, 1):
                lengths = [(n, 1) if growing == 0 else (1, n) for n in (*range(1, 40), 60)]
                pairs = [(one(a), other(b)) for a, b in lengths]
                series.append([program(config, [*start, *(pair if first else pair[::-1])]) for pair in pairs])

    def trial(make: Maker) -> Iterator[str]:
        device, met = make(STANDARD, Simulation()), 0
        wanted = fault(FaultCode.ACC_BANK, 2)
        for programs in series:
            found = [outcome(device, each) for each in programs]
            first = found.index(wanted) if wanted in found else len(found)
            met += first < len(found)
            if {status for status, _ in found[:first]} - {DONE_BIT} or set(found[first:]) - {wanted}:
                yield f"{found} where units meet in a bank"
        if met < len(series) // 4:
            yield f"{met} of {len(series)} series meet"

    return trial


def holds(config: AccelConfig) -> list[Expected]:
    """REQUANT reads entries that another one before it writes: at once, or when that one has been idle for a while."""
    bank, programs = config.acc_bank_depth, []
    alu = {"alu_op": AluOp.ADD, "use_imm": 1, "uop_end": 1, "dst_base": bank}
    into: dict[str, int] = {"dst": Dst.ACC, "clip_hi": 9, "acc_in": 1, "dst_in": 1, "acc_base": 40}
    for form, n, back, slots in product((Form.PASS, Form.ADD), (1, 2, 3), (0, 1, 2), (0, 1, 5, 9, 10, 11, 12, 40)):
        reader = {"form": Form.PASS, "clip_hi": 9, "iter_in": 2, "acc_in": 1, "acc_base": max(0, n - 1 - back)}
        code: list[Instr] = [(Op.LOAD, {**LOAD_UOPS[1], "set": 1}), (Op.REQUANT, {**into, "form": form, "iter_in": n})]
        if slots:
            code.append((Op.ALU, {**alu, "iter_in": slots, "wait": 1, "set": 2}))
        code.append((Op.REQUANT, {**reader, "wait": 2 if slots else 0}))
        programs.append(program(config, code))
    return [expect(config, each, STANDARD, has_bytes=False) for each in programs]


def small(config: AccelConfig, unit: Unit, beside: Unit | None = None) -> Instr:
    """The shortest instruction of a unit, in another bank than one `beside` it."""
    match unit:
        case Unit.LOAD:
            return LOAD_UOPS
        case Unit.COMPUTE:
            return Op.ALU, {"alu_op": AluOp.ADD, "use_imm": 1, "uop_end": 1}
        case Unit.OUTPUT:
            return Op.REQUANT, {"form": Form.PASS, "clip_hi": 9, "acc_base": config.acc_bank_depth}
        case Unit.STORE:
            return Op.STORE, {"mem": Mem.OUT, "dram": 1024, "z": max(1, config.out_bytes // config.granule_bytes)}
        case Unit.ROW:
            bank = config.acc_bank_depth if beside is Unit.COMPUTE else 0
            return Op.ROW, {"kind": RowKind.RMS_NORM, "acc_base": bank}
        case _:
            assert_never(unit)


def overflows(config: AccelConfig) -> Trial:
    """As many tokens as a semaphore counts, and one more: of each unit, of each semaphore."""
    cases: list[tuple[Program, tuple[int, int]]] = []
    for s in range(SEMAPHORES):
        op, values = small(config, Unit(s % len(Unit)))
        many = [(op, {**values, "set": 1 << s})] * SEMAPHORE_MAX
        first: Instr = (Op.LOAD, {**LOAD_UOPS[1], "set": 1 << (s + 1) % SEMAPHORES})
        head: list[Instr] = [first, (op, {**values, "wait": first[1]["set"]})]
        cases.append((program(config, [*head, *many]), (DONE_BIT, 0)))
        more = [*head, *many, (op, {**values, "set": 0xFFFF})]
        cases.append((program(config, more), fault(FaultCode.TOKEN_OVERFLOW, len(more) - 1)))

    def trial(make: Maker) -> Iterator[str]:
        device = make(STANDARD, Simulation())
        for number, (each, (status, index)) in enumerate(cases):
            found = outcome(device, each, 60_000)
            if found[0] != status or (index and found[1] != index):
                yield f"STATUS and FAULT_INDEX {found} of tokens, case {number}"

    return trial


def stuck(config: AccelConfig) -> Trial:
    """An instruction waits for a token of which another unit took the last one: the watchdog ends that, at FINISH."""
    cases = []
    for s in range(SEMAPHORES):
        for one, other in permutations(Unit, 2) if s < 2 else [(Unit(s % len(Unit)), Unit((s + 1) % len(Unit)))]:
            both = small(config, one, other), small(config, other, one)
            pair = [(op, {**values, "wait": 1 << s}) for op, values in both]
            give: Instr = (Op.LOAD, {**LOAD_UOPS[1], "set": 1 << s})
            cases += [program(config, [give, *pair]), program(config, [give, give, *pair])]

    def trial(make: Maker) -> Iterator[str]:
        device = make(STANDARD, Simulation())
        for number, each in enumerate(cases):
            found, enough = outcome(device, each, 700), number % 2
            if found != ((DONE_BIT, found[1]) if enough else fault(FaultCode.WATCHDOG, 3)):
                yield f"STATUS and FAULT_INDEX {found} where two units want {1 + enough} tokens, case {number}"

    return trial


def cut(config: AccelConfig) -> Trial:
    """A launch is cut when units are about to meet in a bank, and begins again at once: it ends as an uncut one."""
    bank, control = config.acc_bank_depth, REGISTER["CONTROL"].offset
    code: list[Instr] = [LOAD_UOPS, (Op.LOAD, {"mem": Mem.INP, "dram": 1024, "z": 4, "set": 3})]
    code += [(Op.ALU, {"alu_op": AluOp.ADD, "use_imm": 1, "uop_end": 1, "wait": 1, "iter_in": 40})]
    code += [
        (Op.REQUANT, {"form": Form.PASS, "dst": Dst.ACC, "acc_base": bank, "iter_in": 12, "clip_hi": 9, "wait": 2})
    ]
    what = program(config, code)

    def trial(make: Maker) -> Iterator[str]:
        device = make(STANDARD, Simulation())
        core, model = device.core, device.model
        device.load(what)
        core.launch(what.code, 9000)
        model.run(12000)
        wanted = {name: core.get(name) for name in ("STATUS", "FAULT_INDEX", "CYCLES")}
        if wanted["STATUS"] != FAULT_BIT | FaultCode.ACC_BANK << 8:
            yield f"STATUS {wanted['STATUS']:#x} where ALU and REQUANT meet"
        for cycles in range(wanted["CYCLES"] - 24, wanted["CYCLES"] - 4):
            core.put("CONTROL", RESET)
            model.advance(50)
            core.launch(what.code, 9000)
            model.advance(cycles)
            core.put("CONTROL", RESET)
            # CYCLES stands still in a launch that is cut.
            for _ in range(20):
                for _ in range(4):
                    model.write_register(control, LAUNCH)
                if core.get("STATUS") & FAULT_BIT or core.get("CYCLES") < core.get("CYCLES"):
                    break
            model.run(12000)
            found = {name: core.get(name) for name in wanted}
            if found != wanted:
                yield f"{found}, not {wanted} right behind a launch that was cut"

    return trial
