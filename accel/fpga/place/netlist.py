"""yosys's netlist as cells and the nets between them, and names for cells that it left without one.

In: the JSON that yosys writes of a flat design. Out: `Netlist`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Netlist:
    """Cells, and which nets touch which.

    `cells`: yosys's objects by name; `pins`: for each net, the places in `cells` of what it touches, each once.
    """

    cells: Mapping[str, Mapping[str, Any]]
    pins: Mapping[int, Sequence[int]]

    def of_type(self, kind: str) -> list[int]:
        """Places of the cells of a type."""
        return [place for place, cell in enumerate(self.cells.values()) if cell["type"] == kind]


def read_netlist(module: Mapping[str, Any]) -> Netlist:
    """Cells and nets of a module of yosys's JSON, without what only says where a scope was."""
    cells = {name: cell for name, cell in module["cells"].items() if not cell["type"].startswith("$")}
    pins: dict[int, dict[int, None]] = {}
    for place, cell in enumerate(cells.values()):
        for bits in cell["connections"].values():
            for bit in bits:
                if isinstance(bit, int):
                    pins.setdefault(bit, {})[place] = None
    return Netlist(cells, {bit: tuple(places) for bit, places in pins.items()})


def with_names(module: Mapping[str, Any], netlist: Netlist) -> dict[str, Any]:
    """The module with a name for each cell: that of the net it drives, else that of the nearest cell that has one.

    `netlist`: what `read_netlist` made of the module; the cells keep their places.

    What reads a report needs the instance that a cell came from, which mapping to cells forgets. yosys's `autoname`
    finds names one step at a time, which took it two thirds of a synthesis.
    """
    nets = _net_names(module)
    stems = [_stem(name, cell, nets) for name, cell in netlist.cells.items()]
    waiting = deque(place for place, stem in enumerate(stems) if stem)
    nets_of: list[list[int]] = [[] for _ in stems]
    for bit, places in netlist.pins.items():
        for place in places:
            nets_of[place].append(bit)
    seen: set[int] = set()
    while waiting:
        place = waiting.popleft()
        for bit in nets_of[place]:
            if bit in seen:
                continue
            seen.add(bit)
            for other in netlist.pins[bit]:
                if not stems[other]:
                    stems[other] = stems[place]
                    waiting.append(other)
    cells = {
        name if not name.startswith("$") else f"{stem or 'top'}${cell['type']}${place}": cell
        for place, ((name, cell), stem) in enumerate(zip(netlist.cells.items(), stems, strict=True))
    }
    return {**module, "cells": cells}


def _net_names(module: Mapping[str, Any]) -> dict[int, str]:
    """Names that the source gave, by net: of several the one in the deepest instance."""
    names: dict[int, str] = {}
    for name, net in module["netnames"].items():
        if net["hide_name"]:
            continue
        for bit in net["bits"]:
            if isinstance(bit, int) and name.count(".") >= names.get(bit, "").count("."):
                names[bit] = name
    return names


def _stem(name: str, cell: Mapping[str, Any], nets: Mapping[int, str]) -> str:
    """What a cell is called by itself, or by the first named net that it drives; empty if by neither."""
    if not name.startswith("$"):
        return name
    for port, bits in cell["connections"].items():
        if cell["port_directions"].get(port) == "output":
            for bit in bits:
                if bit in nets:
                    return nets[bit]
    return ""
