"""Programs of one instruction: each bit of its word changed or alone in its field, its last entry at a memory's end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import product

import numpy as np

from relay_hw.accel.isa.alu import AluOp
from relay_hw.accel.isa.config import TAPS, AccelConfig
from relay_hw.accel.isa.errors import EncodeError, Fault
from relay_hw.accel.isa.program import Program, Section, SectionKind, WindowPlan
from relay_hw.accel.isa.records import encode_uops
from relay_hw.accel.isa.rules import check_instruction, row_coefficients, row_entries
from relay_hw.accel.isa.spec import BY_OP, Dst, Form, GemmMode, Mem, Op, RowKind, decode
from relay_hw.accel.isa.stream import Instr, complete
from tests.mutants.stimuli import STANDARD, Expected, expect, refusal

WINDOW = 1 << 16
CODE = 1 << 15
# Elements that an instruction of a trial touches at most.
LARGE = 600
# Micro-ops of the trials: number k has all masks of taps, and small entries.
USED = 16


def uops() -> Section:
    """A section of micro-ops at the window's begin."""
    numbers = np.arange(USED)
    data = encode_uops(numbers % 4, 0, numbers, numbers % 2).tobytes()
    return Section("uops", SectionKind.UOPS, 0, len(data), data)


def alone(config: AccelConfig, words: list[int]) -> Program:
    """A program that loads micro-ops to both ends of their memory, then has instructions of these words."""
    load = {"mem": Mem.UOP, "z": uops().size // config.granule_bytes}
    code: list[Instr] = [(Op.LOAD, {**load, "sram": config.uop_depth - USED}), (Op.LOAD, {**load, "set": 1})]
    built = Program.build(
        config, [*code, (Op.FINISH, {})], WindowPlan([uops()], window_bytes=WINDOW, program_offset=CODE)
    )
    data = built.code.data or b""
    middle = b"".join(word.to_bytes(32, "little") for word in words)
    section = Section("program", SectionKind.PROGRAM, CODE, len(data) + len(middle), data[:64] + middle + data[64:])
    return Program(built.config, built.config_hash, WINDOW, (uops(), section), sizes=built.sizes)


def filled(config: AccelConfig) -> Program:
    """A program that leaves legal micro-ops everywhere: what else the memory holds at power-on may be none."""
    granules, rows = uops().size // config.granule_bytes, config.uop_depth // USED
    load = {"mem": Mem.UOP, "z": granules, "y_pad_1": rows - 1}
    return Program.build(config, [(Op.LOAD, load), (Op.FINISH, {})], WindowPlan([uops()]))


def bases(config: AccelConfig) -> list[Instr]:
    """Legal instructions, a few of each operation."""
    line = max(1, config.line_bytes // config.granule_bytes)
    block = {"z": 2 * line, "y": 2, "x": 2, "x_stride": 256, "y_stride": 1024, "dram": 4096}
    loops = {"iter_out": 2, "iter_in": 3}
    found: list[Instr] = [(Op.LOAD, {**block, "mem": mem}) for mem in Mem if mem is not Mem.OUT]
    found += [(Op.LOAD, {**block, "mem": mem, "expand": 1}) for mem in (Mem.ACC, Mem.WGT)]
    found += [(Op.LOAD, {**block, "mem": Mem.INP, "pitch": 3, "y_pad_0": 1, "x_pad_1": 2})]
    found += [(Op.STORE, {**block, "mem": Mem.OUT})]
    vector = max(1, config.bus_bytes // config.inp_bytes)
    found += [(Op.GATHER, {"dram": 4096, "pitch": vector, "x_step": 3, "y": 2, "x": 3, "y_stride": 256, "row_bytes": 40,
                           "run": min(5, vector * config.inp_bytes), "left": 2, "y_pad_0": 1})]  # fmt: skip
    found += [(Op.GEMM, {**loops, "mode": mode, "uop_begin": 1, "uop_end": 3, "acc_in": 4}) for mode in GemmMode]
    found += [(Op.ALU, {**loops, "alu_op": op, "use_imm": i, "uop_end": 2, "imm": 5, "dst_in": 4, "src_in": 4})
              for op, i in ((AluOp.ADD, 0), (AluOp.SHR, 1))]  # fmt: skip
    part = {Dst.INP: config.block_parts}
    found += [(Op.REQUANT, {**loops, "form": form, "dst": dst, "acc_in": 1, "dst_in": part.get(dst, 1),
                            "dst_out": 8 * part.get(dst, 1), "clip_lo": -9, "clip_hi": 9})
              for form in Form for dst in Dst]  # fmt: skip
    if config.cof_depth:
        found += [(Op.ROW, {"kind": kind, "rows": 2, "columns": 5, "row_step": 2, "entry_step": 1, "shift": 9})
                  for kind in reversed(RowKind)]  # fmt: skip
    return [*found, (Op.FINISH, {})]


def encoded(instr: Instr) -> int:
    """The word of an instruction that waits for the micro-ops."""
    op, values = instr
    waits = {} if op is Op.FINISH else {"wait": 1}
    return BY_OP[op].layout.encode({**complete(op, {**values, **waits}), "opcode": op})


def size(word: int) -> int:
    """About how many elements an instruction touches, or 0 where it is no instruction."""
    try:
        row, v = decode(word)
    except EncodeError:
        return 0
    if row.op is Op.ROW:
        return v["rows"] * v["columns"]
    loops = v.get("iter_out", 1) * v.get("iter_in", 1) * max(1, v.get("uop_end", 1) - v.get("uop_begin", 0))
    rows = v.get("y_pad_0", 0) + v.get("y", 1) + v.get("y_pad_1", 0)
    runs = v.get("x_pad_0", 0) + v.get("x", 1) + v.get("x_pad_1", 0)
    beats = v.get("pitch", 1) if row.op is Op.GATHER else v.get("z", 1)
    return loops * rows * runs * beats


def case_of(config: AccelConfig, word: int) -> Expected | None:
    """What becomes of a word in a program of its own, where that takes little time."""
    try:
        row, v = decode(word)
        check_instruction(config, row.op, {k: x for k, x in v.items() if k != "opcode"}, 2)
        is_legal = True
    except (EncodeError, Fault):
        is_legal = False
    if is_legal and size(word) > LARGE:
        return None
    program = alone(config, [word])
    refused = refusal(config, program)
    if refused is not None:
        return refused
    return expect(config, program, STANDARD, has_bytes=False)


def bits(config: AccelConfig) -> list[Expected]:
    """Instructions of `bases` with one bit of their words changed, but those of tokens to wait for.

    Of each operation the first one has all bits changed, the others those of the first word and of the fourth.
    """
    changed, seen = dict[int, None](), set[Op]()
    for op, values in bases(config):
        word = encoded((op, values))
        places = (*range(32), *range(96, 128)) if op in seen else (*range(32), *range(48, 256))
        seen.add(op)
        changed |= dict.fromkeys(word ^ 1 << place for place in places)
    return _cases(config, changed)


def fields(config: AccelConfig) -> list[Expected]:
    """The first instruction of each operation with one bit of a field alone, or none, but for tokens to wait for."""
    changed, seen = dict[int, None](), set[Op]()
    for op, values in bases(config):
        if op in seen:
            continue
        seen.add(op)
        word = encoded((op, values))
        for field in (field for field in BY_OP[op].layout.fields if field.name not in ("opcode", "wait")):
            others = word & ~((1 << field.width) - 1 << field.lo)
            changed |= dict.fromkeys([others, *(others | 1 << field.lo + bit for bit in range(field.width))])
    return _cases(config, changed)


def ends(config: AccelConfig) -> list[Expected]:
    """Instructions whose last entry lies at the end of its memory, or behind it."""
    instrs = [*_ends_of_lines(config), *_ends_of_gemm(config), *_ends_of_requant(config), *_ends_of_row(config)]
    return _cases(config, dict.fromkeys(map(encoded, instrs)))


def _cases(config: AccelConfig, words: Iterable[int]) -> list[Expected]:
    begin = expect(config, filled(config), STANDARD, has_bytes=False)
    return [begin, *filter(None, map(partial(case_of, config), words))]


def _ends_of_lines(config: AccelConfig) -> Iterator[Instr]:
    """GEMM near the last line of INP, in one mode after the other, with each mask of taps."""
    for mask, back, less, mode in product(range(1, USED), range(TAPS + 2), (0, 1), GemmMode):
        end, line = _end_of_inp(config, mode)
        base = end - back * line - less
        yield Op.GEMM, {"mode": mode, "uop_begin": mask, "uop_end": mask + 1, "inp_base": base}


def _end_of_inp(config: AccelConfig, mode: GemmMode) -> tuple[int, int]:
    """What a mode counts in INP, and in a line of it: entries, or parts where it takes windows."""
    if mode in (GemmMode.TAPS, GemmMode.MAX):
        return config.inp_parts, config.line_parts
    return config.inp_depth, config.line_entries


def _ends_of_gemm(config: AccelConfig) -> Iterator[Instr]:
    """GEMM near the end of each memory, in one step or with one more of the inner or outer loop."""
    for count, less in product((1, 2, 3), (-1, 0, 1)):
        yield Op.GEMM, {"uop_begin": config.uop_depth - count - less, "uop_end": config.uop_depth - less}
    for mode, name, less, loop in product(GemmMode, ("inp", "acc", "wgt"), range(6), ("", "in", "out")):
        inp, _ = _end_of_inp(config, mode)
        end = {"inp": inp, "acc": config.acc_depth, "wgt": config.wgt_depth}[name]
        steps = {f"iter_{loop}": 2, f"{name}_{loop}": 1} if loop else {}
        yield Op.GEMM, {"mode": mode, "uop_begin": 1, "uop_end": 2, f"{name}_base": end - less, **steps}


def _ends_of_requant(config: AccelConfig) -> Iterator[Instr]:
    """REQUANT near the end of each memory, in one step or with one more of the inner or outer loop."""
    depths = {Dst.OUT: config.out_depth, Dst.ACC: config.acc_depth, Dst.INP: config.inp_parts}
    for form, dst in product(Form, Dst):
        part = config.block_parts if dst is Dst.INP else 1
        inner = {"iter_in": 2, "dst_in": part, "acc_in": 1}
        outer = {"iter_out": 2, "dst_out": part, "acc_out": 1, "prm_out": 1}
        places = {"dst": depths[dst], "acc": config.acc_depth, "res": config.acc_depth, "prm": config.prm_depth}
        for name, end in places.items():
            for less, steps in product(dict.fromkeys((0, 1, 2, part, 2 * part)), ({}, inner, outer)):
                yield Op.REQUANT, {"form": form, "dst": dst, f"{name}_base": end - less, "clip_hi": 5, **steps}


def _ends_of_row(config: AccelConfig) -> Iterator[Instr]:
    """ROW near the end of each memory, in one entry, with another one of the row, with another row."""
    if not config.cof_depth:
        return
    block = config.block_out
    sizes = product((1, block, block + 1, 2 * block), (1, 2), ((1, 1), (2, 1), (1, 2)))
    for kind, (columns, rows, (row_step, entry_step)) in product(RowKind, sizes):
        values = {"kind": kind, "columns": columns, "rows": rows, "row_step": row_step, "entry_step": entry_step}
        last = (rows - 1) * row_step + (row_entries(config, columns) - 1) * entry_step
        for less in (0, 1):
            yield Op.ROW, {**values, "acc_base": config.acc_depth - last - less}
            yield Op.ROW, {**values, "cof_base": config.cof_depth - row_coefficients(config, values) + 1 - less}
