"""Tests vta_once on random instructions: which of their loops have one step."""

from __future__ import annotations

import cocotb

from relay_hw.accel.isa.alu import AluOp
from relay_hw.accel.isa.slots import Slots, alu_slots
from relay_hw.accel.isa.spec import Op, encode
from relay_hw.accel.sim.bench.common import Dut, get, rng, settle


def once_of(op: Op, values: dict[str, int]) -> int:
    """Bit 0: a slot a micro-op; 1: a micro-op (REQUANT has neither); 2: an inner loop's step; 3: an outer one's."""
    loops = (values["iter_in"] == 1) << 2 | (values["iter_out"] == 1) << 3
    if op is Op.REQUANT:
        return loops
    is_one = op is Op.GEMM or (bool(values.get("use_imm")) and alu_slots(AluOp(values["alu_op"]), True) == Slots(1))
    return is_one | (values["uop_end"] - values.get("uop_begin", 0) == 1) << 1 | loops


@cocotb.test()
async def finds_loops_of_one_step(dut: Dut) -> None:
    random = rng()
    for _ in range(3000):
        begin = random.choice((0, 1, 255, 256, 0x7FFF, random.randrange(60000)))
        end = begin + random.choice((1, 1, 2, 3, 257, 1 << random.randrange(12)))
        values = {"uop_begin": begin, "uop_end": end}
        values |= {key: random.choice((1, 1, 2, 257, random.randrange(1, 1 << 14))) for key in ("iter_in", "iter_out")}
        op = random.choice((Op.GEMM, Op.ALU, Op.REQUANT))
        if op is Op.REQUANT:
            values = {key: values[key] for key in ("iter_in", "iter_out")}
        if op is Op.ALU:
            values |= {"alu_op": random.choice(list(AluOp)), "use_imm": random.getrandbits(1)}
        dut.insn_i.value = encode(op, values)
        await settle()
        counts = 12 if op is Op.REQUANT else 15
        assert get(dut.once_o) & counts == once_of(op, values), (op, values)
