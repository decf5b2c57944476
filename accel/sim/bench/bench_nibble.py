"""Tests vta_nibble: every input times every four bits of a weight, with and without a sign."""

from __future__ import annotations

import cocotb

from relay_hw.accel.sim.bench.common import Dut, get, settle, signed


@cocotb.test()
async def multiplies_everything(dut: Dut) -> None:
    for low in (0, 1):
        for value in range(-128, 128):
            two, three = (2 * value, 3 * value) if low else (-2 * value, -value)
            dut.inp_i.value, dut.three_i.value = value & 255, 3 * value & 1023
            dut.top_two_i.value, dut.top_three_i.value = two & 1023, three & 1023
            for weight in range(16):
                dut.wgt_i.value = weight
                await settle()
                factor = weight if low else signed(weight, 4)
                assert signed(get(dut.product_o), 12) == value * factor, f"{value} {factor}"
