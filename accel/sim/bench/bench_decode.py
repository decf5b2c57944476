"""Tests vta_decode against the table: legal instructions pass, each single flaw raises its fault code."""

from __future__ import annotations

import cocotb

from relay_hw.accel.isa.errors import FaultCode
from relay_hw.accel.isa.spec import BY_OP, Op
from relay_hw.accel.sim.bench.common import Dut, get, rng, settle
from relay_hw.accel.sim.bench.instructions import (
    first_beat,
    flawed,
    has_factors,
    last_plane,
    legal,
    ops_of,
    sizes_of,
    transfer_beats,
    word_of,
)

TRANSFERS = (Op.LOAD, Op.STORE, Op.GATHER)
# by the bits of flaws_o; the lowest one counts
CODES = (FaultCode.ILLEGAL_OPCODE, FaultCode.RESERVED_BITS, FaultCode.ILLEGAL_FIELD, FaultCode.SRAM_RANGE)


def fault(dut: Dut) -> FaultCode | None:
    flaws = get(dut.flaws_o)
    return next((code for bit, code in enumerate(CODES) if flaws >> bit & 1), None)


def fits(dut: Dut, values: dict[str, int]) -> bool:
    """Whether the transfer is in the room that the module gives it."""
    sizes = sizes_of(dut)
    row, rows = transfer_beats(sizes, values)
    planes = "z" in values and bool(values.get("pitch")) and not has_factors(values)
    assert get(dut.planes_o) == planes
    steps = 4 * max(0, last_plane(sizes, values)) if planes else 0
    return get(dut.begin_o) + steps + row * rows <= get(dut.room_o)


@cocotb.test()
async def accepts_legal_instructions(dut: Dut) -> None:
    random, sizes = rng(), sizes_of(dut)
    for _ in range(1500):
        op = random.choice(ops_of(sizes))
        values = legal(random, sizes, op)
        dut.insn_i.value = word_of(op, values)
        await settle()
        assert fault(dut) is None, f"{op.name} {values}: {fault(dut)}"
        unit = BY_OP[op].unit
        assert get(dut.unit_o) == (0 if unit is None else 1 << unit)
        assert get(dut.finish_o) == (op is Op.FINISH)
        assert get(dut.transfer_o) == (op in TRANSFERS)
        if op in TRANSFERS:
            assert fits(dut, values), f"{op.name} {values}"
            assert get(dut.first_beat_o) == first_beat(sizes, values)


@cocotb.test()
async def refuses_each_flaw_by_its_code(dut: Dut) -> None:
    random, sizes = rng(), sizes_of(dut)
    for _ in range(2000):
        op = random.choice(ops_of(sizes))
        word, values, code = flawed(random, sizes, op)
        dut.insn_i.value = word
        await settle()
        if op in TRANSFERS and code is FaultCode.SRAM_RANGE:
            assert fault(dut) is None and get(dut.transfer_o) and not fits(dut, values), f"{op.name} {values}"
            continue
        assert fault(dut) is code, f"{op.name} {values}: {fault(dut)} must be {code.name}"
