"""Values as terms: what an integer is, as an expression of the region's input bytes, written as one number.

Every input byte is an indeterminate. A term is a polynomial in them with integer coefficients, or a function that is
kept whole (the rounding of the output stage, a clip, a maximum) of such terms. Its number is its value modulo a prime
where the indeterminates are random numbers and functions are random, too, but the same wherever they stand. Equal terms
have equal numbers; different ones have equal numbers with a probability of at most their degree divided by the prime
(Schwartz and Zippel), which is 2^-30 for a layer that multiplies two activations and half of that for the others. So
a wrong byte is missed with a probability below the number of layers behind it times 2^-30.

Beside its number a term has bounds. They prove that no sum leaves 32 bits, and that a clip does nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[Any]

PRIME: Final = (1 << 31) - 1
INT8: Final = (-128, 127)
INT32: Final = (-(1 << 31), (1 << 31) - 1)
_MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
_GOLDEN: Final = 0x9E3779B97F4A7C15
_WORD: Final = (1 << 64) - 1
# Terms of a matrix product that float64 adds exactly: 2^31 times 2^7 times this many is 2^53.
_EXACT: Final = 1 << 15


@dataclass(frozen=True, slots=True)
class Terms:
    """An array of terms: their numbers, and bounds of their values. Indexing is numpy's."""

    numbers: Numbers
    low: Numbers
    high: Numbers

    def __getitem__(self, where: Any) -> Terms:
        return Terms(self.numbers[where], self.low[where], self.high[where])

    def put(self, where: Any, terms: Terms) -> None:
        """Write `terms` over those at `where`, in place; where a place occurs twice the last one stays."""
        self.numbers[where] = terms.numbers
        self.low[where] = terms.low
        self.high[where] = terms.high

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the array."""
        return self.numbers.shape

    def reshape(self, *shape: int) -> Terms:
        """The same terms in another shape."""
        return Terms(self.numbers.reshape(shape), self.low.reshape(shape), self.high.reshape(shape))

    def transpose(self, *axes: int) -> Terms:
        """With axes in another order."""
        return Terms(self.numbers.transpose(axes), self.low.transpose(axes), self.high.transpose(axes))


def mix(words: Numbers) -> Numbers:
    """uint64 words scrambled, each to a word of its own (the last steps of SplitMix64)."""
    words = words ^ (words >> np.uint64(30))
    words *= _MIX[0]
    words ^= words >> np.uint64(27)
    words *= _MIX[1]
    words ^= words >> np.uint64(31)
    return words


def key(*parts: int | str) -> int:
    """A 64-bit number that stands for these parts."""
    word = 0
    for part in parts:
        for piece in part.encode() if isinstance(part, str) else (part,):
            # Arrays of one element wrap around silently; scalars of numpy would warn.
            start = np.array([(word * _GOLDEN + piece + 1) & _WORD], np.uint64)
            word = int(mix(start)[0])
    return word


def function(name: int, *operands: Numbers) -> Numbers:
    """The numbers of a function that is kept whole, named by `name`, of these operands, which broadcast."""
    words = np.array([name], np.uint64).reshape((1,) * max((operand.ndim for operand in operands), default=1))
    for operand in operands:
        words = mix(words + operand.astype(np.int64).view(np.uint64) * np.uint64(_GOLDEN))
    return (words % np.uint64(PRIME)).astype(np.int64)


def constants(values: Numbers) -> Terms:
    """Integers as terms."""
    values = np.asarray(values, np.int64)
    return Terms(values % PRIME, values, values)


def unknown(name: int, shape: Sequence[int], bounds: tuple[int, int] = INT8) -> Terms:
    """Indeterminates within `bounds`; other names, others."""
    count = np.arange(int(np.prod(shape, dtype=np.int64)), dtype=np.int64).reshape(tuple(shape))
    return Terms(function(name, count), np.full(shape, bounds[0]), np.full(shape, bounds[1]))


def magnitude(terms: Terms) -> Numbers:
    """What the terms' absolute values do not exceed."""
    return np.maximum(np.abs(terms.low.astype(np.int64)), np.abs(terms.high.astype(np.int64)))


def plus(left: Terms, right: Terms) -> Terms:
    """Sums, lane by lane."""
    return Terms((left.numbers + right.numbers) % PRIME, left.low + right.low, left.high + right.high)


def times(terms: Terms, factor: Numbers) -> Terms:
    """Products with integers of 33 bits at most."""
    ends = (terms.low * factor, terms.high * factor)
    return Terms(terms.numbers * (factor % PRIME) % PRIME, np.minimum(*ends), np.maximum(*ends))


def product(left: Numbers, weights: Numbers) -> Numbers:
    """Matrix product modulo the prime of numbers [..., n, k] and integers from -128 to 127 [..., k, m]."""
    total: Numbers = np.zeros((1,), np.int64)
    for begin in range(0, left.shape[-1], _EXACT):
        part = slice(begin, begin + _EXACT)
        exact = np.matmul(left[..., part].astype(np.float64), weights[..., part, :].astype(np.float64))
        total = total + exact.astype(np.int64) % PRIME
    return total % PRIME


def wide_product(left: Numbers, right: Numbers) -> Numbers:
    """Matrix product modulo the prime of numbers [..., n, k] and numbers [..., k, m]."""
    halves = [(values >> 16, values & 0xFFFF) for values in (left.astype(np.int64), right.astype(np.int64))]
    (a, b), (c, d) = halves
    high, middle, low = _whole(a, c), _whole(a, d) + _whole(b, c), _whole(b, d)
    # 2^32 is 2 modulo the prime.
    return (high % PRIME * 2 + middle % PRIME * (1 << 16) + low) % PRIME


def _whole(left: Numbers, right: Numbers) -> Numbers:
    return np.matmul(left.astype(np.float64), right.astype(np.float64)).astype(np.int64)


def wrapped(total: Terms) -> Terms:
    """The number that 32 bits hold: the term itself, or where its bounds leave them, a function of it."""
    if total.low.min() >= INT32[0] and total.high.max() <= INT32[1]:
        return total
    fits = (total.low >= INT32[0]) & (total.high <= INT32[1])
    return Terms(
        np.where(fits, total.numbers, function(key("wrap"), total.numbers)),
        np.where(fits, total.low, INT32[0]),
        np.where(fits, total.high, INT32[1]),
    )


def clipped(terms: Terms, bounds: tuple[int, int]) -> Terms:
    """max(min(term, high), low): the term itself where its bounds are inside."""
    low, high = bounds
    kept = (terms.low >= low) & (terms.high <= high)
    ends = Terms(terms.numbers, np.clip(terms.low, low, high), np.clip(terms.high, low, high))
    numbers = np.where(kept, terms.numbers, function(key("clip", low, high), terms.numbers))
    return Terms(np.where(ends.low == ends.high, ends.low % PRIME, numbers), ends.low, ends.high)


@dataclass(frozen=True, slots=True)
class Stage:
    """The end of the output stage: a rounding shift, a zero point and bounds. `rounding` is its name."""

    rounding: str
    zero_point: int
    bounds: tuple[int, int]

    @property
    def name(self) -> int:
        """Stands for the function of a product and a shift."""
        return key("stage", self.rounding, self.zero_point, *self.bounds)


def scaled(total: Terms, multiplier: Numbers, shift: Numbers, stage: Stage) -> Terms:
    """clip(round(wrap32(total) * multiplier / 2^shift) + zero point): equal sums have equal remainders in 32 bits."""
    return _ended(function(stage.name ^ key("scale"), shift, multiplier, total.numbers), stage)


def added(total: Terms, shift: Numbers, stage: Stage) -> Terms:
    """clip(round(total / 2^shift) + zero point) of a sum of products that 64 bits hold."""
    return _ended(function(stage.name ^ key("add"), shift, total.numbers), stage)


def _ended(numbers: Numbers, stage: Stage) -> Terms:
    low, high = stage.bounds
    numbers = np.broadcast_to(np.int64(low % PRIME), numbers.shape) if low == high else numbers
    return Terms(numbers, np.full(numbers.shape, low), np.full(numbers.shape, high))


def multiplied(left: Terms, right: Terms) -> Terms:
    """Products, lane by lane."""
    ends = np.stack([x * y for x in (left.low, left.high) for y in (right.low, right.high)])
    return Terms(left.numbers.astype(np.int64) * right.numbers % PRIME, ends.min(axis=0), ends.max(axis=0))


def looked_up(terms: Terms, table: Numbers) -> Terms:
    """What a table, int8 [256] with the result for -128 first, makes of int8 terms."""
    results = table.astype(np.int64)
    name = key("table", *(results - INT8[0]).tolist())
    low, high = (np.asarray(bound, np.int64) - INT8[0] for bound in (terms.low, terms.high))
    spans, which = np.unique(low * results.size + high, return_inverse=True)
    reached = [results[span // results.size : span % results.size + 1] for span in spans.tolist()]
    ends = np.array([(found.min(), found.max()) for found in reached])[which.reshape(low.shape)]
    least, most = ends[..., 0], ends[..., 1]
    # What can be one number only is that number, as it is for whoever stores it.
    return Terms(np.where(least == most, least % PRIME, function(name, terms.numbers)), least, most)


def maximum(members: Terms) -> Terms:
    """The largest along the first axis. Which ones they are counts, not how often or in which order."""
    lowest = (members.high == INT8[0]) & (members.low.min(axis=0) >= INT8[0])
    numbers = np.sort(np.where(lowest, -1, members.numbers), axis=0)
    repeated = np.zeros(numbers.shape, np.bool_)
    repeated[1:] = numbers[1:] == numbers[:-1]
    counted = ~repeated & (numbers >= 0)
    words = np.where(counted, mix(numbers.astype(np.int64).view(np.uint64)), np.uint64(0))
    several = function(key("maximum"), np.add.reduce(words, axis=0).view(np.int64))
    # Of one member, and of bytes that are all the lowest there is, the maximum is that.
    alone = np.where(numbers[-1] < 0, INT8[0] % PRIME, numbers[-1])
    found = np.where(counted.sum(axis=0) > 1, several, alone)
    return Terms(found, members.low.max(axis=0), members.high.max(axis=0))


def rows_mixed(elements: Terms, counts: Numbers) -> Numbers:
    """A number for each row [rows, columns] of the elements that count, in order; where none does, one for that."""
    numbers = np.where(counts, elements.numbers, -1).astype(np.int64)
    found = np.full(elements.shape[0], key("row"), np.uint64).view(np.int64)
    for column in range(elements.shape[1]):
        # What does not count leaves no trace, so that rows are as long as what counts.
        found = np.where(numbers[:, column] >= 0, function(key("next"), found, numbers[:, column]), found)
    return found


def softmaxes(
    elements: Terms, counts: Numbers, table: Numbers, numbers: Sequence[int], bound: Terms | None = None
) -> Terms:
    """Softmax of rows [rows, columns] with a table of 256; `numbers`: multiplier, shift, zero point; `bound`: the bytes
    of how many columns count at most.

    What does not count is the zero point.
    """
    name = key("softmax", *table.tolist(), *numbers, bound is not None)
    columns = np.arange(elements.shape[1])[None, :]
    # Which elements take part is seen as the program runs: by the bound, and by where each of them is.
    places = [] if bound is None else [*map(np.asarray, bound.numbers.astype(np.int64)), columns]
    mixed = function(name, rows_mixed(elements, counts)[:, None], elements.numbers, *places)
    zero = numbers[-1]
    return Terms(
        np.where(counts, mixed, zero % PRIME), np.where(counts, INT8[0], zero), np.where(counts, INT8[1], zero)
    )


def norms(elements: Terms, counts: Numbers, factors: tuple[Numbers, Numbers], numbers: Sequence[int | str]) -> Terms:
    """A norm of rows [rows, columns], with a gain and a bias for each column; `numbers`: what else names it."""
    gain, bias = (np.asarray(values, np.int64)[None, :] for values in factors)
    row = rows_mixed(elements, counts)[:, None]
    found = function(key("norm", *numbers), row, elements.numbers, gain, bias)
    return Terms(found, np.full(found.shape, INT8[0]), np.full(found.shape, INT8[1]))
