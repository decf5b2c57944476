"""vta_decode against the table: legal instructions pass, each single flaw raises its fault code."""

from __future__ import annotations

import cocotb

from accel.isa.errors import FaultCode
from accel.isa.spec import BY_OP, Op
from accel.sim.bench.common import Dut, get, rng, settle
from accel.sim.bench.instructions import first_beat, flawed, last_plane, legal, sizes_of, transfer_beats, word_of

TRANSFERS = (Op.LOAD, Op.STORE, Op.GATHER)


def fits(dut: Dut, values: dict[str, int]) -> bool:
    """Whether the transfer is in the room that the module gives it."""
    sizes = sizes_of(dut)
    row, rows = transfer_beats(sizes, values)
    planes = "z" in values and bool(values.get("pitch"))
    assert get(dut.planes_o) == planes
    steps = 4 * max(0, last_plane(sizes, values)) if planes else 0
    return get(dut.begin_o) + steps + row * rows <= get(dut.room_o)


@cocotb.test()
async def accepts_legal_instructions(dut: Dut) -> None:
    random, sizes = rng(), sizes_of(dut)
    for _ in range(1500):
        op = random.choice(list(Op))
        values = legal(random, sizes, op)
        dut.insn_i.value = word_of(op, values)
        await settle()
        assert not get(dut.fault_o), f"{op.name} {values}: code {get(dut.code_o)}"
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
        op = random.choice(list(Op))
        word, values, code = flawed(random, sizes, op)
        dut.insn_i.value = word
        await settle()
        if op in TRANSFERS and code is FaultCode.SRAM_RANGE:
            assert not get(dut.fault_o) and get(dut.transfer_o) and not fits(dut, values), f"{op.name} {values}"
            continue
        assert get(dut.fault_o), f"{op.name} {values} must fault with {code.name}"
        assert get(dut.code_o) == code, f"{op.name} {values}: {get(dut.code_o)} must be {code.name}"
