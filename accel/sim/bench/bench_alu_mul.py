"""vta_alu_mul: the whole product of two entries stands in the slot of the last lane group."""

from __future__ import annotations

import cocotb

from accel.sim.bench.common import Dut, field, get, parameter, rng, settle, start, step


@cocotb.test()
async def multiplies_all_lanes(dut: Dut) -> None:
    random, lanes, at_once = rng(), parameter(dut, "BLOCK_OUT"), parameter(dut, "OUT_LANES")
    await start(dut, en_i=0, group_i=0, a_i=0, b_i=0)
    for _ in range(100):
        a, b = (random.getrandbits(32 * lanes) for _ in range(2))
        for group in range(lanes // at_once):
            dut.en_i.value, dut.group_i.value, dut.a_i.value, dut.b_i.value = 1, group, a, b
            await settle()
            if group == lanes // at_once - 1:
                for i in range(lanes):
                    expected = field(a, i, 32) * field(b, i, 32) & 0xFFFFFFFF
                    assert field(get(dut.product_o), i, 32) == expected, f"lane {i}"
            await step(dut)
        dut.en_i.value = 0
        if random.random() < 0.3:
            await step(dut)
