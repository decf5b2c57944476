"""Tracks which constants are resident in the scratchpads while programs take turns on a device.

In: programs. Out: the entries that their streams load, and whether a program's resident constants are still there.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate

from relay_hw.accel.isa.config import AccelConfig
from relay_hw.accel.isa.program import Program, Section
from relay_hw.accel.isa.rules import load_widening, transfer_shape
from relay_hw.accel.isa.spec import Mem, Op
from relay_hw.accel.isa.state import element_bytes
from relay_hw.accel.isa.stream import Instr, decode_instructions
from relay_hw.tensorize.schedule.resident import constant_depths

# Entries of the memories of constants: a bit for each, one memory behind the other.
Entries = int


def loaded(config: AccelConfig, stream: Section | None) -> Entries:
    """Entries that a stream loads into the memories of constants."""
    return loaded_by(config, decode_instructions(stream.data or b"") if stream is not None else ())


def loaded_by(config: AccelConfig, instructions: Iterable[Instr]) -> Entries:
    """Like `loaded`, for decoded instructions."""
    sizes = constant_depths(config)
    bases: dict[Mem, int] = dict(zip(sizes, accumulate(sizes.values(), initial=0), strict=False))
    found = 0
    for op, values in instructions:
        if op is Op.LOAD and values["mem"] in bases:
            mem = Mem(values["mem"])
            rows, runs, run = transfer_shape(config, values)
            entries = -(-rows * runs * run * load_widening(values) // element_bytes(config, mem))
            found |= ((1 << entries) - 1) << (bases[mem] + values["sram"])
    return found


@dataclass(frozen=True, slots=True)
class Footprint:
    """What a program's streams load. `digest`: of the resident constants; None if there are none."""

    digest: str | None
    code: Entries
    resident: Entries


class Footprints:
    """Caches the footprints of programs, which are slow to compute."""

    def __init__(self, config: AccelConfig) -> None:
        self._config = config
        # By identity: hashing a program reads all of it.
        self._known: dict[int, tuple[Program, Footprint]] = {}

    def of(self, program: Program) -> Footprint:
        """The footprint of a program."""
        found = self._known.get(id(program))
        if found is None:
            code, resident = (loaded(self._config, stream) for stream in (program.code, program.resident))
            found = self._known[id(program)] = (program, Footprint(program.resident_hash(), code, resident))
        return found[1]


class Holding:
    """The constants that are resident in a device's scratchpads, by `Program.resident_hash`."""

    def __init__(self, footprints: Footprints) -> None:
        self._footprints = footprints
        self._held: dict[str, Entries] = {}

    @property
    def held(self) -> frozenset[str]:
        """Hashes of all resident constants."""
        return frozenset(self._held)

    def needs(self, program: Program) -> bool:
        """Whether the program's resident stream must be launched before it."""
        digest = self._footprints.of(program).digest
        return digest is not None and digest not in self._held

    def take(self, program: Program) -> None:
        """Before the program's streams run: forget the constants that they overwrite."""
        own = self._footprints.of(program)
        written = own.code | (own.resident if self.needs(program) else 0)
        self._held = {name: kept for name, kept in self._held.items() if name == own.digest or not kept & written}

    def hold(self, program: Program) -> None:
        """After the program's resident stream ran: its constants are resident."""
        own = self._footprints.of(program)
        if own.digest is not None:
            self._held[own.digest] = own.resident

    def turn(self, program: Program) -> bool:
        """Account for a launch of the program; returns whether its resident stream runs before it."""
        needed = self.needs(program)
        self.take(program)
        self.hold(program)
        return needed
