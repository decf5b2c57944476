"""vta_alu_lane against the arithmetic of the instruction set, on corner values and random ones."""

from __future__ import annotations

import cocotb
import numpy as np

from accel.isa import arith
from accel.isa.spec import AluOp, Rounding
from accel.sim.bench.common import Dut, get, rng, settle, signed

CORNERS = (0, 1, 2, 3, 5, 127, 128, 0x7FFF, 0x8000, 0x7FFFFFFF, 0x80000000, 0x80000001, 0xFFFFFFFF, 0xFFFFFFFE)


LOWEST = 0x80000000


def word(value: int) -> int:
    return value & 0xFFFFFFFF


def asking(rounding: Rounding, amount: int) -> int:
    """Bits of the window that ask for rounding up."""
    k, bits = amount % 8, 0
    if rounding in (Rounding.HALF_EVEN, Rounding.HALF_AWAY):
        bits |= (1 << k) - 1
    if rounding is Rounding.HALF_EVEN:
        bits |= 2 << k
    return bits


def drive(dut: Dut, op: AluOp, a: int, b: int, rounding: Rounding) -> None:
    """The operands as `vta_update` prepares them."""
    dut.en_i.value = 1
    dut.compare_i.value = op in (AluOp.MIN, AluOp.MAX, AluOp.CLIP)
    dut.greater_i.value = op in (AluOp.MAX, AluOp.MUL)
    dut.amount_i.value, dut.low_i.value = 0, LOWEST
    dut.a_i.value, dut.b_i.value = 0 if op is AluOp.MOV else a, b
    if op is AluOp.SHR:
        dut.amount_i.value, dut.b_i.value = b & 31, 0
        dut.asking_i.value = asking(rounding, b & 31)
    if op is AluOp.CLIP:
        upper, lower = signed(b & 0xFFFF, 16), signed(b >> 16, 16)
        dut.low_i.value, dut.b_i.value = word(lower), word(max(lower, upper))


async def check(dut: Dut, op: AluOp, a: int, b: int, rounding: Rounding) -> None:
    dut.rounding_i.value = rounding
    drive(dut, op, a, b, rounding)
    await settle()
    old, second = (np.array([signed(value, 32)], np.int64) for value in (a, b))
    expected = 0 if op is AluOp.MUL else int(arith.alu(op, old, second, rounding)[0])
    assert get(dut.result_o) == word(expected), f"{op.name} {rounding.name} {a:#x} {b:#x}"


@cocotb.test()
async def computes_every_operation(dut: Dut) -> None:
    random = rng()
    for op in AluOp:
        pairs = [(a, b) for a in CORNERS for b in CORNERS]
        pairs += [(random.getrandbits(32), random.getrandbits(32)) for _ in range(150)]
        pairs += [(random.getrandbits(32) >> random.randrange(32), random.randrange(32)) for _ in range(150)]
        for a, b in pairs:
            await check(dut, op, a, b, Rounding.HALF_UP)


@cocotb.test()
async def rounds_every_small_number(dut: Dut) -> None:
    for rounding in Rounding:
        for value in range(-40, 41):
            for amount in (0, 1, 2, 3, 4, 5, 30, 31):
                await check(dut, AluOp.SHR, value & 0xFFFFFFFF, amount, rounding)


@cocotb.test()
async def rounds_beside_every_tie(dut: Dut) -> None:
    random = rng()
    for rounding in Rounding:
        for amount in range(1, 32):
            for whole in (0, 1, 2, -1, -2, -3, random.randrange(-(1 << 31) >> amount, 1 << 31 - amount)):
                tie = (whole << amount) + (1 << amount - 1)
                for value in (tie - 1, tie, tie + 1, tie ^ 1 << random.randrange(amount)):
                    await check(dut, AluOp.SHR, word(value), amount, rounding)
