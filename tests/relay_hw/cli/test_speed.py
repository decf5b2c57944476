"""`--board` as a user meets it: what a build is made for, what is said, what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from relay_hw.cli.main import main
from relay_hw.target.accel.board import on_board
from tests.relay_hw.small_models import images, save_plain

BOARD = "ulx3s-85f"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A build for the board, and data."""
    folder = tmp_path_factory.mktemp("board")
    data = folder / "data.npz"
    np.savez(data, image=images(8, 99))
    model = save_plain(folder / "plain.onnx")
    command = ["compile", str(model), "--calibration", str(data), "-o", str(folder / "build"), "--board", BOARD]
    assert main(command) == 0
    return folder / "build", data


def told(capsys: pytest.CaptureFixture[str], *command: str) -> dict[str, object]:
    assert main([*command, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_compile_run_and_profile_say_the_same(made: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    build, data = made
    capsys.readouterr()
    profiled = told(capsys, "profile", str(build))
    ran = told(capsys, "run", str(build), "--input", str(data), "--samples", "3", "--device", "cycle")
    for found in (profiled, ran):
        speed = found["speed"]
        assert isinstance(speed, dict) and (speed["board"], speed["clock_hz"]) == (BOARD, 75_000_000)
        accelerator, board, batched, whole = speed["figures"]
        assert accelerator["cycles"] == profiled["cycles"] < batched["cycles"] <= board["cycles"] < whole["cycles"]
    assert ran["cycles"] == [profiled["cycles"]] * 3
    assert f"Speed on {BOARD} at 75 MHz" in (build / "report.html").read_text()


def test_why_takes_the_memory_of_the_board(made: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    build, _ = made
    capsys.readouterr()
    assert told(capsys, "why", str(build))["memory"] == on_board(BOARD).memory


@pytest.mark.parametrize(
    ("extra", "sentence"),
    [
        (["--config", "wide"], "configuration must be ecp5 or ecp5w4 on board ulx3s-85f, not wide"),
        (["--memory", "narrow"], "memory must be that of board ulx3s-85f, not narrow: leave one of them out"),
    ],
)
def test_what_does_not_fit_a_board_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], extra: list[str], sentence: str
) -> None:
    data = tmp_path / "data.npz"
    np.savez(data, image=images(8, 99))
    command = ["compile", str(save_plain(tmp_path / "plain.onnx")), "--calibration", str(data)]
    assert main([*command, "-o", str(tmp_path / "build"), "--board", BOARD, *extra]) == 2
    assert sentence in capsys.readouterr().err


@pytest.mark.parametrize(("command", "is_timed"), [("run", True), ("profile", True), ("verify", False), ("why", False)])
def test_help_promises_speeds_where_they_are_printed(
    command: str, is_timed: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main([command, "--help"])
    text = " ".join(capsys.readouterr().out.split())
    assert "--board NAME" in text
    assert ("report ms and samples per second there" in text) == is_timed
    assert ("simulate the memory of this board" in text) != is_timed
