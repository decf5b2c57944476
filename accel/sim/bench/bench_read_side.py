"""Tests vta_read_side: LOAD and fetch share the bus, each gets its own beats, scratchpads what the semantics say."""

from __future__ import annotations

from collections import deque

import cocotb
import numpy as np

from relay_hw.accel.isa.semantics import SEMANTICS
from relay_hw.accel.isa.spec import Mem, Op
from relay_hw.accel.isa.stream import complete
from relay_hw.accel.sim.bench.bench_load import WINDOW, drive_head, sizes
from relay_hw.accel.sim.bench.common import Dut, get, rng, settle, start, step
from relay_hw.accel.sim.bench.instructions import legal_transfer
from relay_hw.accel.sim.bench.unit import config_of, random_state

BASE = 0x00300000
ZERO = ("fetch_valid_i", "fetch_offset_i", "fetch_beats_i", "head_valid_i", "insn_i", "index_i", "one_i", "length_i",
        "first_beat_i", "start_i", "inp_soon_i", "stop_i", "m_axi_arready", "m_axi_rdata", "m_axi_rerror",
        "m_axi_rlast", "m_axi_rvalid")  # fmt: skip


@cocotb.test()
async def both_get_their_beats(dut: Dut) -> None:
    random, config = rng(), config_of(dut)
    shape, state, bus = sizes(config), random_state(config, random, WINDOW), config.bus_bytes
    copies = {mem: memory.copy() for mem, memory in state.scratch.items()}
    await start(dut, **dict.fromkeys(ZERO, 0), window_base_i=BASE, window_bytes_i=WINDOW)
    values = [legal_transfer(random, shape, Op.LOAD) | {"expand": 0} for _ in range(40)]
    waiting = [(i, v) for i, v in enumerate(values) if v["mem"] in (Mem.UOP, Mem.PRM, Mem.INP, Mem.ACC)]
    waiting = [(i, v | {"sram": 0, "y": 1, "y_pad_0": 0, "y_pad_1": 0, "x": 1, "set": i}) for i, v in waiting]
    running: deque[tuple[int, dict[str, int]]] = deque()
    asked: deque[int] = deque()  # offsets of beats that fetch waits for
    bursts: deque[list[int]] = deque()  # offset and beats left of bursts that the memory answers
    request: tuple[int, int] | None = None
    fetched = taken = waits = cycle = 0
    while waiting or running or asked or bursts:
        assert cycle < 50000, "no progress"
        if request is None and waiting and random.random() < 0.1:
            request = random.randrange(WINDOW // bus - 8) * bus, random.randrange(1, 9)
        dut.fetch_valid_i.value = request is not None
        dut.fetch_offset_i.value, dut.fetch_beats_i.value = request or (0, 0)
        dut.head_valid_i.value = bool(waiting)
        if waiting:
            drive_head(dut, waiting[0], shape, Op.LOAD)
        dut.m_axi_arready.value = arready = random.random() < 0.7
        dut.m_axi_rvalid.value = answer = bool(bursts) and random.random() < 0.6
        if answer:
            at, left = bursts[0]
            dut.m_axi_rdata.value = int.from_bytes(state.dram[at : at + bus].tobytes(), "little")
            dut.m_axi_rlast.value = left == 1
        await settle()
        dut.start_i.value = go = bool(get(dut.want_o))
        await settle()
        assert not get(dut.range_fault_o) and not get(dut.error_fault_o)
        if request is not None and get(dut.fetch_ready_o):
            asked.extend(request[0] + n * bus for n in range(request[1]))
            request = None
        if get(dut.m_axi_arvalid) and arready:
            bursts.append([get(dut.m_axi_araddr) - BASE, get(dut.m_axi_arlen) + 1])
            assert not get(dut.drained_o)
        if get(dut.fetch_beat_o):
            assert answer and asked.popleft() == bursts[0][0]
            fetched += 1
        if get(dut.beat_o):
            assert answer and not get(dut.fetch_beat_o) and not get(dut.waits_o)
            taken += 1
        waits += get(dut.waits_o)
        if answer and get(dut.m_axi_rready):
            assert get(dut.fetch_beat_o) or get(dut.beat_o)
            bursts[0] = [bursts[0][0] + bus, bursts[0][1] - 1]
            if not bursts[0][1]:
                bursts.popleft()
        if get(dut.we_o):
            data = np.frombuffer(get(dut.wdata_o).to_bytes(bus, "little"), np.uint8)
            begin = get(dut.waddr_o) * bus
            copies[Mem(get(dut.we_o).bit_length() - 1)][begin : begin + bus] = data
        if get(dut.give_o):
            index, done = running.popleft()
            assert (get(dut.done_index_o), get(dut.set_o)) == (index, done["set"])
            SEMANTICS[Op.LOAD](state, complete(Op.LOAD, done), index)
        if go:
            running.append(waiting.pop(0))
        await step(dut)
        cycle += 1
    assert fetched > 20 and taken > 20 and waits > 20
    assert get(dut.drained_o) and get(dut.idle_o)
    for mem, memory in state.scratch.items():
        assert (memory == copies[mem]).all(), mem.name
