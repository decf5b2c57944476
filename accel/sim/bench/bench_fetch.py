"""Tests vta_fetch with a memory that answers late: all instructions in order, nothing past COUNT, nothing outside."""

from __future__ import annotations

from collections import deque

import cocotb

from relay_hw.accel.sim.bench.common import Dut, get, parameter, rng, settle, start, step

Run = tuple[list[int], bytes, int, list[int]]


async def run(dut: Dut, count: int, program: int, window: int, pace: float, wrong: int = -1) -> Run:
    """Instructions received, the memory, bytes asked for, indices told of errors; stops when nothing moves for a while.

    `wrong`: the beat that is answered with an error.
    """
    random, bus = rng(), parameter(dut, "AXI_DATA_BITS") // 8
    memory = random.randbytes(program + count * 32 + 4096)
    zero = dict.fromkeys(("run_i", "req_ready_i", "beat_i", "data_i", "error_i", "insn_pop_i"), 0)
    await start(dut, **zero, window_bytes_i=window, program_i=program, count_i=count)
    dut.run_i.value = 1
    beats: deque[int] = deque()
    received: list[int] = []
    told: list[int] = []
    asked = quiet = answered = 0
    while quiet < 60:
        dut.insn_pop_i.value = dut.beat_i.value = 0
        ready, answer = random.random() < 0.7, bool(beats) and random.random() < pace
        dut.req_ready_i.value = ready
        if answer:
            at = beats[0]
            dut.beat_i.value, dut.data_i.value = 1, int.from_bytes(memory[at : at + bus], "little")
            dut.error_i.value = answered == wrong
            answered += 1
        await settle()
        if get(dut.error_fault_o):
            told.append(get(dut.error_index_o))
        pop = bool(get(dut.insn_valid_o)) and random.random() < 0.6
        if pop:
            received.append(get(dut.insn_o))
            dut.insn_pop_i.value = 1
        if get(dut.req_valid_o) and ready:
            offset, length = get(dut.req_offset_o), get(dut.req_beats_o)
            assert offset // 4096 == (offset + length * bus - 1) // 4096
            assert program <= offset and offset + length * bus <= min(program + count * 32, window)
            beats.extend(range(offset, offset + length * bus, bus))
            asked += length * bus
        quiet = 0 if pop or answer or beats else quiet + 1
        if answer:
            beats.popleft()
        await step(dut)
    return received, memory, asked, told


@cocotb.test()
async def delivers_the_program(dut: Dut) -> None:
    for count, program, pace in ((1, 32, 1.0), (7, 96, 0.5), (150, 4064, 1.0), (90, 0, 0.3)):
        received, memory, asked, told = await run(dut, count, program, 1 << 20, pace)
        words = [memory[program + 32 * i : program + 32 * (i + 1)] for i in range(count)]
        assert received == [int.from_bytes(word, "little") for word in words]
        assert asked == 32 * count
        assert not get(dut.range_fault_o) and not told


@cocotb.test()
async def stops_at_the_end_of_the_window(dut: Dut) -> None:
    received, _, _, _ = await run(dut, 64, 1024, 1024 + 20 * 32, 1.0)
    assert get(dut.range_fault_o)
    assert get(dut.range_index_o) <= 20
    assert len(received) == get(dut.range_index_o)


@cocotb.test()
async def names_the_instruction_whose_beat_was_in_error(dut: Dut) -> None:
    count, bus = 9, parameter(dut, "AXI_DATA_BITS") // 8
    for wrong in range(count * 32 // bus):
        _, _, _, told = await run(dut, count, 64, 1 << 20, 0.7, wrong)
        assert told == [wrong * bus // 32], f"beat {wrong} of {bus} bytes: {told}"
