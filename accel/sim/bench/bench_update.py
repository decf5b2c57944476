"""vta_update between an entry memory and random slots: forwarding, source register, every operation."""

from __future__ import annotations

import cocotb
import numpy as np

from accel.isa import arith
from accel.isa.spec import AluOp, Rounding
from accel.sim.bench.common import Dut, field, get, parameter, rng, settle, signed, start, step


def lanes_of(word: int, lanes: int) -> np.ndarray:
    return np.array([signed(field(word, i, 32), 32) for i in range(lanes)], np.int64)


@cocotb.test()
async def any_order_of_entries_is_exact(dut: Dut) -> None:
    random, lanes, width = rng(), parameter(dut, "BLOCK_OUT"), parameter(dut, "SUM_W")
    groups = lanes // parameter(dut, "OUT_LANES")
    zero = (
        "read_i",
        "raddr_i",
        "acc_i",
        "source_i",
        "is_alu_i",
        "is_mul_i",
        "is_max_i",
        "keep_i",
        "op_i",
        "rounding_i",
    )
    await start(dut, **dict.fromkeys(zero, 0), group_i=0, use_imm_i=0, imm_i=0, sums_i=0, write_i=0, waddr_i=0)
    memory = [random.getrandbits(32 * lanes) for _ in range(4)]
    golden = [lanes_of(word, lanes) for word in memory]

    slots: list[dict] = []
    for _ in range(600):
        dst, source = random.randrange(4), random.randrange(4)
        if random.random() < 0.5:
            sums = [random.randrange(-(1 << width - 1), 1 << width - 1) for _ in range(lanes)]
            kind = random.choice(("gemm", "gemm", "max"))
            slots.append({"kind": kind, "read": dst, "keep": random.getrandbits(1), "sums": sums})
            continue
        op, imm = random.choice(list(AluOp)), random.random() < 0.5
        use_imm = imm or op is AluOp.CLIP
        if not use_imm:
            slots.append({"kind": "source", "read": source})
        common = {"kind": "alu", "read": dst, "op": op, "use_imm": use_imm, "imm": random.getrandbits(32)}
        common |= {"rounding": random.choice(list(Rounding)), "source": source}
        slots += [common | {"group": g} for g in range(groups if op is AluOp.MUL else 1)]

    def expected(slot: dict) -> np.ndarray:
        old = golden[slot["read"]]
        if slot["kind"] == "gemm":
            return arith.wrap32((old if slot["keep"] else 0) + np.array(slot["sums"], np.int64))
        if slot["kind"] == "max":
            sums = np.array(slot["sums"], np.int64)
            return np.maximum(old, sums) if slot["keep"] else sums
        b = np.full(lanes, signed(slot["imm"], 32), np.int64) if slot["use_imm"] else golden[slot["source"]]
        return arith.wrap32(arith.alu(slot["op"], old, b, slot["rounding"]))

    current: dict | None = None
    fetched, writes = 0, 0
    while slots or current:
        upcoming = slots.pop(0) if slots and random.random() < 0.9 else None
        dut.read_i.value = upcoming is not None
        dut.raddr_i.value = upcoming["read"] if upcoming else 0
        write = False
        dut.source_i.value = dut.is_alu_i.value = dut.is_mul_i.value = dut.is_max_i.value = dut.write_i.value = 0
        if current:
            kind, op = current["kind"], current.get("op")
            write = kind in ("gemm", "max") or (
                kind == "alu" and (op is not AluOp.MUL or current["group"] == groups - 1)
            )
            dut.acc_i.value, dut.source_i.value = fetched, kind == "source"
            dut.is_alu_i.value, dut.is_mul_i.value = kind != "gemm", op is AluOp.MUL
            dut.keep_i.value = current.get("keep", 0)
            dut.is_max_i.value = kind == "max"
            rounding = current.get("rounding", 0)
            dut.op_i.value, dut.rounding_i.value = AluOp.MAX if kind == "max" else current.get("op", 0), rounding
            dut.group_i.value, dut.use_imm_i.value = current.get("group", 0), current.get("use_imm", 0)
            dut.imm_i.value = current.get("imm", 0)
            mask = (1 << width) - 1
            dut.sums_i.value = sum((v & mask) << (width * i) for i, v in enumerate(current.get("sums", [])))
            dut.write_i.value, dut.waddr_i.value = write, current["read"]
        await settle()
        old_word = memory[upcoming["read"]] if upcoming else fetched
        if write:
            assert current is not None
            result = expected(current)
            assert (lanes_of(get(dut.wdata_o), lanes) == result).all(), current
            golden[current["read"]] = result
            memory[current["read"]] = get(dut.wdata_o)
            writes += 1
        await step(dut)
        current, fetched = upcoming, old_word
    assert writes > 400
