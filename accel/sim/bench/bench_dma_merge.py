"""Tests vta_dma_merge on random blocks: which of them are one run, and how long it is."""

from __future__ import annotations

import cocotb
from cocotb.triggers import Timer

from relay_hw.accel.sim.bench.bench_dma_walk import merged, random_block
from relay_hw.accel.sim.bench.common import Dut, get, parameter, rng


@cocotb.test()
async def merges_what_is_contiguous(dut: Dut) -> None:
    random, bus = rng(), parameter(dut, "AXI_DATA_BITS") // 8
    seen = set()
    for _ in range(300):
        block = random_block(random, bus)
        dut.y_i.value, dut.x_i.value = block["y"], block["x"]
        dut.y_stride_i.value, dut.x_stride_i.value = block["ys"], block["xs"]
        dut.run_beats_i.value = block["run"] // bus
        dut.row_beats_i.value = block["run"] * block["x"] // bus
        dut.all_beats_i.value = block["run"] * block["x"] * block["y"] // bus
        await Timer(1, unit="ns")
        x_one, y_one, run = merged(block)
        assert (get(dut.x_one_o), get(dut.y_one_o), get(dut.length_o)) == (x_one, y_one, run // bus), block
        seen.add((x_one, y_one))
    assert len(seen) == 4
