"""Tests vta_uop_walk against nested loops: slots of GEMM and ALU, back to back, without a bubble."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import cocotb

from relay_hw.accel.isa.alu import ALU_OPS, AluOp, Control
from relay_hw.accel.isa.slots import GEMM_SLOTS, alu_slots
from relay_hw.accel.isa.spec import GemmMode, Op, encode
from relay_hw.accel.sim.bench.bench_once import once_of
from relay_hw.accel.sim.bench.common import Dut, get, parameter, rng, settle, start, step

Slot = dict[str, int]


def random_instruction(random: Random) -> tuple[Op, dict[str, int]]:
    wide = lambda: random.randrange(1 << 16)  # noqa: E731
    begin = random.randrange(100)
    values = {"iter_out": random.choice((1, 1, 2, 3)), "iter_in": random.choice((1, 2, 4)), "set": wide()}
    values |= {"uop_begin": begin, "uop_end": begin + random.choice((1, 2, 5))}
    if random.random() < 0.5:
        keys = ("acc_out", "acc_in", "inp_out", "inp_in", "wgt_out", "wgt_in", "acc_base", "inp_base", "wgt_base")
        return Op.GEMM, values | {key: wide() for key in keys} | {
            "overwrite": random.getrandbits(1),
            "mode": random.choice(list(GemmMode)),
        }
    keys = ("dst_out", "dst_in", "src_out", "src_in", "dst_base", "src_base")
    op, imm = random.choice(list(AluOp)), random.getrandbits(1)
    return Op.ALU, values | {key: wide() for key in keys} | {"alu_op": op, "use_imm": imm | ALU_OPS[op].needs_imm}


def expected_slots(op: Op, v: dict[str, int], mul_slots: int) -> Iterator[Slot]:
    names = ("acc", "inp", "wgt") if op is Op.GEMM else ("dst", "src")
    slots = GEMM_SLOTS if op is Op.GEMM else alu_slots(AluOp(v["alu_op"]), bool(v["use_imm"]))
    groups = mul_slots if op is Op.ALU and ALU_OPS[AluOp(v["alu_op"])].has(Control.PRODUCT) else 1
    ahead = slots.of(mul_slots - 1) - groups
    for i in range(v["iter_out"]):
        for j in range(v["iter_in"]):
            offsets = [v[f"{n}_base"] + i * v[f"{n}_out"] + j * v[f"{n}_in"] & 0xFFFF for n in names]
            for uop in range(v["uop_begin"], v["uop_end"]):
                slot = {"uop": uop, "dst": offsets[0], "src": offsets[1], "wgt": offsets[2] if op is Op.GEMM else -1}
                if ahead:
                    yield slot | {"exec": 0, "group": -1, "uop_last": 0}
                for group in range(groups):
                    yield slot | {"exec": 1, "group": group, "uop_last": int(group == groups - 1)}


@cocotb.test()
async def walks_like_nested_loops(dut: Dut) -> None:
    random, mul_slots = rng(), parameter(dut, "MUL_SLOTS")
    await start(dut, stop_i=0, start_i=0, insn_i=0, once_i=0, index_i=0)
    program = [random_instruction(random) for _ in range(60)]
    running: list[tuple[Slot, int]] = []
    bubbles = 0
    waiting = list(enumerate(program))
    while waiting or running:
        ready = len(running) <= 1
        go = bool(waiting) and ready and random.random() < 0.8
        dut.start_i.value = go
        if go:
            index, (op, values) = waiting[0]
            dut.insn_i.value, dut.index_i.value = encode(op, values), index
            dut.once_i.value = once_of(op, values)
        await settle()
        assert get(dut.ready_o) == ready
        assert get(dut.slot_valid_o) == bool(running)
        if running:
            slot, owner = running.pop(0)
            last = not running
            got = {"uop": get(dut.uop_o), "dst": get(dut.dst_offset_o), "src": get(dut.src_offset_o)}
            got |= {"wgt": get(dut.wgt_offset_o), "exec": get(dut.slot_exec_o), "group": get(dut.slot_group_o)}
            got |= {"uop_last": get(dut.uop_last_o)}
            op, values = program[owner]
            assert get(dut.mode_o) == (values["mode"] if op is Op.GEMM else GemmMode.MATMUL)
            for key, value in slot.items():
                assert value == -1 or got[key] == value, f"{key} of {slot}: {got}"
            assert get(dut.insn_last_o) == last
            assert get(dut.index_o) == owner and get(dut.set_o) == program[owner][1]["set"]
        elif bool(waiting) and not go:
            bubbles += 1
        if go:
            index, (op, values) = waiting.pop(0)
            running += [(slot, index) for slot in expected_slots(op, values, mul_slots)]
        await step(dut)
    assert bubbles < 60
