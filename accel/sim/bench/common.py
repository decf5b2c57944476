"""Helpers of every bench: clock, reset, one step, random words. Benches drive at the falling edge of the clock."""

from __future__ import annotations

import random
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, Timer

Dut = Any  # cocotb's handle of the module under test


# Inputs that reset a module, with the level that does.
RESETS = {"rst_ni": 0, "clear_i": 1, "soon_i": 0}


def rng() -> random.Random:
    """Random numbers of this run; the runner's seed repeats them."""
    return random.Random(cocotb.RANDOM_SEED)


async def start(dut: Dut, **inputs: int) -> None:
    """Start the clock, set `inputs`, hold the resets (where there are some) for three cycles."""
    Clock(dut.clk_i, 10, unit="ns").start()
    for name, value in inputs.items():
        getattr(dut, name).value = value
    resets = {name: active for name, active in RESETS.items() if hasattr(dut, name)}
    for name, active in resets.items():
        getattr(dut, name).value = active
    for _ in range(3):
        await FallingEdge(dut.clk_i)
    for name, active in resets.items():
        getattr(dut, name).value = not active
    await settle()


async def settle() -> None:
    """Let combinational outputs follow the inputs just driven."""
    await Timer(1, unit="ns")


async def step(dut: Dut) -> None:
    """One clock cycle; returns where inputs may be driven."""
    await FallingEdge(dut.clk_i)


def get(signal: Any) -> int:
    """Value of a signal as an unsigned number."""
    return int(signal.value)


def parameter(dut: Dut, name: str) -> int:
    """Value of a module parameter."""
    return int(getattr(dut, name).value)


def signed(value: int, bits: int) -> int:
    """Two's complement reading of `bits` bits."""
    return value - (1 << bits) if value >> (bits - 1) else value


def field(word: int, index: int, bits: int) -> int:
    """The `index`-th group of `bits` bits."""
    return (word >> (index * bits)) & ((1 << bits) - 1)


async def quiet_behind_a_reset(dut: Dut, begin: dict[str, int], pulse: str, outputs: tuple[str, ...]) -> None:
    """A reset of one cycle, each time a cycle later behind a start: from its edge on none of `outputs` is high.

    `begin`: inputs; `pulse`: the one that starts, in the first cycle alone. Every output is high in a run without it.
    """
    seen = dict.fromkeys(outputs, 0)
    for cycles in range(24):
        await start(dut, **begin)
        for n in range(cycles):
            await settle()
            seen = {name: many + get(getattr(dut, name)) for name, many in seen.items()}
            await step(dut)
            if not n:
                getattr(dut, pulse).value = 0
        dut.rst_ni.value = 0
        getattr(dut, pulse).value = 0
        await step(dut)
        dut.rst_ni.value = 1
        for _ in range(12):
            await settle()
            high = [name for name in outputs if get(getattr(dut, name))]
            assert not high, f"{high} behind a reset {cycles} cycles behind a start"
            await step(dut)
    assert all(seen.values()), seen
