"""vta_requant_lane against big integers: all forms and roundings, corners of every field, pipelined and with gaps."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

import cocotb

from accel.isa.spec import PRM, Form, Rounding
from accel.sim.bench.common import Dut, get, parameter, rng, signed, start, step


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
            total = y * narrow(self.multiplier) + r * narrow(self.bias)
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
                random.randrange(63), (byte(), byte()), byte(), (clip[0], clip[1]))  # fmt: skip
    if form is not Form.ADD:
        return case
    other = random.choice((0, 1, (1 << bits) - 1, random.randrange(1 << bits)))
    return replace(case, y=byte(), r=byte(), bias=other)


def slots_of(case: Case) -> list[tuple[Case, int, bool]]:
    """(case, operand, is the second of an addition) for each slot."""
    first = [(case, case.y, False)]
    return first + [(case, case.r, True)] if case.form is Form.ADD else first


@cocotb.test()
async def matches_big_integers(dut: Dut) -> None:
    random, bits = rng(), parameter(dut, "MULTIPLIER_BITS")
    names = ("en_i", "acc_i", "prm_i", "form_i", "second_i", "pass_zero_i", "add_i", "rounding_i", "zero_point_i")
    await start(dut, **dict.fromkeys(names, 0), clip_lo_i=0, clip_hi_i=0)
    slots = [slot for _ in range(1500) for slot in slots_of(random_case(random, bits))]
    stages: list[tuple[Case, int, bool] | None] = [None] * 6  # stages[k]: the slot that enters register k + 1 now
    done = 0
    while slots or any(stages):
        gap_ok = stages[0] is None or not (stages[0][0].form is Form.ADD and not stages[0][2])
        new = slots.pop(0) if slots and (random.random() < 0.8 or not gap_ok) else None
        stages = [new, *stages[:5]]
        if stages[3] and stages[3][0].form is Form.ADD and not stages[3][2]:
            stages[3] = None  # the first slot of an addition ends in the sum of stage 3
        dut.en_i.value = sum((stage is not None) << k for k, stage in enumerate(stages[:5]))
        if stages[0]:
            case, operand, second = stages[0]
            dut.acc_i.value, dut.prm_i.value = operand & 0xFFFFFFFF, case.record()
            dut.form_i.value, dut.second_i.value, dut.pass_zero_i.value = case.form, second, case.zero_point & 0xFF
        if stages[2]:
            dut.add_i.value = stages[2][2]
        if stages[3]:
            dut.rounding_i.value = stages[3][0].rounding
        if stages[4]:
            case = stages[4][0]
            dut.zero_point_i.value = 0 if case.form is Form.PASS else case.zero_point & 0xFF
            dut.clip_lo_i.value, dut.clip_hi_i.value = (bound & 0xFF for bound in case.clip)
        await step(dut)
        if stages[4]:
            case = stages[4][0]
            assert signed(get(dut.result_o), 8) == case.expected(bits), case
            done += 1
    assert done == 1500
