"""vta_compute with scratchpads around it: random GEMM and ALU instructions leave what the semantics say."""

from __future__ import annotations

import cocotb
import numpy as np

from accel.isa.semantics import SEMANTICS
from accel.isa.spec import Op, encode
from accel.sim.bench.common import Dut, get, rng, settle, start, step
from accel.sim.bench.unit import config_of, random_compute, random_state, random_uops

UOPS, LIMIT = 24, 20


@cocotb.test()
async def executes_like_the_semantics(dut: Dut) -> None:
    random, config = rng(), config_of(dut)
    state = random_state(config, random)
    random_uops(state, random, UOPS, LIMIT)
    acc = state.acc.copy()
    zero = ("head_valid_i", "insn_i", "index_i", "start_i", "uop_i", "inp_i", "wgt_i", "acc_i", "stop_i")
    await start(dut, **dict.fromkeys(zero, 0))
    program = [random_compute(random, UOPS, LIMIT) for _ in range(120)]
    waiting, running = list(enumerate(program)), []
    gemm_uops = alu_uops = cycles = 0
    while waiting or running:
        head = bool(waiting) and random.random() < 0.9
        dut.head_valid_i.value = head
        if head:
            index, (op, values) = waiting[0]
            dut.insn_i.value, dut.index_i.value = encode(op, values), index
        await settle()
        go = bool(get(dut.want_o)) and random.random() < 0.9
        dut.start_i.value = go
        await settle()
        assert not get(dut.fault_o)
        gemm_uops, alu_uops = gemm_uops + get(dut.gemm_uop_o), alu_uops + get(dut.alu_uop_o)
        reads = {name: get(getattr(dut, name)) for name in ("uop_raddr_o", "inp_raddr_o", "wgt_raddr_o", "acc_raddr_o")}
        enables = [get(dut.uop_re_o), get(dut.operand_re_o), get(dut.acc_re_o)]
        old = acc[reads["acc_raddr_o"]].tobytes() if enables[2] else b""
        if get(dut.acc_we_o):
            data = get(dut.acc_wdata_o).to_bytes(4 * config.block_out, "little")
            acc[get(dut.acc_waddr_o)] = np.frombuffer(data, np.int32)
        if get(dut.give_o):
            index, (op, values) = running.pop(0)
            assert (get(dut.done_index_o), get(dut.set_o)) == (index, values["set"])
            SEMANTICS[op](state, {**dict.fromkeys(("rounding", "overwrite"), 0), **values}, index)
            if not running:
                assert (acc == state.acc).all(), f"after {op.name} {values}"
        if go:
            running.append(waiting.pop(0))
        await step(dut)
        cycles += 1
        if enables[0]:
            dut.uop_i.value = int(state.uop[reads["uop_raddr_o"]])
        if enables[1]:
            dut.inp_i.value = int.from_bytes(state.inp[reads["inp_raddr_o"]].tobytes(), "little")
            dut.wgt_i.value = int.from_bytes(state.wgt[reads["wgt_raddr_o"]].tobytes(), "little")
        if enables[2]:
            dut.acc_i.value = int.from_bytes(old, "little")
    assert (acc == state.acc).all()
    trips = [(op, v["iter_out"] * v["iter_in"] * (v["uop_end"] - v["uop_begin"])) for op, v in program]
    assert gemm_uops == sum(n for op, n in trips if op is Op.GEMM)
    assert alu_uops == sum(n for op, n in trips if op is Op.ALU)


@cocotb.test()
async def faults_on_indices_outside(dut: Dut) -> None:
    random, config = rng(), config_of(dut)
    depths = {"acc_base": config.acc_depth, "inp_base": config.inp_depth, "wgt_base": config.wgt_depth}
    for key, depth in depths.items():
        for outside in (0, 1):
            values = {"iter_out": 1, "iter_in": 1, "uop_end": 1, key: depth - 1 + outside}
            zero = ("uop_i", "inp_i", "wgt_i", "acc_i", "stop_i")
            await start(dut, **dict.fromkeys(zero, 0), head_valid_i=1, start_i=1, index_i=random.randrange(99),
                        insn_i=encode(Op.GEMM, values))  # fmt: skip
            await step(dut)
            dut.start_i.value = dut.head_valid_i.value = 0
            faults = 0
            for _ in range(12):
                await settle()
                faults += get(dut.fault_o)
                assert not (outside and get(dut.acc_we_o))
                await step(dut)
            assert bool(faults) == bool(outside), f"{key} {values[key]}"
