"""Tracks which constants are resident in the scratchpads while programs take turns on a device.

In: programs. Out: what their streams leave in each entry, and whether a program's resident constants are still there.
Programs that keep equal constants in the same entries share them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate, product
from typing import Final

import numpy as np
from numpy.typing import NDArray

from relay_hw.accel.isa.config import AccelConfig
from relay_hw.accel.isa.loops import Values
from relay_hw.accel.isa.program import Program, Section
from relay_hw.accel.isa.rules import dram_granules, has_factors, load_widening, transfer_shape
from relay_hw.accel.isa.spec import Mem, Op
from relay_hw.accel.isa.state import element_bytes
from relay_hw.accel.isa.stream import decode_instructions
from relay_hw.tensorize.schedule.resident import constant_depths

Numbers = NDArray[np.int64]
# An entry that holds none of a program's constants.
UNKNOWN: Final = 0
_PADDING: Final = ("y_pad_0", "y_pad_1", "x_pad_0", "x_pad_1")


@dataclass(frozen=True, slots=True, eq=False)
class Loads:
    """What a stream leaves in the memories of constants: entries, one memory behind the other, and a number for what
    each holds in the end. Equal numbers are equal contents.
    """

    entries: Numbers
    contents: Numbers

    def spoils(self, other: Loads) -> bool:
        """Whether these loads leave something else in an entry of `other`."""
        _, mine, theirs = np.intersect1d(self.entries, other.entries, assume_unique=True, return_indices=True)
        return bool((self.contents[mine] != other.contents[theirs]).any())

    def covers(self, other: Loads) -> bool:
        """Whether these loads leave in all entries of `other` what that leaves there."""
        return bool(np.isin(other.entries, self.entries).all()) and not self.spoils(other)

    def equals(self, other: Loads) -> bool:
        """Whether both leave the same."""
        return self.covers(other) and other.covers(self)


NO_LOADS: Final = Loads(np.zeros(0, np.int64), np.zeros(0, np.int64))


@dataclass(frozen=True, slots=True)
class Footprint:
    """What a program's streams load; `resident` is None where there is no resident stream."""

    code: Loads
    resident: Loads | None


class Footprints:
    """Caches the footprints of programs, which are slow to compute, and numbers contents."""

    def __init__(self, config: AccelConfig) -> None:
        self._config = config
        sizes = constant_depths(config)
        self._bases = dict(zip(sizes, accumulate(sizes.values(), initial=0), strict=False))
        self.entries = sum(sizes.values())
        # By identity: hashing a program reads all of it.
        self._known: dict[int, tuple[Program, Footprint]] = {}
        self._numbers: dict[tuple[Mem, int, bytes], int] = {}
        self._unequal = 0

    def of(self, program: Program) -> Footprint:
        """The footprint of a program."""
        found = self._known.get(id(program))
        if found is None:
            resident = None if program.resident is None else self.loads(program, program.resident)
            found = self._known[id(program)] = (program, Footprint(self.loads(program, program.code), resident))
        return found[1]

    def loads(self, program: Program, stream: Section) -> Loads:
        """What a stream of a program leaves."""
        held: dict[int, int] = {}
        for op, values in decode_instructions(stream.data or b""):
            if op is Op.LOAD and values["mem"] in self._bases:
                first = self._bases[Mem(values["mem"])] + values["sram"]
                for at, content in enumerate(self._contents(program, values), first):
                    # Between two contents a launch that fails may leave either.
                    held[at] = content if held.get(at, content) == content else self._other()
        order = sorted(held)
        return Loads(np.array(order, np.int64), np.array([held[at] for at in order], np.int64))

    def _contents(self, program: Program, v: Values) -> Iterator[int]:
        """A number for what a LOAD leaves in each entry."""
        mem, widening = Mem(v["mem"]), load_widening(v)
        size = element_bytes(self._config, mem)
        data = _loaded_bytes(program, self._config, v)
        rows, runs, run = transfer_shape(self._config, v)
        for at in range(0, rows * runs * run * widening, size):
            if data is None:
                yield self._other()
            elif has_factors(v):
                # They lead all entries that they are for.
                yield self._number((mem, at, data))
            else:
                yield self._number((mem, widening, data[at // widening : (at + size) // widening]))

    def _number(self, content: tuple[Mem, int, bytes]) -> int:
        return self._numbers.setdefault(content, len(self._numbers) + 1)

    def _other(self) -> int:
        """A number that nothing else has."""
        self._unequal -= 1
        return self._unequal


def _loaded_bytes(program: Program, config: AccelConfig, v: Values) -> bytes | None:
    """The bytes that a LOAD reads; None where they are no constants, or padding is among them."""
    if any(v[name] for name in _PADDING):
        return None
    rows, runs, _ = transfer_shape(config, v)
    run = dram_granules(config, v) * config.granule_bytes
    found: list[bytes] = []
    for y, x in product(range(rows), range(runs)):
        part = _constant_bytes(program, v["dram"] + y * v["y_stride"] + x * v["x_stride"], run)
        if part is None:
            return None
        found.append(part)
    return b"".join(found)


def _constant_bytes(program: Program, begin: int, size: int) -> bytes | None:
    for section in program.sections:
        if section.data is not None and section.offset <= begin and begin + size <= section.end:
            return section.data[begin - section.offset : begin - section.offset + size]
    return None


class Holding:
    """The constants that are resident in a device's scratchpads."""

    def __init__(self, footprints: Footprints) -> None:
        self._footprints = footprints
        self._held = np.full(footprints.entries, UNKNOWN, np.int64)

    @property
    def held(self) -> bytes:
        """What all entries hold, to be compared."""
        return self._held.tobytes()

    def needs(self, program: Program) -> bool:
        """Whether the program's resident stream must be launched before it."""
        own = self._footprints.of(program).resident
        return own is not None and bool((self._held[own.entries] != own.contents).any())

    def take(self, program: Program) -> None:
        """Before the program's streams run: forget the constants that they may overwrite."""
        own = self._footprints.of(program)
        loads = [own.code, own.resident] if own.resident is not None and self.needs(program) else [own.code]
        for one in loads:
            changed = one.entries[self._held[one.entries] != one.contents]
            self._held[changed] = UNKNOWN

    def hold(self, program: Program) -> None:
        """After the program's resident stream ran: its constants are resident."""
        own = self._footprints.of(program).resident
        if own is not None:
            self._held[own.entries] = own.contents

    def turn(self, program: Program) -> bool:
        """Account for a launch of the program; returns whether its resident stream runs before it."""
        needed = self.needs(program)
        self.take(program)
        self.hold(program)
        return needed
