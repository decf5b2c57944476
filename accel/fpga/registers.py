"""Registers behind multipliers become those that multiplier blocks have at their outputs.

In: a module of yosys's JSON. Out: the same with fewer flip-flops. yosys maps a product and its register to a block and
flip-flops somewhere on the chip; the way between them is then part of the longest paths.

The two multipliers of a block share their clocks and enables, so of all products those get registers that most others
agree with in clock and enable.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

MULTIPLIER: Final = "MULT18X18D"
FLIP_FLOP: Final = "TRELLIS_FF"
# What a flip-flop must be for a block to do the same: no reset, 0 at power-up, clock not inverted.
_SETTINGS: Final = {"CLKMUX": "CLK", "LSRMUX": "LSR", "REGSET": "RESET", "GSR": "DISABLED"}
_ENABLES: Final = ("CE", "1 ")
_REGISTER: Final = {
    "REG_OUTPUT_CLK": "CLK0",
    "REG_OUTPUT_CE": "CE0",
    "REG_OUTPUT_RST": "RST0",
    "GSR": "DISABLED",
    "RESETMODE": "SYNC",
}

Cell = Mapping[str, Any]
Bit = int | str
# Clock and enable.
Control = tuple[Bit, Bit]


def with_registers(module: Mapping[str, Any]) -> dict[str, Any]:
    """The module with the registers of its products in their blocks."""
    cells: Mapping[str, Cell] = module["cells"]
    readers = _readers(module)
    found = {
        name: flip_flops
        for name, cell in cells.items()
        if cell["type"] == MULTIPLIER and (flip_flops := _behind(cell, cells, readers))
    }
    controls = {name: _control(cells[flip_flops[0]]) for name, flip_flops in found.items()}
    if not controls:
        return dict(module)
    (common, _), *_ = Counter(controls.values()).most_common(1)
    merged = {name: found[name] for name, control in controls.items() if control == common}
    gone = {flip_flop for flip_flops in merged.values() for flip_flop in flip_flops}
    kept = {
        name: _registered(cell, [cells[each] for each in merged[name]], common) if name in merged else cell
        for name, cell in cells.items()
        if name not in gone
    }
    return {**module, "cells": kept}


def is_registered(cell: Cell) -> bool:
    """Whether a multiplier has its register."""
    return "REG_OUTPUT_CLK" in cell["parameters"]


def _readers(module: Mapping[str, Any]) -> dict[Bit, list[tuple[str, str]]]:
    """Who reads each net: cell and pin; a port of the module counts as a cell without a name."""
    readers: dict[Bit, list[tuple[str, str]]] = {}
    for name, cell in module["cells"].items():
        for pin, bits in cell["connections"].items():
            if cell["port_directions"][pin] != "output":
                for bit in bits:
                    readers.setdefault(bit, []).append((name, pin))
    for port in module["ports"].values():
        for bit in port["bits"]:
            readers.setdefault(bit, []).append(("", ""))
    return readers


def _behind(cell: Cell, cells: Mapping[str, Cell], readers: Mapping[Bit, list[tuple[str, str]]]) -> list[str]:
    """The flip-flops that are all that reads a multiplier, empty where something else does or they differ."""
    used = [bit for pin, bits in cell["connections"].items() if pin.startswith("P") for bit in bits if bit in readers]
    if any(len(readers[bit]) > 1 or readers[bit][0][1] != "DI" for bit in used):
        return []
    names = [readers[bit][0][0] for bit in used]
    if not all(_is_plain(cells[name]) for name in names) or len({_control(cells[name]) for name in names}) > 1:
        return []
    return names


def _is_plain(cell: Cell) -> bool:
    settings = cell["parameters"]
    return (
        cell["type"] == FLIP_FLOP
        and all(settings.get(key, value) == value for key, value in _SETTINGS.items())
        and settings.get("CEMUX") in _ENABLES
        and cell["connections"].get("LSR", ["0"]) == ["0"]
    )


def _control(cell: Cell) -> Control:
    enable = cell["connections"]["CE"][0] if cell["parameters"]["CEMUX"] == "CE" else "1"
    return cell["connections"]["CLK"][0], enable


def _registered(cell: Cell, flip_flops: list[Cell], control: Control) -> Cell:
    """A multiplier that drives what the flip-flops behind it did."""
    moved = {each["connections"]["DI"][0]: each["connections"]["Q"] for each in flip_flops}
    clock, enable = control
    pins = {pin: moved.get(bits[0], bits) if pin.startswith("P") else bits for pin, bits in cell["connections"].items()}
    extra = {"CLK0": [clock], "CE0": [enable], "RST0": ["0"]}
    return {
        **cell,
        "parameters": {**cell["parameters"], **_REGISTER},
        "port_directions": {**cell["port_directions"], **dict.fromkeys(extra, "input")},
        "connections": {**pins, **extra},
    }
