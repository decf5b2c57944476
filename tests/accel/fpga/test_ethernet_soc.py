"""The SoC of a board on Ethernet, simulated whole: the driver's packets go through its RGMII pins."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from relay_hw.accel.fpga.boards import find_board
from relay_hw.accel.fpga.device import FpgaDevice
from relay_hw.accel.fpga.link import Link, LinkError
from relay_hw.accel.fpga.open_link import open_link
from relay_hw.accel.fpga.sim.board import build_board, running_board
from relay_hw.accel.fpga.sim.soc import simulated_board
from relay_hw.accel.fpga.socs import Soc, board_soc
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
def soc() -> Soc:
    return board_soc(TINY, BOARD)


@pytest.fixture(scope="module")
def program(soc: Soc) -> Path:
    return build_board(simulated_board(BOARD, soc))


@pytest.fixture
def link(program: Path) -> Iterator[Link]:
    with running_board(program, 0) as address:
        opened = open_link(address, 0, PATIENCE)
        yield opened
        opened.close()


def outcome(device: FpgaDevice | FunctionalDevice, program: Program) -> bytes:
    device.load(program)
    device.launch()
    return device.read(0, program.window_bytes).tobytes()


def test_programs_leave_the_same_bytes(link: Link, soc: Soc) -> None:
    device, expected = FpgaDevice(TINY, link, soc.map), FunctionalDevice(TINY)
    gemm = assemble_file(next(path for path in PROGRAMS if path.stem == "gemm_basic"))
    for program in (gemm, *(random_program(TINY, seed, 40) for seed in range(3))):
        assert outcome(device, program) == outcome(expected, program)


def test_memory_and_registers_by_long_and_short_packets(link: Link, soc: Soc) -> None:
    device = FpgaDevice(TINY, link, soc.map)
    device.load(assemble_file(next(path for path in PROGRAMS if path.stem == "gemm_basic")))
    base, size = soc.map.memory_base, soc.map.memory_bytes
    assert size == 8 << 20
    words = [0x9E37_79B9 * k & 0xFFFF_FFFF for k in range(300)]
    for place in (1 << 16, size - 1200, size // 2 - 600):
        link.write(base + place, words)
        assert link.read(base + place, 300) == words
    assert link.read(soc.map.registers_base, 1) == [DEVICE_MAGIC]


def test_the_self_test_of_a_board(link: Link, soc: Soc) -> None:
    findings = self_test(FpgaDevice(TINY, link, soc.map), 2)
    assert findings and all(finding.ok for finding in findings), findings


def test_an_unplugged_line_is_told(program: Path, soc: Soc) -> None:
    with running_board(program, 0) as address:
        link = open_link(address, 0, 0.5)
    with pytest.raises(LinkError, match=r"link etherbone://127\.0\.0\.2:\d+ must "):
        FpgaDevice(TINY, link, soc.map).load(random_program(TINY, 0, 5))
    link.close()


def test_the_map_says_where_the_board_is(soc: Soc) -> None:
    assert soc.map.address == "etherbone://192.168.1.50" and soc.map.baud == 0


def test_the_verilog_has_no_warnings(soc: Soc, tmp_path: Path) -> None:
    files = {name: text for name, text in soc.design.files.items() if name.startswith("fpga_e") or "crc" in name}
    assert len(files) == 4
    assert not lint_messages("fpga_etherbone", files, tmp_path)
