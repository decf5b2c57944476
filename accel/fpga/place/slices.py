"""What may lie together in an ECP5's logic tiles, and what has to: groups of cells and the tiles that they fill.

The rules are those by which nextpnr-ecp5 calls a tile valid. A tile has four slices of two lanes each; one clock, one
reset and their polarity for all its flip-flops; one enable for a slice's two. Carry chains and logic do not share a
slice, the write side of a memory takes slice C, memory itself slices A and B.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from relay_hw.accel.fpga.place.placed import RAM_WRITE, Placed

LANES: Final = 8
_MEMORY_LANES: Final = 4
Tile = tuple[int, int]
Signal = tuple[object, ...]


def read_groups(placed: Placed) -> tuple[tuple[int, ...], ...]:
    """Cells of logic that keep their places to one another: those with wires between them that have but one way."""
    parent = list(range(len(placed.cells)))

    def root(cell: int) -> int:
        while parent[cell] != cell:
            parent[cell] = cell = parent[parent[cell]]
        return cell

    for net in placed.nets:
        driver = net.driver.cell
        for user in net.users:
            if placed.is_one_way(net.driver, user) and not placed.fixed[driver] and not placed.fixed[user.cell]:
                parent[root(driver)] = root(user.cell)
    memories: dict[Tile, int] = {}
    for cell in range(len(placed.cells)):
        if placed.kind(cell) == RAM_WRITE or placed.mode(cell) in ("DPRAM", "RAMW_BLOCK"):
            first = memories.setdefault((placed.x[cell], placed.y[cell]), cell)
            parent[root(cell)] = root(first)
    groups: dict[int, list[int]] = {}
    for cell in range(len(placed.cells)):
        if not placed.fixed[cell]:
            groups.setdefault(root(cell), []).append(cell)
    return tuple(map(tuple, groups.values()))


@dataclass(frozen=True, slots=True)
class _Traits:
    """What a cell asks of its tile, of its slice, of its lane. `polarity`: of clock and reset or write enable."""

    table: int
    tile: Signal | None = None
    polarity: Signal | None = None
    slice_: Signal | None = None
    carry: bool = False
    takes_m: bool = False
    highest: int = LANES - 1


class Tiles:
    """The logic tiles of a part with what lies in each. Groups are taken out and put in again whole."""

    def __init__(self, placed: Placed) -> None:
        self._placed = placed
        self._traits = [_traits(placed, cell) for cell in range(len(placed.cells))]
        # by table (LUTs, flip-flops, write sides): what lies in a lane of a tile
        self._tables: tuple[dict[tuple[int, int, int], int], ...] = ({}, {}, {})
        self._tiles: set[Tile] = set()
        for cell, fixed in enumerate(placed.fixed):
            if not fixed:
                self._tiles.add((placed.x[cell], placed.y[cell]))
                self.put((cell,))

    def take(self, group: Sequence[int]) -> None:
        """Take a group's cells out."""
        for cell in group:
            del self._tables[self._traits[cell].table][self._where(cell)]

    def put(self, group: Sequence[int]) -> None:
        """Put a group's cells in where `Placed` has them."""
        for cell in group:
            self._tables[self._traits[cell].table][self._where(cell)] = cell

    def has_room(self, group: Sequence[int], columns: int, rows: int, lanes: int) -> bool:
        """Whether a group that was taken out may lie so many columns, rows and lanes further."""
        placed = self._placed
        return all(
            self._takes(cell, placed.x[cell] + columns, placed.y[cell] + rows, placed.lane[cell] + lanes)
            for cell in group
        )

    def is_valid(self) -> bool:
        """Whether every cell keeps the rules, as it lies."""
        valid = True
        for cell, fixed in enumerate(self._placed.fixed):
            if not fixed:
                self.take((cell,))
                valid &= self.has_room((cell,), 0, 0, 0)
                self.put((cell,))
        return valid

    def _where(self, cell: int) -> tuple[int, int, int]:
        return self._placed.x[cell], self._placed.y[cell], self._placed.lane[cell]

    def _takes(self, cell: int, x: int, y: int, lane: int) -> bool:
        """Whether a lane of a tile is free for a cell, and its neighbours allow it."""
        if (x, y) not in self._tiles or not 0 <= lane <= self._traits[cell].highest:
            return False
        traits = self._traits[cell]
        if (x, y, lane) in self._tables[traits.table]:
            return False
        if traits.table == 0 and not self._lut_fits(traits, x, y, lane):
            return False
        if traits.table == 1 and not self._flip_flop_fits(traits, x, y, lane):
            return False
        return traits.polarity is None or self._has_polarity(traits.polarity, x, y)

    def _lut_fits(self, traits: _Traits, x: int, y: int, lane: int) -> bool:
        luts, flip_flops, _ = self._tables
        beside = luts.get((x, y, lane ^ 1))
        if beside is not None and self._traits[beside].carry != traits.carry:
            return False
        behind = flip_flops.get((x, y, lane))
        return not traits.takes_m or behind is None or not self._traits[behind].takes_m

    def _flip_flop_fits(self, traits: _Traits, x: int, y: int, lane: int) -> bool:
        luts, flip_flops, _ = self._tables
        beside = flip_flops.get((x, y, lane ^ 1))
        if beside is not None and self._traits[beside].slice_ != traits.slice_:
            return False
        before = luts.get((x, y, lane))
        if traits.takes_m and before is not None and self._traits[before].takes_m:
            return False
        return all(
            self._traits[other].tile == traits.tile
            for each in range(LANES)
            if (other := flip_flops.get((x, y, each))) is not None
        )

    def _has_polarity(self, polarity: Signal, x: int, y: int) -> bool:
        luts, flip_flops, _ = self._tables
        memory = (luts.get((x, y, lane)) for lane in range(_MEMORY_LANES))
        registers = (flip_flops.get((x, y, lane)) for lane in range(LANES))
        return all(
            self._traits[other].polarity in (None, polarity) for other in (*memory, *registers) if other is not None
        )


def _traits(placed: Placed, cell: int) -> _Traits:
    parameters = placed.cells[cell]["parameters"]
    match placed.kind(cell):
        case "TRELLIS_FF":
            clock, reset = parameters.get("CLKMUX"), parameters.get("LSRMUX")
            signals = placed.net(cell, "CLK"), placed.net(cell, "LSR")
            return _Traits(
                table=1,
                tile=(*signals, clock, reset, parameters.get("SRMODE") == "ASYNC"),
                polarity=(clock == "INV", reset == "INV"),
                slice_=(placed.net(cell, "CE"), parameters.get("CEMUX"), parameters.get("GSR")),
                takes_m=placed.net(cell, "M") is not None,
            )
        case "TRELLIS_COMB":
            is_memory = placed.mode(cell) == "DPRAM"
            return _Traits(
                table=0,
                polarity=(parameters.get("WCKMUX") == "INV", parameters.get("WREMUX") == "INV") if is_memory else None,
                carry=placed.mode(cell) == "CCU2",
                takes_m=placed.net(cell, "M") is not None,
                highest=_MEMORY_LANES - 1 if is_memory else LANES - 1,
            )
        case _:
            return _Traits(table=2)
