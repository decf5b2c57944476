"""The SoC for a bare part, simulated whole: the driver of boards talks to its serial line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from examples.models import small
from examples.models.samples import samples
from relay_hw.accel.fpga.device import FpgaDevice
from relay_hw.accel.fpga.link import Link, LinkError
from relay_hw.accel.fpga.open_link import open_link
from relay_hw.accel.fpga.part_top import TOP, PartSoc, part_verilog
from relay_hw.accel.fpga.parts import FlowError, find_part
from relay_hw.accel.fpga.sim.board import BoardModel, build_board, running_board
from relay_hw.accel.fpga.socs import part_soc
from relay_hw.accel.fpga.uartbone import UartboneLink
from relay_hw.accel.isa.asm import assemble_file
from relay_hw.accel.isa.config import AccelConfig, load_config
from relay_hw.accel.isa.errors import AccelError, Fault, ProgramError
from relay_hw.accel.isa.program import Program
from relay_hw.accel.isa.randprog import random_program
from relay_hw.accel.isa.spec import DEVICE_MAGIC
from relay_hw.accel.sim.functional import FunctionalDevice
from relay_hw.accel.sim.selftest import self_test
from relay_hw.frontend import from_onnx
from relay_hw.runtime import CompileOptions, compile_model
from relay_hw.runtime.execute import Executor
from tests.accel.fpga.extra import lint_messages
from tests.accel.isa.runner import PROGRAMS
from tests.accel.sim.timed_programs import timed_program

pytest.importorskip("serial", reason="pyserial (extra fpga) is not installed")

TINY = load_config("tiny")
DIVISOR = 4
MEMORY = 1 << 20
# Words that the driver sends at a time.
CHUNK_WORDS = 1024
# Seconds that an answer may take: the machine may be busy.
PATIENCE = 20
# A slow clock, so that a command is given up after few cycles: the board's clock rests when nobody talks to it.
SOC = part_soc(TINY, find_part("lfe5u-25f"), 2, MEMORY, 2_000_000 // DIVISOR)


@pytest.fixture(scope="module")
def board() -> Iterator[str]:
    with running_board(build_board(BoardModel(TOP, SOC.design.files)), DIVISOR) as address:
        yield address


@pytest.fixture
def link(board: str) -> Iterator[UartboneLink]:
    opened = open_link(board, 1, PATIENCE)
    yield opened
    opened.close()


def outcome(device: FpgaDevice | FunctionalDevice, program: Program) -> tuple[str, bytes]:
    """What ended a launch, and the window after it; what is left of a fault's store has no meaning."""
    device.load(program)
    try:
        device.launch()
    except Fault as fault:
        return f"{fault.code.name} {fault.index}", b""
    return "done", device.read(0, program.window_bytes).tobytes()


LEGAL = [path for path in PROGRAMS if not path.stem.startswith(("fault", "deadlock"))]


@pytest.mark.long
def test_programs_leave_the_same_bytes(link: UartboneLink) -> None:
    device = FpgaDevice(TINY, link, SOC.map)
    ran = 0
    for path in LEGAL:
        program = assemble_file(path)
        if program.config == "tiny":
            assert outcome(device, program) == outcome(FunctionalDevice(TINY), program), path.stem
            ran += 1
    assert ran >= 20


@pytest.mark.parametrize("name", ["fault_range_load", "fault_token_overflow", "fault_opcode"])
def test_faults_are_told_and_survived(link: UartboneLink, name: str) -> None:
    device = FpgaDevice(TINY, link, SOC.map)
    path = next(path for path in PROGRAMS if path.stem == name)
    with pytest.raises(Fault, match="instruction"):
        device.load(assemble_file(path))
        device.launch()
    good = assemble_file(next(path for path in PROGRAMS if path.stem == "gemm_basic"))
    assert outcome(device, good) == outcome(FunctionalDevice(TINY), good)


@pytest.mark.parametrize("seed", range(4))
def test_random_programs_leave_the_same_bytes(link: UartboneLink, seed: int) -> None:
    program = random_program(TINY, seed, 40)
    device, expected = FpgaDevice(TINY, link, SOC.map), FunctionalDevice(TINY)
    assert outcome(device, program) == outcome(expected, program)
    # Again: what the launch wrote is sent anew, the rest is still there.
    assert outcome(device, program) == outcome(expected, program)


class Counted:
    """A line that counts the words which it writes to the memory."""

    def __init__(self, line: Link) -> None:
        self.line = line
        self.words = 0

    def write(self, address: int, words: Sequence[int]) -> None:
        self.words += len(words) if address < SOC.map.registers_base else 0
        self.line.write(address, words)

    def read(self, address: int, count: int) -> list[int]:
        return self.line.read(address, count)

    def close(self) -> None:
        self.line.close()

    def taken(self) -> int:
        """Words since the last call."""
        found, self.words = self.words, 0
        return found


@pytest.mark.parametrize("room", [1, 2])
def test_programs_that_take_turns_stay_in_the_memory(link: UartboneLink, room: int) -> None:
    """Both windows fit: from the third turn on, each sends what the last launch of the same program changed."""
    programs = [random_program(TINY, seed, 40) for seed in (0, 1)]
    line, size = Counted(link), max(program.window_bytes for program in programs)
    device = FpgaDevice(TINY, line, replace(SOC.map, memory_bytes=room * size))
    wanted = [outcome(FunctionalDevice(TINY), program) for program in programs]
    sent: list[int] = []
    for program, want in [*zip(programs, wanted, strict=True)] * 3:
        line.taken()
        device.load(program)
        sent.append(line.taken())
        device.launch()
        assert ("done", device.read(0, program.window_bytes).tobytes()) == want
    device.load(programs[1])
    alone = line.taken()
    # Compared in chunks, so that what differs in one byte takes a chunk.
    changed = sum(bool(np.any(part)) for part in _changed(programs[1], wanted[1][1]))
    assert alone == changed * CHUNK_WORDS < programs[1].window_bytes // 4
    assert (sent[5] == alone) == (room == 2) and sent[3] > alone <= sent[5]


def _changed(program: Program, after: bytes) -> list[np.ndarray]:
    """Chunks of a window: which bytes a launch left other than they were."""
    device = FunctionalDevice(TINY)
    device.load(program)
    different = device.read(0, program.window_bytes) != np.frombuffer(after, np.uint8)
    return np.split(different, range(4 * CHUNK_WORDS, different.size, 4 * CHUNK_WORDS))


@pytest.mark.long
def test_the_self_test_passes_and_leaves_the_board_usable(link: UartboneLink) -> None:
    device = FpgaDevice(TINY, link, SOC.map)
    found = self_test(device, 2)
    assert all(finding.ok for finding in found), found
    assert next(finding for finding in found if finding.name == "memory").figures["memory_bytes"] == MEMORY
    good = assemble_file(next(path for path in PROGRAMS if path.stem == "gemm_basic"))
    assert outcome(device, good) == outcome(FunctionalDevice(TINY), good)


@pytest.mark.parametrize(("offset", "size"), [(2, 4), (0, 6), (MEMORY - 4, 8), (-4, 4)])
def test_memory_that_is_none(link: UartboneLink, offset: int, size: int) -> None:
    device = FpgaDevice(TINY, link, SOC.map)
    message = rf"memory access must be words in \[0, {MEMORY}\), not \[{offset}, {offset + size}\)"
    with pytest.raises(ProgramError, match=message):
        device.peek(offset, size)
    with pytest.raises(ProgramError, match=message):
        device.poke(offset, np.zeros(size, np.uint8))


def test_odd_places_are_read_and_written(link: UartboneLink) -> None:
    program = assemble_file(next(path for path in PROGRAMS if path.stem == "gemm_basic"))
    device = FpgaDevice(TINY, link, SOC.map)
    device.load(program)
    before = device.read(0, 64)
    device.write(5, np.array([1, 2, 3], np.uint8))
    after = device.read(0, 64)
    assert after[5:8].tolist() == [1, 2, 3]
    np.testing.assert_array_equal(np.delete(after, [5, 6, 7]), np.delete(before, [5, 6, 7]))
    assert device.read(6, 1).tolist() == [2]


def test_another_accelerator_is_refused(link: UartboneLink) -> None:
    other = replace(TINY, uop_depth=256)
    program = timed_program(other, 0)
    with pytest.raises(ProgramError, match="core register CONFIG_HASH must be 0x"):
        FpgaDevice(other, link, SOC.map).load(program)


def test_a_window_larger_than_the_memory(link: UartboneLink) -> None:
    program = timed_program(TINY, 0)
    small = replace(SOC.map, memory_bytes=4096)
    with pytest.raises(ProgramError, match=r"window must fit the 4096 bytes of lfe5u-25f, not be \d+"):
        FpgaDevice(TINY, link, small).load(program)


def test_a_busy_board_is_left_alone_and_an_unplugged_one_told(board: str) -> None:
    """A launch that never ends, without a watchdog; another driver must not disturb it, a reset ends it."""
    program = assemble_file(next(path for path in PROGRAMS if path.stem == "deadlock_token"))
    first = FpgaDevice(TINY, open_link(board, 1, PATIENCE), SOC.map)
    first.load(program)
    code = program.code
    first.core.launch(code, 0)
    with pytest.raises(AccelError, match="board lfe5u-25f must be idle, not busy with another launch; wait, or reset"):
        first.load(program)
    assert first.core.busy
    first.core.reset()
    good = assemble_file(next(path for path in PROGRAMS if path.stem == "gemm_basic"))
    assert outcome(first, good) == outcome(FunctionalDevice(TINY), good)
    first.close()
    with pytest.raises(LinkError, match=r"link socket://.* must "):
        first.load(good)


def test_commands_that_stop_half_way_are_forgotten(board: str) -> None:
    import serial

    with serial.serial_for_url(board, timeout=2) as line:
        line.write(b"\x02\x01\xb0")
        assert line.read(1) == b""
    link = open_link(board, 1, PATIENCE)
    assert link.read(SOC.map.registers_base, 1) == [DEVICE_MAGIC]
    link.close()


# One for each width of the bus, all that the SoC has of a configuration; tests/accel/rtl lints the rest.
@pytest.mark.parametrize("name", ["tiny", pytest.param("wide", marks=pytest.mark.long)])
def test_the_verilog_has_no_warnings(name: str, tmp_path: Path) -> None:
    config: AccelConfig = load_config(name)
    soc = part_soc(config, find_part("lfe5u-85f"))
    assert not lint_messages(TOP, soc.design.files, tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"memory_bytes": 3000}, "memory_bytes must be a power of two of two beats or more, not 3000"),
        ({"divisor": 3}, "divisor must be at least 4, not 3"),
    ],
)
def test_sizes_that_are_none(change: dict[str, int], message: str) -> None:
    sizes = {"clock_hz": 25_000_000, "divisor": 25, "memory_bytes": 8192} | change
    with pytest.raises(FlowError, match=message):
        PartSoc(TINY, find_part("lfe5u-25f"), **sizes)


def test_a_part_that_is_none() -> None:
    with pytest.raises(
        FlowError, match="part must be one of lfe5u-25f, lfe5u-45f, lfe5u-85f, gw2a-18c, gw5ast-138c, not xc7"
    ):
        find_part("xc7")


def test_the_top_is_the_same_twice() -> None:
    sizes = PartSoc(TINY, find_part("lfe5u-25f"), 25_000_000, 25, 8192)
    assert part_verilog(sizes) == part_verilog(sizes)


@pytest.mark.long
def test_a_small_vision_transformer(link: UartboneLink, tmp_path: Path) -> None:
    """Softmax, norms and layers on the SoC with a row unit; products of activations, which `tiny` has not, between."""
    mod, params = from_onnx(small("deit_tiny"))
    data = dict(samples(small("deit_tiny"), 2, 1))
    options = CompileOptions(config="tiny", host_target="numpy")
    build = compile_model(mod, options, params=params, calibration=data).save(tmp_path / "vit")
    rows = {row.operator for row in build.manifest.layers if row.where == "accel"}
    assert {"accel.softmax", "accel.layer_norm", "accel.dense", "accel.conv2d"} <= rows
    want = Executor(build, None).run(data, keep_regions=True)
    got = Executor(build, FpgaDevice(TINY, link, SOC.map)).run(data, keep_regions=True)
    for name, parts in want.regions.items():
        for one, other in zip(parts, got.regions[name], strict=True):
            np.testing.assert_array_equal(other, one)
    for name, value in want.outputs.items():
        np.testing.assert_array_equal(got.outputs[name], value)
    print(f"\n{len(want.regions)} regions, {sum(launch.stats.cycles or 0 for launch in got.launches):,} cycles")
