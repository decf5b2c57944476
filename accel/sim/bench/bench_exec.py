"""Tests vta_exec: random COMPUTE and OUTPUT instructions, also through INP, leave in OUT what the semantics say."""

from __future__ import annotations

import cocotb

from relay_hw.accel.isa.records import encode_uops
from relay_hw.accel.isa.semantics import SEMANTICS
from relay_hw.accel.isa.spec import Form, GemmMode, Mem, Op, encode
from relay_hw.accel.isa.state import AccelState
from relay_hw.accel.isa.stream import complete
from relay_hw.accel.sim.bench.bench_once import once_of
from relay_hw.accel.sim.bench.common import Dut, get, rng, settle, start, step
from relay_hw.accel.sim.bench.unit import (
    config_of,
    random_compute,
    random_prm,
    random_requant,
    random_row,
    random_state,
    random_uops,
)

UOPS, LIMIT = 24, 20
INPUTS = (
    "stop_i",
    "head_i",
    "compute_insn_i",
    "compute_once_i",
    "compute_index_i",
    "output_insn_i",
    "output_once_i",
    "output_index_i",
    "row_insn_i",
    "row_index_i",
    "start_i",
)
INPUTS += (
    "load_we_i",
    "load_be_i",
    "load_expand_i",
    "load_waddr_i",
    "load_wdata_i",
    "load_factor_i",
    "out_re_i",
    "out_raddr_i",
)
LOADED = (Mem.UOP, Mem.INP, Mem.WGT, Mem.ACC, Mem.PRM, Mem.COF)
UNITS = {Op.REQUANT: 1, Op.ROW: 2}


async def fill(dut: Dut, state: AccelState) -> None:
    bus = state.config.bus_bytes
    dut.load_be_i.value = (1 << bus) - 1
    for mem in LOADED:
        data = state.scratch[mem].tobytes()
        for beat in range(len(data) // bus):
            dut.load_we_i.value, dut.load_waddr_i.value = 1 << mem, beat
            dut.load_wdata_i.value = int.from_bytes(data[beat * bus : (beat + 1) * bus], "little")
            await step(dut)
    dut.load_we_i.value = 0


async def execute(dut: Dut, state: AccelState, op: Op, values: dict[str, int], index: int) -> None:
    """One instruction alone, to its tokens; the semantics do the same."""
    unit = UNITS.get(op, 0)
    name = ("compute", "output", "row")[unit]
    getattr(dut, f"{name}_insn_i").value, getattr(dut, f"{name}_index_i").value = encode(op, values), index
    dut.head_i.value = 1 << unit
    if unit == 1:
        dut.output_once_i.value = once_of(op, values) >> 2
    elif unit == 0:
        dut.compute_once_i.value = once_of(op, values)
    await settle()
    assert get(dut.want_o) == 1 << unit
    dut.start_i.value = 1 << unit
    await step(dut)
    dut.start_i.value = dut.head_i.value = 0
    for _ in range(3000):
        await settle()
        assert not get(dut.fault_o) and not get(dut.clash_read_o) and not get(dut.clash_write_o)
        if get(dut.give_o):
            assert get(dut.give_o) == 1 << unit
            assert get(dut.done_index_o) >> (32 * unit) & 0xFFFFFFFF == index
            assert get(dut.set_o) >> (16 * unit) & 0xFFFF == values["set"]
            await step(dut)
            SEMANTICS[op](state, complete(op, values), index)
            return
        await step(dut)
    raise AssertionError("no tokens")


async def check_out(dut: Dut, state: AccelState, entries: int, what: str) -> None:
    bus = state.config.bus_bytes
    want = state.out[:entries].tobytes()
    for beat in range(len(want) // bus):
        dut.out_re_i.value, dut.out_raddr_i.value = 1, beat
        await step(dut)
        assert get(dut.out_rdata_o) == int.from_bytes(want[beat * bus : (beat + 1) * bus], "little"), f"{what} {beat}"
    dut.out_re_i.value = 0


@cocotb.test()
async def leaves_what_the_semantics_say(dut: Dut) -> None:
    random, config = rng(), config_of(dut)
    state = random_state(config, random)
    random_uops(state, random, UOPS, LIMIT)
    state.scratch[Mem.UOP][-8:] = encode_uops([0], [0], [1], [1])
    random_prm(state, random)
    await start(dut, **dict.fromkeys(INPUTS, 0))
    await fill(dut, state)
    part = config.block_parts
    for index in range(60):
        if config.cof_depth and random.random() < 0.2:
            await execute(dut, state, Op.ROW, random_row(random, config), index)
        elif random.random() < 0.5:
            await execute(dut, state, *random_compute(random, UOPS, LIMIT, part), index)
        else:
            await execute(dut, state, Op.REQUANT, random_requant(random, part), index)
    show = {"form": Form.PASS, "clip_lo": -128, "clip_hi": 127, "iter_out": 1, "set": 3, "acc_in": 1, "dst_in": 1}
    await execute(dut, state, Op.REQUANT, show | {"iter_in": 64}, 99)
    await check_out(dut, state, 64, "acc")
    move = {"mode": GemmMode.MAX, "overwrite": 1, "uop_begin": config.uop_depth - 1, "uop_end": config.uop_depth}
    for begin in range(0, config.inp_parts, 64 * part):
        count = min(64, (config.inp_parts - begin) // part)
        values = move | {"iter_out": 1, "iter_in": count, "acc_in": 1, "inp_in": part, "inp_base": begin, "set": 9}
        await execute(dut, state, Op.GEMM, values, 5)
        await execute(dut, state, Op.REQUANT, show | {"iter_in": count}, 6)
        await check_out(dut, state, count, f"inp from {begin}")
