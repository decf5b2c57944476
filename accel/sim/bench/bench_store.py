"""Tests vta_store with a random AXI slave: DRAM holds what the semantics say, responses give tokens, limits hold.

The slave changes its mind from time to time: it takes an address at any time, only when the first beat of its data is
on the bus, or only when it has the last one.
"""

from __future__ import annotations

from collections import deque

import cocotb
import numpy as np

from relay_hw.accel.isa.semantics import SEMANTICS
from relay_hw.accel.isa.spec import Op
from relay_hw.accel.sim.bench.bench_load import drive_head, sizes
from relay_hw.accel.sim.bench.common import Dut, get, parameter, rng, settle, start, step
from relay_hw.accel.sim.bench.instructions import legal_transfer
from relay_hw.accel.sim.bench.unit import config_of, random_state

WINDOW, BASE = 1 << 17, 0x10000000


@cocotb.test()
async def writes_dram_like_the_semantics(dut: Dut) -> None:
    random, config = rng(), config_of(dut)
    shape, state = sizes(config), random_state(config, random, WINDOW)
    dram, limit, bus = state.dram.copy(), parameter(dut, "WRITE_OUTSTANDING"), config.bus_bytes
    zero = ("head_valid_i", "insn_i", "index_i", "one_i", "length_i", "first_beat_i", "start_i", "stop_i")
    await start(dut, **dict.fromkeys(zero, 0), rdata_i=0, m_axi_awready=0, m_axi_wready=0, m_axi_bvalid=0,
                m_axi_berror=0, window_base_i=BASE, window_bytes_i=WINDOW)  # fmt: skip
    waiting = [(i, legal_transfer(random, shape, Op.STORE) | {"set": random.getrandbits(16)}) for i in range(60)]
    running: deque[tuple[int, dict[str, int]]] = deque()
    bursts: deque[list[int]] = deque()  # offset, beats left
    beats_there: deque[tuple[int, int]] = deque()  # data and last of beats that were taken
    mood = 0
    responses: deque[int] = deque()
    cycle = unanswered = most = 0
    held: tuple[int, int] | None = None
    while waiting or running:
        assert cycle < 60000, "no progress"
        dut.head_valid_i.value = bool(waiting)
        if waiting:
            drive_head(dut, waiting[0], shape, Op.STORE)
        answer = bool(responses) and responses[0] <= cycle and random.random() < 0.7
        mood = random.randrange(3) if random.random() < 0.01 else mood
        whole = any(last for _, last in beats_there)
        shown = not bursts and bool(beats_there or get(dut.m_axi_wvalid))
        dut.m_axi_awready.value = awready = random.random() < 0.6 and (True, shown or whole, whole)[mood]
        dut.m_axi_wready.value = wready = random.random() < 0.7 and (mood != 1 or bool(bursts))
        dut.m_axi_bvalid.value = answer
        await settle()
        go = bool(get(dut.want_o)) and random.random() < 0.8
        dut.start_i.value = go
        await settle()
        if get(dut.m_axi_awvalid) and awready:
            offset, beats = get(dut.m_axi_awaddr) - BASE, get(dut.m_axi_awlen) + 1
            assert offset // 4096 == (offset + beats * bus - 1) // 4096
            bursts.append([offset, beats])
            unanswered += 1
            most = max(most, unanswered)
            assert unanswered <= limit
        if get(dut.m_axi_wvalid):
            now = (get(dut.m_axi_wdata), get(dut.m_axi_wlast))
            assert held is None or held == now, "data must hold while stalled"
            held = None if wready else now
            if wready:
                beats_there.append(now)
        while beats_there and bursts:
            burst, (data, last) = bursts[0], beats_there.popleft()
            dram[burst[0] : burst[0] + bus] = np.frombuffer(data.to_bytes(bus, "little"), np.uint8)
            burst[0], burst[1] = burst[0] + bus, burst[1] - 1
            assert last == (burst[1] == 0), "wlast marks the last beat"
            if not burst[1]:
                bursts.popleft()
                responses.append(cycle + random.choice((1, 30)))
        if answer:
            assert get(dut.m_axi_bready)
            responses.popleft()
            unanswered -= 1
        if get(dut.give_o):
            index, values = running.popleft()
            assert (get(dut.done_index_o), get(dut.set_o)) == (index, values["set"])
            SEMANTICS[Op.STORE](state, values, index)
            if not running:
                assert (dram == state.dram).all(), f"after {values}"
        read = get(dut.raddr_o) * bus if get(dut.re_o) else None
        if go:
            running.append(waiting.pop(0))
        await step(dut)
        if read is not None:
            out = state.out.view(np.uint8).reshape(-1)
            dut.rdata_i.value = int.from_bytes(out[read : read + bus].tobytes(), "little")
        cycle += 1
    assert (dram == state.dram).all()
    assert most == limit
