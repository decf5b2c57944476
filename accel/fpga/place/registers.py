"""Moves registers in front of multipliers into the multiplier blocks, which have some at their inputs.

In: a module of yosys's JSON. Out: the same, with the registers of operands in the blocks where that is possible. yosys
maps a product and what holds its operands to a block and flip-flops somewhere on the chip: the way between them is then
part of the longest paths, and an operand of many products comes to most of them from afar.

A register moves if multipliers alone read it and all of them take it. A block has four pins each for clocks, enables
and resets (FPGA-TN-02205), which neighbours share: a net that controls registers has the same pin everywhere, and what
comes behind the four most common ones stays. A reset pin that is not connected could be at any level, so registers
without a reset stay too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from relay_hw.accel.fpga.parts import MULTIPLIER

FLIP_FLOP: Final = "TRELLIS_FF"
# Kinds of pins that control a block's registers, and how many a block has of each.
KINDS: Final = ("CLK", "CE", "RST")
PINS: Final = 4
# What a flip-flop must be for a block to do the same: 0 at power-up and by its reset, which comes before its enable.
_PLAIN: Final = {
    "CLKMUX": "CLK",
    "CEMUX": "CE",
    "LSRMUX": "LSR",
    "SRMODE": "LSR_OVER_CE",
    "REGSET": "RESET",
    "GSR": "DISABLED",
}

Cell = Mapping[str, Any]
Cells = Mapping[str, Cell]
# Flip-flops by the net they drive.
Registers = Mapping[int, str]


class Control(NamedTuple):
    """Nets that control a register, in the order of KINDS."""

    clock: int
    enable: int
    reset: int


def with_registers(module: Mapping[str, Any]) -> dict[str, Any]:
    """The module with registers of operands in its multiplier blocks."""
    cells: Cells = module["cells"]
    registers = {cell["connections"]["Q"][0]: name for name, cell in cells.items() if _is_plain(cell)}
    operands = {
        name: found
        for name, cell in cells.items()
        if cell["type"] == MULTIPLIER and (found := _operands(cell, cells, registers))
    }
    controls = {name: _control(cells[next(iter(found.values()))]) for name, found in operands.items()}
    pins = [_pins(control[kind] for control in controls.values()) for kind in range(len(KINDS))]
    able = {
        name: found
        for name, found in operands.items()
        if all(net in known for net, known in zip(controls[name], pins, strict=True))
    }
    moved = _taken_by_all(module, able)
    gone = {register for found in moved.values() for register in found.values()}
    kept = {name: cell for name, cell in cells.items() if name not in gone}
    for name, found in moved.items():
        inputs = {bit: cells[register]["connections"]["DI"][0] for bit, register in found.items()}
        control = {kind: (known[net], net) for kind, known, net in zip(KINDS, pins, controls[name], strict=True)}
        kept[name] = _registered(cells[name], inputs, control)
    return {**module, "cells": kept}


def _is_plain(cell: Cell) -> bool:
    """Whether a flip-flop does what a block's register can do, controlled by nets."""
    return (
        cell["type"] == FLIP_FLOP
        and all(cell["parameters"].get(key) == value for key, value in _PLAIN.items())
        and all(isinstance(net, int) for net in _control(cell))
    )


def _control(flip_flop: Cell) -> Control:
    return Control(*(flip_flop["connections"][pin][0] for pin in ("CLK", "CE", "LSR")))


def _is_operand(pin: str) -> bool:
    return pin[0] in "AB" and pin[1:].isdigit()


def _operands(multiplier: Cell, cells: Cells, registers: Registers) -> Registers:
    """The registers that a multiplier's operands come from; empty unless all do, with the same control, or are 0."""
    pins = multiplier["connections"].items()
    bits = [bit for pin, nets in pins if _is_operand(pin) for bit in nets if bit not in ("0", "x")]
    if not all(bit in registers for bit in bits):
        return {}
    found = {bit: registers[bit] for bit in bits}
    return found if len({_control(cells[name]) for name in found.values()}) == 1 else {}


def _pins(nets: Iterable[int]) -> dict[int, int]:
    """A pin for each of the most common nets."""
    return {net: pin for pin, (net, _) in enumerate(Counter(nets).most_common(PINS))}


def _taken_by_all(module: Mapping[str, Any], able: Mapping[str, Registers]) -> dict[str, Registers]:
    """Those of the multipliers whose registers nothing reads but an operand of one of them."""
    strange = {bit for port in module["ports"].values() for bit in port["bits"]}
    readers: dict[int | str, set[str]] = {}
    for name, cell in module["cells"].items():
        for pin, bits in cell["connections"].items():
            if cell["port_directions"][pin] != "output":
                for bit in bits:
                    readers.setdefault(bit, set()).add(name)
                if name not in able or not _is_operand(pin):
                    strange.update(bits)
    moved = dict(able)
    while left := [
        name
        for name, found in moved.items()
        if any(bit in strange or not readers[bit] <= moved.keys() for bit in found)
    ]:
        for name in left:
            del moved[name]
    return moved


def _registered(multiplier: Cell, inputs: Mapping[int, Any], control: Mapping[str, tuple[int, int]]) -> Cell:
    """A multiplier that holds its operands; `inputs`: what comes instead of each; `control`: pin and net by kind."""
    pins = {
        pin: [inputs.get(bit, bit) for bit in bits] if _is_operand(pin) else bits
        for pin, bits in multiplier["connections"].items()
    }
    extra = {f"{kind}{pin}": [net] for kind, (pin, net) in control.items()}
    settings = {f"REG_INPUT{operand}_{kind}": f"{kind}{pin}" for operand in "AB" for kind, (pin, _) in control.items()}
    return {
        **multiplier,
        "parameters": {**multiplier["parameters"], **settings, "RESETMODE": "SYNC", "GSR": "DISABLED"},
        "port_directions": {**multiplier["port_directions"], **dict.fromkeys(extra, "input")},
        "connections": {**pins, **extra},
    }
