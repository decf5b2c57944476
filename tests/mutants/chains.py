"""Programs whose output stage takes what it wrote itself some vectors before, so that slots wait in mid-vector."""

from __future__ import annotations

import random
from itertools import product

import numpy as np

from relay_hw.accel.isa.config import AccelConfig
from relay_hw.accel.isa.program import SECTION_ALIGN, Program, Section, SectionKind, WindowPlan, align
from relay_hw.accel.isa.records import encode_prm
from relay_hw.accel.isa.spec import TWO_OPERANDS, Dst, Form, Mem, Op
from tests.mutants.stimuli import STANDARD, Expected, constants, expect

# Vectors of a chain; vectors between one that writes an entry and the one that takes it, at most.
VECTORS = 16
FARTHEST = 9


def chains(config: AccelConfig) -> list[Expected]:
    """Each operand of each form comes from each of the last vectors."""
    operands = [(form, name) for form in Form for name in (("acc", "res") if form in TWO_OPERANDS else ("acc",))]
    programs = [_chain(config, *of, back) for of, back in product(operands, range(1, FARTHEST + 1))]
    return [expect(config, program, STANDARD, has_bytes=True) for program in programs]


def _chain(config: AccelConfig, form: Form, operand: str, back: int) -> Program:
    """Load numbers into ACC, change some there so that each is of one `back` vectors before it, store them."""
    lanes, granule, rng = config.block_out, config.granule_bytes, random.Random(back)
    numbers = np.array([rng.randrange(-128, 128) for _ in range(4 * VECTORS * lanes)], np.int32)
    draw = lambda low, high: np.array([rng.randrange(low, high) for _ in range(lanes)])  # noqa: E731
    factors = draw(64, 128), draw(64, 128), np.full(lanes, 7), draw(-9, 9), draw(-9, 9)
    data = {
        Mem.PRM: encode_prm(*factors, multiplier_bits=config.multiplier_bits).tobytes(),
        Mem.ACC: numbers.tobytes(),
    }
    code, sections, begin = constants(config, data, 0)
    size = align(config.out_bytes * VECTORS, granule)
    sections.append(Section("out", SectionKind.OUTPUT, begin, align(size, SECTION_ALIGN)))
    first = 2 * VECTORS
    steps = {"iter_in": VECTORS, "acc_in": 1, "dst_in": 1, "dst_base": first, "clip_lo": -128, "clip_hi": 127}
    bases = {"acc_base": 0, "res_base": VECTORS} | {f"{operand}_base": first - back}
    code.append((Op.REQUANT, {**steps, **bases, "form": form, "dst": Dst.ACC, "wait": 1, "set": 1}))
    code.append((Op.REQUANT, {**steps, "form": Form.PASS, "acc_base": first, "dst_base": 0, "wait": 1, "set": 1}))
    code.append((Op.STORE, {"mem": Mem.OUT, "dram": begin, "z": size // granule, "wait": 1}))
    return Program.build(config, [*code, (Op.FINISH, {})], WindowPlan(sections))
