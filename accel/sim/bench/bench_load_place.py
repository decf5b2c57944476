"""Tests vta_load_place: position after position of random blocks, of LOAD and of GATHER."""

from __future__ import annotations

from random import Random

import cocotb

from relay_hw.accel.sim.bench.bench_gather import Gather, random_gather
from relay_hw.accel.sim.bench.bench_load_data import LoadCase, random_block
from relay_hw.accel.sim.bench.common import Dut, get, parameter, rng, settle, start, step

# address, padding, last of its run, of its row, of all
Position = tuple[int, bool, bool, bool, bool]


def of_load(block: LoadCase, line: int) -> list[Position]:
    x1, x0, y1, y0 = block.pads
    rows, runs = y0 + block.y + y1, x0 + block.x + x1
    positions = []
    for n in range(rows * runs * block.run):
        row, column, beat = n // block.run // runs, n // block.run % runs, n % block.run
        pad = not (y0 <= row < y0 + block.y and x0 <= column < x0 + block.x)
        run_last = beat == block.run - 1
        row_last = run_last and column == runs - 1
        positions.append((block.address(n, line), pad, run_last, row_last, row_last and row == rows - 1))
    return positions


def of_gather(gather: Gather, bus: int) -> list[Position]:
    rows = gather.pads[0] + gather.y + gather.pads[1]
    begin, end = gather.lane // bus, (gather.lane + gather.run - 1) // bus
    positions = []
    for row in range(rows):
        pad = not gather.pads[0] <= row < gather.pads[0] + gather.y
        for column in range(gather.x):
            vector = gather.first + (row * gather.x + column) * gather.pitch
            for beat in range(begin, end + 1):
                row_last = beat == end and column == gather.x - 1
                positions.append((vector + beat, pad, beat == end, row_last, row_last and row == rows - 1))
    return positions


def drive(dut: Dut, random: Random, index: int) -> list[Position]:
    """Drive the operands of a random block; its positions."""
    bus, lanes, line = parameter(dut, "AXI_DATA_BITS") // 8, parameter(dut, "INP_LANES"), parameter(dut, "LINE_BEATS")
    dut.gather_i.value = is_gather = random.random() < 0.5
    if is_gather:
        gather = random_gather(random, index, bus, max(1, lanes // bus))
        dut.insn_i.value, dut.first_beat_i.value = gather.insn(gather.pitch * bus // lanes), gather.first
        return of_gather(gather, bus)
    block = random_block(random, index, line, max(1, 16 // bus))
    dut.insn_i.value, dut.first_beat_i.value = block.insn(max(1, 16 // bus)), block.first
    return of_load(block, line)


@cocotb.test()
async def walks_blocks(dut: Dut) -> None:
    random = rng()
    await start(dut, load_i=1, move_i=0, gather_i=0, insn_i=0, first_beat_i=0)
    for index in range(80):
        positions = drive(dut, random, index)
        dut.load_i.value = dut.move_i.value = 1
        await step(dut)
        dut.load_i.value = 0
        for position in positions:
            dut.move_i.value = 0
            while random.random() < 0.2:
                await step(dut)
            await settle()
            flags = (dut.pad_o, dut.run_last_o, dut.row_last_o, dut.last_o)
            assert (get(dut.addr_o), *(bool(get(flag)) for flag in flags)) == position
            dut.move_i.value = not position[-1]
            await step(dut)
