"""What AXI leaves to a memory: whether it waits for the data of a write, for its address, or for neither."""

from __future__ import annotations

import functools
from dataclasses import replace

import numpy as np
import pytest

from accel.isa.config import load_config
from accel.isa.errors import ConfigError
from accel.isa.program import Program
from accel.isa.randprog import random_program
from accel.isa.spec import Mem, Op
from accel.sim.cycle import CycleDevice
from accel.sim.functional import FunctionalDevice
from accel.sim.memory import MemoryModel, WriteOrder, memory_model
from accel.sim.rtl_device import RtlDevice
from tests.accel.sim.timed_programs import timed_program

TINY = load_config("tiny")
# A memory that is full most of the time, so that addresses wait.
BUSY = MemoryModel(latency=20, read_outstanding=2, write_outstanding=1)


@functools.lru_cache(maxsize=16)
def rtl(memory: MemoryModel, stall_seed: int | None = None) -> RtlDevice:
    return RtlDevice(TINY, memory, stall_seed=stall_seed)


def expected_window(program: Program) -> np.ndarray:
    device = FunctionalDevice(TINY)
    device.load(program)
    device.launch()
    return device.read(0, program.window_bytes)


@pytest.mark.parametrize("order", WriteOrder)
def test_cycles_of_a_store_in_each_order(order: WriteOrder) -> None:
    """By hand, as on TIMING.md's page: the first beat is on the bus three edges behind the acceptance."""
    beats, latency = 6, 100
    device = rtl(MemoryModel(write_order=order))
    device.load(Program.build(TINY, [(Op.STORE, {"mem": Mem.OUT, "z": 3}), (Op.FINISH, {})]))
    # of the first beat, behind the acceptance; of the response, behind the last beat
    first, response = {
        WriteOrder.ADDRESS_FIRST: (3, latency),
        WriteOrder.DATA_SHOWN: (4, latency),
        WriteOrder.DATA_FIRST: (3, 1 + latency),
        WriteOrder.ANY: (3, latency),
    }[order]
    assert device.launch().cycles == 110 + first + beats + response + 2


@pytest.mark.parametrize("memory", [MemoryModel(), BUSY], ids=["idle", "busy"])
@pytest.mark.parametrize("order", WriteOrder)
def test_programs_end_alike_in_each_order(order: WriteOrder, memory: MemoryModel) -> None:
    memory = replace(memory, write_order=order)
    device, model = rtl(memory), CycleDevice(TINY, memory, data=False)
    for seed in (0, 1, 2, 5):
        programs = random_program(TINY, seed, 30), timed_program(TINY, seed)
        for program in programs:
            device.load(program)
            model.load(program)
            assert device.launch().counters == model.launch().counters
        device.load(programs[0])
        device.launch()
        assert (device.read(0, programs[0].window_bytes) == expected_window(programs[0])).all()


@pytest.mark.parametrize("order", WriteOrder)
def test_programs_end_alike_in_each_order_under_stalls(order: WriteOrder) -> None:
    for seed in range(1, 5):
        device, program = rtl(replace(BUSY, write_order=order), seed), random_program(TINY, seed, 30)
        device.load(program)
        device.launch()
        assert (device.read(0, program.window_bytes) == expected_window(program)).all()


def test_an_sdram_has_its_own_order() -> None:
    with pytest.raises(ConfigError, match="write_order must not be chosen with SDRAM, not DATA_FIRST"):
        replace(memory_model("ulx3s"), write_order=WriteOrder.DATA_FIRST)
