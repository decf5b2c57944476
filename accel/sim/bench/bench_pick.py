"""Tests vta_pick against a list of words: the choice of one edge holds for all words that come until the next one."""

from __future__ import annotations

import cocotb

from relay_hw.accel.sim.bench.common import Dut, get, parameter, rng, settle, start, step


@cocotb.test()
async def chosen_ahead(dut: Dut) -> None:
    random = rng()
    width, ways = parameter(dut, "WIDTH"), parameter(dut, "WAYS")
    await start(dut, en_i=1, way_i=0, words_i=0)
    way = 0
    for _ in range(300):
        words = [random.getrandbits(width) for _ in range(ways)]
        dut.words_i.value = sum(word << (n * width) for n, word in enumerate(words))
        await settle()
        assert get(dut.word_o) == words[way]
        enable, choice = random.random() < 0.7, random.randrange(ways)
        dut.en_i.value, dut.way_i.value = enable, choice
        await step(dut)
        way = choice if enable else way
        assert get(dut.word_o) == words[way]
