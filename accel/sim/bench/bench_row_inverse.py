"""Tests vta_row_inverse: factors and inverse roots of any sums, smallest and largest too, when they are valid."""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt
from random import Random

import cocotb

from relay_hw.accel.isa.rows import reach
from relay_hw.accel.isa.slots import ROW_LEAST
from relay_hw.accel.sim.bench.common import Dut, get, rng, settle, start, step

# Columns of the longest row of a norm: its coefficients lie in 2^16 elements, a quarter of an entry in each.
MOST = 1 << 14


@dataclass(frozen=True, slots=True)
class _Row:
    """What a row's sums and instruction are: ports of the module."""

    softmax_i: int
    columns_i: int
    epsilon_i: int
    multiplier_i: int
    shift_i: int
    total_i: int
    sum_i: int


def random_row(random: Random) -> _Row:
    """Sums that rows can have, often those of equal or alternating elements."""
    softmax = random.randint(0, 1)
    n = random.choice([1, 2, 3, MOST, MOST - 1, random.randint(1, MOST), 1 << random.randint(0, 14)])
    if softmax:
        most = 1 << random.randint(0, 43)
        total = random.choice([0, 1, most, most - 1, most + (most >> 16) - 1, random.randrange(most)])
        return _Row(1, n, 0, random.choice([0, 65535, random.getrandbits(16)]), random.randint(-15, 15), total, 0)
    largest = random.choice([1, 128, 255])
    few = random.randint(0, n)
    low, high = -random.randint(0, min(largest, 128)), random.randint(0, min(largest, 127))
    squares, total = few * low * low + (n - few) * high * high, few * low + (n - few) * high
    if random.random() < 0.5:
        squares, total = n * largest * largest, 0
    epsilon = random.choice([0, 1, 15, 16, (1 << 48) - 1, 1 << random.randint(0, 47), random.getrandbits(48)])
    return _Row(0, n, epsilon, 0, random.randint(0, 40), squares, total)


def expected(row: _Row) -> tuple[int, int | None, int]:
    """The inverse, drop of a norm, down, by ISA.md's words."""
    if row.softmax_i:
        total = max(row.total_i, 1)
        bits = total.bit_length()
        high = total << 16 - bits if bits < 16 else total >> bits - 16
        return ((1 << 32) - 1) // high * row.multiplier_i >> 16, None, bits + row.shift_i
    n = row.columns_i
    value = max(16 * (n * row.total_i - row.sum_i * row.sum_i) + row.epsilon_i, 16)
    half = (value.bit_length() + 1) // 2 - 8
    m = value >> 2 * half if half > 0 else value << -2 * half
    drop = max(half + reach(n), 0)
    return isqrt(((1 << 46) - 1) // m), drop, 11 + half - drop


@cocotb.test()
async def inverts_in_a_round(dut: Dut) -> None:
    random = rng()
    await start(dut, en_i=1, load_i=0, **dict.fromkeys(_Row.__slots__, 0))
    for _ in range(400):
        row = random_row(random)
        for name in _Row.__slots__:
            value = getattr(row, name)
            getattr(dut, name).value = value & (1 << len(getattr(dut, name))) - 1
        dut.load_i.value = 1
        for edge in range(1, ROW_LEAST + random.choice([0, 0, 30])):
            await step(dut)
            dut.load_i.value = 0
            # The next row's sums are being made.
            dut.total_i.value, dut.sum_i.value = random.getrandbits(44), random.getrandbits(23)
            await settle()
            if edge >= ROW_LEAST - 1:
                inverse, drop, down = expected(row)
                assert get(dut.inverse_o) == inverse and get(dut.down_o) == down & 0xFF, row
                assert drop is None or get(dut.drop_o) == drop, row
