"""The model of a board's memory: what it is made of, and the whole SoC in simulation against it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from operator import itemgetter

import numpy as np
import pytest

from relay_hw.accel.fpga.board_sdram import board_memory
from relay_hw.accel.fpga.boards import BOARDS, find_board
from relay_hw.accel.fpga.device import FpgaDevice
from relay_hw.accel.fpga.open_link import open_link
from relay_hw.accel.fpga.sim.board import build_board, running_board
from relay_hw.accel.fpga.sim.soc import simulated_board
from relay_hw.accel.fpga.socs import Soc, board_soc
from relay_hw.accel.isa.config import load_config
from relay_hw.accel.isa.errors import ConfigError, DeadlockError
from relay_hw.accel.isa.program import Program
from relay_hw.accel.sim.cycle import CycleDevice
from relay_hw.accel.sim.dram_timing import memory_model
from tests.accel.fpga.extra import needs_boards
from tests.accel.sim.timed_programs import timed_program

TINY = load_config("tiny")
ULX3S = find_board("ulx3s-85f")
LAUNCHES = 9


@pytest.mark.parametrize(("name", "mhz", "model"), [("ulx3s-85f", 80, "ulx3s"), ("colorlight-i5", 50, "colorlight")])
def test_named_models_are_those_of_the_boards(name: str, mhz: int, model: str) -> None:
    assert board_memory(find_board(name), mhz * 1_000_000) == memory_model(model)


def test_names_are_for_the_clocks_of_the_boards() -> None:
    assert [(board.name, board.mhz) for board in BOARDS] == [("ulx3s-85f", 75), ("colorlight-i5", 50)]


def test_a_slower_clock_takes_fewer_cycles_for_the_same_times() -> None:
    slow = board_memory(ULX3S, 40_000_000).sdram
    assert slow is not None
    assert (slow.rp, slow.rcd, slow.refresh, slow.refresh_every, slow.recovery) == (1, 1, 8, 312, 2)
    with pytest.raises(ConfigError, match="refresh_every must be above refresh 6 and below 65536, not 6"):
        board_memory(ULX3S, 800_000)


@pytest.fixture(scope="module")
def soc() -> Soc:
    """With short bits on its line."""
    return board_soc(TINY, ULX3S, baud=round(ULX3S.mhz * 1e6) // 4)


@pytest.fixture(scope="module")
def device(soc: Soc) -> Iterator[FpgaDevice]:
    """The whole SoC."""
    with running_board(build_board(simulated_board(ULX3S, soc)), 4) as address:
        opened = FpgaDevice(TINY, open_link(address, 1, 60), soc.map)
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def measured(device: FpgaDevice, soc: Soc) -> dict[int, Mapping[str, int]]:
    """Counters of the programs that end, by seed.

    Of several launches the middle one counts: when the next refresh is due differs from launch to launch.
    """
    found: dict[int, Mapping[str, int]] = {}
    sent: dict[int, bytes] = {}
    for seed in range(10):
        try:
            cycles = modelled(seed, "ulx3s")["CYCLES"]
        except DeadlockError:
            continue
        # Of a shorter one a refresh that comes sooner or later is as much as may be missed.
        if cycles < 1500:
            continue
        launches = sorted(launches_of(device, soc, timed_program(TINY, seed), sent), key=itemgetter("CYCLES"))
        found[seed] = launches[LAUNCHES // 2]
    return found


def launches_of(device: FpgaDevice, soc: Soc, program: Program, sent: dict[int, bytes]) -> list[Mapping[str, int]]:
    """Counters of launches of a program. Its window is not made zero, which takes a serial line long: time does not
    depend on data. `sent`: sections that are there from programs before, by their offsets; none stores to them."""
    for section in program.sections:
        if section.data is not None and sent.get(section.offset) != section.data:
            device.poke(section.offset, np.frombuffer(section.data, np.uint8))
            sent[section.offset] = section.data
    device.core.window(soc.map.memory_base, program.window_bytes)
    found: list[Mapping[str, int]] = []
    for _ in range(LAUNCHES):
        device.core.launch(program.code, 1 << 24)
        while not device.core.is_done():
            pass
        found.append(device.core.counters())
    return found


def modelled(seed: int, memory: str) -> Mapping[str, int]:
    device = CycleDevice(TINY, memory_model(memory), data=False)
    device.load(timed_program(TINY, seed))
    return device.launch().counters


def misses(measured: Mapping[int, Mapping[str, int]], memory: str) -> list[float]:
    """By how much the model misses the time of each program, and of all."""
    cycles = [(modelled(seed, memory)["CYCLES"], truth["CYCLES"]) for seed, truth in measured.items()]
    cycles.append((sum(found for found, _ in cycles), sum(truth for _, truth in cycles)))
    return [found / truth - 1 for found, truth in cycles]


def near(missed: list[float]) -> bool:
    """Within 2 % of programs that move data most of the time, within 1 % of all of them together."""
    *each, total = map(abs, missed)
    return max(each) < 0.02 and total < 0.01


@needs_boards
def test_the_cycle_simulator_is_near_the_whole_system(measured: dict[int, Mapping[str, int]]) -> None:
    """And alike in what the programs did."""
    found = {seed: modelled(seed, "ulx3s") for seed in measured}
    for key in ("READ_BYTES", "WRITE_BYTES", "FETCH_BYTES", "INSTRUCTIONS", "GEMM_UOPS", "OUTPUT_VECTORS"):
        assert [row[key] for row in found.values()] == [row[key] for row in measured.values()]
    missed = misses(measured, "ulx3s")
    assert len(measured) > 4 and near(missed), missed


@needs_boards
@pytest.mark.parametrize("wrong", ["standard", "ulx3s,rcd=12", "ulx3s,column_bytes=4", "ulx3s,rp=0,rcd=0"])
def test_another_memory_is_not_near_it(measured: dict[int, Mapping[str, int]], wrong: str) -> None:
    """What the comparison can tell apart."""
    missed = misses(measured, wrong)
    assert not near(missed), missed
