"""Moves signed operands to the upper pins of multiplier blocks, so that no wires are spent on copies of a sign.

In: a module of yosys's JSON. Out: the same products from other pins. yosys fills the 18 bits of a signed operand
up with its sign: 20 of the 36 pins of a product of bytes. A pin that is 0 needs no wire, and wires are short around
multipliers: an operand times 2^n has its sign once and n zeros below, and the product lies n pins higher.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any, Final

from relay_hw.accel.fpga.parts import MULTIPLIER

OPERAND_BITS: Final = 18
PRODUCT_BITS: Final = 36
OPERANDS: Final = ("A", "B")

Cell = Mapping[str, Any]
Bit = int | str


def without_copies(module: Mapping[str, Any]) -> dict[str, Any]:
    """The module with its signed operands as high in their blocks as they go."""
    used = _read(module)
    cells = module["cells"].items()
    return {
        **module,
        "cells": {name: _raised(cell, used) if cell["type"] == MULTIPLIER else cell for name, cell in cells},
    }


def _read(module: Mapping[str, Any]) -> Set[Bit]:
    """Nets that something reads."""
    read = {bit for port in module["ports"].values() for bit in port["bits"]}
    for cell in module["cells"].values():
        for pin, bits in cell["connections"].items():
            if cell["port_directions"][pin] != "output":
                read.update(bits)
    return read


def _raised(multiplier: Cell, used: Set[Bit]) -> Cell:
    """A multiplier with its operands moved up, unless bits of the product that are read would leave the block."""
    pins: Mapping[str, list[Bit]] = multiplier["connections"]
    words = {operand: [pins[f"{operand}{place}"][0] for place in range(OPERAND_BITS)] for operand in OPERANDS}
    steps = {operand: _copies(word) if pins[f"SIGNED{operand}"] == ["1"] else 0 for operand, word in words.items()}
    product = [pins.get(f"P{place}", ["x"])[0] for place in range(PRODUCT_BITS)]
    step = sum(steps.values())
    if not step or any(bit in used for bit in product[PRODUCT_BITS - step :]):
        return multiplier
    moved: dict[str, list[Bit]] = {
        f"P{place + step}": [bit] for place, bit in enumerate(product[: PRODUCT_BITS - step]) if bit != "x"
    }
    for operand, word in words.items():
        raised = ["0"] * steps[operand] + word[: OPERAND_BITS - steps[operand]]
        moved |= {f"{operand}{place}": [bit] for place, bit in enumerate(raised)}
    others = {pin: bits for pin, bits in pins.items() if not (pin[0] in "ABP" and pin[1:].isdigit())}
    ways = multiplier["port_directions"] | {pin: "output" for pin in moved if pin[0] == "P"}
    return {**multiplier, "port_directions": ways, "connections": others | moved}


def _copies(word: list[Bit]) -> int:
    """How many bits below the highest one are the same."""
    *below, sign = word
    return next((count for count, bit in enumerate(reversed(below)) if bit != sign), len(below))
