"""Trials of the row unit: it meets others in a bank in the cycles of TIMING.md and in no other; what rows give."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from relay_hw.accel.isa.alu import AluOp
from relay_hw.accel.isa.config import AccelConfig
from relay_hw.accel.isa.errors import FaultCode
from relay_hw.accel.isa.program import SECTION_ALIGN, Program, Section, SectionKind, WindowPlan, align
from relay_hw.accel.isa.records import encode_cof
from relay_hw.accel.isa.slots import row_round_slots
from relay_hw.accel.isa.spec import Dst, Form, Mem, Op, RowKind
from relay_hw.accel.isa.stream import Instr
from relay_hw.accel.sim.rtl_device import Simulation
from tests.mutants.meetings import LOAD_UOPS, fault, outcome, program
from tests.mutants.stimuli import DONE_BIT, STANDARD, Expected, Maker, Trial, constants, expect

# Rows of an instruction, and entries of each, which lie one behind the other.
ROWS, ENTRIES = 2, 2
# Edges from the start of an ALU instruction to the read and the write of its first slot: if it had no slots, what waits
# for its token would start at the latter. From the last slot of OUTPUT to its write, from a row's last read to its own.
READ, WRITE, OUTPUT_WRITE, ROW_WRITE = 7, 11, 8, 20
# From the start of a LOAD to the sample of its first beat, less the memory's latency; from there to the write.
SAMPLE, LOAD_WRITE = 2, 2
# Slots of the ALU that the rows wait for, until everything is in its queue; delays that are tried wherever units meet.
BEFORE, OTHERS = 24, range(1, 280, 9)


@dataclass(frozen=True, slots=True)
class Partner:
    """An instruction behind a delay of no slots, and the edges at which it reads and writes, from the delay's start."""

    instr: Instr
    reads: tuple[int, ...] = ()
    writes: tuple[int, ...] = ()


def partners(config: AccelConfig, bank: int) -> list[Partner]:
    """What acts on a bank once, at an entry or a beat. All but COMPUTE waits for the delay's token."""
    other, groups = config.acc_bank_depth - bank, config.block_out // config.out_lanes
    plain = {"form": Form.PASS, "clip_hi": 9, "wait": 4}
    reads: Instr = (Op.REQUANT, {**plain, "acc_base": bank})
    writes: Instr = (Op.REQUANT, {**plain, "acc_base": other, "dst": Dst.ACC, "dst_base": bank})
    load: Instr = (Op.LOAD, {"mem": Mem.ACC, "sram": bank, "dram": 1024, "z": 1, "wait": 4})
    beats = range(max(1, config.granule_bytes // config.bus_bytes))
    first = WRITE + SAMPLE + STANDARD.latency + LOAD_WRITE
    return [
        Partner(_alu(bank, 1), (READ,), (WRITE,)),
        Partner(reads, reads=tuple(WRITE + 1 + slot for slot in range(groups))),
        Partner(writes, writes=(WRITE + groups + OUTPUT_WRITE,)),
        Partner(load, writes=tuple(first + beat for beat in beats)),
    ]


def _alu(bank: int, slots: int, wait: int = 0, give: int = 0) -> Instr:
    values = {"alu_op": AluOp.ADD, "use_imm": 1, "uop_end": 1, "iter_in": slots, "dst_base": bank}
    return Op.ALU, {**values, "wait": wait, "set": give}


def edges(config: AccelConfig) -> tuple[set[int], set[int]]:
    """Edges at which the rows read and write, from the delay's start on; they wait for the ALU that is before it."""
    turn = row_round_slots(config, ENTRIES * config.block_out)
    slots = [WRITE + 1 + row * turn + 4 * entry for row, entry in product(range(ROWS), range(ENTRIES))]
    stages = ((0, 0), (1, 1), (3, 2))
    reads = {slot + lag * turn + phase for slot in slots for lag, phase in stages}
    return reads, {slot + 3 * turn + 2 + ROW_WRITE for slot in slots}


def delays(config: AccelConfig, partner: Partner) -> set[int]:
    """Slots of the delay behind which a partner meets the rows."""
    reads, writes = edges(config)
    pairs = [*product(reads, partner.reads), *product(writes, partner.writes)]
    return {edge - other for edge, other in pairs if edge > other}


def beside_rows(config: AccelConfig, bank: int, partner: Instr, slots: int, is_first: bool) -> Program:
    """A delay and, behind it, the partner; rows begin with the delay, and are first of these in the program or last."""
    other = config.acc_bank_depth - bank
    values = {"kind": RowKind.RMS_NORM, "rows": ROWS, "columns": ENTRIES * config.block_out}
    rows: Instr = (Op.ROW, {**values, "row_step": ENTRIES, "entry_step": 1, "acc_base": bank, "wait": 2})
    acts = [_alu(other, slots, give=4), partner]
    begin: list[Instr] = [LOAD_UOPS, (Op.LOAD, {"mem": Mem.INP, "dram": 1024, "z": 4, "set": 1})]
    begin.append(_alu(other, BEFORE, wait=1, give=2))
    return program(config, [*begin, *([rows, *acts] if is_first else [*acts, rows])])


def meets_rows(config: AccelConfig) -> Trial:
    """Each partner acts on the rows' bank a cycle later each time; the fault is that of the smaller instruction."""
    cases = list[tuple[Program, tuple[int, int]]]()
    for is_first, bank in ((True, 0), (False, config.acc_bank_depth)):
        wanted = fault(FaultCode.ACC_BANK, 3 if is_first else 4)
        for partner in partners(config, bank):
            meetings = delays(config, partner)
            near = {slots + more for slots in meetings for more in (-1, 0, 1)}
            for slots in sorted({*near, *OTHERS} - {0}):
                each = beside_rows(config, bank, partner.instr, slots, is_first)
                cases.append((each, wanted if slots in meetings else (DONE_BIT, 0)))

    def trial(make: Maker) -> Iterator[str]:
        device = make(STANDARD, Simulation())
        for number, (each, wanted) in enumerate(cases):
            status, index = outcome(device, each)
            if (status, index if status != DONE_BIT else 0) != wanted:
                yield f"STATUS and FAULT_INDEX {status:#x}, {index}, not {wanted} beside rows, case {number}"

    return trial


# numbers

Draw = Callable[[np.random.Generator, int], NDArray[np.int64]]
# Elements of any size, the smallest and largest alone, and those that are nearly all alike.
DRAWS: tuple[Draw, ...] = (
    lambda rng, size: rng.integers(-128, 128, size),
    lambda rng, size: rng.choice([-128, 127], size),
    lambda rng, size: rng.choice([-128, -1, 0, 1], size, p=[0.05, 0.05, 0.85, 0.05]),
)


def row_numbers(config: AccelConfig) -> list[Expected]:
    """What rows give: by every last shift, of elements and coefficients of every size, small and large epsilons."""
    programs = [_numbers(config, kind, draw) for kind, draw in product(RowKind, range(len(DRAWS)))]
    return [expect(config, program, STANDARD, has_bytes=True) for program in programs]


def _numbers(config: AccelConfig, kind: RowKind, draw: int) -> Program:
    """An instruction for each last shift, of rows of their own; what they leave is stored behind the last of them."""
    rng, lanes = np.random.default_rng(draw), config.block_out
    shifts = range(-15, 16) if kind is RowKind.SOFTMAX else range(41)
    entries = align(len(shifts) * ROWS * ENTRIES, max(1, SECTION_ALIGN // config.out_bytes))
    size, most = config.cof_depth * config.row_lanes, 1 << (10 if draw == 0 else 31)
    records = encode_cof(rng.integers(-(1 << 15), 1 << 15, size), rng.integers(-most, most, size))
    numbers = DRAWS[draw](rng, entries * lanes).astype(np.int32)
    code, sections, begin = constants(config, {Mem.COF: records.tobytes(), Mem.ACC: numbers.tobytes()}, 0)
    sections.append(Section("out", SectionKind.OUTPUT, begin, config.out_bytes * entries))
    for number, shift in enumerate(shifts):
        values = _row(config, rng, number) | {"kind": kind, "shift": shift}
        code.append((Op.ROW, {**values, "wait": int(number == 0), "set": int(shift == shifts[-1])}))
    steps = {"iter_in": entries, "acc_in": 1, "dst_in": 1, "clip_lo": -128, "clip_hi": 127}
    code.append((Op.REQUANT, {**steps, "form": Form.PASS, "wait": 1, "set": 1}))
    granules = config.out_bytes * entries // config.granule_bytes
    code.append((Op.STORE, {"mem": Mem.OUT, "dram": begin, "z": granules, "wait": 1}))
    return Program.build(config, [*code, (Op.FINISH, {})], WindowPlan(sections))


def _row(config: AccelConfig, rng: np.random.Generator, number: int) -> dict[str, int]:
    """Fields of an instruction on rows of its number, but kind and shift: mostly the ends of what they may be."""
    columns = int(rng.integers(1, ENTRIES * config.block_out + 1))
    places = {"acc_base": number * ROWS * ENTRIES, "row_step": ENTRIES, "entry_step": 1}
    drawn = {
        "zero_point": rng.integers(-128, 128),
        "inp_zero": rng.choice([-128, 0, 127]),
        "visible": rng.integers(0, columns + 1),
        "multiplier": rng.choice([1, 40000, 65535]),
        "epsilon_low": rng.choice([0, 15, 17, 1 << 31]),
        "epsilon_high": rng.choice([0, 0, 65535]),
    }
    fields = {"rows": ROWS, "columns": columns, "visible_step": number % 2, **places}
    return fields | {name: int(value) for name, value in drawn.items()}
