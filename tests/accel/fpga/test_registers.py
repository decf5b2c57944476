"""Registers of products: which flip-flops a multiplier block takes in, and which it must leave."""

from __future__ import annotations

from typing import Any

import pytest

from accel.fpga.registers import FLIP_FLOP, MULTIPLIER, with_registers

CLOCK, ENABLE, OTHER = 1, 2, 3
SETTINGS = {"CLKMUX": "CLK", "CEMUX": "CE", "LSRMUX": "LSR", "REGSET": "RESET", "GSR": "DISABLED"}


def flip_flop(data: int, out: int, enable: int | None = ENABLE, **settings: str) -> dict[str, Any]:
    pins: dict[str, list[int | str]] = {"CLK": [CLOCK], "DI": [data], "LSR": ["0"], "Q": [out]}
    if enable is not None:
        pins["CE"] = [enable]
    ways = {pin: "output" if pin == "Q" else "input" for pin in pins}
    return {"type": FLIP_FLOP, "parameters": SETTINGS | settings, "port_directions": ways, "connections": pins}


def multiplier(first: int) -> dict[str, Any]:
    """Drives nets `first` to `first + 3`."""
    pins = {"A0": [90], "B0": [91], **{f"P{k}": [first + k] for k in range(4)}}
    ways = {pin: "output" if pin.startswith("P") else "input" for pin in pins}
    return {"type": MULTIPLIER, "parameters": {}, "port_directions": ways, "connections": pins}


def reader(net: int) -> dict[str, Any]:
    return {"type": "LUT4", "parameters": {}, "port_directions": {"A": "input"}, "connections": {"A": [net]}}


def module(**cells: dict[str, Any]) -> dict[str, Any]:
    return {"cells": cells, "ports": {"out": {"direction": "output", "bits": [200]}}}


def product(name: str, first: int, enable: int | None = ENABLE, **settings: str) -> dict[str, dict[str, Any]]:
    """A multiplier with flip-flops behind two of its four outputs, and what reads those."""
    return {
        name: multiplier(first),
        f"{name}_0": flip_flop(first, first + 100, enable, **settings),
        f"{name}_1": flip_flop(first + 1, first + 101, enable, **settings),
        f"{name}_read": reader(first + 100),
    }


def test_the_block_drives_what_its_flip_flops_did() -> None:
    found = with_registers(module(**product("m", 10)))["cells"]
    assert set(found) == {"m", "m_read"}
    pins = found["m"]["connections"]
    assert [pins[f"P{k}"] for k in range(4)] == [[110], [111], [12], [13]]
    assert (pins["CLK0"], pins["CE0"], pins["RST0"]) == ([CLOCK], [ENABLE], ["0"])
    assert found["m"]["parameters"]["REG_OUTPUT_CLK"] == "CLK0"
    assert found["m"]["port_directions"]["CE0"] == "input"


def test_always_enabled() -> None:
    found = with_registers(module(**product("m", 10, None, CEMUX="1 ")))["cells"]
    assert found["m"]["connections"]["CE0"] == ["1"]


@pytest.mark.parametrize(
    "other",
    [
        # a net that something else reads: a cell, a port of the module
        {"x": reader(11)},
        {"m_1": flip_flop(11, 111, OTHER)},
        {"m_1": flip_flop(11, 111, CEMUX="INV")},
        {"m_1": flip_flop(11, 111, REGSET="SET")},
        {"m_1": flip_flop(11, 111, CLKMUX="INV")},
        {"m_1": flip_flop(11, 111, GSR="ENABLED")},
        {"m_1": reader(11)},
        {"m_1": {**flip_flop(11, 111), "connections": {**flip_flop(11, 111)["connections"], "LSR": [OTHER]}}},
    ],
)
def test_what_a_block_cannot_take_in(other: dict[str, Any]) -> None:
    given = module(**{**product("m", 10), **other})
    assert with_registers(given) == given


def test_a_port_reads_too() -> None:
    given = {**module(**product("m", 10)), "ports": {"out": {"direction": "output", "bits": [11]}}}
    assert with_registers(given) == given


def test_clock_and_enable_are_those_of_most() -> None:
    given = module(**product("a", 10, OTHER), **product("b", 30), **product("c", 50))
    found = with_registers(given)["cells"]
    assert [name for name in "abc" if found[name]["parameters"]] == ["b", "c"]
    assert {"a_0", "a_1"} < set(found)


def test_nothing_to_do() -> None:
    assert with_registers(module(x=reader(10))) == module(x=reader(10))
