"""Operands of multipliers as high in their blocks as they go: the product stays the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from relay_hw.accel.fpga.parts import MULTIPLIER
from relay_hw.accel.fpga.place.signs import OPERAND_BITS, PRODUCT_BITS, without_copies

Cell = dict[str, Any]
# Nets: operand A from 100 on, B from 200 on, the product from 300 on.
FIRST = {"A": 100, "B": 200, "P": 300}


def module(a: int, b: int, read: int, signed: str = "11") -> dict[str, Any]:
    """A multiplier of `a` by `b` bits, with or without signs, of whose product so many bits are read."""
    pins: dict[str, list[int | str]] = {f"SIGNED{way}": [sign] for way, sign in zip("AB", signed, strict=True)}
    for way, width, sign in (("A", a, signed[0]), ("B", b, signed[1])):
        for place in range(OPERAND_BITS):
            top: int | str = FIRST[way] + width - 1 if sign == "1" else "0"
            pins[f"{way}{place}"] = [FIRST[way] + place if place < width else top]
    pins |= {f"P{place}": [FIRST["P"] + place] for place in range(PRODUCT_BITS)}
    ways = {pin: "output" if pin[0] == "P" else "input" for pin in pins}
    cell: Cell = {"type": MULTIPLIER, "parameters": {}, "port_directions": ways, "connections": pins}
    bits = [FIRST["P"] + place for place in range(read)]
    return {"cells": {"m": cell}, "ports": {"out": {"direction": "output", "bits": bits}}}


def product(cell: Cell, nets: dict[int, int]) -> dict[int, int]:
    """What the block drives: a bit for each net."""
    pins = cell["connections"]

    def word(way: str) -> int:
        bits = [pins[f"{way}{place}"][0] for place in range(OPERAND_BITS)]
        values = [int(bit) if isinstance(bit, str) else nets[bit] for bit in bits]
        number = sum(value << place for place, value in enumerate(values))
        return number - (values[-1] << OPERAND_BITS) * int(pins[f"SIGNED{way}"][0])

    result = word("A") * word("B")
    return {pins[f"P{place}"][0]: result >> place & 1 for place in range(PRODUCT_BITS) if f"P{place}" in pins}


@pytest.mark.parametrize(
    ("a", "b", "signed", "wires"),
    [(8, 8, "11", 16), (8, 9, "11", 17), (17, 14, "11", 31), (18, 17, "01", 35), (18, 18, "11", 36), (1, 8, "11", 9)],
)
def test_a_wire_for_each_bit_and_the_same_product(a: int, b: int, signed: str, wires: int) -> None:
    given = module(a, b, a + b, signed)
    before, after = given["cells"]["m"], without_copies(given)["cells"]["m"]
    connected = [bits for pin, bits in after["connections"].items() if pin[0] in "AB" and isinstance(bits[0], int)]
    assert len(connected) == wires
    rng = np.random.default_rng(7)
    for _ in range(200):
        nets = {FIRST[way] + place: int(rng.integers(2)) for way in "AB" for place in range(OPERAND_BITS)}
        was, now = product(before, nets), product(after, nets)
        assert {net: now[net] for net in range(300, 300 + a + b)} == {net: was[net] for net in range(300, 300 + a + b)}


def test_without_signs_nothing_moves() -> None:
    given = module(8, 8, 16, "00")
    assert without_copies(given) == given


def test_nothing_moves_that_would_push_out_what_is_read() -> None:
    given = module(8, 8, 17)
    assert without_copies(given) == given
