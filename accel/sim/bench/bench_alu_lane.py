"""vta_alu_lane against the arithmetic of the instruction set, on corner values and random ones."""

from __future__ import annotations

import cocotb
import numpy as np

from accel.isa import arith
from accel.isa.spec import AluOp, Rounding
from accel.sim.bench.common import Dut, get, rng, settle, signed

CORNERS = (0, 1, 2, 3, 5, 127, 128, 0x7FFF, 0x8000, 0x7FFFFFFF, 0x80000000, 0x80000001, 0xFFFFFFFF, 0xFFFFFFFE)


async def check(dut: Dut, op: AluOp, a: int, b: int, rounding: Rounding) -> None:
    dut.op_i.value, dut.rounding_i.value, dut.a_i.value, dut.b_i.value = op, rounding, a, b
    await settle()
    old, second = (np.array([signed(value, 32)], np.int64) for value in (a, b))
    expected = int(arith.alu(op, old, second, rounding)[0]) & 0xFFFFFFFF
    assert get(dut.result_o) == expected, f"{op.name} {rounding.name} {a:#x} {b:#x}"


@cocotb.test()
async def computes_every_operation(dut: Dut) -> None:
    random = rng()
    dut.is_alu_i.value, dut.keep_i.value, dut.sum_i.value = 1, random.getrandbits(1), random.getrandbits(32)
    for op in AluOp:
        if op is AluOp.MUL:
            continue
        pairs = [(a, b) for a in CORNERS for b in CORNERS]
        pairs += [(random.getrandbits(32), random.getrandbits(32)) for _ in range(150)]
        pairs += [(random.getrandbits(32) >> random.randrange(32), random.randrange(32)) for _ in range(150)]
        for a, b in pairs:
            await check(dut, op, a, b, Rounding.HALF_UP)


@cocotb.test()
async def rounds_every_small_number(dut: Dut) -> None:
    dut.is_alu_i.value, dut.keep_i.value, dut.sum_i.value = 1, 0, 0
    for rounding in Rounding:
        for value in range(-40, 41):
            for amount in (0, 1, 2, 3, 4, 5, 30, 31):
                await check(dut, AluOp.SHR, value & 0xFFFFFFFF, amount, rounding)


@cocotb.test()
async def accumulates_for_gemm(dut: Dut) -> None:
    random = rng()
    dut.is_alu_i.value = 0
    for _ in range(300):
        keep, total = random.getrandbits(1), random.getrandbits(32)
        a = random.choice((*CORNERS, random.getrandbits(32)))
        dut.keep_i.value, dut.a_i.value, dut.sum_i.value = keep, a, total
        dut.op_i.value, dut.b_i.value = random.randrange(7), random.getrandbits(32)
        await settle()
        assert get(dut.result_o) == (total + (a if keep else 0)) & 0xFFFFFFFF
