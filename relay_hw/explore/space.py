"""The design space: axes, the space that they span, and its points.

In: texts such as `block_in=8,16,32`. Out: `Axis`, `Space`, `Point`. A point is known by its number in the grid of all.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from relay_hw.accel.isa.config import SIZES, AccelConfig
from relay_hw.accel.sim.dram_timing import MEMORY_MODELS
from relay_hw.errors import InputError
from relay_hw.support.names import one_of
from relay_hw.target.accel.changes import MEMORY_KEYS

Value = int | str

MEMORY, STRATEGY, RESIDENT, CLOCK = "memory", "strategy", "resident", "clock"
# Weights may stay on the device between launches, or not.
RESIDENTS: Final = ("auto", "off")
# Axes whose values are names.
NAMED: Final = (MEMORY, STRATEGY, RESIDENT)
_NUMBERS: Final = (*SIZES, *MEMORY_KEYS, CLOCK)
AXES: Final = (*_NUMBERS, *NAMED)
# Limits on values of an axis and points of a space, so that point numbers stay readable.
MOST_VALUES: Final = 64
MOST_POINTS: Final = 10_000_000


@dataclass(frozen=True, slots=True)
class Axis:
    """One parameter and its values: `name` is one of `AXES`. Raises InputError."""

    name: str
    values: tuple[Value, ...]

    def __post_init__(self) -> None:
        if self.name not in AXES:
            raise InputError(one_of("axis", AXES, self.name))
        if not 1 <= len(self.values) <= MOST_VALUES:
            raise InputError(f"axis {self.name} must have from 1 to {MOST_VALUES} values, not {len(self.values)}")
        twice = [value for value in self.values if self.values.count(value) > 1]
        if twice:
            raise InputError(f"axis {self.name} must have different values, not {twice[0]} twice")
        known = {MEMORY: tuple(MEMORY_MODELS), RESIDENT: RESIDENTS}.get(self.name, self.values)
        for value in self.values:
            if value not in known:
                raise InputError(f"axis {self.name} must have values of {', '.join(map(str, known))}, not {value}")


@dataclass(frozen=True, slots=True)
class Point:
    """One accelerator of a space: its number in the grid, and the value of each axis."""

    number: int
    values: tuple[tuple[str, Value], ...]

    def __getitem__(self, name: str) -> Value | None:
        """The value of an axis; None if the space lacks that axis."""
        return dict(self.values).get(name)

    def __str__(self) -> str:
        return ", ".join(f"{name}={value}" for name, value in self.values)


@dataclass(frozen=True, slots=True)
class Space:
    """All points: each value of each axis with each of the others, the last axis first. Raises InputError."""

    axes: tuple[Axis, ...]

    def __post_init__(self) -> None:
        names = [axis.name for axis in self.axes]
        if not names:
            raise InputError("a space must have an axis, not none")
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            raise InputError(f"a space must have different axes, not {twice[0]} twice")
        if self.size > MOST_POINTS:
            raise InputError(f"a space must have at most {MOST_POINTS:,} points, not {self.size:,}")

    @property
    def size(self) -> int:
        """Points in all."""
        return math.prod(len(axis.values) for axis in self.axes)

    def point(self, number: int) -> Point:
        """The point of a number."""
        assert 0 <= number < self.size
        found: list[tuple[str, Value]] = []
        rest = number
        for axis in reversed(self.axes):
            rest, place = divmod(rest, len(axis.values))
            found.append((axis.name, axis.values[place]))
        return Point(number, tuple(reversed(found)))

    def near(self, number: int) -> Iterator[int]:
        """Numbers of the points that are one step away on one axis."""
        step = 1
        rest = number
        for axis in reversed(self.axes):
            count = len(axis.values)
            rest, place = divmod(rest, count)
            if place > 0:
                yield number - step
            if place + 1 < count:
                yield number + step
            step *= count


def read_axis(text: str) -> Axis:
    """`NAME=VALUE,...`; of sizes also `NAME=LOW..HIGH`, each twice the one before. Raises InputError."""
    name, mark, values = text.partition("=")
    name = name.strip()
    if not mark or not values.strip():
        raise InputError(f"an axis must be NAME=VALUE,..., such as block_in=8,16,32, not {text}")
    parts = [part.strip() for part in values.split(",")]
    if name not in _NUMBERS:
        return Axis(name, tuple(parts))
    return Axis(name, tuple(number for part in parts for number in _numbers(name, part)))


def _numbers(name: str, text: str) -> list[int]:
    low, mark, high = text.partition("..")
    if not low.isdecimal() or (mark and not high.isdecimal()) or len(text) > 24:
        raise InputError(f"axis {name} must have integers, or a range such as 256..4096, not {text}")
    first = int(low)
    if not mark:
        return [first]
    last = int(high)
    if not 0 < first <= last:
        raise InputError(f"axis {name}: a range must go up from 1 or more, not be {text}")
    return [first << step for step in range((last // first).bit_length()) if first << step <= last]


def usual_space(config: AccelConfig) -> Space:
    """The default space: blocks, lanes of the output stage, large scratchpads, bus width."""

    def around(key: str) -> Axis:
        value: int = getattr(config, key)
        return Axis(key, (value // 2, value, 2 * value))

    return Space(
        (
            Axis("block_in", (4, 8, 16, 32)),
            Axis("block_out", (4, 8, 16, 32)),
            Axis("out_lanes", (2, 4, 8)),
            around("inp_depth"),
            around("wgt_depth"),
            around("acc_depth"),
            Axis("axi_data_bits", (64, 128)),
        )
    )


def spanned(axes: Mapping[str, Sequence[Value]]) -> Space:
    """The space of these axes. Raises InputError."""
    return Space(tuple(Axis(name, tuple(values)) for name, values in axes.items()))
