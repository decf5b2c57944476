"""A netlist that nextpnr has packed and placed on an ECP5: its cells, where they lie, and the nets between them.

In: the JSON that `nextpnr-ecp5 --write` makes. Out: `Placed`, and the JSON with other sites.

Of a logic tile's sites a lane is one of eight pairs of a LUT (TRELLIS_COMB) and a flip-flop (TRELLIS_FF); lanes 2 k and
2 k + 1 are slice k.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from relay_hw.accel.fpga.parts import FlowError

LUT: Final = "TRELLIS_COMB"
FLIP_FLOP: Final = "TRELLIS_FF"
# What writes the LUTs of a tile that are memory.
RAM_WRITE: Final = "TRELLIS_RAMW"
LOGIC: Final = (LUT, FLIP_FLOP, RAM_WRITE)
# Inputs with one wire to each: a flip-flop's from its own LUT, those in a carry chain and of a choice between LUTs.
_ONE_WAY: Final = ("DI", "FCI", "FXA", "FXB", "F1", "DI1")
_BEL: Final = re.compile(r"X(\d+)/Y(\d+)/(?:SLICE([A-D])\.(?:(?:K|FF)([01])|RAMW)$)?")


@dataclass(frozen=True, slots=True)
class Pin:
    """One connection of a net. `port` of the cell at `cell` in `Placed.cells`."""

    cell: int
    port: str


@dataclass(frozen=True, slots=True)
class Net:
    """One signal: what drives it and what it leads to."""

    driver: Pin
    users: tuple[Pin, ...]


@dataclass(frozen=True, slots=True)
class Placed:
    """Cells by place, with the column, row and lane of each: lists, as refinement changes them. Lane -1: none.

    `fixed`: cells that are no logic of a tile. `nets` are those between cells that were placed.
    """

    names: tuple[str, ...]
    cells: tuple[Mapping[str, Any], ...]
    x: list[int]
    y: list[int]
    lane: list[int]
    fixed: tuple[bool, ...]
    nets: tuple[Net, ...]

    def kind(self, cell: int) -> str:
        """A cell's type."""
        return self.cells[cell]["type"]

    def mode(self, cell: int) -> str:
        """LOGIC, or what else a LUT is: CCU2 (a place of a carry chain), DPRAM, RAMW_BLOCK."""
        return str(self.cells[cell]["parameters"].get("MODE", "LOGIC")).strip()

    def net(self, cell: int, port: str) -> int | None:
        """The net at a port, by nextpnr's number; None where the port is not connected."""
        bits = self.cells[cell]["connections"].get(port)
        return bits[0] if bits else None

    def is_one_way(self, driver: Pin, user: Pin) -> bool:
        """Whether only one route joins two pins, so that their cells must stay together."""
        return user.port in _ONE_WAY or self.kind(driver.cell) == RAM_WRITE


def read_placed(document: Mapping[str, Any]) -> Placed:
    """Read what nextpnr wrote. Raises FlowError if a cell that has wires has no site."""
    module = _top(document)
    names, cells = tuple(module["cells"]), tuple(module["cells"].values())
    drivers: dict[int, Pin] = {}
    users: dict[int, list[Pin]] = {}
    for place, cell in enumerate(cells):
        for port, bits in cell["connections"].items():
            for bit in bits:
                if not isinstance(bit, int):
                    continue
                if cell["port_directions"][port] == "output":
                    drivers[bit] = Pin(place, port)
                else:
                    users.setdefault(bit, []).append(Pin(place, port))
    sites = [_site(name, cell) for name, cell in module["cells"].items()]
    return Placed(
        names,
        cells,
        [site[0] for site in sites],
        [site[1] for site in sites],
        [site[2] for site in sites],
        tuple(cell["type"] not in LOGIC for cell in cells),
        tuple(Net(driver, tuple(users[bit])) for bit, driver in drivers.items() if bit in users),
    )


def with_sites(document: Mapping[str, Any], placed: Placed) -> dict[str, Any]:
    """The document with the logic of `placed`, which was read from it, where `placed` has it now."""
    module = _top(document)
    cells = {
        name: cell
        if placed.fixed[place]
        else {**cell, "attributes": {**cell["attributes"], "NEXTPNR_BEL": _bel(placed, place)}}
        for place, (name, cell) in enumerate(module["cells"].items())
    }
    modules = {
        name: {**module, "cells": cells} if other is module else other for name, other in document["modules"].items()
    }
    return {**document, "modules": modules}


def _top(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """The module that is the design: the one with the most cells."""
    return max(document["modules"].values(), key=lambda module: len(module["cells"]))


def _site(name: str, cell: Mapping[str, Any]) -> tuple[int, int, int]:
    attributes = cell["attributes"]
    found = _BEL.match(attributes.get("NEXTPNR_BEL") or attributes.get("BEL") or "")
    if found is None:
        raise FlowError(f"a placed cell must have a site, not {name} ({cell['type']}) none")
    lane = 2 * "ABCD".index(found[3]) + int(found[4] or 0) if found[3] else -1
    return int(found[1]), int(found[2]), lane


def _bel(placed: Placed, cell: int) -> str:
    """nextpnr's name of the site of a cell of logic."""
    lane = placed.lane[cell]
    match placed.kind(cell):
        case "TRELLIS_COMB":
            site = f"K{lane % 2}"
        case "TRELLIS_FF":
            site = f"FF{lane % 2}"
        case _:
            site = "RAMW"
    return f"X{placed.x[cell]}/Y{placed.y[cell]}/SLICE{'ABCD'[lane // 2]}.{site}"
