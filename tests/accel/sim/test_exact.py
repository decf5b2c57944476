"""Random legal programs on the cycle simulator and on the Verilog: 0 cycles apart, equal counters, equal bytes.

The suite takes minutes and builds Verilog for odd configurations: `make test-exact`. A sample runs with the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from relay_hw.accel.isa.config import AccelConfig, config_names, load_config
from relay_hw.accel.isa.errors import DeadlockError, Fault, FaultCode
from relay_hw.accel.isa.program import Program
from relay_hw.accel.isa.randprog import random_program
from relay_hw.accel.sim.cycle import CycleDevice
from relay_hw.accel.sim.dram_timing import MEMORY_MODELS, MemoryModel, memory_model
from relay_hw.accel.sim.functional import FunctionalDevice
from relay_hw.accel.sim.rtl_device import RtlDevice, Sources
from relay_hw.accel.sim.verilator import Form
from tests.accel.sim.timed_programs import timed_program

TINY = load_config("tiny")
SHIPPED = [load_config(name) for name in config_names()]
# 4-bit weights in little room.
HALF = replace(TINY, name="half", block_in=32, wgt_bits=4, out_lanes=2)
# Every limit of the bus at its smallest; blocks longer than high, a bus too wide for coefficients and one lane; blocks
# higher than long.
ODD = [
    replace(
        TINY,
        name="smallest",
        acc_banks=1,
        burst_beats=1,
        read_outstanding=1,
        write_outstanding=1,
        queue_depth=2,
        out_lanes=1,
    ),
    replace(
        TINY,
        name="long",
        block_in=16,
        axi_data_bits=128,
        out_lanes=1,
        acc_banks=8,
        write_outstanding=2,
        cof_depth=0,
    ),
    HALF,
    replace(
        TINY, name="high", block_out=32, out_lanes=4, wgt_depth=256, burst_beats=8, read_outstanding=4, prm_depth=32
    ),
]
MEMORIES = {
    **MEMORY_MODELS,
    "short": MemoryModel(latency=7, read_outstanding=2, write_outstanding=1),
    # Everything slow and small, so that every rule of the chip binds often.
    "crowded": memory_model(
        "ulx3s,column_bytes=1,row_bytes=64,banks=2,read_buffer=16,write_buffer=1,rp=9,rcd=7,recovery=11,bank_switch=6,"
        "turn=8,write_to_read=17,response=40,latency=30,refresh_every=100,refresh=30"
    ),
}
PROGRAMS, SAMPLE = 500, 6


@pytest.fixture(scope="module")
def expected() -> dict[tuple[str, int], tuple[Program, np.ndarray]]:
    """Programs with the bytes that they leave, by configuration and seed: memory models share them."""
    return {}


def compare(
    config: AccelConfig,
    memory: MemoryModel,
    seeds: range,
    known: dict[tuple[str, int], tuple[Program, np.ndarray]],
    form: Form = Form.FAST,
) -> Iterator[str]:
    """What differs, with its seed."""
    rtl, cycle = RtlDevice(config, memory, model=Sources(form=form)), CycleDevice(config, memory, data=False)
    try:
        for seed in seeds:
            if (config.name, seed) not in known:
                known[config.name, seed] = _with_bytes(config, random_program(config, seed, 5 + seed % 60))
            program, data = known[config.name, seed]
            yield from _counters(rtl, cycle, program, f"random_program({config.name}, {seed}, {5 + seed % 60})")
            wrong = np.flatnonzero(rtl.read(0, program.window_bytes) != data)
            if wrong.size:
                yield f"random_program({config.name}, {seed}): byte {wrong[0]}"
            yield from _counters(rtl, cycle, timed_program(config, seed), f"timed_program({config.name}, {seed})")
    finally:
        rtl.close()


def _with_bytes(config: AccelConfig, program: Program) -> tuple[Program, np.ndarray]:
    device = FunctionalDevice(config)
    device.load(program)
    device.launch()
    return program, device.read(0, program.window_bytes)


def _counters(rtl: RtlDevice, cycle: CycleDevice, program: Program, name: str) -> Iterator[str]:
    found, wanted = _launch(cycle, program), _launch(rtl, program)
    if found != wanted:
        if isinstance(found, dict) and isinstance(wanted, dict):
            yield f"{name}: " + ", ".join(f"{k} {found[k]}, not {v}" for k, v in wanted.items() if found[k] != v)
        else:
            yield f"{name}: {found}, not {wanted}"


def _launch(device: RtlDevice | CycleDevice, program: Program) -> dict[str, int] | str:
    """Counters; a program whose units wait for one another is a watchdog fault in hardware."""
    device.load(program)
    try:
        return dict(device.launch().counters)
    except DeadlockError:
        return "never ends"
    except Fault as fault:
        return "never ends" if fault.code is FaultCode.WATCHDOG else f"{fault.code.name} {fault.index}"


@pytest.mark.parametrize("memory", MEMORIES)
@pytest.mark.parametrize("config", SHIPPED, ids=lambda config: config.name)
def test_sample(config: AccelConfig, memory: str, expected: dict[tuple[str, int], tuple[Program, np.ndarray]]) -> None:
    assert list(compare(config, MEMORIES[memory], range(SAMPLE), expected)) == []


@pytest.mark.parametrize("config", [TINY, HALF], ids=lambda config: config.name)
def test_sample_in_the_form_that_is_synthesised(config: AccelConfig) -> None:
    assert list(compare(config, MEMORIES["standard"], range(4 * SAMPLE), {}, Form.FABRIC)) == []


@pytest.mark.long
@pytest.mark.parametrize("memory", MEMORIES)
@pytest.mark.parametrize("config", SHIPPED + ODD, ids=lambda config: config.name)
def test_all(config: AccelConfig, memory: str, expected: dict[tuple[str, int], tuple[Program, np.ndarray]]) -> None:
    different = list(compare(config, MEMORIES[memory], range(PROGRAMS), expected))
    print(f"\n{config.name}, {memory} memory: {PROGRAMS} programs (seeds 0 to {PROGRAMS - 1}) of either kind", end=" ")
    assert different == []


@pytest.mark.long
@pytest.mark.parametrize("config", SHIPPED + ODD, ids=lambda config: config.name)
def test_all_in_the_form_that_is_synthesised(
    config: AccelConfig, expected: dict[tuple[str, int], tuple[Program, np.ndarray]]
) -> None:
    assert list(compare(config, MEMORIES["standard"], range(PROGRAMS), expected, Form.FABRIC)) == []
