"""Tests vta_ram_cols against a table: columns are written apart, a read during a write returns the old row."""

from __future__ import annotations

import cocotb

from relay_hw.accel.sim.bench.common import Dut, field, get, parameter, rng, start, step


@cocotb.test()
async def writes_columns_and_reads_old_rows(dut: Dut) -> None:
    random, width, cols = rng(), parameter(dut, "COL_W"), parameter(dut, "COLS")
    depth = parameter(dut, "DEPTH")
    model = [[0] * cols for _ in range(depth)]
    await start(dut, we_i=0, waddr_i=0, wdata_i=0, re_i=0, raddr_i=0)
    for row in range(depth):
        dut.we_i.value, dut.waddr_i.value, dut.wdata_i.value = (1 << cols) - 1, row, 0
        await step(dut)
    held: list[int] | None = None
    for _ in range(500):
        enable, where = random.getrandbits(cols), random.randrange(depth)
        data, read = random.getrandbits(width * cols), random.random() < 0.7
        source = where if random.random() < 0.4 else random.randrange(depth)
        dut.we_i.value, dut.waddr_i.value, dut.wdata_i.value = enable, where, data
        dut.re_i.value, dut.raddr_i.value = read, source
        await step(dut)
        if read:
            held = list(model[source])
        for col in range(cols):
            if enable >> col & 1:
                model[where][col] = field(data, col, width)
        if held is not None:
            assert [field(get(dut.rdata_o), col, width) for col in range(cols)] == held
