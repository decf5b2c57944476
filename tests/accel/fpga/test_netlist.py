"""Names for the cells of a netlist: their own, that of a net, that of a neighbour; none is lost."""

from __future__ import annotations

from typing import Any

from relay_hw.accel.fpga.place.netlist import read_netlist, with_names
from relay_hw.accel.fpga.report import module_of


def cell(kind: str, **pins: int | str) -> dict[str, Any]:
    directions = {port: "output" if port in ("Q", "Z") else "input" for port in pins}
    return {"type": kind, "connections": {port: [bit] for port, bit in pins.items()}, "port_directions": directions}


MODULE: dict[str, Any] = {
    "cells": {
        "$ff": cell("TRELLIS_FF", DI=3, Q=2),
        "$near": cell("LUT4", A=2, B="0", Z=4),
        "$far": cell("LUT4", A=4, B=4, Z=5),
        "u_b.ram": cell("DP16KD", ADA0=5),
        "$lonely": cell("LUT4", A=8, Z=9),
        "$scope": cell("$scopeinfo"),
    },
    "netnames": {
        "x_q": {"hide_name": 0, "bits": [2]},
        "u_a.u_c.x_i": {"hide_name": 0, "bits": [2]},
        "$1": {"hide_name": 1, "bits": [4]},
    },
}


def test_nets_touch_each_cell_once() -> None:
    netlist = read_netlist(MODULE)
    assert list(netlist.cells) == ["$ff", "$near", "$far", "u_b.ram", "$lonely"]
    assert netlist.pins[4] == (1, 2)
    assert netlist.of_type("LUT4") == [1, 2, 4]


def test_a_cell_is_called_by_its_net_or_its_neighbour() -> None:
    named = with_names(MODULE, read_netlist(MODULE))["cells"]
    assert list(named) == [
        "u_a.u_c.x_i$TRELLIS_FF$0",
        "u_a.u_c.x_i$LUT4$1",
        "u_b.ram$LUT4$2",
        "u_b.ram",
        "top$LUT4$4",
    ]
    assert [module_of(name) for name in named] == ["u_a.u_c", "u_a.u_c", "u_b", "u_b", "top"]
    assert list(named.values()) == [row for name, row in MODULE["cells"].items() if name != "$scope"]
