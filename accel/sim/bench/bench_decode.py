"""vta_decode against the table: legal instructions pass, each single flaw raises its fault code."""

from __future__ import annotations

import cocotb

from accel.isa.spec import BY_OP, Op
from accel.sim.bench.common import Dut, get, parameter, rng, settle
from accel.sim.bench.instructions import first_beat, flawed, last_plane, legal, sizes_of, transfer_beats, word_of


def drive(dut: Dut, word: int, values: dict[str, int]) -> None:
    row, _ = transfer_beats(sizes_of(dut), values) if "sram" in values else (0, 0)
    width = parameter(dut, "BEATS_W")
    dut.insn_i.value = word
    dut.plane_i.value = max(0, last_plane(sizes_of(dut), values)) if values.get("pitch") and "z" in values else 0
    dut.padded_row_i.value, dut.padded_over_i.value = row & ((1 << width) - 1), row >> width > 0


@cocotb.test()
async def accepts_legal_instructions(dut: Dut) -> None:
    random, sizes = rng(), sizes_of(dut)
    for _ in range(1500):
        op = random.choice(list(Op))
        values = legal(random, sizes, op)
        drive(dut, word_of(op, values), values)
        await settle()
        assert not get(dut.fault_o), f"{op.name} {values}: code {get(dut.code_o)}"
        unit = BY_OP[op].unit
        assert get(dut.unit_o) == (0 if unit is None else 1 << unit)
        assert get(dut.finish_o) == (op is Op.FINISH)
        if op in (Op.LOAD, Op.STORE, Op.GATHER):
            assert get(dut.first_beat_o) == first_beat(sizes, values)


@cocotb.test()
async def refuses_each_flaw_by_its_code(dut: Dut) -> None:
    random, sizes = rng(), sizes_of(dut)
    for _ in range(2000):
        op = random.choice(list(Op))
        word, values, code = flawed(random, sizes, op)
        drive(dut, word, values)
        await settle()
        assert get(dut.fault_o), f"{op.name} {values} must fault with {code.name}"
        assert get(dut.code_o) == code, f"{op.name} {values}: {get(dut.code_o)} must be {code.name}"
