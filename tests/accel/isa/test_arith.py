"""Arithmetic against exact fractions and Python's big integers: exhaustive on small domains, random on large ones."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from relay_hw.accel.isa import arith
from relay_hw.accel.isa.alu import AluOp
from relay_hw.accel.isa.spec import Rounding

EXTREME = np.array(
    [0, 1, -1, 2, -2, 127, -128, 1 << 15, -(1 << 15), (1 << 31) - 1, -(1 << 31), (1 << 61) + 1, 1 << 62, -(1 << 62)]
)


def exact(value: int, shift: int, rounding: Rounding) -> int:
    """Rounding by its definition on the exact fraction."""
    ratio = Fraction(value, 1 << shift)
    match rounding:
        case Rounding.FLOOR:
            return math.floor(ratio)
        case Rounding.HALF_UP:
            return math.floor(ratio + Fraction(1, 2))
        case Rounding.HALF_AWAY:
            magnitude = math.floor(abs(ratio) + Fraction(1, 2))
            return magnitude if ratio >= 0 else -magnitude
        case Rounding.HALF_EVEN:
            return round(ratio)


@pytest.mark.parametrize("rounding", list(Rounding))
def test_round_shift_exhaustively(rounding: Rounding) -> None:
    values = np.arange(-300, 301)
    for shift in range(11):
        result = arith.round_shift(values, np.full_like(values, shift), rounding)
        assert result.tolist() == [exact(v, shift, rounding) for v in values.tolist()], shift


@pytest.mark.parametrize("rounding", list(Rounding))
def test_round_shift_on_large_values(rounding: Rounding) -> None:
    rng = np.random.default_rng(int(rounding))
    random = rng.integers(-(1 << 62), (1 << 62) + 1, 2000)
    # Ties and their neighbours at every shift.
    shifts = np.arange(1, 63)
    ties = (rng.integers(-8, 8, 62) << shifts) + (np.int64(1) << (shifts - 1))
    ties = ties[np.abs(ties) < 1 << 62]
    values = np.concatenate([random, EXTREME, ties, ties - 1, ties + 1])
    amounts = np.concatenate([rng.integers(0, 63, 2000), rng.integers(0, 63, EXTREME.size), *3 * [shifts[: ties.size]]])
    result = arith.round_shift(values, amounts, rounding)
    expected = [exact(v, s, rounding) for v, s in zip(values.tolist(), amounts.tolist(), strict=True)]
    assert result.tolist() == expected


def test_the_manual_tells_the_truth_about_ties() -> None:
    table = {
        Rounding.HALF_UP: [3, 4, -2, -3],
        Rounding.HALF_EVEN: [2, 4, -2, -4],
        Rounding.HALF_AWAY: [3, 4, -3, -4],
        Rounding.FLOOR: [2, 3, -3, -4],
    }
    for rounding, expected in table.items():
        values = np.array([5, 7, -5, -7])
        assert arith.round_shift(values, np.ones_like(values), rounding).tolist() == expected


def test_wrap_and_sign_extension() -> None:
    rng = np.random.default_rng(0)
    values = np.concatenate([rng.integers(-(1 << 63), (1 << 63) - 1, 1000), EXTREME])
    for bits in (1, 8, 9, 16, 17, 32):
        expected = [(v + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1)) for v in values.tolist()]
        assert arith.sign_extend(values, bits).tolist() == expected
    assert arith.wrap32(values).tolist() == arith.sign_extend(values, 32).tolist()


@pytest.mark.parametrize("op", list(AluOp))
def test_alu_on_extreme_pairs(op: AluOp) -> None:
    lanes = EXTREME[np.abs(EXTREME) <= 1 << 31]
    lanes = np.concatenate([lanes[lanes < 1 << 31], np.random.default_rng(1).integers(-(1 << 31), 1 << 31, 40)])
    a, b = (grid.reshape(-1) for grid in np.meshgrid(lanes, lanes))
    for rounding in Rounding if op is AluOp.SHR else (Rounding.HALF_UP,):
        result = arith.wrap32(arith.alu(op, a, b, rounding)).tolist()
        expected = [alu(op, x, y, rounding) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
        assert result == expected


def alu(op: AluOp, a: int, b: int, rounding: Rounding) -> int:
    upper, lower = ((part + 0x8000) % 0x10000 - 0x8000 for part in (b, b >> 16))
    result = {
        AluOp.MOV: b,
        AluOp.ADD: a + b,
        AluOp.MUL: a * b,
        AluOp.MIN: min(a, b),
        AluOp.MAX: max(a, b),
        AluOp.SHR: exact(a, b % 32, rounding),
        AluOp.CLIP: max(min(a, upper), lower),
    }[op]
    return (result + (1 << 31)) % (1 << 32) - (1 << 31)
