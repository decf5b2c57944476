"""vta_stage against the last word that came."""

from __future__ import annotations

import cocotb

from accel.sim.bench.common import Dut, get, parameter, rng, start, step


@cocotb.test()
async def keeps_the_last_word(dut: Dut) -> None:
    random, width = rng(), parameter(dut, "WIDTH")
    await start(dut, valid_i=1, data_i=0)
    last = 0
    for _ in range(300):
        valid, word = random.random() < 0.6, random.getrandbits(width)
        dut.valid_i.value, dut.data_i.value = valid, word
        await step(dut)
        last = word if valid else last
        assert (get(dut.valid_o), get(dut.data_o)) == (valid, last)
