"""Tests vta_output with scratchpads around it: random REQUANT instructions leave what the semantics say."""

from __future__ import annotations

import cocotb
import numpy as np

from relay_hw.accel.isa.semantics import SEMANTICS
from relay_hw.accel.isa.spec import Dst, Form, Op, encode
from relay_hw.accel.sim.bench.bench_once import once_of
from relay_hw.accel.sim.bench.common import Dut, get, quiet_behind_a_reset, rng, settle, start, step
from relay_hw.accel.sim.bench.unit import config_of, random_prm, random_requant, random_state

INPUTS = ("head_valid_i", "insn_i", "once_i", "index_i", "start_i", "acc_i", "prm_i", "tab_i", "stop_i")


@cocotb.test()
async def executes_like_the_semantics(dut: Dut) -> None:
    random, config = rng(), config_of(dut)
    state = random_state(config, random)
    random_prm(state, random)
    acc, out, inp = state.acc.copy(), state.out.copy(), state.inp.reshape(-1).copy()
    soon: list[int] = []
    read, into_acc = b"", None
    await start(dut, **dict.fromkeys(INPUTS, 0))
    waiting = list(enumerate(random_requant(random, config.block_parts, config.tables) for _ in range(150)))
    running: list[tuple[int, dict[str, int]]] = []
    vectors = expected_vectors = 0
    while waiting or running:
        # One instruction at a time: those that follow one another on the same entries are kept apart by tokens.
        head = bool(waiting) and not running and random.random() < 0.9
        dut.head_valid_i.value = head
        if head:
            index, values = waiting[0]
            dut.insn_i.value, dut.index_i.value = encode(Op.REQUANT, values), index
            dut.once_i.value = once_of(Op.REQUANT, values) >> 2
        await settle()
        go = bool(get(dut.want_o))
        dut.start_i.value = go
        await settle()
        assert not get(dut.fault_o)
        vectors += get(dut.vector_o)
        lanes = b""
        if get(dut.acc_re_o):
            group = get(dut.acc_rgroup_o) * config.out_lanes
            lanes = acc[get(dut.acc_raddr_o), group : group + config.out_lanes].tobytes()
        records = b""
        if get(dut.prm_re_o):
            at = get(dut.prm_raddr_o) * config.out_lanes
            records = state.prm.reshape(-1, 4)[at : at + config.out_lanes].tobytes()
        looked_up = b""
        if get(dut.tab_re_o):
            values = np.frombuffer(get(dut.tab_value_o).to_bytes(config.out_lanes, "little"), np.int8)
            looked_up = state.tab[get(dut.tab_number_o)][values.astype(np.int64) + 128].tobytes()
        where = get(dut.waddr_o)
        if get(dut.out_we_o):
            out[where] = np.frombuffer(get(dut.wdata_o).to_bytes(config.block_out, "little"), np.int8)
        # A vector counts in the cycle in which it is written; the accumulator is told a cycle ahead.
        assert get(dut.vector_o) == (get(dut.out_we_o) or get(dut.inp_we_o) or into_acc is not None)
        if into_acc is not None:
            acc[into_acc] = np.frombuffer(get(dut.wdata_o).to_bytes(config.block_out, "little"), np.int8)
        into_acc = get(dut.acc_waddr_o) if get(dut.acc_we_o) else None
        if get(dut.inp_we_o):
            begin = where * config.part_bytes
            data = get(dut.wdata_o).to_bytes(config.block_out, "little")
            inp[begin : begin + config.block_out] = np.frombuffer(data, np.int8)
        # A write into INP is announced two and three cycles ahead.
        soon.append(get(dut.inp_soon_o))
        if len(soon) > 3:
            assert soon[-3] & 1 == soon[-4] >> 1 == get(dut.inp_we_o)
        if get(dut.give_o):
            index, values = running.pop(0)
            assert (get(dut.done_index_o), get(dut.set_o)) == (index, values["set"])
            SEMANTICS[Op.REQUANT](state, values, index)
            expected_vectors += values["iter_out"] * values["iter_in"]
            assert (inp == state.inp.reshape(-1)).all(), f"after {values}"
            assert (acc == state.acc).all() and (out == state.out).all(), f"after {values}"
        if go:
            running.append(waiting.pop(0))
        await step(dut)
        # Entries come an edge later than parameters.
        if read:
            dut.acc_i.value = int.from_bytes(read, "little")
        read = lanes
        if looked_up:
            dut.tab_i.value = int.from_bytes(looked_up, "little")
        if records:
            dut.prm_i.value = int.from_bytes(records, "little")
    assert vectors == expected_vectors
    assert get(dut.idle_o)


@cocotb.test()
async def writes_nothing_behind_a_reset(dut: Dut) -> None:
    part = config_of(dut).block_parts
    for dst, write in ((Dst.INP, "inp_we_o"), (Dst.OUT, "out_we_o"), (Dst.ACC, "acc_we_o")):
        values = {"form": Form.PASS, "dst": dst, "iter_out": 1, "iter_in": 4, "acc_base": 8, "acc_in": 1}
        values |= {"dst_in": part if dst == Dst.INP else 1, "clip_hi": 9}
        begin = {"head_valid_i": 1, "start_i": 1, "acc_i": 0, "prm_i": 0, "stop_i": 0, "index_i": 0}
        begin |= {"insn_i": encode(Op.REQUANT, values), "once_i": once_of(Op.REQUANT, values) >> 2}
        await quiet_behind_a_reset(dut, begin, "start_i", (write, "acc_re_o", "vector_o"))
