"""Tests vta_inp_mem against a byte string: written in beats and blocks, read in entries and windows of four lines."""

from __future__ import annotations

import cocotb

from relay_hw.accel.sim.bench.common import Dut, get, parameter, rng, start, step

INPUTS = (
    "l_we_i",
    "l_waddr_i",
    "l_be_i",
    "l_wdata_i",
    "o_we_i",
    "o_waddr_i",
    "o_wdata_i",
    "re_i",
    "window_i",
    "raddr_i",
)


@cocotb.test()
async def lines_in_turn(dut: Dut) -> None:
    random = rng()
    entry, block, depth, line = (parameter(dut, name) for name in ("INP_LANES", "BLOCK_OUT", "DEPTH", "LINE"))
    beat, operand = parameter(dut, "BEAT_W") // 8, parameter(dut, "OPERAND")
    unit = min(entry, block)
    parts, part, size = line // unit, block // unit, depth * entry // unit
    model = bytearray(depth * entry)
    await start(dut, **dict.fromkeys(INPUTS, 0))
    for address in range(len(model) // beat):
        word = random.randbytes(beat)
        dut.l_we_i.value, dut.l_waddr_i.value, dut.l_be_i.value = 1, address, (1 << beat) - 1
        dut.l_wdata_i.value = int.from_bytes(word, "little")
        await step(dut)
        model[address * beat : (address + 1) * beat] = word
    collisions = 0
    for _ in range(800):
        user = random.choice((0, 1, 2, 2))
        dut.l_we_i.value, dut.o_we_i.value = user == 1, user == 2
        address, enable, word = random.randrange(len(model) // beat), random.getrandbits(beat), random.randbytes(beat)
        dut.l_waddr_i.value, dut.l_be_i.value = address, enable
        dut.l_wdata_i.value = int.from_bytes(word, "little")
        place, vector = random.randrange(size // part) * part, random.randbytes(block)
        dut.o_waddr_i.value, dut.o_wdata_i.value = place, int.from_bytes(vector, "little")
        read, window = random.random() < 0.8, random.random() < 0.6
        # Entries, or parts of them with a window; the lines behind the last one are the user's error.
        count, last = (unit, size - 3 * parts - part) if window else (entry, depth - operand)
        written = (place * unit if user == 2 else address * beat) // count
        source = min(written if random.random() < 0.5 else random.randrange(last + 1), last)
        source -= source % part if window else 0
        dut.re_i.value, dut.window_i.value, dut.raddr_i.value = read, window, source
        await step(dut)
        expected: tuple[int, int] | None = None
        if read and not window:
            expected = (0, int.from_bytes(model[source * entry : (source + operand) * entry], "little"))
        elif read:
            blocks = [b""] * 4
            for tap in range(4):
                begin = (source + tap * parts) * unit % len(model)
                blocks[(source // parts + tap) % 4] = bytes(model[begin : begin + block])
            expected = (1, int.from_bytes(b"".join(blocks), "little"))
        if user == 1:
            for n, byte in enumerate(word):
                model[address * beat + n] = byte if enable >> n & 1 else model[address * beat + n]
        if user == 2:
            model[place * unit : place * unit + block] = vector
        collisions += bool(read and user and source == written)
        if expected is not None:
            assert get(dut.taps_o if expected[0] else dut.entry_o) == expected[1], f"entry {source}"
    assert collisions > 50
