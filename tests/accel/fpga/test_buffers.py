"""Second buffers compute what the program's own do, and launches of many samples leave the bytes of single ones."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from relay_hw.accel.fpga.buffers import Buffers, end_of_buffers, second_buffers
from relay_hw.accel.fpga.device import FpgaDevice
from relay_hw.accel.fpga.soc_map import SocMap
from relay_hw.accel.fpga.timed_board import TimedBoard
from relay_hw.accel.fpga.timed_stream import TimedStream
from relay_hw.accel.fpga.uartbone import UartboneLink
from relay_hw.accel.isa.config import config_names, load_config
from relay_hw.accel.isa.errors import AccelError
from relay_hw.accel.isa.program import Program, SectionKind
from relay_hw.accel.isa.randprog import random_program
from relay_hw.accel.sim.device import Bytes, Device, Job, run_jobs
from relay_hw.accel.sim.functional import FunctionalDevice

TINY = load_config("tiny")
SOC = SocMap("board", "tiny", TINY.hash32, clock_hz=80_000_000, memory_bytes=1 << 16, baud=3_000_000)
EXCHANGED = (SectionKind.INPUT, SectionKind.OUTPUT)


def moved(program: Program, second: Buffers) -> Program:
    """The program as its second buffers have it: other instructions, in a longer window."""
    others = (section for section in program.sections if section.kind is not SectionKind.PROGRAM)
    return replace(program, window_bytes=end_of_buffers(program), sections=(*others, second.code), tensors=())


def filled(program: Program, seed: int) -> dict[str, Bytes]:
    rng = np.random.default_rng(seed)
    sections = (section for section in program.sections if section.kind in EXCHANGED)
    return {section.name: rng.integers(0, 256, section.size, np.uint8) for section in sections}


def left(program: Program, seed: int, buffers: Buffers) -> dict[str, bytes]:
    """Bytes of inputs and outputs after a launch, wherever they lie."""
    device = FunctionalDevice(load_config(program.config))
    device.load(moved(program, buffers) if buffers.moves else program)
    sections = {section.name: section for section in program.sections}
    for name, data in filled(program, seed).items():
        device.write(buffers.place(sections[name].offset), data)
    device.launch()
    return {
        name: device.read(buffers.place(sections[name].offset), data.size).tobytes()
        for name, data in filled(program, seed).items()
    }


@pytest.mark.parametrize("name", config_names())
def test_second_buffers_compute_the_same(name: str) -> None:
    config, moves = load_config(name), 0
    for seed in range(4):
        program = random_program(config, seed, 60)
        second = second_buffers(config, program)
        if second is not None:
            moves += len(second.moves)
            assert left(program, seed, second) == left(program, seed, Buffers(program.code))
    assert moves > 0, "none of the programs had second buffers"


def jobs_of(program: Program, count: int) -> list[Job]:
    """Launches with inputs of their own; all that a program exchanges is read."""
    places = [section for section in program.sections if section.kind in EXCHANGED]
    reads = tuple((section.offset, section.size) for section in places)
    return [Job(tuple((s.offset, filled(program, seed)[s.name]) for s in places), reads) for seed in range(count)]


def cycles(_program: Program, _stream: SectionKind) -> int:
    return 8000


def outcomes(device: Device, program: Program, jobs: Iterable[Job]) -> list[list[bytes]]:
    device.load(program)
    return [[part.tobytes() for part in done.found] for done in run_jobs(device, jobs)]


def test_launches_of_many_samples_are_those_of_each() -> None:
    program = random_program(TINY, 3, 60)
    jobs = jobs_of(program, 5)
    found = outcomes(TimedBoard(TINY, SOC, cycles), program, jobs)
    assert found == outcomes(FunctionalDevice(TINY), program, jobs)


def driver(soc: SocMap) -> tuple[FpgaDevice, TimedStream]:
    line = TimedStream(TINY, soc)
    line.launch_cycles = 8000
    return FpgaDevice(TINY, UartboneLink(line, "test"), soc, timer=line), line


def sent(device: FpgaDevice, line: TimedStream, program: Program, count: int) -> list[int]:
    """Bytes that went to the board for each of so many launches."""
    device.load(program)
    found = [line.exchanged.to_board]
    for _ in device.launches(jobs_of(program, count)):
        found.append(line.exchanged.to_board)
    return [after - before for before, after in pairwise(found)]


def test_second_buffers_are_sent_when_they_would_have_paid() -> None:
    program = random_program(TINY, 3, 60)
    device, line = driver(SOC)
    # Its code takes 12 ms, and each launch could have hidden 0.1 ms.
    costs, usual = sent(device, line, program, 140), sent(*driver(SOC), program, 2)[-1]
    first = next(number for number, cost in enumerate(costs) if cost > usual + program.code.size)
    seconds = program.code.size * 10 / SOC.baud
    assert first == pytest.approx(seconds / (8000 / SOC.clock_hz), abs=2)
    assert all(cost <= usual for cost in costs[first + 3 :]), "once is enough"


def test_no_room_for_second_buffers() -> None:
    """Launches follow one another where the memory holds one window alone."""
    program = random_program(TINY, 3, 60)
    device, line = driver(replace(SOC, memory_bytes=program.window_bytes))
    device.load(program)
    device.double()
    loaded = line.exchanged.to_board
    assert len(list(device.launches(jobs_of(program, 3)))) == 3
    assert line.exchanged.to_board - loaded < 3 * (program.window_bytes - program.code.size)


def test_transfers_across_a_border_have_no_second_buffers() -> None:
    program = random_program(TINY, 2, 60)
    halved = (replace(s, size=s.size // 2, data=None) if s.kind is SectionKind.INPUT else s for s in program.sections)
    assert second_buffers(TINY, replace(program, sections=tuple(halved), tensors=())) is None


def test_whoever_stops_early_leaves_an_idle_board() -> None:
    program = random_program(TINY, 3, 60)
    device, line = driver(SOC)
    line.launch_cycles = 8_000_000
    device.load(program)
    device.double()
    launches = device.launches(jobs_of(program, 4))
    next(launches)
    assert device.core.busy
    launches.close()
    assert not device.core.busy


def test_nothing_is_launched_before_a_program_is_there() -> None:
    device, _ = driver(SOC)
    with pytest.raises(AccelError, match="a program must be loaded before it is launched"):
        next(device.launches([]))
