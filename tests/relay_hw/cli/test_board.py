"""A network on a simulated board, by the commands that its owner would type."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from relay_hw.accel.fpga.boards import HostLink, find_board
from relay_hw.accel.fpga.parts import find_part
from relay_hw.accel.fpga.sim.board import build_board, running_board
from relay_hw.accel.fpga.sim.netlist import netlist_rtl
from relay_hw.accel.fpga.sim.soc import simulated_board
from relay_hw.accel.fpga.socs import board_soc
from relay_hw.accel.fpga.synth import bitstreams_folder
from relay_hw.accel.isa.config import load_config
from relay_hw.accel.sim.functional import FunctionalDevice
from relay_hw.accel.sim.rtl_device import RtlDevice, Sources
from relay_hw.cli.commands import parser
from relay_hw.cli.fpga import seeds_of
from relay_hw.cli.main import main
from relay_hw.runtime.artifact import load_artifact
from relay_hw.runtime.execute import Executor
from tests.accel.fpga.extra import needs_boards, needs_yosys

pytestmark = needs_boards

MNIST = Path(__file__).parents[3] / "examples" / "mnist_cnn.onnx"
DIVISOR = 4


@pytest.mark.parametrize(
    ("name", "config"),
    [("ulx3s-85f", "tiny"), pytest.param("ulx3s-85f", "ecp5", marks=pytest.mark.long), ("colorlight-i5", "mini")],
)
def test_the_mnist_network_on_the_whole_system(
    name: str, config: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(3)
    np.savez("data.npz", input=rng.random((8, 1, 28, 28), np.float32))
    assert main(["compile", str(MNIST), "-o", "build", "--config", config, "--calibration", "data.npz"]) == 0
    run = ["run", "build", "--input", "data.npz", "--samples", "2"]
    assert main([*run, "--output", "expected.npz"]) == 0
    board = find_board(name)
    serial = board.link is HostLink.SERIAL
    soc = board_soc(load_config(config), board, baud=round(board.mhz * 1e6) // DIVISOR if serial else None)
    Path("soc.json").write_text(soc.map.to_json())
    with running_board(build_board(simulated_board(board, soc)), DIVISOR if serial else 0) as port:
        device = ["--device", "fpga", "--port", port, "--soc", "."]
        assert main([*run, "--output", "found.npz", *device]) == 0
    capsys.readouterr()
    with np.load("found.npz") as found, np.load("expected.npz") as expected:
        assert sorted(found) == sorted(expected)
        for output in found:
            np.testing.assert_array_equal(found[output], expected[output])


@pytest.mark.long
@needs_yosys
@pytest.mark.parametrize("part", ["lfe5u-25f", "gw2a-18c", "gw5ast-138c"])
def test_the_mnist_network_on_the_netlist(part: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What placement gets for either family, with models of its cells, leaves the bytes of the functional simulator."""
    config = load_config("tiny")
    data = {"input": np.random.default_rng(3).random((8, 1, 28, 28), np.float32)}
    np.savez(tmp_path / "data.npz", **data)
    build, words = tmp_path / "build", ["--config", "tiny", "--calibration", str(tmp_path / "data.npz")]
    assert main(["compile", str(MNIST), "-o", str(build), *words]) == 0
    artifact, sample = load_artifact(build), {"input": data["input"][:2]}
    assert artifact.config == config
    expected = Executor(artifact, FunctionalDevice(config)).run(sample).outputs
    rtl = netlist_rtl(config, find_part(part), bitstreams_folder(), tmp_path / "rtl")
    device = RtlDevice(config, model=Sources(rtl))
    try:
        found = Executor(artifact, device).run(sample).outputs
    finally:
        device.close()
    assert found.keys() == expected.keys()
    for output in found:
        np.testing.assert_array_equal(found[output], expected[output])


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("--board icebreaker", "board must be one of ulx3s-85f, colorlight-i5, not icebreaker"),
        ("--board ulx3s-85f --clock 130", "clock of ulx3s-85f must be from 20 to 100 MHz, not 130"),
        ("--board ulx3s-85f --baud 40000000", "baud must be at most a quarter of the clock, not 40000000"),
        ("--board ulx3s-85f --seed 0", "a count must be an integer of at least 1, not 0"),
        ("--board ulx3s-85f --memory-kib 8", "--memory-kib must be used with --part, not --board"),
        ("--board ulx3s-85f --part lfe5u-25f", "argument --part: not allowed with argument --board"),
        ("", "one of the arguments --part --board is required"),
    ],
)
def test_what_is_refused(arguments: str, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bitstream", *arguments.split(), "-o", str(tmp_path / "out")]) == 2
    assert sentence in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_seeds_follow_the_first() -> None:
    command = ["bitstream", "--part", "lfe5u-25f", "-o", "out"]
    parse = parser().parse_args
    assert list(seeds_of(parse([*command, "--seed", "4", "--seeds", "3"]))) == [4, 5, 6]
    assert list(seeds_of(parse(command))) == [1]
