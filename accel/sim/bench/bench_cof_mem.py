"""Tests vta_cof_mem: looks of every lane give what beats have written, each behind its edge."""

from __future__ import annotations

import cocotb

from relay_hw.accel.isa.config import COF_RECORD_BYTES
from relay_hw.accel.sim.bench.common import Dut, get, parameter, rng, settle, start, step

INPUTS = ("we_i", "waddr_i", "wdata_i", "s_re_i", "s_raddr_i", "r_re_i", "r_raddr_i")


@cocotb.test()
async def gives_what_was_written(dut: Dut) -> None:
    random, lanes, depth = rng(), parameter(dut, "LANES"), parameter(dut, "COF_DEPTH")
    bits = 8 * COF_RECORD_BYTES
    records = parameter(dut, "BEAT_W") // bits
    await start(dut, **dict.fromkeys(INPUTS, 0))
    kept: dict[int, int] = {}
    # All that is read later, and then some of it again.
    beats = [*range(depth * lanes // records), *(random.randrange(depth * lanes // records) for _ in range(100))]
    for beat in beats:
        word = random.getrandbits(records * bits)
        dut.we_i.value, dut.waddr_i.value, dut.wdata_i.value = 1, beat, word
        for n in range(records):
            kept[beat * records + n] = word >> n * bits & (1 << bits) - 1
        await step(dut)
    dut.we_i.value = 0
    sums, results = 0, 0
    for turn in range(300):
        if turn:
            assert get(dut.s_word_o) == sums and get(dut.r_word_o) == results
        places = [random.randrange(depth) for _ in range(2 * lanes)]
        looks = (random.random() < 0.7 or not turn, random.random() < 0.7 or not turn)
        dut.s_re_i.value, dut.r_re_i.value = looks
        dut.s_raddr_i.value = sum(at << 16 * k for k, at in enumerate(places[:lanes]))
        dut.r_raddr_i.value = sum(at << 16 * k for k, at in enumerate(places[lanes:]))
        await settle()
        if looks[0]:
            sums = sum((kept[at * lanes + k] & 0xFFFF) << 16 * k for k, at in enumerate(places[:lanes]))
        if looks[1]:
            found = [kept[at * lanes + k] for k, at in enumerate(places[lanes:])]
            results = sum((v & 0xFFFF | v >> 32 << 16) << 48 * k for k, v in enumerate(found))
        await step(dut)
