"""Tests vta_load with a bus that answers late: the scratchpads hold what the semantics say, several loads in flight."""

from __future__ import annotations

from collections import deque
from random import Random

import cocotb
import numpy as np
from numpy.typing import NDArray

from relay_hw.accel.isa.config import TABLE_RECORD_BYTES, AccelConfig
from relay_hw.accel.isa.errors import Fault, FaultCode
from relay_hw.accel.isa.nibbles import scale_weights, widen_weights
from relay_hw.accel.isa.semantics import SEMANTICS
from relay_hw.accel.isa.spec import Mem, Op, encode
from relay_hw.accel.isa.stream import complete
from relay_hw.accel.sim.bench.bench_dma_walk import merged
from relay_hw.accel.sim.bench.common import Dut, get, parameter, rng, settle, start, step
from relay_hw.accel.sim.bench.instructions import (
    Sizes,
    block_of,
    factor_granules,
    first_beat,
    legal_factored,
    legal_gather,
    legal_planes,
    legal_transfer,
)
from relay_hw.accel.sim.bench.unit import config_of, random_state

WINDOW = 1 << 17


def sizes(config: AccelConfig) -> Sizes:
    elements = {Mem.INP: config.inp_bytes, Mem.WGT: config.wgt_bytes, Mem.ACC: config.acc_bytes}
    elements |= {Mem.OUT: config.out_bytes, Mem.UOP: 8, Mem.PRM: config.prm_bytes, Mem.TAB: TABLE_RECORD_BYTES}
    elements[Mem.COF] = config.cof_bytes
    return Sizes(config.bus_bytes, elements, {mem: 64 for mem in Mem})


def op_of(values: dict[str, int]) -> Op:
    return Op.GATHER if "row_bytes" in values else Op.LOAD


def random_load(random: Random, shape: Sizes) -> dict[str, int]:
    if random.random() < 0.4:
        return legal_gather(random, shape)
    if random.random() < 0.3:
        return legal_planes(random, shape)
    if factor_granules(shape) and random.random() < 0.4:
        return legal_factored(random, shape)
    return legal_transfer(random, shape, Op.LOAD)


def wide_weights(dut: Dut, data: NDArray[np.uint8], bits: int) -> NDArray[np.uint8]:
    """A beat of weights, widened and times the factors that go with it."""
    count = parameter(dut, "FACTORS")
    factors = np.frombuffer(get(dut.factor_o).to_bytes((count + 1) // 2, "little"), np.uint8)
    return scale_weights(widen_weights(data, bits), factors, 16 * data.size // bits // count, bits)


def drive_head(dut: Dut, insn: tuple[int, dict[str, int]], shape: Sizes, op: Op) -> None:
    index, values = insn
    x_one, y_one, run = merged(block_of(shape, values))
    dut.insn_i.value, dut.index_i.value = encode(op, values), index
    dut.one_i.value, dut.length_i.value = x_one | y_one << 1, run // shape.bus - 1
    dut.first_beat_i.value = first_beat(shape, values)


@cocotb.test()
async def fills_scratchpads_like_the_semantics(dut: Dut) -> None:
    random, config = rng(), config_of(dut)
    shape, state = sizes(config), random_state(config, random, WINDOW)
    copies = {mem: memory.copy() for mem, memory in state.scratch.items()}
    zero = ("head_valid_i", "insn_i", "index_i", "one_i", "length_i", "first_beat_i", "start_i", "req_ready_i")
    await start(
        dut, **dict.fromkeys(zero, 0), inp_soon_i=0, beat_i=0, data_i=0, error_i=0, stop_i=0, window_bytes_i=WINDOW
    )
    waiting = [(i, random_load(random, shape) | {"set": random.getrandbits(16)}) for i in range(100)]
    running: deque[tuple[int, dict[str, int]]] = deque()
    beats: deque[tuple[int, int]] = deque()  # cycle from which it may arrive, offset
    cycle = most_in_flight = soon = 0
    while waiting or running:
        assert cycle < 200000, "no progress"
        dut.head_valid_i.value = bool(waiting)
        dut.req_ready_i.value = ready = random.random() < 0.7
        # What OUTPUT writes: bit 1 of a cycle is bit 0 of the next, and LOAD must not write INP with it.
        soon, forbidden = soon >> 1 | (random.random() < 0.2) << 1, soon & 1
        dut.inp_soon_i.value = soon
        if waiting:
            drive_head(dut, waiting[0], shape, op_of(waiting[0][1]))
        await settle()
        go = bool(get(dut.want_o)) and random.random() < 0.8
        answer = bool(get(dut.beat_want_o)) and bool(beats) and beats[0][0] <= cycle and random.random() < 0.9
        dut.start_i.value, dut.beat_i.value = go, answer
        if answer:
            at = beats.popleft()[1]
            dut.data_i.value = int.from_bytes(state.dram[at : at + config.bus_bytes].tobytes(), "little")
        await settle()
        if get(dut.req_valid_o) and ready:
            offset, count = get(dut.req_offset_o), get(dut.req_len_o) + 1
            beats.extend((cycle + 20, offset + n * config.bus_bytes) for n in range(count))
        if get(dut.we_o):
            mem = Mem(get(dut.we_o).bit_length() - 1)
            assert not (forbidden and mem is Mem.INP)
            data = np.frombuffer(get(dut.wdata_o).to_bytes(config.bus_bytes, "little"), np.int8)
            if get(dut.expand_o):
                weights = mem is Mem.WGT
                data = wide_weights(dut, data.view(np.uint8), config.wgt_bits) if weights else data.astype(np.int32)
            begin = get(dut.waddr_o) * data.nbytes
            enable = (
                np.repeat([get(dut.be_o) >> n & 1 for n in range(config.bus_bytes)], data.nbytes // config.bus_bytes)
                == 1
            )
            copies[mem][begin : begin + data.nbytes][enable] = data.view(np.uint8)[enable]
        if get(dut.give_o):
            index, values = running.popleft()
            assert (get(dut.done_index_o), get(dut.set_o)) == (index, values["set"])
            op = op_of(values)
            SEMANTICS[op](state, complete(op, values), index)
            if not running:
                for mem, memory in state.scratch.items():
                    assert (memory == copies[mem]).all(), f"{mem.name} after {values}"
        if go:
            running.append(waiting.pop(0))
            most_in_flight = max(most_in_flight, len(running))
        await step(dut)
        cycle += 1
    assert most_in_flight > 2
    for mem, memory in state.scratch.items():
        assert (memory == copies[mem]).all()


@cocotb.test()
async def faults_outside_the_window_and_on_errors(dut: Dut) -> None:
    random, config = rng(), config_of(dut)
    shape, state = sizes(config), random_state(config, random, WINDOW)
    for _ in range(30):
        values = random_load(random, shape) | {"dram": random.randrange(WINDOW >> 5) * 32 & ~63}
        window = random.randrange(1, WINDOW >> 6) * 64
        state.dram = random_state(config, random, window).dram
        try:
            op = op_of(values)
            SEMANTICS[op](state, complete(op, values), 0)
            legal = True
        except Fault as fault:
            assert fault.code is FaultCode.DRAM_RANGE
            legal = False
        zero = ("start_i", "beat_i", "data_i", "error_i", "stop_i", "inp_soon_i")
        await start(dut, **dict.fromkeys(zero, 0), head_valid_i=1, req_ready_i=1, window_bytes_i=window,
                    insn_i=0, index_i=0, one_i=0, length_i=0, first_beat_i=0)  # fmt: skip
        drive_head(dut, (5, values), shape, op)
        dut.start_i.value = 1
        await step(dut)
        dut.start_i.value = dut.head_valid_i.value = 0
        faulted = False
        for _ in range(400):
            await settle()
            if get(dut.range_fault_o):
                faulted = True
                assert get(dut.range_index_o) == 5 and not get(dut.req_valid_o)
            await step(dut)
        assert faulted != legal, f"window {window}: {values}"
