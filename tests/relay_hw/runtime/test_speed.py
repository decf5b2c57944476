"""Speed on boards: what programs are made for, the line in time, and the same time as the SoC in simulation."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from examples.models import find
from examples.models.builder import INPUT
from examples.models.builder import images as pictures
from relay_hw.accel.fpga.boards import BOARDS, find_board
from relay_hw.accel.fpga.device import FpgaDevice
from relay_hw.accel.fpga.open_link import open_link
from relay_hw.accel.fpga.sim.board import RunningBoard, build_board, started_board
from relay_hw.accel.fpga.sim.soc import simulated_board
from relay_hw.accel.fpga.soc_map import SocMap
from relay_hw.accel.fpga.socs import Soc, board_soc
from relay_hw.accel.isa.config import AccelConfig, load_config
from relay_hw.accel.sim.dram_timing import memory_model
from relay_hw.accel.sim.functional import FunctionalDevice
from relay_hw.errors import InputError
from relay_hw.frontend import from_onnx
from relay_hw.report import HostTime, speed_json, speed_table
from relay_hw.runtime.artifact import Artifact
from relay_hw.runtime.compile import CompiledModel, compile_model
from relay_hw.runtime.execute import Executor
from relay_hw.runtime.options import CompileOptions
from relay_hw.runtime.profile import time_regions
from relay_hw.runtime.speed import MemoryCycles, link_seconds, speed_on
from relay_hw.runtime.told import told_board, told_memory
from relay_hw.target.accel.board import OnBoard, on_board
from relay_hw.target.accel.target import AccelTarget
from tests.accel.fpga.extra import needs_boards
from tests.relay_hw.small_models import images

ULX3S = find_board("ulx3s-85f")
# Cycles of a bit: the line of the boards in other tests, so that they share one model.
DIVISOR = 4
SAMPLES = 4
# What figures may be off from the SoC in simulation.
LINK_LIMIT, CYCLES_LIMIT = 0.05, 0.005
# Of the rate of line or launches, whichever is slower, in a batch.
OVERLAP = 0.95
HOST = HostTime(0.001, "a machine", "a sample")
PLACE = OnBoard("ulx3s-85f", "tiny", 80_000_000, "ulx3s", is_routed=False)


def test_a_board_is_a_configuration_a_clock_and_a_memory() -> None:
    usual = on_board("ulx3s-85f")
    assert usual == OnBoard("ulx3s-85f", "ecp5", 75_000_000, usual.memory, is_routed=True)
    chip = memory_model(usual.memory).sdram
    assert chip is not None and chip.refresh_every == 585
    slower = on_board("ulx3s-85f", "ecp5w4")
    assert slower.clock_hz == 60_000_000
    chip = memory_model(slower.memory).sdram
    assert chip is not None and chip.refresh_every == 468
    for board in BOARDS:
        for fit in board.fits:
            assert on_board(board.name, fit.config).clock_hz == round(fit.mhz * 1e6)


def test_a_board_without_that_clock_is_refused() -> None:
    with pytest.raises(InputError, match="configuration must be ecp5 or ecp5w4 on board ulx3s-85f, not wide"):
        on_board("ulx3s-85f", "wide")
    with pytest.raises(InputError, match="board must be one of ulx3s-85f, colorlight-i5, not arty"):
        on_board("arty")


def test_a_build_remembers_its_board(plain: tuple[CompiledModel, Artifact], tmp_path: Path) -> None:
    compiled, _ = plain
    target = AccelTarget(replace(compiled.config, name="mini"), "colorlight", "colorlight-i5")
    artifact = replace(compiled, target=target).save(tmp_path / "build")
    place = told_board(artifact.manifest, None)
    assert place is not None and (place.board, place.memory) == ("colorlight-i5", "colorlight")
    assert told_memory(artifact.manifest, None, place.board) == ("colorlight", "")
    with pytest.raises(InputError, match="memory must be that of board colorlight-i5, colorlight, not narrow"):
        told_memory(artifact.manifest, "narrow", place.board)
    with pytest.raises(InputError, match="configuration must be ecp5 or ecp5w4 on board ulx3s-85f, not mini"):
        told_board(artifact.manifest, "ulx3s-85f")


def test_a_board_has_one_memory() -> None:
    mod, params = from_onnx(find("ds_cnn").model())
    with pytest.raises(InputError, match="memory must be that of board ulx3s-85f, not narrow: leave one of them out"):
        compile_model(mod, CompileOptions(memory="narrow", board="ulx3s-85f"), params=params)


def test_each_figure_has_what_the_one_before_leaves_out(plain: tuple[CompiledModel, Artifact]) -> None:
    _, artifact = plain
    speed = speed_on(PLACE, artifact, HOST, {"image": images(3, 7)})
    accelerator, board, batched, whole = speed.figures
    assert accelerator.seconds * 80e6 == pytest.approx(
        sum(run.timing.cycles for run in time_regions(artifact, "ulx3s"))
    )
    assert accelerator.seconds < batched.seconds < board.seconds
    assert whole.seconds == pytest.approx(board.seconds + HOST.seconds)
    row = speed_json(speed)
    assert row is not None
    assert [figure["what"] for figure in row["figures"]] == ["accelerator", "with its link", "in a batch", "end to end"]
    assert row["figures"][0]["samples_per_second"] == pytest.approx(1 / accelerator.seconds)
    assert "on ulx3s-85f at 80 MHz, which no bitstream has met yet" in speed_table(speed)


def test_a_line_without_a_clock_has_no_figure(plain: tuple[CompiledModel, Artifact]) -> None:
    _, artifact = plain
    place = on_board("colorlight-i5")
    assert [figure.what for figure in speed_on(place, artifact, HOST).figures] == ["accelerator"]


class Restless:
    """Polls all the time, so that the line is never silent while the board computes."""

    def now(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float, /) -> None: ...


@contextmanager
def simulated(config: AccelConfig) -> Iterator[tuple[RunningBoard, Soc]]:
    soc = board_soc(config, ULX3S, mhz=80, baud=80_000_000 // DIVISOR)
    with started_board(build_board(simulated_board(ULX3S, soc)), DIVISOR) as board:
        yield board, soc


class Simulated:
    """A build on the SoC in simulation, in cycles of its clock."""

    def __init__(self, artifact: Artifact, data: dict[str, np.ndarray], running: RunningBoard, soc: Soc) -> None:
        self.device = FpgaDevice(artifact.config, open_link(running.address, 1, 600), soc.map, timer=Restless())
        self.executor, self.data, self.running = Executor(artifact, self.device), data, running
        self.expected = Executor(artifact, FunctionalDevice(artifact.config)).run(data).outputs
        self.result = self.executor.run(data, 1)

    def run(self, first: int, count: int) -> int:
        """Cycles of samples that go together through the accelerator; their bytes are right."""
        begin = self.running.cycles()
        given = {name: np.roll(value, -first, axis=0) for name, value in self.data.items()}
        self.result = self.executor.run(given, count, chunk=count)
        for name, values in self.result.outputs.items():
            np.testing.assert_array_equal(values, np.roll(self.expected[name], -first, axis=0)[:count])
        return self.running.cycles() - begin

    def alone(self) -> int:
        """Cycles of one sample among many that come one after another."""
        return [self.run(number, 1) for number in range(1, SAMPLES)][-1]

    def batched(self) -> float:
        """Cycles of a sample of many that go together."""
        self.device.double()
        self.run(0, SAMPLES)
        short, long = self.run(SAMPLES, SAMPLES), self.run(0, 2 * SAMPLES)
        return (long - short) / SAMPLES


def a_refresh() -> int:
    """The most cycles that one refresh costs: its own, and those that open the row of every bank again."""
    sdram = memory_model("ulx3s").sdram
    assert sdram is not None
    return sdram.refresh + sdram.banks * (sdram.rp + 1 + sdram.rcd)


def check(artifact: Artifact, data: dict[str, np.ndarray], running: RunningBoard, soc: Soc) -> None:
    """The figures of a board are those of the SoC in simulation; line and launches overlap there."""
    board = Simulated(artifact, data, running, soc)
    alone, result = board.alone(), board.result
    batched = board.batched()
    board.device.close()
    assert result.cycles is not None
    launches = speed_on(replace(PLACE, config=artifact.config.name), artifact, None).figures[0].seconds * 80e6
    # When the host launches, relative to the refresh of the memory, decides whether one more of them falls into it.
    assert launches == pytest.approx(result.cycles[0], rel=CYCLES_LIMIT, abs=a_refresh())
    soc_map, cycles = replace(soc.map, setup=None), MemoryCycles(artifact.config, "ulx3s")
    said, line = link_seconds(artifact, soc_map, cycles), link_seconds(artifact, soc_map, lambda *_: 0)
    assert said is not None and line is not None
    slower = max(launches, line.batched * soc_map.clock_hz)
    for what, found, seconds in (("one by one", alone, said.alone), ("in a batch", batched, said.batched)):
        print(f"{artifact.manifest.model} {what}: {found:,.0f} cycles, {seconds * soc_map.clock_hz:,.0f} in the model")
        assert seconds * soc_map.clock_hz == pytest.approx(found, rel=LINK_LIMIT)
    print(f"{artifact.manifest.model}: {slower / batched:.1%} of the rate of line or launches, whichever is slower")
    assert slower / batched > OVERLAP


@needs_boards
def test_the_line_takes_as_long_as_in_simulation(plain: tuple[CompiledModel, Artifact]) -> None:
    _, artifact = plain
    with simulated(artifact.config) as (running, soc):
        check(artifact, {"image": images(8, 3)}, running, soc)


# What launches a program and sees its end, 48 bytes, overlaps with nothing: launches are long beside it here.
@pytest.mark.parametrize(
    ("baud", "cycles"),
    [(3_000_000, 2_000), (3_000_000, 400_000), (10_000_000, 20_000), (10_000_000, 100_000), (40_000_000, 40_000)],
)
def test_line_and_launches_overlap(plain: tuple[CompiledModel, Artifact], baud: int, cycles: int) -> None:
    """Whichever is slower is hardly slower for the other."""
    _, artifact = plain
    soc = SocMap("board", "tiny", artifact.config.hash32, 80_000_000, 1 << 25, baud)
    both, line = link_seconds(artifact, soc, lambda *_: cycles), link_seconds(artifact, soc, lambda *_: 0)
    assert both is not None and line is not None
    assert max(line.batched, cycles / soc.clock_hz) / both.batched > OVERLAP
    # A launch that is over before anybody can ask is hidden one by one, too.
    assert both.alone > 0.99 * both.batched


@needs_boards
@pytest.mark.long
def test_networks_take_as_long_as_in_simulation(tmp_path: Path) -> None:
    with simulated(load_config("ecp5")) as (running, soc):
        for name in ("resnet8", "ds_cnn", "wake_words", "dcgan"):
            model = find(name).model()
            shape = [axis.dim_value for axis in model.graph.input[0].type.tensor_type.shape.dim][1:]
            data = {INPUT: pictures(shape, 8, seed=1)}
            mod, params = from_onnx(model)
            compiled = compile_model(
                mod, CompileOptions(host_target="numpy", name=name, board="ulx3s-85f"), params=params, calibration=data
            )
            check(compiled.save(tmp_path / name), data, running, soc)
