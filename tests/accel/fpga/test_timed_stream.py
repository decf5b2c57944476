"""A board's line in time: bytes at its speed both ways at once, and launches."""

from __future__ import annotations

import pytest

from relay_hw.accel.fpga.soc_map import SocMap
from relay_hw.accel.fpga.timed_board import TimedBoard
from relay_hw.accel.fpga.timed_stream import TimedStream
from relay_hw.accel.fpga.uartbone import UartboneLink
from relay_hw.accel.isa.asm import assemble_file
from relay_hw.accel.isa.config import load_config
from relay_hw.accel.isa.program import Program, SectionKind
from relay_hw.accel.isa.registers import REGISTER
from relay_hw.accel.sim.cycle.timing import time_code
from relay_hw.accel.sim.dram_timing import memory_model
from relay_hw.accel.sim.functional import FunctionalDevice
from tests.accel.isa.runner import PROGRAMS

TINY = load_config("tiny")
SOC = SocMap("board", "tiny", TINY.hash32, clock_hz=80_000_000, memory_bytes=1 << 20, baud=1_000_000)
BYTE = 10 / SOC.baud


def test_bytes_take_their_time_both_ways() -> None:
    line = TimedStream(TINY, SOC)
    link = UartboneLink(line, "test")
    link.write(SOC.memory_base, [0] * 300)
    assert line.now() == 0, "nobody waits for what is sent"
    link.read(SOC.registers_base, 1)
    sent = 4 * 300 + 6 * 2 + 6
    assert line.now() == pytest.approx((sent + 4) * BYTE)
    assert (line.exchanged.to_board, line.exchanged.from_board) == (sent, 4)


def test_answers_overlap_the_commands_behind_them() -> None:
    line = TimedStream(TINY, SOC)
    UartboneLink(line, "test").read(SOC.memory_base, 510)
    # The second command is there before the first answer has gone.
    assert line.now() == pytest.approx((6 + 4 * 510) * BYTE)


def test_a_launch_is_busy_for_its_cycles() -> None:
    line = TimedStream(TINY, SOC)
    link = UartboneLink(line, "test")
    line.launch_cycles = 8000
    link.write(SOC.registers_base + REGISTER["CONTROL"].offset, [1])
    polls = 0
    while link.read(SOC.registers_base + REGISTER["STATUS"].offset, 1) == [1]:
        polls += 1
    begin, poll = 10 * BYTE, 10 * BYTE
    assert begin + 100e-6 <= line.now() < begin + 100e-6 + 2 * poll
    assert polls == 1


def cycles(program: Program, stream: SectionKind) -> int:
    code = program.stream(stream)
    return time_code(TINY, memory_model("ulx3s"), code.offset, code.data or b"").cycles


def listed(name: str) -> Program:
    return assemble_file(next(path for path in PROGRAMS if path.stem == name))


def test_a_board_without_a_board_computes_and_keeps_time() -> None:
    board, want = TimedBoard(TINY, SOC, cycles), FunctionalDevice(TINY)
    program = listed("gemm_basic")
    for device in (board, want):
        device.load(program)
        device.launch()
    assert board.read(0, program.window_bytes).tolist() == want.read(0, program.window_bytes).tolist()
    assert board.stream.now() > board.stream.exchanged.to_board * BYTE
