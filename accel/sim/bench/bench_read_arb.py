"""Tests vta_read_arb with two random clients and a memory: priority, order, the limit on bursts in flight, stop."""

from __future__ import annotations

from collections import deque

import cocotb

from relay_hw.accel.sim.bench.common import Dut, get, parameter, rng, settle, start, step

BASE = 0x40000000


@cocotb.test()
async def serves_both_clients_in_order(dut: Dut) -> None:
    random, limit = rng(), parameter(dut, "READ_OUTSTANDING")
    bus = parameter(dut, "AXI_DATA_BITS") // 8
    zero = dict.fromkeys(("fetch_valid_i", "fetch_offset_i", "fetch_beats_i", "load_valid_i", "load_offset_i"), 0)
    await start(dut, **zero, load_len_i=0, load_want_i=0, m_axi_arready=0, m_axi_rlast=0, m_axi_rvalid=0, stop_i=0,
                window_base_i=BASE)  # fmt: skip
    granted: deque[tuple[str, int, int]] = deque()  # taken by the arbiter, not yet seen on AR
    flight: deque[list] = deque()  # owner and beats left of bursts seen on AR
    in_flight, most, beats_seen = 0, 0, {"fetch": 0, "load": 0}
    for _ in range(1500):
        want = {name: random.random() < 0.5 for name in ("fetch", "load")}
        ask = {name: (random.randrange(1000) * bus, random.randrange(1, 5)) for name in want}
        dut.fetch_valid_i.value, dut.load_valid_i.value = want["fetch"], want["load"]
        dut.fetch_offset_i.value, dut.fetch_beats_i.value = ask["fetch"]
        dut.load_offset_i.value, dut.load_len_i.value = ask["load"][0], ask["load"][1] - 1
        arready, load_want = random.random() < 0.6, random.random() < 0.7
        rvalid = bool(flight) and random.random() < 0.5
        dut.m_axi_arready.value, dut.load_want_i.value = arready, load_want
        dut.m_axi_rvalid.value, dut.m_axi_rlast.value = rvalid, bool(flight) and flight[0][1] == 1
        await settle()
        ready = {"fetch": get(dut.fetch_ready_o), "load": get(dut.load_ready_o)}
        taken = [name for name in want if want[name] and ready[name]]
        assert len(taken) <= 1
        assert not (want["fetch"] and taken == ["load"]), "fetch goes first"
        if get(dut.m_axi_arvalid) and arready:
            owner, offset, beats = granted.popleft()
            assert get(dut.m_axi_araddr) == BASE + offset
            assert get(dut.m_axi_arlen) == beats - 1
            flight.append([owner, beats])
        if rvalid:
            owner = flight[0][0]
            assert get(dut.m_axi_rready) == (owner == "fetch" or load_want)
            taken_beat = bool(get(dut.m_axi_rready))
            assert get(dut.fetch_beat_o) == (taken_beat and owner == "fetch")
            assert get(dut.load_beat_o) == (taken_beat and owner == "load") <= get(dut.load_here_o)
            if taken_beat:
                beats_seen[owner] += 1
                flight[0][1] -= 1
                if not flight[0][1]:
                    flight.popleft()
                    in_flight -= 1
        for name in taken:
            granted.append((name, *ask[name]))
            in_flight += 1
        most = max(most, in_flight)
        assert in_flight <= limit
        await step(dut)
    assert most == limit and min(beats_seen.values()) > 50
