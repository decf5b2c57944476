"""vta_alu_mul: the low half of products of int32, corners included."""

from __future__ import annotations

import cocotb

from accel.sim.bench.common import Dut, get, rng, settle

CORNERS = (0, 1, 0x3FFFF, 0x40000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)


@cocotb.test()
async def multiplies(dut: Dut) -> None:
    random = rng()
    dut.en_i.value = 1
    pairs = [(a, b) for a in CORNERS for b in CORNERS]
    pairs += [(random.getrandbits(32), random.getrandbits(32)) for _ in range(500)]
    for a, b in pairs:
        dut.a_i.value, dut.b_i.value = a, b
        await settle()
        assert get(dut.product_o) == a * b & 0xFFFFFFFF, f"{a:#x} {b:#x}"
