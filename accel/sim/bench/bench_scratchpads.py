"""Tests vta_scratchpads against byte strings: every port reaches its own memory, and no other one."""

from __future__ import annotations

from random import Random

import cocotb
import numpy as np

from relay_hw.accel.isa.records import decode_tables
from relay_hw.accel.isa.spec import Mem
from relay_hw.accel.sim.bench.common import Dut, get, parameter, rng, settle, start, step
from relay_hw.accel.sim.bench.instructions import Sizes, sizes_of

INPUTS = (
    "load_we",
    "load_be",
    "load_expand",
    "load_waddr",
    "load_wdata",
    "load_factor",
    "uop_re",
    "uop_raddr",
    "inp_re",
    "wgt_re",
    "inp_window",
    "inp_we",
    "inp_raddr",
    "wgt_raddr",
    "c_re",
    "c_raddr",
    "c_we",
    "c_waddr",
    "c_wdata",
    "o_re",
    "o_raddr",
    "o_rgroup",
    "prm_re",
    "prm_raddr",
    "tab_re",
    "tab_number",
    "tab_value",
    "o_waddr",
    "o_wdata",
    "out_we",
    "o_acc_we",
    "o_acc_waddr",
    "r_re",
    "r_raddr",
    "r_we",
    "r_waddr",
    "r_wdata",
    "cof_s_re",
    "cof_s_raddr",
    "cof_r_re",
    "cof_r_raddr",
    "out_re",
    "out_raddr",
)
LOADED = (Mem.UOP, Mem.INP, Mem.WGT, Mem.ACC, Mem.PRM, Mem.TAB, Mem.COF)


async def fill(dut: Dut, mem: Mem, data: bytes, bus: int) -> None:
    """Write the whole of a scratchpad in beats."""
    for beat in range(len(data) // bus):
        dut.load_we_i.value, dut.load_waddr_i.value = 1 << mem, beat
        dut.load_be_i.value = (1 << bus) - 1
        dut.load_wdata_i.value = int.from_bytes(data[beat * bus : (beat + 1) * bus], "little")
        await step(dut)
    dut.load_we_i.value = 0


def element(data: bytes | bytearray, size: int, index: int) -> int:
    return int.from_bytes(data[index * size : (index + 1) * size], "little")


def entry_of(data: bytearray, sizes: Sizes, index: int) -> bytes:
    """The bytes of an accumulator entry."""
    size = sizes.elements[Mem.ACC]
    return bytes(data[index * size : (index + 1) * size])


def look_up(dut: Dut, random: Random, data: bytes, sizes: Sizes) -> tuple[int, int]:
    """Let each lane of the row unit look two records up; what it gets: a gain, and bias and gain."""
    lanes, depth = sizes.elements[Mem.OUT] // 4, sizes.depths[Mem.COF]
    dut.cof_s_re_i.value = dut.cof_r_re_i.value = 1
    words = [0, 0]
    for n, port in enumerate((dut.cof_s_raddr_i, dut.cof_r_raddr_i)):
        entries = [random.randrange(max(depth, 1)) for _ in range(lanes)]
        port.value = sum(entry << 16 * lane for lane, entry in enumerate(entries))
        for lane, entry in enumerate(entries):
            record = element(data, 8, entry * lanes + lane)
            kept = record & 0xFFFF if n == 0 else record & 0xFFFF | record >> 32 << 16
            words[n] |= kept << (16, 48)[n] * lane
    return words[0], words[1]


@cocotb.test()
async def every_port_reaches_its_memory(dut: Dut) -> None:
    random, sizes = rng(), sizes_of(dut)
    bus, lanes = sizes.bus, parameter(dut, "OUT_LANES")
    await start(dut, **{f"{name}_i": 0 for name in INPUTS})
    groups = parameter(dut, "BLOCK_OUT") // lanes
    model = {mem: bytearray(random.randbytes(sizes.depths[mem] * sizes.elements[mem])) for mem in Mem}
    tables = decode_tables(np.frombuffer(bytes(model[Mem.TAB]), np.uint8))
    for mem in LOADED:
        await fill(dut, mem, bytes(model[mem]), bus)
    await step(dut)
    for index in range(sizes.depths[Mem.OUT]):
        dut.out_we_i.value, dut.o_waddr_i.value = 1, index
        dut.o_wdata_i.value = element(model[Mem.OUT], sizes.elements[Mem.OUT], index)
        await step(dut)
    dut.out_we_i.value = 0
    users = 3 if sizes.depths[Mem.COF] else 2
    read: tuple[int, int] | None = None  # who read the accumulator at the edge before, 1 OUTPUT, 2 ROW, and what
    # Who writes ACC in this cycle, as was said in the one before: 1 COMPUTE, 2 OUTPUT, 3 ROW.
    writer = where = 0
    for _ in range(300):
        at = {mem: random.randrange(max(sizes.depths[mem], 1)) for mem in Mem}
        number, values = random.randrange(len(tables)), np.frombuffer(random.randbytes(lanes), np.int8)
        dut.tab_re_i.value, dut.tab_number_i.value = 1, number
        dut.tab_value_i.value = int.from_bytes(values.tobytes(), "little")
        at[Mem.OUT] = random.randrange(len(model[Mem.OUT]) // bus)
        prm_group, acc_group = random.randrange(groups), random.randrange(groups)
        dut.uop_re_i.value = dut.inp_re_i.value = dut.wgt_re_i.value = dut.prm_re_i.value = dut.out_re_i.value = 1
        dut.uop_raddr_i.value, dut.inp_raddr_i.value = at[Mem.UOP], at[Mem.INP]
        dut.wgt_raddr_i.value, dut.out_raddr_i.value = at[Mem.WGT], at[Mem.OUT]
        dut.prm_raddr_i.value = at[Mem.PRM] * groups + prm_group
        reader = random.randrange(users)
        dut.c_re_i.value, dut.o_re_i.value, dut.r_re_i.value = reader == 0, reader == 1, reader == 2
        dut.o_rgroup_i.value = acc_group
        dut.c_raddr_i.value = dut.o_raddr_i.value = dut.r_raddr_i.value = at[Mem.ACC]
        next_writer, next_where = random.randrange(users + 1), random.randrange(sizes.depths[Mem.ACC])
        dut.c_we_i.value, dut.o_acc_we_i.value, dut.r_we_i.value = (next_writer == user for user in (1, 2, 3))
        dut.c_waddr_i.value = dut.o_acc_waddr_i.value = dut.r_waddr_i.value = next_where
        sums, records = look_up(dut, random, bytes(model[Mem.COF]), sizes)
        word = random.randbytes(sizes.elements[Mem.ACC])
        dut.c_wdata_i.value = int.from_bytes(word, "little")
        # OUTPUT writes ACC, OUT or INP at one address.
        config_out = sizes.elements[Mem.OUT]
        into_inp = writer != 2 and random.random() < 0.3
        step_out = max(config_out, sizes.elements[Mem.INP])
        block = random.randrange(len(model[Mem.INP]) // step_out) * step_out // config_out
        vector = random.randbytes(config_out)
        if into_inp:
            dut.o_waddr_i.value = block * config_out // sizes.elements[Mem.INP]
        dut.o_wdata_i.value = int.from_bytes(vector, "little")
        row_vector = random.randbytes(config_out)
        dut.r_wdata_i.value = int.from_bytes(row_vector, "little")
        if writer >= 2:
            word = np.frombuffer(vector if writer == 2 else row_vector, np.int8).astype("<i4").tobytes()
        dut.inp_we_i.value = into_inp
        await step(dut)
        assert not get(dut.clash_read_o) and not get(dut.clash_write_o)
        for mem, port in ((Mem.UOP, dut.uop_o), (Mem.INP, dut.inp_o), (Mem.WGT, dut.wgt_o)):
            assert get(port) == element(model[mem], sizes.elements[mem], at[mem]), mem.name
        assert get(dut.out_rdata_o) == element(model[Mem.OUT], bus, at[Mem.OUT])
        assert get(dut.prm_o) == element(model[Mem.PRM], lanes * 16, at[Mem.PRM] * groups + prm_group)
        results = tables[number][values.astype(np.int64) + 128]
        assert get(dut.tab_o) == int.from_bytes(results.tobytes(), "little")
        assert (get(dut.cof_s_o), get(dut.cof_r_o)) == (sums, records)
        if not reader:
            assert get(dut.c_rdata_o) == element(model[Mem.ACC], sizes.elements[Mem.ACC], at[Mem.ACC])
        if read is not None:
            assert get(dut.o_rdata_o if read[0] == 1 else dut.r_rdata_o) == read[1]
        lanes_read = {1: element(model[Mem.ACC], lanes * 4, at[Mem.ACC] * groups + acc_group)}
        lanes_read[2] = int.from_bytes(entry_of(model[Mem.ACC], sizes, at[Mem.ACC])[::4], "little")
        read = (reader, lanes_read[reader]) if reader else None
        if into_inp:
            begin = block * config_out
            model[Mem.INP][begin : begin + config_out] = vector
        if writer:
            model[Mem.ACC][where * len(word) : (where + 1) * len(word)] = word
        writer, where = next_writer, next_where


@cocotb.test()
async def beats_wait_an_edge(dut: Dut) -> None:
    """What LOAD writes at an edge is read at the second edge behind it, weights at the third; where it meets another
    user is told then."""
    sizes = sizes_of(dut)
    await start(dut, **{f"{name}_i": 0 for name in INPUTS})
    beats = [bytes([value]) * sizes.bus for value in (1, 2)]
    for mem, port, waits in ((Mem.UOP, dut.uop_o, 1), (Mem.WGT, dut.wgt_o, 2)):
        size = min(sizes.elements[mem], sizes.bus)
        for beat in beats:
            await fill(dut, mem, beat, sizes.bus)
            await step(dut)
            await step(dut)
        await fill(dut, mem, beats[0], sizes.bus)
        dut.uop_re_i.value = dut.wgt_re_i.value = 1
        for beat in (*[beats[1]] * waits, beats[0]):
            await step(dut)
            assert get(port) & ((1 << 8 * size) - 1) == element(beat, size, 0)
    dut.c_we_i.value = 1
    await fill(dut, Mem.ACC, beats[0], sizes.bus)
    dut.c_we_i.value = 0
    await settle()
    assert get(dut.clash_write_o) == 0b101
    await step(dut)
    assert get(dut.clash_write_o) == 0


@cocotb.test()
async def users_of_one_bank_are_named(dut: Dut) -> None:
    sizes, banks = sizes_of(dut), parameter(dut, "ACC_BANKS")
    await start(dut, **{f"{name}_i": 0 for name in INPUTS})
    bank = sizes.depths[Mem.ACC] // banks
    for entry, same in ((1, True), (bank, banks == 1)):
        dut.c_re_i.value = dut.o_re_i.value = dut.c_we_i.value = dut.o_acc_we_i.value = 1
        dut.r_re_i.value = dut.r_we_i.value = 0
        dut.c_raddr_i.value = dut.c_waddr_i.value = 0
        dut.o_raddr_i.value = dut.o_acc_waddr_i.value = entry
        await step(dut)
        assert get(dut.clash_read_o) == (3 if same else 0)
        assert get(dut.clash_write_o) == (3 if same else 0)
        dut.o_re_i.value = dut.o_acc_we_i.value = 0
        dut.r_re_i.value = dut.r_we_i.value = 1
        dut.r_raddr_i.value = dut.r_waddr_i.value = entry
        await step(dut)
        row = same and sizes.depths[Mem.COF]
        assert get(dut.clash_read_o) == (0b101 if row else 0)
        assert get(dut.clash_write_o) == (0b1001 if row else 0)
