"""Tests vta_ram_out against a byte string: written in elements, read in beats, old data on a collision."""

from __future__ import annotations

import cocotb

from relay_hw.accel.sim.bench.common import Dut, get, parameter, rng, start, step


@cocotb.test()
async def elements_in_beats_out(dut: Dut) -> None:
    random, beat_w, elem_w = rng(), parameter(dut, "BEAT_W"), parameter(dut, "ELEM_W")
    depth = parameter(dut, "DEPTH")
    beat, elem = beat_w // 8, elem_w // 8
    model = bytearray(depth * elem)
    await start(dut, we_i=0, waddr_i=0, wdata_i=0, re_i=0, raddr_i=0)
    for address in range(depth):
        word = random.randbytes(elem)
        dut.we_i.value, dut.waddr_i.value, dut.wdata_i.value = 1, address, int.from_bytes(word, "little")
        await step(dut)
        model[address * elem : (address + 1) * elem] = word
    held: bytes | None = None
    for _ in range(400):
        write, address, word = random.random() < 0.5, random.randrange(depth), random.randbytes(elem)
        near = address * elem // beat
        source = near if random.random() < 0.5 else random.randrange(len(model) // beat)
        read = random.random() < 0.8
        dut.we_i.value, dut.waddr_i.value, dut.wdata_i.value = write, address, int.from_bytes(word, "little")
        dut.re_i.value, dut.raddr_i.value = read, source
        await step(dut)
        if read:
            held = bytes(model[source * beat : (source + 1) * beat])
        if write:
            model[address * elem : (address + 1) * elem] = word
        if held is not None:
            assert get(dut.beat_o) == int.from_bytes(held, "little"), f"beat {source}"
