"""Tests vta_multiples: every input, digits with and without a sign."""

from __future__ import annotations

import cocotb

from relay_hw.accel.sim.bench.common import Dut, get, settle, signed


@cocotb.test()
async def multiplies_every_input(dut: Dut) -> None:
    for low in (0, 1):
        for value in range(-128, 128):
            dut.inp_i.value, dut.low_i.value = value & 255, low
            await settle()
            found = [signed(get(port), 10) for port in (dut.three_o, dut.top_two_o, dut.top_three_o)]
            assert found == [3 * value, *((2 * value, 3 * value) if low else (-2 * value, -value))]
