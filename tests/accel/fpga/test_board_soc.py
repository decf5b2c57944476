"""The SoC of a board, simulated whole with its memory chip: the driver of boards talks to its serial line."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from relay_hw.accel.fpga.boards import find_board
from relay_hw.accel.fpga.device import FpgaDevice
from relay_hw.accel.fpga.link import LinkError
from relay_hw.accel.fpga.open_link import open_link
from relay_hw.accel.fpga.sim.board import build_board, running_board, started_board
from relay_hw.accel.fpga.sim.soc import simulated_board
from relay_hw.accel.fpga.soc_map import MemorySetup, SocMap
from relay_hw.accel.fpga.socs import Soc, board_soc
from relay_hw.accel.fpga.uartbone import UartboneLink
from relay_hw.accel.isa.asm import assemble, assemble_file
from relay_hw.accel.isa.config import load_config
from relay_hw.accel.isa.errors import AccelError, Fault, ProgramError
from relay_hw.accel.isa.program import Program
from relay_hw.accel.isa.randprog import random_program
from relay_hw.accel.isa.spec import DEVICE_MAGIC
from relay_hw.accel.sim.functional import FunctionalDevice
from relay_hw.accel.sim.selftest import self_test
from tests.accel.fpga.extra import needs_boards
from tests.accel.isa.runner import PROGRAMS
from tests.accel.sim.timed_programs import timed_program

pytestmark = needs_boards

TINY = load_config("tiny")
BOARD = find_board("ulx3s-85f")
# Short bits: the time of a simulated line is that of its bits.
DIVISOR = 4
# Seconds that an answer may take: the machine may be busy.
PATIENCE = 60


@pytest.fixture(scope="module")
def soc() -> Soc:
    return board_soc(TINY, BOARD, baud=round(BOARD.mhz * 1e6) // DIVISOR)


@pytest.fixture(scope="module")
def program(soc: Soc) -> Path:
    return build_board(simulated_board(BOARD, soc))


@pytest.fixture(scope="module")
def address(program: Path) -> Iterator[str]:
    """A board that all tests share."""
    with running_board(program, DIVISOR) as address:
        yield address


@pytest.fixture
def fresh(program: Path) -> Iterator[str]:
    """A board that nobody has talked to."""
    with running_board(program, DIVISOR) as address:
        yield address


@pytest.fixture
def link(address: str) -> Iterator[UartboneLink]:
    opened = open_link(address, 1, PATIENCE)
    yield opened
    opened.close()


def setup_of(soc: SocMap) -> MemorySetup:
    assert soc.setup is not None
    return soc.setup


def listed(name: str) -> Program:
    return assemble_file(next(path for path in PROGRAMS if path.stem == name))


def outcome(device: FpgaDevice | FunctionalDevice, program: Program) -> tuple[str, bytes]:
    device.load(program)
    try:
        device.launch()
    except Fault as fault:
        return f"{fault.code.name} {fault.index}", b""
    return "done", device.read(0, program.window_bytes).tobytes()


def test_random_programs_leave_the_same_bytes(link: UartboneLink, soc: Soc) -> None:
    device, expected = FpgaDevice(TINY, link, soc.map), FunctionalDevice(TINY)
    for seed in range(3):
        program = random_program(TINY, seed, 40)
        assert outcome(device, program) == outcome(expected, program)
    program = listed("gemm_basic")
    assert outcome(device, program) == outcome(expected, program)


def test_the_self_test_is_the_first_to_talk(fresh: str, soc: Soc) -> None:
    """It makes the memory ready itself, and reaches every row and bank."""
    device = FpgaDevice(TINY, open_link(fresh, 1, PATIENCE), soc.map)
    found = self_test(device, 1)
    device.close()
    assert all(finding.ok for finding in found), found
    assert next(finding for finding in found if finding.name == "memory").figures["address_marks"] == 25


def test_a_fault_is_told_and_survived(link: UartboneLink, soc: Soc) -> None:
    device = FpgaDevice(TINY, link, soc.map)
    device.load(listed("fault_range_load"))
    with pytest.raises(Fault, match="instruction"):
        device.launch()
    assert outcome(device, listed("gemm_basic")) == outcome(FunctionalDevice(TINY), listed("gemm_basic"))


def test_the_memory_is_made_ready_once_and_keeps_what_it_holds(fresh: str, soc: Soc) -> None:
    """Corners of the chip: rows, banks and columns of both ends; a second driver finds them as they were."""
    setup = setup_of(soc.map)
    link = open_link(fresh, 1, PATIENCE)
    assert link.read(setup.address, 1) == [0]
    FpgaDevice(TINY, link, soc.map).load(listed("gemm_basic"))
    assert link.read(setup.address, 1) == [setup.ready]
    base, size = soc.map.memory_base, soc.map.memory_bytes
    places = [
        size - 4,
        size - 1024,
        size // 2,
        size // 2 - 4,
        1 << 16,
        1 << 20,
        (3 << 10) + (1 << 18),
        (1 << 24) + (2 << 10),
    ]
    for place in places:
        link.write(base + place, [place ^ 0xA5A5_5A5A])
    link.close()
    again = open_link(fresh, 1, PATIENCE)
    device = FpgaDevice(TINY, again, soc.map)
    assert outcome(device, listed("gemm_basic")) == outcome(FunctionalDevice(TINY), listed("gemm_basic"))
    assert [again.read(base + place, 1) for place in places] == [[place ^ 0xA5A5_5A5A] for place in places]
    again.close()


def test_another_accelerator_is_refused_before_anything_is_touched(fresh: str, soc: Soc) -> None:
    other = replace(TINY, uop_depth=256)
    link = open_link(fresh, 1, PATIENCE)
    with pytest.raises(ProgramError, match="core register CONFIG_HASH must be 0x"):
        FpgaDevice(other, link, soc.map).load(timed_program(other, 0))
    assert link.read(setup_of(soc.map).address, 1) == [0]
    link.close()


def test_a_memory_that_does_not_answer(fresh: str, soc: Soc) -> None:
    """The controller was never given the chip: nothing comes back."""
    setup = setup_of(soc.map)
    broken = replace(soc.map, setup=replace(setup, steps=setup.steps[:-1]))
    link = open_link(fresh, 1, PATIENCE)
    message = r"memory of ulx3s-85f must give back 0x0000ffff, not 0x[0-9a-f]{8}, after its setup"
    with pytest.raises(AccelError, match=message):
        FpgaDevice(TINY, link, broken).load(listed("gemm_basic"))
    link.close()


def test_a_setup_without_refreshes_is_refused_by_the_chip(
    program: Path, soc: Soc, capfd: pytest.CaptureFixture[str]
) -> None:
    setup = setup_of(soc.map)
    steps = tuple(step for step in setup.steps if step.what != "refresh")
    with running_board(program, DIVISOR) as address:
        device = FpgaDevice(TINY, open_link(address, 1, PATIENCE), replace(soc.map, setup=replace(setup, steps=steps)))
        with pytest.raises(LinkError, match=r"link socket://.* must "):
            device.load(listed("gemm_basic"))
    assert "sdram: the mode register must come after precharge and two refreshes" in capfd.readouterr().err


def test_the_host_is_heard_while_one_bank_is_busy(program: Path, soc: Soc) -> None:
    """Loads that stay in one bank of the memory for 100,000 cycles: words of the host for that bank arrive, too."""
    rows = "load mem=inp z=8 y=32\n"
    busy = assemble(f".config tiny\n.section input input 0x0 128\n.data random seed=1\n{rows * 60}finish\n")
    first, words = soc.map.memory_base + (1 << 20), list(range(0x1234_0000, 0x1234_0000 + 250))
    with started_board(program, DIVISOR) as board:
        link = open_link(board.address, 1, PATIENCE)
        device = FpgaDevice(TINY, link, soc.map)
        device.load(busy)
        # From here on the clock runs only while the line carries something.
        board.cycles()
        device.core.launch(busy.code, 0)
        assert device.core.busy
        begin = board.cycles()
        link.write(first, words)
        assert device.core.busy
        assert board.cycles() - begin < 1.1 * 10 * DIVISOR * 4 * len(words)
        while not device.core.is_done():
            pass
        assert link.read(first, len(words)) == words


def test_a_busy_board_is_left_alone_and_loses_nothing(address: str, soc: Soc) -> None:
    first = FpgaDevice(TINY, open_link(address, 1, PATIENCE), soc.map)
    stuck = listed("deadlock_token")
    first.load(stuck)
    first.core.launch(stuck.code, 0)
    first.close()
    # The line was unplugged, and another driver comes.
    link = open_link(address, 1, PATIENCE)
    second = FpgaDevice(TINY, link, soc.map)
    with pytest.raises(AccelError, match="board ulx3s-85f must be idle, not busy with another launch; wait, or reset"):
        second.load(listed("gemm_basic"))
    assert second.core.busy
    size = stuck.window_bytes // 4
    held = np.array(link.read(soc.map.memory_base, size), "<u4").view(np.uint8)
    expected = FunctionalDevice(TINY)
    expected.load(stuck)
    np.testing.assert_array_equal(held, expected.read(0, 4 * size))
    second.core.reset()
    assert outcome(second, listed("gemm_basic")) == outcome(FunctionalDevice(TINY), listed("gemm_basic"))
    second.close()


def test_an_unplugged_line_is_told_and_a_new_one_goes_on(program: Path, soc: Soc) -> None:
    with running_board(program, DIVISOR) as address:
        device = FpgaDevice(TINY, open_link(address, 1, PATIENCE), soc.map)
        device.load(listed("gemm_basic"))
    with pytest.raises(LinkError, match=r"link socket://.* must "):
        device.launch()
    with pytest.raises(LinkError, match=r"port socket://.* must be a serial port or socket://host:port"):
        open_link(address, 1, 1)
    with running_board(program, DIVISOR) as address:
        again = FpgaDevice(TINY, open_link(address, 1, PATIENCE), soc.map)
        assert outcome(again, listed("gemm_basic")) == outcome(FunctionalDevice(TINY), listed("gemm_basic"))
        again.close()


def test_a_silent_host_leaves_to_one_that_waits(program: Path, soc: Soc) -> None:
    with started_board(program, DIVISOR, patience=1) as board:
        silent = open_link(board.address, 1, PATIENCE)
        silent.write(soc.map.memory_base, [7])
        waiting = open_link(board.address, 1, PATIENCE)
        assert waiting.read(soc.map.memory_base, 1)
        with pytest.raises(LinkError):
            silent.read(soc.map.memory_base, 1)
        silent.close()
        waiting.close()


def test_an_address_without_anything_ends(link: UartboneLink, soc: Soc) -> None:
    link.read(0x2000_0000, 1)
    assert link.read(soc.map.registers_base, 1) == [DEVICE_MAGIC]


def test_the_harness_says_how_it_is_used(program: Path) -> None:
    done = subprocess.run([program], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "usage: board DIVISOR" in done.stderr


@pytest.mark.long
def test_the_line_at_its_own_speed() -> None:
    """The bits of the other tests are short; here the text is, to the letter, what is placed and routed."""
    soc = board_soc(TINY, BOARD)
    divisor = round(soc.map.clock_hz / soc.map.baud)
    # The adapter keeps to its own 3 MBaud, the board rounds to whole cycles a bit: the last of ten bits must still be
    # sampled in its middle half.
    assert divisor == 27 and abs(soc.map.clock_hz / divisor / BOARD.baud - 1) < 0.025
    with running_board(build_board(simulated_board(BOARD, soc)), divisor) as address:
        device = FpgaDevice(TINY, open_link(address, 1, PATIENCE), soc.map)
        assert outcome(device, listed("gemm_basic")) == outcome(FunctionalDevice(TINY), listed("gemm_basic"))
        device.close()
