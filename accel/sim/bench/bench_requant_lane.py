"""Tests vta_requant_lane against big integers: all forms and roundings, corners of fields, pipelined and with gaps."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random
from typing import TypeAlias

import cocotb

from relay_hw.accel.isa.spec import PRM, TWO_OPERANDS, Form, Rounding
from relay_hw.accel.sim.bench.common import Dut, get, parameter, rng, settle, signed, start, step


@dataclass(frozen=True)
class Case:
    form: Form
    rounding: Rounding
    y: int
    r: int
    bias: int
    multiplier: int
    shift: int
    zeros: tuple[int, int]
    zero_point: int
    clip: tuple[int, int]

    def expected(self, bits: int) -> int:
        """The result from unbounded integers."""
        if self.form is Form.PASS:
            return self.clipped(signed(self.y + self.zero_point & 0xFFFFFFFF, 32))
        narrow = lambda value: signed(value & ((2 << bits) - 1), bits + 1)  # noqa: E731
        if self.form is Form.SCALE:
            total = signed(self.y + self.bias & 0xFFFFFFFF, 32) * narrow(self.multiplier)
        else:
            y, r = (signed(v - z & 0x1FF, 9) for v, z in zip((self.y, self.r), self.zeros, strict=True))
            scaled = y * narrow(self.multiplier)
            total = scaled + r * narrow(self.bias) if self.form is Form.ADD else signed(scaled & 0xFFFFFFFF, 32) * r
        return self.clipped(self.rounded(total, min(self.shift, 62)) + self.zero_point)

    def rounded(self, total: int, shift: int) -> int:
        floor, rest = total >> shift, total & ((1 << shift) - 1)
        half = (1 << shift) >> 1
        up = {
            Rounding.FLOOR: False,
            Rounding.HALF_UP: rest >= half,
            Rounding.HALF_EVEN: rest > half or (rest == half and floor & 1 == 1),
            Rounding.HALF_AWAY: rest > half or (rest == half and total >= 0),
        }[self.rounding]
        return floor + (shift > 0 and up)

    def clipped(self, value: int) -> int:
        return max(self.clip[0], min(self.clip[1], value))

    def record(self) -> int:
        values = {"bias": self.bias, "multiplier": self.multiplier, "shift": self.shift}
        return PRM.encode(values | {"y_zero": self.zeros[0], "r_zero": self.zeros[1]})


def random_case(random: Random, bits: int) -> Case:
    form = random.choice(list(Form))
    wide = lambda: random.choice((0, 1, -1, (1 << 31) - 1, -(1 << 31), random.randrange(-(1 << 31), 1 << 31)))  # noqa: E731
    multiplier = random.choice((0, 1, (1 << bits) - 1, random.randrange(1 << bits)))
    byte = lambda: random.choice((-128, 127, 0, random.randrange(-128, 128)))  # noqa: E731
    clip = sorted((byte(), byte()))
    case = Case(form, random.choice(list(Rounding)), wide() >> random.choice((0, 8, 20)), 0, wide(), multiplier,
                random.randrange(66), (byte(), byte()), byte(), (clip[0], clip[1]))  # fmt: skip
    if form not in TWO_OPERANDS:
        return case
    other = random.choice((0, 1, (1 << bits) - 1, random.randrange(1 << bits)))
    return replace(case, y=byte(), r=byte(), bias=other)


Slot: TypeAlias = tuple[Case, int, bool]  # case, operand, is the second of an addition or product


def slots_of(case: Case) -> list[Slot]:
    """The slots of one case."""
    first = [(case, case.y, False)]
    return first + [(case, case.r, True)] if case.form in TWO_OPERANDS else first


def is_first(slot: Slot) -> bool:
    """Whether it is the first slot of two."""
    return slot[0].form in TWO_OPERANDS and not slot[2]


def times(slot: Slot | None) -> bool:
    """Whether its operand multiplies the product before it."""
    return slot is not None and slot[0].form is Form.MUL and slot[2]


@cocotb.test()
async def matches_big_integers(dut: Dut) -> None:
    random, bits = rng(), parameter(dut, "MULTIPLIER_BITS")
    names = (
        "en_i",
        "acc_i",
        "prm_i",
        "form_i",
        "second_i",
        "pass_zero_i",
        "keep_i",
        "times_i",
        "rounding_i",
        "zero_point_i",
    )
    await start(dut, **dict.fromkeys(names, 0), clip_lo_i=0, clip_hi_i=0)
    slots: list[Slot] = [slot for _ in range(1500) for slot in slots_of(random_case(random, bits))]
    # The reset forgets an addition of which only the first slot came.
    stopped = next(slot for slot in slots if is_first(slot))
    await run(dut, random, [stopped])
    dut.rst_ni.value = 0
    await step(dut)
    dut.rst_ni.value = 1
    assert await run(dut, random, slots) == 1500


async def run(dut: Dut, random: Random, slots: list[Slot]) -> int:
    """Run `slots` through the stages with gaps; the number of results."""
    bits = parameter(dut, "MULTIPLIER_BITS")
    stages: list[Slot | None] = [None] * 8  # stages[k]: the slot that enters register k + 1 now
    done = 0
    while slots or any(stages):
        new = slots.pop(0) if slots and random.random() < 0.8 else None
        stages = [new, *stages[:7]]
        if stages[4] and is_first(stages[4]):
            stages[4] = None  # the first slot of two ends in stage 4
        dut.en_i.value = sum((stage is not None) << k for k, stage in enumerate(stages[:7]))
        if stages[0]:
            case, _, second = stages[0]
            dut.prm_i.value = case.record()
            dut.form_i.value, dut.second_i.value, dut.pass_zero_i.value = case.form, second, case.zero_point & 0xFF
        dut.times_i.value = times(stages[1]) | times(stages[2]) << 1
        if stages[1]:
            dut.acc_i.value = stages[1][1] & 0xFFFFFFFF
        if stages[3]:
            dut.keep_i.value = is_first(stages[3]) and stages[3][0].form is Form.ADD
        if stages[5]:
            dut.rounding_i.value = stages[5][0].rounding
        if stages[6]:
            case = stages[6][0]
            dut.zero_point_i.value = 0 if case.form is Form.PASS else case.zero_point & 0xFF
            dut.clip_lo_i.value, dut.clip_hi_i.value = (bound & 0xFF for bound in case.clip)
        await settle()
        early = get(dut.result_d_o)
        await step(dut)
        if stages[6]:
            assert early == get(dut.result_o)
            case = stages[6][0]
            assert signed(get(dut.result_o), 8) == case.expected(bits), case
            done += 1
    return done
