"""Tests vta_ram_async against a list: a written word is readable after the edge that writes it."""

from __future__ import annotations

import cocotb

from relay_hw.accel.sim.bench.common import Dut, get, parameter, rng, settle, start, step


@cocotb.test()
async def reads_what_was_written(dut: Dut) -> None:
    random, width, depth = rng(), parameter(dut, "WIDTH"), parameter(dut, "DEPTH")
    model: list[int | None] = [None] * depth
    await start(dut, we_i=0, waddr_i=0, wdata_i=0, raddr_i=0)
    checked = 0
    for _ in range(400):
        write, where, word = random.random() < 0.6, random.randrange(depth), random.getrandbits(width)
        read = random.randrange(depth)
        dut.we_i.value, dut.waddr_i.value, dut.wdata_i.value, dut.raddr_i.value = write, where, word, read
        await settle()
        if model[read] is not None:
            checked += 1
            assert get(dut.rdata_o) == model[read]
        await step(dut)
        if write:
            model[where] = word
    assert checked > 100
