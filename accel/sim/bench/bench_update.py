"""Tests vta_update between an entry memory and random slots: forwarding, source register, every operation."""

from __future__ import annotations

import cocotb
import numpy as np

from relay_hw.accel.isa import arith
from relay_hw.accel.isa.alu import ALU_OPS, AluOp, Control
from relay_hw.accel.isa.slots import alu_slots
from relay_hw.accel.isa.spec import Rounding
from relay_hw.accel.sim.bench.common import (
    Dut,
    field,
    get,
    parameter,
    quiet_behind_a_reset,
    rng,
    settle,
    signed,
    start,
    step,
)


def lanes_of(word: int, lanes: int) -> np.ndarray:
    return np.array([signed(field(word, i, 32), 32) for i in range(lanes)], np.int64)


INPUTS = ("next_i", "valid_i", "addr_i", "write_i", "ahead_i", "is_alu_i", "is_max_i", "keep_i", "op_i", "rounding_i")
INPUTS += ("group_i", "use_imm_i", "imm_i", "acc_i", "sums_i")


@cocotb.test()
async def any_order_of_entries_is_exact(dut: Dut) -> None:
    random, lanes, width = rng(), parameter(dut, "BLOCK_OUT"), parameter(dut, "SUM_W")
    groups = lanes // parameter(dut, "OUT_LANES")
    await start(dut, **dict.fromkeys(INPUTS, 0))
    memory = [random.getrandbits(32 * lanes) for _ in range(4)]
    golden = [lanes_of(word, lanes) for word in memory]

    # Micro-ops of one slot or more, which follow one another at once.
    uops: list[list[dict]] = []
    for _ in range(1200):
        dst, source = random.randrange(4), random.randrange(4)
        if random.random() < 0.5:
            sums = [random.randrange(-(1 << width - 1), 1 << width - 1) for _ in range(lanes)]
            kind = random.choice(("gemm", "gemm", "max"))
            uops.append([{"kind": kind, "read": dst, "keep": random.getrandbits(1), "sums": sums, "write": 1}])
            continue
        op = random.choice(list(AluOp))
        use_imm = random.random() < 0.5 or ALU_OPS[op].needs_imm
        common = {"kind": "alu", "op": op, "use_imm": use_imm, "imm": random.getrandbits(32), "source": source}
        common["rounding"] = random.choice(list(Rounding))
        ahead = [common | {"kind": "ahead", "read": dst if use_imm else source}]
        last = groups if ALU_OPS[op].has(Control.PRODUCT) else 0
        slots = ahead if alu_slots(op, use_imm).of(groups) > last + 1 else []
        uops.append(slots + [common | {"read": dst, "group": g, "write": g == last} for g in range(last + 1)])

    def expected(slot: dict) -> np.ndarray:
        old = golden[slot["read"]]
        if slot["kind"] == "gemm":
            return arith.wrap32((old if slot["keep"] else 0) + np.array(slot["sums"], np.int64))
        if slot["kind"] == "max":
            sums = np.array(slot["sums"], np.int64)
            return np.maximum(old, sums) if slot["keep"] else sums
        b = np.full(lanes, signed(slot["imm"], 32), np.int64) if slot["use_imm"] else golden[slot["source"]]
        return arith.wrap32(arith.alu(slot["op"], old, b, slot["rounding"]))

    # The slot that is being read, those in stages R, O, U and W, and what the read of that in R found.
    stages: list[dict | None] = [None] * 5
    slots, fetched, writes = list[dict](), 0, 0
    mask = (1 << width) - 1
    while uops or slots or any(stages):
        if uops and not slots and random.random() < 0.9:
            slots = uops.pop(0)
        new = slots.pop(0) if slots else None
        stages = [new, *stages[:4]]
        dut.next_i.value = new["read"] if new else random.randrange(4)
        slot = stages[1]
        dut.valid_i.value = slot is not None
        if slot:
            kind, op = slot["kind"], slot.get("op", AluOp.MAX)
            dut.addr_i.value, dut.write_i.value = slot["read"], slot.get("write", 0)
            dut.ahead_i.value = kind == "ahead"
            dut.is_alu_i.value, dut.is_max_i.value = kind in ("alu", "ahead"), kind == "max"
            dut.keep_i.value = slot.get("keep", 0)
            dut.op_i.value, dut.rounding_i.value = op, slot.get("rounding", 0)
            dut.group_i.value, dut.use_imm_i.value = slot.get("group", 0), slot.get("use_imm", 0)
            dut.imm_i.value = slot.get("imm", 0)
        dut.acc_i.value = fetched
        if stages[2]:
            dut.sums_i.value = sum((v & mask) << (width * i) for i, v in enumerate(stages[2].get("sums", [])))
        await settle()
        old_word = memory[new["read"]] if new else random.getrandbits(32 * lanes)
        told, done = stages[3], stages[4]
        assert get(dut.we_o) == bool(told and told.get("write"))
        if told and told.get("write"):
            assert get(dut.waddr_o) == told["read"]
        if done and done.get("write"):
            result = expected(done)
            assert (lanes_of(get(dut.wdata_o), lanes) == result).all(), done
            golden[done["read"]] = result
            memory[done["read"]] = get(dut.wdata_o)
            writes += 1
        await step(dut)
        fetched = old_word
    assert writes == 1200


@cocotb.test()
async def writes_nothing_behind_a_reset(dut: Dut) -> None:
    await quiet_behind_a_reset(dut, dict.fromkeys(INPUTS, 0) | {"valid_i": 1, "write_i": 1}, "valid_i", ("we_o",))
