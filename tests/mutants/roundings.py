"""Programs that shift numbers at a tie, by every amount, in every rounding: by SHR of the ALU, and on the way out."""

from __future__ import annotations

import numpy as np

from relay_hw.accel.isa.alu import AluOp
from relay_hw.accel.isa.config import AccelConfig
from relay_hw.accel.isa.program import SECTION_ALIGN, Program, Section, SectionKind, WindowPlan, align
from relay_hw.accel.isa.records import MAX_SHIFT, encode_prm, encode_uops
from relay_hw.accel.isa.spec import Form, Mem, Op, Rounding
from tests.mutants.stimuli import STANDARD, Expected, constants, expect

# Bits of what is shifted.
BITS = 32


def ties(amount: int) -> list[int]:
    """Numbers at a tie of a right shift, odd and even, with one more bit below it or none; of both signs."""
    half = 1 << amount >> 1
    below = [0, *(1 << bit for bit in range(max(0, amount - 1)))]
    wholes = [whole << amount for whole in (0, 1, 2, 3) if whole << amount < 1 << BITS - 2]
    found = [sign * (whole + half + more) for whole in wholes for more in below for sign in (1, -1)]
    return [number for number in found if -(1 << BITS - 1) <= number < 1 << BITS - 1]


def roundings(config: AccelConfig) -> list[Expected]:
    """What shifts of both units give."""
    programs = [_by_alu(config, amount, rounding) for rounding in Rounding for amount in range(1, BITS)]
    amounts = (*range(1, MAX_SHIFT, 2), MAX_SHIFT)
    programs += [_by_output(config, amount, rounding) for rounding in Rounding for amount in amounts]
    return [expect(config, program, STANDARD, has_bytes=True) for program in programs]


def _by_alu(config: AccelConfig, amount: int, rounding: Rounding) -> Program:
    shift = {"alu_op": AluOp.SHR, "use_imm": 1, "imm": amount, "rounding": rounding}
    return _program(config, ties(amount), (1, 0), shift, {"form": Form.PASS})


def _by_output(config: AccelConfig, amount: int, rounding: Rounding) -> Program:
    # A factor of two for each bit that a shift has too many; one more where that leaves bits below the tested ones.
    more = min(max(0, amount - BITS + 1), config.multiplier_bits - 2)
    factor = (1 << more) + (amount % 4 == 1 and more > 0)
    return _program(
        config, ties(min(amount, BITS - 1)), (factor, amount), {}, {"form": Form.SCALE, "rounding": rounding}
    )


def _program(
    config: AccelConfig, numbers: list[int], scale: tuple[int, int], alu: dict[str, int], output: dict[str, int]
) -> Program:
    """Load numbers into ACC, change them there by the ALU if it has an operation, bring them out, store them."""
    lanes, granule, last = config.block_out, config.granule_bytes, config.prm_depth - 1
    # Entries whose results fill sections to the end.
    entries = align(-(-len(numbers) // lanes), max(1, SECTION_ALIGN // config.out_bytes))
    entries = min(entries, config.acc_bank_depth)
    factor, shift = np.full(lanes, scale[0]), scale[1]
    data = {
        Mem.UOP: encode_uops([0] * 4, 0).tobytes(),
        Mem.PRM: encode_prm(0, factor, shift, multiplier_bits=config.multiplier_bits).tobytes(),
        Mem.ACC: np.resize(np.array(numbers, np.int32), entries * lanes).tobytes(),
    }
    code, sections, begin = constants(config, data, last)
    sections.append(Section("out", SectionKind.OUTPUT, begin, config.out_bytes * entries))
    if alu:
        code.append((Op.ALU, {**alu, "uop_end": 1, "iter_in": entries, "dst_in": 1, "wait": 1, "set": 1}))
    steps = {"iter_in": entries, "acc_in": 1, "dst_in": 1, "prm_base": last, "clip_lo": -128, "clip_hi": 127}
    code.append((Op.REQUANT, {**output, **steps, "wait": 1, "set": 1}))
    code += [(Op.STORE, {"mem": Mem.OUT, "dram": begin, "z": config.out_bytes * entries // granule, "wait": 1})]
    return Program.build(config, [*code, (Op.FINISH, {})], WindowPlan(sections))
