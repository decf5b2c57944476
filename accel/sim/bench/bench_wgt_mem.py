"""Tests vta_wgt_mem against a byte string: written in beats, some widened, read in entries, old data on collision."""

from __future__ import annotations

import cocotb

from relay_hw.accel.sim.bench.common import Dut, field, get, parameter, rng, signed, start, step


def widened(word: bytes, bits: int, factors: list[int]) -> bytes:
    """Weights of half as many bits as weights of `bits`, the lowest first, times their factors, which count from 0."""
    half, value, total = bits // 2, int.from_bytes(word, "little"), 0
    count = 8 * len(word) // half
    for number in range(count):
        product = signed(field(value, number, half), half) * (1 + factors[number * len(factors) // count])
        total |= (product & ((1 << bits) - 1)) << number * bits
    return total.to_bytes(2 * len(word), "little")


@cocotb.test()
async def beats_in_entries_out(dut: Dut) -> None:
    random, beat_w, elem_w = rng(), parameter(dut, "BEAT_W"), parameter(dut, "ELEM_W")
    depth, bits = parameter(dut, "DEPTH"), parameter(dut, "WGT_BITS")
    beat, elem, count = beat_w // 8, elem_w // 8, parameter(dut, "FACTORS")
    model = bytearray(depth * elem)
    await start(dut, we_i=0, expand_i=0, waddr_i=0, wdata_i=0, factor_i=0, re_i=0, raddr_i=0)
    for address in range(len(model) // beat):
        word = random.randbytes(beat)
        dut.we_i.value, dut.waddr_i.value, dut.wdata_i.value = 1, address, int.from_bytes(word, "little")
        await step(dut)
        model[address * beat : (address + 1) * beat] = word
    dut.we_i.value = 0
    await step(dut)
    await step(dut)
    held: bytes | None = None
    # What was sampled at the two edges before, and where it goes.
    waits: list[tuple[int, bytes] | None] = [None, None]
    for _ in range(600):
        write, expand, word = random.random() < 0.5, random.random() < 0.5, random.randbytes(beat)
        size = 2 * beat if expand else beat
        address = random.randrange(len(model) // size)
        near = address * size // elem
        read, source = random.random() < 0.8, near if random.random() < 0.5 else random.randrange(depth)
        dut.we_i.value, dut.expand_i.value, dut.waddr_i.value = write, expand, address
        dut.wdata_i.value = int.from_bytes(word, "little")
        factors = [random.choice((0, random.randrange(16))) for _ in range(count)]
        dut.factor_i.value = sum(factor << 4 * place for place, factor in enumerate(factors))
        dut.re_i.value, dut.raddr_i.value = read, source
        await step(dut)
        if read:
            held = bytes(model[source * elem : (source + 1) * elem])
        written = waits.pop(0)
        if written is not None:
            at, data = written
            model[at : at + len(data)] = data
        waits.append((address * size, widened(word, bits, factors) if expand else word) if write else None)
        if held is not None:
            assert get(dut.elem_o) == int.from_bytes(held, "little"), f"entry {source}"
