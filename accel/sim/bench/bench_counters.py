"""Tests vta_counters against sums as they were up to a cycle ago: every turn, the gate, carries, resets, and CYCLES."""

from __future__ import annotations

import cocotb

from relay_hw.accel.isa.registers import REGISTER
from relay_hw.accel.sim.bench.common import Dut, get, parameter, rng, settle, start, step

# The first counter's word address; those of the others follow.
FIRST = REGISTER["CYCLES"].offset // 4 + 1


@cocotb.test()
async def counts_events(dut: Dut) -> None:
    random = rng()
    beats, size = parameter(dut, "BEATS"), 1 << parameter(dut, "BEAT_LOG")
    turns = parameter(dut, "COUNTERS")
    amounts = [size if beats >> k & 1 else 1 for k in range(turns)]
    await start(dut, count_i=0, event_i=0, read_i=0)
    for launch in range(4):
        cycles, model = 0, [0] * turns
        before = model[:]
        # Each counter is as busy as another: always, never, now and then.
        rates = [random.choice((0.0, 0.1, 0.5, 0.95, 1.0)) for _ in range(turns)]
        gate_rate = random.choice((0.9, 1.0))
        waited, number = 0, random.randrange(turns)
        for _ in range(700 + 37 * launch):
            gate = random.random() < gate_rate
            events = sum((random.random() < rate) << k for k, rate in enumerate(rates))
            dut.count_i.value, dut.event_i.value, dut.read_i.value = gate, events, (FIRST + number) % 32
            await settle()
            assert get(dut.cycles_o) == cycles
            waited += 1
            assert waited <= turns
            if get(dut.ready_o):
                assert get(dut.value_o) == before[number], number
                waited, number = 0, random.randrange(turns)
            await step(dut)
            before = model[:]
            cycles += gate
            for k in range(turns):
                model[k] += amounts[k] if gate and events >> k & 1 else 0
        dut.count_i.value = 0
        await step(dut)
        for number in range(turns):
            dut.read_i.value = (FIRST + number) % 32
            await settle()
            while not get(dut.ready_o):
                await step(dut)
                await settle()
            assert get(dut.value_o) == model[number], "nothing may be missing after the end"
            await step(dut)
        dut.rst_ni.value = 0
        await step(dut)
        dut.rst_ni.value = 1
        assert get(dut.cycles_o) == 0
