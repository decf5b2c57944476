"""Chains of carries: only ends that nothing reads are cut off."""

from __future__ import annotations

from typing import Any

from relay_hw.accel.fpga.place.carries import CARRIES, without_ends


def cell(kind: str, **pins: int) -> dict[str, Any]:
    """A cell whose pins are named COUT, S0 (outputs) or anything else, each with its net."""
    ways = {pin: "output" if pin in ("COUT", "S0") else "input" for pin in pins}
    return {"type": kind, "port_directions": ways, "connections": {pin: [net] for pin, net in pins.items()}}


def ends(**cells: dict[str, Any]) -> dict[str, Any]:
    """What the carries of each cell are connected to behind the pass; net 9 leaves the module."""
    ports = {"out": {"direction": "output", "bits": [9]}}
    found = without_ends({"cells": cells, "ports": ports})["cells"]
    assert [name for name in found] == list(cells)
    return {name: cell["connections"]["COUT"][0] for name, cell in found.items()}


def test_the_end_of_a_chain_is_cut_off_and_its_middle_is_not() -> None:
    first, last = cell(CARRIES, CIN=1, S0=2, COUT=3), cell(CARRIES, CIN=3, S0=4, COUT=5)
    assert ends(first=first, last=last) == {"first": 3, "last": "x"}


def test_a_carry_that_is_read_stays() -> None:
    chain = cell(CARRIES, CIN=1, COUT=3)
    assert ends(chain=chain, reader=cell("LUT4", A=3, COUT=9)) == {"chain": 3, "reader": 9}
    assert ends(chain=cell(CARRIES, CIN=1, COUT=9)) == {"chain": 9}


def test_other_cells_stay() -> None:
    assert ends(other=cell("FD", COUT=3)) == {"other": 3}
