"""Tests vta_compute with scratchpads around it: random GEMM and ALU instructions leave what the semantics say."""

from __future__ import annotations

import cocotb
import numpy as np

from relay_hw.accel.isa.semantics import SEMANTICS
from relay_hw.accel.isa.spec import GemmMode, Op, encode
from relay_hw.accel.isa.state import AccelState
from relay_hw.accel.isa.stream import complete
from relay_hw.accel.sim.bench.bench_once import once_of
from relay_hw.accel.sim.bench.common import Dut, get, quiet_behind_a_reset, rng, settle, start, step
from relay_hw.accel.sim.bench.unit import config_of, random_compute, random_state, random_uops

UOPS, LIMIT = 24, 20


def taps(state: AccelState, part: int) -> bytes:
    """What the four memories of INP deliver: the output blocks of a window, line l from memory l % 4."""
    config = state.config
    data, line = state.inp.tobytes(), part // config.line_parts
    blocks = [b""] * 4
    for tap in range(4):
        begin = (part + tap * config.line_parts) * config.part_bytes
        # Behind the last line comes the first, which no legal micro-op uses.
        begin %= len(data)
        blocks[(line + tap) % 4] = data[begin : begin + config.out_bytes]
    return b"".join(blocks)


@cocotb.test()
async def executes_like_the_semantics(dut: Dut) -> None:
    random, config = rng(), config_of(dut)
    state = random_state(config, random)
    random_uops(state, random, UOPS, LIMIT)
    acc = state.acc.copy()
    zero = (
        "head_valid_i",
        "insn_i",
        "once_i",
        "index_i",
        "start_i",
        "uop_i",
        "inp_i",
        "taps_i",
        "wgt_i",
        "acc_i",
        "stop_i",
    )
    await start(dut, **dict.fromkeys(zero, 0))
    program = [random_compute(random, UOPS, LIMIT, config.block_parts, config.wgt_bits == 4) for _ in range(160)]
    waiting, running = list(enumerate(program)), []
    gemm_uops = alu_uops = cycles = 0
    into_acc: int | None = None  # the entry that COMPUTE said in the cycle before
    while waiting or running:
        head = bool(waiting) and random.random() < 0.9
        dut.head_valid_i.value = head
        if head:
            index, (op, values) = waiting[0]
            dut.insn_i.value, dut.index_i.value = encode(op, values), index
            dut.once_i.value = once_of(op, values)
        await settle()
        go = bool(get(dut.want_o)) and random.random() < 0.9
        dut.start_i.value = go
        await settle()
        assert not get(dut.fault_o)
        gemm_uops, alu_uops = gemm_uops + get(dut.gemm_uop_o), alu_uops + get(dut.alu_uop_o)
        reads = {name: get(getattr(dut, name)) for name in ("uop_raddr_o", "inp_raddr_o", "wgt_raddr_o", "acc_raddr_o")}
        enables = [get(dut.uop_re_o), get(dut.inp_re_o), get(dut.acc_re_o)]
        wgt_read = get(dut.wgt_re_o)
        window = get(dut.inp_window_o)
        old = acc[reads["acc_raddr_o"]].tobytes() if enables[2] else b""
        if into_acc is not None:
            data = get(dut.acc_wdata_o).to_bytes(4 * config.block_out, "little")
            acc[into_acc] = np.frombuffer(data, np.int32)
        into_acc = get(dut.acc_waddr_o) if get(dut.acc_we_o) else None
        if get(dut.give_o):
            index, (op, values) = running.pop(0)
            assert (get(dut.done_index_o), get(dut.set_o)) == (index, values["set"])
            SEMANTICS[op](state, complete(op, values), index)
            if not running:
                assert (acc == state.acc).all(), f"after {op.name} {values}"
        if go:
            running.append(waiting.pop(0))
        await step(dut)
        cycles += 1
        if enables[0]:
            dut.uop_i.value = int(state.uop[reads["uop_raddr_o"]])
        if enables[1] and window:
            dut.taps_i.value = int.from_bytes(taps(state, reads["inp_raddr_o"]), "little")
            dut.inp_i.value = random.getrandbits(8 * config.block_in)
        elif enables[1]:
            # Behind the last entry comes the first, which no legal micro-op uses.
            entries = [(reads["inp_raddr_o"] + n) % config.inp_depth for n in range(config.operand_entries)]
            dut.inp_i.value = int.from_bytes(state.inp[entries].tobytes(), "little")
        # A maximum has a mask instead of the index.
        if wgt_read and reads["wgt_raddr_o"] < config.wgt_depth:
            dut.wgt_i.value = int.from_bytes(state.wgt[reads["wgt_raddr_o"]].tobytes(), "little")
        if enables[2]:
            dut.acc_i.value = int.from_bytes(old, "little")
    assert (acc == state.acc).all()
    trips = [(op, v["iter_out"] * v["iter_in"] * (v["uop_end"] - v["uop_begin"])) for op, v in program]
    assert gemm_uops == sum(n for op, n in trips if op is Op.GEMM)
    assert alu_uops == sum(n for op, n in trips if op is Op.ALU)


@cocotb.test()
async def faults_on_indices_outside(dut: Dut) -> None:
    config = config_of(dut)
    part, last = config.block_parts, config.inp_parts - 3 * config.line_parts
    cases = [("acc_base", GemmMode.MATMUL, config.acc_depth - 1, 0), ("acc_base", GemmMode.MATMUL, config.acc_depth, 1)]
    two = config.operand_entries
    cases += [("inp_base", GemmMode.MATMUL, config.inp_depth - two, 0), ("inp_base", GemmMode.TAPS, last, 1)]
    cases += [("inp_base", GemmMode.MATMUL, config.inp_depth - two + 1, 1), ("inp_base", GemmMode.TAPS, last - part, 0)]
    cases += [("inp_base", GemmMode.ENTRY, config.inp_depth - 1, 0), ("inp_base", GemmMode.ENTRY, config.inp_depth, 1)]
    cases += [("inp_base", GemmMode.TAPS, part // 2, part > 1), ("inp_base", GemmMode.MAX, last, 0)]
    cases += [("inp_base", GemmMode.MAX, last + config.line_parts, 1)]
    groups = config.tap_groups * config.wgt_depth
    cases += [
        ("wgt_base", GemmMode.MATMUL, config.wgt_depth - 2, 0),
        ("wgt_base", GemmMode.MATMUL, config.wgt_depth, 1),
    ]
    cases += [("wgt_base", GemmMode.TAPS, groups - 6, 0), ("wgt_base", GemmMode.TAPS, groups, 1)]
    for key, mode, value, outside in cases:
        # The micro-op's weight is the mask of taps 0 and 2.
        assert await faults(dut, {"mode": mode, key: value}, 5 if key != "wgt_base" else 1) == bool(outside), (
            f"{mode.name} {key} {value}"
        )
    for mask, outside in ((0, 1), (1, 0), (15, 0), (16, 1), (0x8001, 1)):
        assert await faults(dut, {"mode": GemmMode.MAX}, mask) == bool(outside), f"mask {mask}"


async def faults(dut: Dut, values: dict[str, int], wgt: int) -> bool:
    """Whether one micro-op with this weight index faults; if so, nothing is written."""
    zero = ("inp_i", "taps_i", "wgt_i", "acc_i", "stop_i")
    once = {"iter_out": 1, "iter_in": 1, "uop_end": 1}
    told = {"insn_i": encode(Op.GEMM, once | values), "once_i": once_of(Op.GEMM, once), "index_i": 7}
    await start(dut, **dict.fromkeys(zero, 0), uop_i=wgt << 32, head_valid_i=1, start_i=1, **told)
    await step(dut)
    dut.start_i.value = dut.head_valid_i.value = 0
    found = written = 0
    for _ in range(12):
        await settle()
        found, written = found + get(dut.fault_o), written + get(dut.acc_we_o)
        await step(dut)
    assert bool(written) != bool(found)
    return bool(found)


@cocotb.test()
async def writes_nothing_behind_a_reset(dut: Dut) -> None:
    values = {"iter_out": 1, "iter_in": 4, "uop_end": 1}
    begin = dict.fromkeys(("uop_i", "inp_i", "taps_i", "wgt_i", "acc_i", "stop_i", "index_i"), 0)
    begin |= {"head_valid_i": 1, "start_i": 1, "insn_i": encode(Op.GEMM, values), "once_i": once_of(Op.GEMM, values)}
    await quiet_behind_a_reset(dut, begin, "start_i", ("acc_we_o", "acc_re_o", "give_o"))
