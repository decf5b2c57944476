"""Terms: sums and products are those of integers modulo the prime; functions are the same for the same operands."""

from __future__ import annotations

import numpy as np
import pytest

from relay_hw.tensorize.validate.terms import (
    PRIME,
    Stage,
    Terms,
    clipped,
    constants,
    function,
    key,
    maximum,
    plus,
    product,
    scaled,
    times,
    unknown,
    wide_product,
    wrapped,
)

STAGE = Stage("half_up", 3, (-128, 127))


def sums(left: np.ndarray, right: np.ndarray) -> list[list[int]]:
    """The matrix product of Python's integers, modulo the prime."""
    rows, columns = left.tolist(), right.T.tolist()
    return [[sum(a * b for a, b in zip(row, column, strict=True)) % PRIME for column in columns] for row in rows]


def test_products_are_exact() -> None:
    """Also of the largest numbers, and of more terms than float64 adds at once."""
    rng = np.random.default_rng(0)
    for depth in (1, 7, 40_000):
        left = rng.integers(PRIME - 3, PRIME, (2, depth))
        weights = rng.choice([-128, 127, 0], (depth, 3))
        assert product(left, weights).tolist() == sums(left, weights)
        right = rng.integers(0, PRIME, (depth, 3))
        assert wide_product(left, right).tolist() == sums(left, right)


def test_terms_follow_the_rules_of_sums() -> None:
    a, b = unknown(key("a"), (50,)), unknown(key("b"), (50,))
    assert np.array_equal(plus(a, b).numbers, plus(b, a).numbers)
    assert np.array_equal(plus(a, a).numbers, times(a, np.int64(2)).numbers)
    none = plus(times(a, np.int64(-7)), times(a, np.int64(7)))
    assert not none.numbers.any()
    assert np.array_equal(constants(np.arange(-128, 128)).numbers, np.arange(-128, 128) % PRIME)
    assert len({*a.numbers.tolist(), *b.numbers.tolist()}) == 100


def test_bounds_follow_signs() -> None:
    found = times(unknown(key("a"), (2,), (-3, 5)), np.array([2, -2]))
    assert (found.low.tolist(), found.high.tolist()) == ([-6, -10], [10, 6])


def test_a_function_is_the_same_for_the_same_operands_only() -> None:
    a = unknown(key("a"), (1000,))
    base = scaled(a, np.array(5), np.array(7), STAGE).numbers
    assert np.array_equal(base, scaled(a, np.full(1000, 5), np.full(1000, 7), STAGE).numbers)
    others = [
        scaled(a, np.array(6), np.array(7), STAGE),
        scaled(a, np.array(5), np.array(8), STAGE),
        scaled(plus(a, constants(np.array(1))), np.array(5), np.array(7), STAGE),
        scaled(a, np.array(5), np.array(7), Stage("half_even", 3, (-128, 127))),
        scaled(a, np.array(5), np.array(7), Stage("half_up", 4, (-128, 127))),
        scaled(a, np.array(5), np.array(7), Stage("half_up", 3, (-127, 127))),
    ]
    for other in others:
        assert (other.numbers != base).all()
    assert (function(key("f"), a.numbers, base) != function(key("f"), base, a.numbers)).all()


@pytest.mark.parametrize("bounds", [(-128, 127), (0, 127), (-5, 6), (4, 4)])
def test_a_clip_that_does_nothing_is_no_clip(bounds: tuple[int, int]) -> None:
    a = unknown(key("a"), (20,), (0, 100))
    found = clipped(a, bounds)
    assert (found.low.min(), found.high.max()) == (max(bounds[0], 0), min(bounds[1], 100))
    assert np.array_equal(found.numbers, a.numbers) == (bounds[0] <= 0 and bounds[1] >= 100)
    if bounds[0] == bounds[1]:
        assert (found.numbers == bounds[0] % PRIME).all()
    assert np.array_equal(clipped(found, bounds).numbers, found.numbers)


def test_a_maximum_is_that_of_a_set() -> None:
    """Order and repetition do not count, the lowest byte is no member, and each other member counts."""
    a = unknown(key("a"), (4, 30))
    lowest = constants(np.full((1, 30), -128))

    def of(*members: Terms) -> list[int]:
        parts = [np.concatenate([getattr(one, name) for one in members]) for name in ("numbers", "low", "high")]
        return maximum(Terms(*parts)).numbers.tolist()

    assert of(a) == of(a[::-1]) == of(a, a[1:2]) == of(lowest, a)
    assert all(x != y for x, y in zip(of(a), of(a[:3]), strict=True))
    assert of(a[:1], a[:1], lowest) == a.numbers[0].tolist()
    assert of(lowest, lowest) == lowest.numbers[0].tolist()


def test_sums_that_may_leave_32_bits_are_wrapped() -> None:
    inside = unknown(key("a"), (3,), (0, (1 << 31) - 1))
    assert wrapped(inside) is inside
    beyond = plus(inside, constants(np.array([0, 1, 1])))
    found = wrapped(beyond)
    assert (found.numbers == beyond.numbers).tolist() == [True, False, False]
    assert found.low.min() == -(1 << 31)
