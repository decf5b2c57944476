"""Tests vta_alu_lane against the arithmetic of the instruction set, on corner values and random ones, a slot a cycle.

An operation with two bounds is MAX, then MIN with its result: not an operation of a lane.
"""

from __future__ import annotations

from dataclasses import dataclass

import cocotb
import numpy as np

from relay_hw.accel.isa import arith
from relay_hw.accel.isa.alu import ALU_OPS, AluOp, Control
from relay_hw.accel.isa.spec import Rounding
from relay_hw.accel.sim.bench.common import Dut, get, rng, settle, signed, start, step

CORNERS = (0, 1, 2, 3, 5, 127, 128, 0x7FFF, 0x8000, 0x7FFFFFFF, 0x80000000, 0x80000001, 0xFFFFFFFF, 0xFFFFFFFE)
OPS = [op for op in AluOp if not ALU_OPS[op].has(Control.BOUNDS)]
# The others say what is on the lane's operands.
LANE_CONTROLS = [control for control in Control if control not in (Control.SHIFT, Control.PRODUCT, Control.BOUNDS)]
INPUTS = [f"{control.value.lower()}_i" for control in LANE_CONTROLS]
INPUTS += ["en_i", "new_i", "rounding_i", "amount_i", "known_i", "b_i", "live_i", "times_i"]


NO_NEW = {Control.ZERO, Control.PRODUCT, Control.SHIFT}


def word(value: int) -> int:
    return value & 0xFFFFFFFF


@dataclass(frozen=True)
class Slot:
    """`new`: the old value is the result of the slot in front, not `a`."""

    op: AluOp
    a: int
    b: int
    rounding: Rounding = Rounding.HALF_UP
    new: bool = False


def drive(dut: Dut, slot: Slot) -> None:
    """Stage O as `vta_update` gives it; MUL brings a product that is `a`."""
    op, a, b = slot.op, slot.a, slot.b
    dut.en_i.value = 1
    dut.new_i.value = slot.new
    for control in LANE_CONTROLS:
        getattr(dut, f"{control.value.lower()}_i").value = ALU_OPS[op].has(control)
    dut.amount_i.value, dut.rounding_i.value = 0, slot.rounding
    dut.known_i.value, dut.b_i.value = a, b
    if ALU_OPS[op].has(Control.SHIFT):
        dut.amount_i.value, dut.b_i.value = b & 31, 0


def expected(slot: Slot, before: int) -> int:
    """The result; `before`: that of the slot in front."""
    a = before if slot.new else slot.a
    if ALU_OPS[slot.op].has(Control.PRODUCT):
        return slot.a
    old, second = (np.array([signed(value, 32)], np.int64) for value in (a, slot.b))
    return word(int(arith.alu(slot.op, old, second, slot.rounding)[0]))


async def check(dut: Dut, slots: list[Slot]) -> None:
    """One slot behind the other, now and then a cycle without one."""
    random, before, shown = rng(), 0, None
    await start(dut, **dict.fromkeys(INPUTS, 0))
    waiting = list(reversed(slots))
    while waiting or shown:
        dut.live_i.value = shown is not None
        dut.times_i.value = shown.a if shown and ALU_OPS[shown.op].has(Control.PRODUCT) else 0
        slot = waiting.pop() if waiting and (waiting[-1].new or random.random() < 0.9) else None
        if slot:
            drive(dut, slot)
        else:
            dut.en_i.value = 0
        await settle()
        if shown:
            before = expected(shown, before)
            assert get(dut.result_o) == before, shown
        shown = slot
        await step(dut)


@cocotb.test()
async def computes_every_operation(dut: Dut) -> None:
    random, slots = rng(), list[Slot]()
    for op in OPS:
        pairs = [(a, b) for a in CORNERS for b in CORNERS]
        pairs += [(random.getrandbits(32), random.getrandbits(32)) for _ in range(150)]
        pairs += [(random.getrandbits(32) >> random.randrange(32), random.randrange(32)) for _ in range(150)]
        slots += [Slot(op, a, b) for a, b in pairs]
    await check(dut, slots)


@cocotb.test()
async def goes_on_with_its_own_result(dut: Dut) -> None:
    random, slots = rng(), [Slot(AluOp.MOV, 0, 5)]
    for _ in range(1500):
        op, b = random.choice(OPS), random.getrandbits(32)
        slots.append(Slot(op, random.getrandbits(32), b, new=not ALU_OPS[op].controls & NO_NEW))
    await check(dut, slots)


@cocotb.test()
async def rounds_every_small_number(dut: Dut) -> None:
    values = [(value, amount) for value in range(-40, 41) for amount in (0, 1, 2, 3, 4, 5, 30, 31)]
    await check(dut, [Slot(AluOp.SHR, word(value), amount, r) for r in Rounding for value, amount in values])


@cocotb.test()
async def rounds_beside_every_tie(dut: Dut) -> None:
    random, slots = rng(), list[Slot]()
    for rounding in Rounding:
        for amount in range(1, 32):
            for whole in (0, 1, 2, -1, -2, -3, random.randrange(-(1 << 31) >> amount, 1 << 31 - amount)):
                tie = (whole << amount) + (1 << amount - 1)
                for value in (tie - 1, tie, tie + 1, tie ^ 1 << random.randrange(amount)):
                    slots.append(Slot(AluOp.SHR, word(value), amount, rounding))
    await check(dut, slots)
