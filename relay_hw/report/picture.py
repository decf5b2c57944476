"""The timeline of a launch: when each instruction ran, the cause of each cycle, contents of the memories.

In: numbers from a profile. Out: frozen records; columns hold a number for each instruction, in program order.
"""

from __future__ import annotations

from dataclasses import dataclass

from relay_hw.accel.sim.causes import Cause

# Number of time slices of a launch for occupancy, and of slices of a scratchpad's entries.
PARTS, ROWS = 2000, 48


@dataclass(frozen=True, slots=True)
class Instructions:
    """When each instruction ran. `ops`: places in a list of names; `asked`: the cycle from which only tokens were
    missing; `starts`, `ends`: of its work; `layers`: numbers of layers, -1 of none; `takes`, `gives`: masks of
    semaphores."""

    ops: tuple[int, ...]
    asked: tuple[int, ...]
    starts: tuple[int, ...]
    ends: tuple[int, ...]
    layers: tuple[int, ...]
    takes: tuple[int, ...]
    gives: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Kind:
    """A cause of cycles. `what`: the scratchpad or queue concerned; `fill`: before the first work."""

    cause: Cause
    what: str
    fill: bool


@dataclass(frozen=True, slots=True)
class Spent:
    """All cycles of a launch as consecutive runs: lengths, layers, and indices into `kinds`."""

    kinds: tuple[Kind, ...]
    lengths: tuple[int, ...]
    layers: tuple[int, ...]
    which: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Pad:
    """A scratchpad. `used`: thousandths of its entries that are live in each time slice.

    Runs say which layer holds most of a row of entries: row, first part, parts, layer (-1: loaded before the launch).
    """

    name: str
    entries: int
    entry_bytes: int
    used: tuple[int, ...]
    rows: tuple[int, ...]
    begins: tuple[int, ...]
    lengths: tuple[int, ...]
    layers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Section:
    """A named range of bytes of the DRAM window."""

    name: str
    kind: str
    offset: int
    size: int


@dataclass(frozen=True, slots=True)
class Transfer:
    """Bytes [begin, end) of the window that a layer loads, or stores where `is_written`, between two cycles."""

    section: int
    layer: int
    begin: int
    end: int
    is_written: bool
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Picture:
    """One launch. `launches`: how many of them an inference makes; `parts`: of its cycles, for the scratchpads;
    `useful`: by layer, thousandths of the array's cycles that products of the model need."""

    function: str
    cycles: int
    launches: int
    parts: int
    instructions: Instructions
    spent: Spent
    useful: tuple[int, ...]
    pads: tuple[Pad, ...]
    window_bytes: int
    sections: tuple[Section, ...]
    transfers: tuple[Transfer, ...]
