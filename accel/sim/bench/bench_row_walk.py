"""Tests vta_row_walk: slots of random instructions read what TIMING.md says, and are marked, one behind the other."""

from __future__ import annotations

from random import Random

import cocotb

from relay_hw.accel.isa.slots import ROW_DRAIN, ROW_LEAST, ROW_STAGES
from relay_hw.accel.sim.bench.common import Dut, get, parameter, rng, settle, start, step

FIELDS = ("rows_i", "columns_i", "acc_base_i", "row_step_i", "entry_step_i")
# Rounds between a row's maximum and its sums, its results; the slot's place among four is the number of the read.
LAGS = (0, 1, 3)


def random_fields(random: Random, block: int) -> dict[str, int]:
    """Few rows, of one entry, of as many as make a round longer, or of any length."""
    columns = random.choice([1, block, random.randint(1, 9 * block), random.randint(7 * block, 40 * block), 1200])
    fields = {name: random.getrandbits(16) for name in FIELDS}
    return fields | {"rows_i": random.randint(1, 7), "columns_i": columns}


def expected_slot(fields: dict[str, int], count: int, turn: int, slot: int) -> tuple[int, int | None, int, int, int]:
    """Reads, the address of one, and marks (first, ninth, last) of a slot of the instruction."""
    number, at = divmod(slot, turn)
    entry, phase = divmod(at, 4)
    reads, address = 0, None
    if phase < len(LAGS) and entry < count and 0 <= number - LAGS[phase] < fields["rows_i"]:
        reads = 1 << phase
        row = fields["acc_base_i"] + (number - LAGS[phase]) * fields["row_step_i"]
        address = (row + entry * fields["entry_step_i"]) & 0xFFFF
    last = (fields["rows_i"] + ROW_STAGES - 1) * turn - 1
    return reads, address, int(at == 0), int(at == 8), int(slot == last)


@cocotb.test()
async def walks_rows_in_rounds(dut: Dut) -> None:
    random, block = rng(), parameter(dut, "BLOCK_OUT")
    await start(dut, stop_i=0, start_i=0, **dict.fromkeys(FIELDS, 0))
    for _ in range(40):
        fields = random_fields(random, block)
        count = -(-fields["columns_i"] // block)
        turn = max(4 * count + ROW_DRAIN, ROW_LEAST)
        for name in FIELDS:
            getattr(dut, name).value = fields[name]
        dut.start_i.value = 1
        await step(dut)
        dut.start_i.value = 0
        # Of no interest any more.
        for name in FIELDS:
            getattr(dut, name).value = random.getrandbits(16)
        for slot in range((fields["rows_i"] + ROW_STAGES - 1) * turn):
            await settle()
            reads, address, first, ninth, last = expected_slot(fields, count, turn, slot)
            found = (get(dut.read_o), get(dut.first_o), get(dut.ninth_o), get(dut.last_o))
            assert get(dut.active_o) and found == (reads, first, ninth, last), (fields, slot)
            assert address is None or get(dut.raddr_o) == address, (fields, slot)
            await step(dut)
        await settle()
        assert not get(dut.active_o) and not get(dut.read_o)


@cocotb.test()
async def a_stop_ends_it(dut: Dut) -> None:
    random, block = rng(), parameter(dut, "BLOCK_OUT")
    await start(dut, stop_i=0, start_i=0, **random_fields(random, block))
    dut.start_i.value = 1
    for _ in range(random.randint(1, 100)):
        await step(dut)
        dut.start_i.value = 0
    dut.stop_i.value = 1
    for _ in range(50):
        await step(dut)
        await settle()
        assert not (get(dut.active_o) or get(dut.read_o) or get(dut.last_o))
