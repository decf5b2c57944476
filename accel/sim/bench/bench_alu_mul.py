"""Tests vta_alu_mul: the low half of products of int32 an edge later, corners included; 0 after cycles without en_i."""

from __future__ import annotations

import cocotb

from relay_hw.accel.sim.bench.common import Dut, get, rng, start, step

CORNERS = (0, 1, 0x3FFFF, 0x40000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)


@cocotb.test()
async def multiplies(dut: Dut) -> None:
    random = rng()
    await start(dut, en_i=0, a_i=0, b_i=0)
    pairs = [(a, b) for a in CORNERS for b in CORNERS]
    pairs += [(random.getrandbits(32), random.getrandbits(32)) for _ in range(500)]
    for a, b in pairs:
        enable = random.random() < 0.8
        dut.en_i.value, dut.a_i.value, dut.b_i.value = enable, a, b
        await step(dut)
        assert get(dut.product_o) == (a * b & 0xFFFFFFFF if enable else 0), f"{a:#x} {b:#x}"
