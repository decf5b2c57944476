"""Tests vta_fifo against a deque, under random pushes and pops."""

from __future__ import annotations

from collections import deque

import cocotb

from relay_hw.accel.sim.bench.common import Dut, get, parameter, rng, settle, start, step


@cocotb.test()
async def keeps_order_under_random_traffic(dut: Dut) -> None:
    random, width, depth, rests = rng(), parameter(dut, "WIDTH"), parameter(dut, "DEPTH"), parameter(dut, "RESTS")
    model: deque[int] = deque()
    fills: set[int] = set()
    popped = False
    await start(dut, push_i=0, pop_i=0, data_i=0)
    for cycle in range(600):
        busy = 0.8 if cycle // 60 % 2 else 0.3
        assert get(dut.valid_o) == bool(model)
        assert get(dut.full_o) == (len(model) == depth)
        resting = bool(rests) and popped
        if model and not resting:
            assert get(dut.data_o) == model[0]
        push = len(model) < depth and random.random() < busy
        popped = pop = bool(model) and not resting and random.random() < 1.1 - busy
        word = random.getrandbits(width)
        dut.push_i.value, dut.pop_i.value, dut.data_i.value = push, pop, word
        await step(dut)
        if pop:
            model.popleft()
        if push:
            model.append(word)
        fills.add(len(model))
        await settle()
    assert {0, depth} <= fills, f"the traffic never reached empty and full: {sorted(fills)}"
