"""Tests vta_tables against arrays: each lane's own number, tables written anew between look-ups, results that hold."""

from __future__ import annotations

import cocotb
import numpy as np

from relay_hw.accel.isa.config import TABLE_RESULTS
from relay_hw.accel.isa.records import encode_tables
from relay_hw.accel.sim.bench.common import Dut, get, parameter, rng, start, step


@cocotb.test()
async def looks_up_what_was_written(dut: Dut) -> None:
    random, lanes, count = rng(), parameter(dut, "LANES"), parameter(dut, "TABLES")
    bus = parameter(dut, "BEAT_W") // 8
    tables = np.frombuffer(random.randbytes(count * TABLE_RESULTS), np.int8).reshape(count, -1).copy()
    await start(dut, we_i=0, waddr_i=0, wdata_i=0, re_i=0, number_i=0, value_i=0)
    await write(dut, tables, range(count), bus)
    held = get(dut.result_o)
    for _ in range(600):
        if random.random() < 0.02:
            number = random.randrange(count)
            tables[number] = np.frombuffer(random.randbytes(TABLE_RESULTS), np.int8)
            dut.re_i.value = 0
            await write(dut, tables, range(number, number + 1), bus)
            assert get(dut.result_o) == held
        looks, number = random.random() < 0.8, random.randrange(count)
        corners = [random.choice((-128, -1, 0, 127, random.randrange(-128, 128))) for _ in range(lanes)]
        dut.re_i.value, dut.number_i.value = looks, number
        dut.value_i.value = int.from_bytes(np.array(corners, np.int8).tobytes(), "little")
        await step(dut)
        if looks:
            held = int.from_bytes(tables[number][np.array(corners) + 128].tobytes(), "little")
        assert get(dut.result_o) == held


async def write(dut: Dut, tables: np.ndarray, which: range, bus: int) -> None:
    """LOAD's beats of some tables; what records do not hold is noise."""
    data = encode_tables(tables[which.start : which.stop]).reshape(-1, 8)
    data[:, 2:] = np.frombuffer(rng().randbytes(data[:, 2:].size), np.uint8).reshape(-1, 6)
    first = which.start * data.size // len(which) // bus
    for beat, words in enumerate(data.reshape(-1, bus)):
        dut.we_i.value, dut.waddr_i.value = 1, first + beat
        dut.wdata_i.value = int.from_bytes(words.tobytes(), "little")
        await step(dut)
    dut.we_i.value = 0
