"""Tests vta_count against a plain number."""

from __future__ import annotations

import cocotb

from relay_hw.accel.sim.bench.common import Dut, get, parameter, rng, settle, start, step


@cocotb.test()
async def counts(dut: Dut) -> None:
    random, most = rng(), parameter(dut, "MAX")
    await start(dut, add_i=0, sub_i=0)
    count, seen = 0, set()
    for _ in range(600):
        assert (get(dut.any_o), get(dut.one_o), get(dut.full_o)) == (count > 0, count == 1, count == most)
        add, sub = count < most and random.random() < 0.55, count > 0 and random.random() < 0.5
        dut.add_i.value, dut.sub_i.value = add, sub
        count += add - sub
        seen.add(count)
        await step(dut)
        await settle()
    assert len(seen) == most + 1
