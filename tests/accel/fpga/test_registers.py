"""Registers of operands: which flip-flops a multiplier block takes in, and which it must leave."""

from __future__ import annotations

from typing import Any

import pytest

from relay_hw.accel.fpga.parts import MULTIPLIER
from relay_hw.accel.fpga.place.registers import FLIP_FLOP, with_registers

CLOCK, ENABLE, RESET, OTHER = 1, 2, 3, 4
SETTINGS = {
    "CLKMUX": "CLK",
    "CEMUX": "CE",
    "LSRMUX": "LSR",
    "SRMODE": "LSR_OVER_CE",
    "REGSET": "RESET",
    "GSR": "DISABLED",
}
Cell = dict[str, Any]


def cell(kind: str, outputs: str, pins: dict[str, int | str], **settings: str) -> Cell:
    ways = {pin: "output" if pin[0] in outputs else "input" for pin in pins}
    nets = {pin: [net] for pin, net in pins.items()}
    return {"type": kind, "parameters": settings, "port_directions": ways, "connections": nets}


def flip_flop(out: int, enable: int = ENABLE, reset: int | str = RESET, **settings: str) -> Cell:
    """Drives net `out` by what net `out` + 100 was."""
    pins = {"CLK": CLOCK, "CE": enable, "LSR": reset, "DI": out + 100, "Q": out}
    return cell(FLIP_FLOP, "Q", pins, **(SETTINGS | settings))


def multiplier(a: int | str, b: int | str) -> Cell:
    """Of one bit of A, twice as for a sign, and one of B."""
    return cell(MULTIPLIER, "P", {"A0": a, "A1": a, "A2": "0", "B0": b, "B1": "0", "P0": 90, "SIGNEDA": "1"})


def reader(net: int) -> Cell:
    return cell("LUT4", "Z", {"A": net, "Z": 91})


def module(**cells: Cell) -> dict[str, Any]:
    return {"cells": cells, "ports": {"out": {"direction": "output", "bits": [200]}}}


def product(**other: Cell) -> dict[str, Any]:
    """A multiplier with its two registers, or what is there instead or beside them."""
    return module(**({"m": multiplier(10, 11), "a": flip_flop(10), "b": flip_flop(11)} | other))


def test_the_block_reads_what_its_flip_flops_did() -> None:
    found = with_registers(product())["cells"]
    assert set(found) == {"m"}
    pins, settings = found["m"]["connections"], found["m"]["parameters"]
    assert [pins[pin] for pin in ("A0", "A1", "A2", "B0", "B1", "P0")] == [[110], [110], ["0"], [111], ["0"], [90]]
    assert [pins[pin] for pin in ("CLK0", "CE0", "RST0")] == [[CLOCK], [ENABLE], [RESET]]
    assert [settings[f"REG_INPUT{way}_{kind}"] for way in "AB" for kind in ("CLK", "CE", "RST")] == [
        "CLK0",
        "CE0",
        "RST0",
    ] * 2
    assert found["m"]["port_directions"]["RST0"] == "input"


@pytest.mark.parametrize(
    "other",
    [
        # something else reads it: a cell, another pin of the multiplier
        {"x": reader(10)},
        {"m": cell(MULTIPLIER, "P", {"A0": 10, "B0": 11, "SIGNEDA": 10, "P0": 90})},
        # it is controlled by something else than the other one, or as no block can be
        {"a": flip_flop(10, enable=OTHER)},
        {"a": flip_flop(10, reset=OTHER)},
        {"a": flip_flop(10, reset="0")},
        {"a": flip_flop(10, CEMUX="INV")},
        {"a": flip_flop(10, CLKMUX="INV")},
        {"a": flip_flop(10, REGSET="SET")},
        {"a": flip_flop(10, GSR="ENABLED")},
        {"a": flip_flop(10, SRMODE="ASYNC")},
        # an operand without one
        {"a": cell("LUT4", "Z", {"A": 92, "Z": 10})},
        {"m": multiplier("1", 11)},
        # a multiplier that keeps one of them for itself keeps it for all
        {"n": multiplier(10, 12), "x": cell("LUT4", "Z", {"A": 92, "Z": 12})},
        {"n": multiplier(11, 12), "c": flip_flop(12), "x": reader(12)},
    ],
)
def test_what_a_block_cannot_take_in(other: dict[str, Cell]) -> None:
    given = product(**other)
    assert with_registers(given) == given


def test_a_port_reads_too() -> None:
    given = {**product(), "ports": {"out": {"direction": "output", "bits": [11]}}}
    assert with_registers(given) == given


def test_several_take_the_same() -> None:
    found = with_registers(product(n=multiplier(10, 12), c=flip_flop(12)))["cells"]
    assert {name: each["connections"]["A0"] for name, each in found.items()} == {"m": [110], "n": [110]}


def test_a_net_has_the_same_pin_everywhere_and_the_most_common_ones_have_one() -> None:
    nets = [40, 40, 41, 41, 42, 42, 43, 43, 44]
    given = module(
        **{f"m{k}": multiplier(10 + k, 20 + k) for k in range(len(nets))},
        **{f"a{k}": flip_flop(10 + k, reset=net) for k, net in enumerate(nets)},
        **{f"b{k}": flip_flop(20 + k, reset=net) for k, net in enumerate(nets)},
    )
    found = with_registers(given)["cells"]
    pins = [found[f"m{k}"]["parameters"].get("REG_INPUTA_RST") for k in range(len(nets))]
    assert pins == ["RST0", "RST0", "RST1", "RST1", "RST2", "RST2", "RST3", "RST3", None]
    assert {"a8", "b8"} < set(found)


def test_nothing_to_do() -> None:
    assert with_registers(module(x=reader(10))) == module(x=reader(10))
