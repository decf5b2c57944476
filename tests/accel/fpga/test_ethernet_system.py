"""The System of a board on Ethernet, simulated whole: the driver's packets go through its RGMII pins."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from relay_hw.accel.fpga.boards import find_board
from relay_hw.accel.fpga.device import FpgaDevice
from relay_hw.accel.fpga.line import Line, LinkError
from relay_hw.accel.fpga.link import open_link
from relay_hw.accel.fpga.sim.board import build_board, running_board
from relay_hw.accel.fpga.sim.soc import simulated_board
from relay_hw.accel.fpga.systems import System, board_system
from relay_hw.accel.isa.asm import assemble_file
from relay_hw.accel.isa.config import load_config
from relay_hw.accel.isa.program import Program
from relay_hw.accel.isa.randprog import random_program
from relay_hw.accel.isa.spec import DEVICE_MAGIC
from relay_hw.accel.sim.functional import FunctionalDevice
from relay_hw.accel.sim.selftest import self_test
from tests.accel.fpga.extra import lint_messages, needs_litex
from tests.accel.isa.runner import PROGRAMS

pytestmark = needs_litex

TINY = load_config("tiny")
BOARD = find_board("colorlight-i5")
# Seconds that an answer may take: the machine may be busy.
PATIENCE = 60


@pytest.fixture(scope="module")
def system() -> System:
    return board_system(TINY, BOARD)


@pytest.fixture(scope="module")
def program(system: System) -> Path:
    return build_board(simulated_board(BOARD, system))


@pytest.fixture
def link(program: Path) -> Iterator[Line]:
    with running_board(program, 0) as address:
        opened = open_link(address, 0, PATIENCE)
        yield opened
        opened.close()


def outcome(device: FpgaDevice | FunctionalDevice, program: Program) -> bytes:
    device.load(program)
    device.launch()
    return device.read(0, program.window_bytes).tobytes()


def test_programs_leave_the_same_bytes(link: Line, system: System) -> None:
    device, expected = FpgaDevice(TINY, link, system.map), FunctionalDevice(TINY)
    gemm = assemble_file(next(path for path in PROGRAMS if path.stem == "gemm_basic"))
    for program in (gemm, *(random_program(TINY, seed, 40) for seed in range(3))):
        assert outcome(device, program) == outcome(expected, program)


def test_memory_and_registers_by_long_and_short_packets(link: Line, system: System) -> None:
    device = FpgaDevice(TINY, link, system.map)
    device.load(assemble_file(next(path for path in PROGRAMS if path.stem == "gemm_basic")))
    base, size = system.map.memory_base, system.map.memory_bytes
    assert size == 8 << 20
    words = [0x9E37_79B9 * k & 0xFFFF_FFFF for k in range(300)]
    for place in (1 << 16, size - 1200, size // 2 - 600):
        link.write(base + place, words)
        assert link.read(base + place, 300) == words
    assert link.read(system.map.registers_base, 1) == [DEVICE_MAGIC]


def test_the_self_test_of_a_board(link: Line, system: System) -> None:
    findings = self_test(FpgaDevice(TINY, link, system.map), 2)
    assert findings and all(finding.ok for finding in findings), findings


def test_an_unplugged_line_is_told(program: Path, system: System) -> None:
    with running_board(program, 0) as address:
        link = open_link(address, 0, 0.5)
    with pytest.raises(LinkError, match=r"line etherbone://127\.0\.0\.2:\d+ must "):
        FpgaDevice(TINY, link, system.map).load(random_program(TINY, 0, 5))
    link.close()


def test_the_map_says_where_the_board_is(system: System) -> None:
    assert system.map.address == "etherbone://192.168.1.50" and system.map.baud == 0


def test_the_verilog_has_no_warnings(system: System, tmp_path: Path) -> None:
    files = {name: text for name, text in system.design.files.items() if name.startswith("fpga_e") or "crc" in name}
    assert len(files) == 4
    assert not lint_messages("fpga_etherbone", files, tmp_path)
