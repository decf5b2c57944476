"""vta_counters against a list of sums: events, amounts, the gate, and wrap-around at 32 bits."""

from __future__ import annotations

import cocotb

from accel.sim.bench.common import Dut, field, get, parameter, rng, start, step


@cocotb.test()
async def adds_amounts_of_events(dut: Dut) -> None:
    random, n = rng(), parameter(dut, "COUNTERS")
    await start(dut, count_i=0, event_i=0, amount_i=0)
    model = [0] * n
    for _ in range(500):
        gate, events, amounts = random.random() < 0.8, random.getrandbits(n), random.getrandbits(8 * n)
        dut.count_i.value, dut.event_i.value, dut.amount_i.value = gate, events, amounts
        await step(dut)
        for k in range(n):
            model[k] += field(amounts, k, 8) if gate and events >> k & 1 else 0
        assert [field(get(dut.value_o), k, 32) for k in range(n)] == model
    dut.rst_ni.value = 0
    await step(dut)
    assert get(dut.value_o) == 0
