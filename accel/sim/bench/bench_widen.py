"""Tests vta_widen: random beats of narrow weights, each times its factor."""

from __future__ import annotations

import cocotb

from relay_hw.accel.sim.bench.bench_wgt_mem import widened
from relay_hw.accel.sim.bench.common import Dut, get, parameter, rng, settle


@cocotb.test()
async def every_weight_meets_its_factor(dut: Dut) -> None:
    random, beat, bits = rng(), parameter(dut, "BEAT_W") // 8, parameter(dut, "WGT_BITS")
    count = parameter(dut, "FACTORS")
    for number in range(1500):
        word = random.randbytes(beat)
        # Each factor with each weight, then all at once.
        factors = [number % 16] * count if number < 16 else [random.randrange(16) for _ in range(count)]
        dut.beat_i.value = int.from_bytes(word, "little")
        dut.factor_i.value = sum(factor << 4 * place for place, factor in enumerate(factors))
        await settle()
        assert get(dut.wide_o) == int.from_bytes(widened(word, bits, factors), "little"), f"{word.hex()} {factors}"
