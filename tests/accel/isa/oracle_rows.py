"""A second, naive meaning of `row`: one row as a list of Python integers, as ISA.md words it.

In: the fields of the instruction, written out by hand, and a row's elements and coefficients. Out: the row's results,
and every number on the way by name, so that a test can say how many bits hardware needs for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import isqrt

SOFTMAX, LAYER_NORM, RMS_NORM = range(3)


def half_up(value: int, shift: int) -> int:
    """value / 2**shift, the nearest integer, the larger one of two."""
    return value if not shift else (value + (1 << shift - 1)) // (1 << shift)


def high16(value: int) -> int:
    """The highest 16 bits, with zeros behind a number that has fewer."""
    bits = value.bit_length()
    return value >> bits - 16 if bits > 16 else value << 16 - bits


def clipped(value: int) -> int:
    return -128 if value < -128 else 127 if value > 127 else value


def wrapped(value: int, bits: int) -> int:
    value %= 1 << bits
    return value - (1 << bits) if value >= 1 << bits - 1 else value


@dataclass
class RowFields:
    """Fields of the instruction that every row shares. `epsilon` is both of its parts."""

    kind: int
    columns: int
    zero_point: int = 0
    inp_zero: int = 0
    shift: int = 0
    epsilon: int = 0
    multiplier: int = 0


@dataclass
class Seen:
    """Every number on the way; `note` keeps the least and the largest of a name."""

    least: dict[str, int] = field(default_factory=dict)
    most: dict[str, int] = field(default_factory=dict)

    def note(self, **numbers: int) -> None:
        for name, number in numbers.items():
            self.least[name] = min(number, self.least.get(name, number))
            self.most[name] = max(number, self.most.get(name, number))


def softmax_row(
    f: RowFields, elements: Sequence[int], tables: Sequence[Sequence[int]], visible: int, seen: Seen
) -> list[int]:
    """Results of a row of which `visible` columns count; `tables`: for each lane unsigned gains by distance."""
    limit = min(visible, f.columns)
    counted = list(elements[:limit])
    top = max(counted) if counted else -128
    entries = [tables[column % len(tables)][top - element] for column, element in enumerate(counted)]
    entries += [0] * (len(elements) - limit)
    total = 0
    for entry in entries:
        total += (entry % 4096) << entry // 4096
    seen.note(total=total)
    total = total or 1
    factor = ((1 << 32) - 1) // high16(total) * f.multiplier // (1 << 16)
    seen.note(inverse=((1 << 32) - 1) // high16(total), factor=factor)
    results: list[int] = []
    for entry in entries:
        mantissa, exponent = entry % 4096, entry // 4096
        down = max(total.bit_length() + f.shift - exponent, 0)
        seen.note(product=mantissa * factor, down=down)
        results.append(clipped(half_up(mantissa * factor, down) + f.zero_point))
    return results


def norm_row(
    f: RowFields, elements: Sequence[int], gains: Sequence[int], biases: Sequence[int], seen: Seen
) -> list[int]:
    """Results of a row; `gains` and `biases` of its columns and of the lanes behind them."""
    off = f.inp_zero if f.kind == RMS_NORM else 0
    u = [element - off for element in elements]
    n = f.columns
    s = sum(u[:n]) if f.kind == LAYER_NORM else 0
    q = sum(value * value for value in u[:n])
    v = max(16 * (n * q - s * s) + f.epsilon, 16)
    half = (v.bit_length() + 1) // 2 - 8
    m = v >> 2 * half if half >= 0 else v << -2 * half
    r = isqrt(((1 << 46) - 1) // m)
    assert r * r * m < 1 << 46 <= (r + 1) * (r + 1) * m
    drop = max(half + (n.bit_length() + 1) // 2 - 11, 0)
    seen.note(s=s, q=q, spread=n * q - s * s, v=v, m=m, r=r, half=half, drop=drop)
    results: list[int] = []
    for column, (value, gain, bias) in enumerate(zip(u, gains, biases, strict=True)):
        whole = half_up(n * value - s, drop)
        e = wrapped(whole, 18)
        z = min(max(half_up(e * r, 11 + half - drop), -131071), 131071)
        result = half_up(z * gain + bias, f.shift)
        seen.note(difference=n * value - s, down=11 + half - drop, root_product=e * r, scaled=z * gain + bias)
        if column < n:
            seen.note(whole=whole, z=z)
        results.append(clipped(result + f.zero_point))
    return results
