"""Drives the `cells_top` of a family with random bits; nothing may ever be wrong."""

from __future__ import annotations

import os
import random
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, Timer

from relay_hw.accel.fpga.parts import Family
from tests.accel.fpga.sim.cells import RANDOM_BITS, cells_top
from tests.accel.fpga.sim.gowin_cells import gowin_top

CYCLES = 4000
# Name of the variable that says which family, and what each is held to.
FAMILY = "CELLS_FAMILY"
TOPS = {Family.ECP5: cells_top, Family.GOWIN: gowin_top}


@cocotb.test()
async def models_are_as_the_forms_beside_them(dut: Any) -> None:
    names = [name for name, _ in TOPS[Family(os.environ[FAMILY])]().checks]
    numbers = random.Random(cocotb.RANDOM_SEED)
    dut.r.value = 0
    Clock(dut.clk_i, 10, unit="ns").start()
    wrong = 0
    for _ in range(CYCLES):
        await FallingEdge(dut.clk_i)
        dut.r.value = numbers.getrandbits(RANDOM_BITS)
        await Timer(1, unit="ns")
        wrong |= int(dut.wrong.value)
    assert not wrong, ", ".join(name for k, name in enumerate(names) if wrong >> k & 1)
