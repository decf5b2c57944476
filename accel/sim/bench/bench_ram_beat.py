"""Tests vta_ram_beat against a byte string: written in beats, read in elements, old data on a collision."""

from __future__ import annotations

import cocotb

from relay_hw.accel.sim.bench.common import Dut, get, parameter, rng, start, step


@cocotb.test()
async def beats_in_elements_out(dut: Dut) -> None:
    random, beat_w, elem_w = rng(), parameter(dut, "BEAT_W"), parameter(dut, "ELEM_W")
    depth = parameter(dut, "DEPTH")
    beat, elem = beat_w // 8, elem_w // 8
    model = bytearray(depth * elem)
    await start(dut, we_i=0, waddr_i=0, wdata_i=0, re_i=0, raddr_i=0)
    for address in range(len(model) // beat):
        word = random.randbytes(beat)
        dut.we_i.value, dut.waddr_i.value, dut.wdata_i.value = 1, address, int.from_bytes(word, "little")
        await step(dut)
        model[address * beat : (address + 1) * beat] = word
    held: bytes | None = None
    for _ in range(400):
        write, address, word = random.random() < 0.5, random.randrange(len(model) // beat), random.randbytes(beat)
        near = address * beat // elem
        read, source = random.random() < 0.8, near if random.random() < 0.5 else random.randrange(depth)
        dut.we_i.value, dut.waddr_i.value, dut.wdata_i.value = write, address, int.from_bytes(word, "little")
        dut.re_i.value, dut.raddr_i.value = read, source
        await step(dut)
        if read:
            held = bytes(model[source * elem : (source + 1) * elem])
        if write:
            model[address * beat : (address + 1) * beat] = word
        if held is not None:
            assert get(dut.elem_o) == int.from_bytes(held, "little"), f"element {source}"
