"""`relay-hw explore`: the files it writes, the configuration of a point, and bad input as status 2 with one line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from relay_hw.accel.isa.config import load_config
from relay_hw.cli.main import main
from tests.relay_hw.small_models import save_data, save_plain


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("explore-command")
    save_plain(path / "plain.onnx")
    save_data(path / "calibration.npz", 6, seed=6)
    return path


def arguments(folder: Path, *more: str) -> list[str]:
    model = [str(folder / "plain.onnx"), "--calibration", str(folder / "calibration.npz")]
    where = ["-o", str(folder / "report"), "--config", "tiny", "--processes", "1"]
    return ["explore", *model, *where, "--axis", "block_in=4,8,12", "--axis", "latency=50,100", *more]


def test_a_report_in_three_files_and_the_configuration_of_a_point(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments(folder)) == 0
    text = capsys.readouterr().out
    assert "6 points, 4 measured, 2 refused" in text and text.rstrip().endswith("explore.html")
    assert "refused 2: block_in must be a power of two from 4 to 64, not 12" in text
    data = json.loads((folder / "report" / "explore.json").read_text())
    assert (folder / "report" / "explore.csv").read_text().count("\n") == 7

    assert main(["explore", "--apply", "2", "-o", str(folder / "report")]) == 0
    path = folder / "report" / "point-2.json"
    assert load_config(path).sizes == load_config("tiny").sizes | {"block_in": 8}
    assert "--memory standard,latency=50" in capsys.readouterr().out
    build = ["compile", *arguments(folder)[1:4], "--config", str(path), "--memory", "standard,latency=50", "--json"]
    assert main([*build, "-o", str(folder / "build")]) == 0
    assert json.loads(capsys.readouterr().out)["cycles"] == data["points"][2]["cycles"]

    # All points are found again, and one of them is applied at once.
    assert main(arguments(folder, "--apply", "0", "--json")) == 0
    row = json.loads(capsys.readouterr().out)
    assert row["file"].endswith("point-0.json") and row["command"].startswith("relay-hw compile ")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (["--axis", "width=1"], "axis must be one of batch,"),
        (["--search", "lucky"], "search must be one of grid, random, smart, not lucky"),
        (["--objectives", "speed"], "objective must be one of cycles,"),
        (["--points", "0"], "a count must be an integer of at least 1, not 0"),
        (["--apply", "99"], "point must be one of the 6 measured ones, not 99"),
        (["--apply", "4"], "point 4 must be a legal configuration: configuration point-4: block_in must"),
        (["--apply", "first"], "a number must be an integer of at least 0, not first"),
        (["--quantize", "int9"], "strategy must be one of int8,"),
        (["--scheduler", "localhost"], "scheduler must be tls://HOST:PORT or tcp://HOST:PORT, not localhost"),
        (["--axis", "latency=1"], "a space must have different axes, not latency twice"),
        (["--memory", "narrow", "--board", "ulx3s-85f"], "memory must be that of board ulx3s-85f, not narrow"),
    ],
)
def test_bad_input_is_status_2_and_one_line(
    folder: Path, change: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments(folder, *change)) == 2
    lines = [line for line in capsys.readouterr().err.splitlines() if "error" in line]
    assert len(lines) == 1 and sentence in lines[0]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "explore must have a MODEL, or --apply with the folder of a finished exploration"),
        (["--apply", "0"], "explore.json must be a file that explore wrote: give a MODEL to make it"),
    ],
)
def test_without_a_model(tmp_path: Path, words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explore", *words, "-o", str(tmp_path)]) == 2
    assert sentence in capsys.readouterr().err


def test_an_exploration_of_somebody_else_is_read_with_care(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    row = {"point": 0, "reason": "", "strategy": "int8", "memory": "standard", "resident": "auto"}
    (tmp_path / "explore.json").write_text(json.dumps({"points": [row]}))
    assert main(["explore", "--apply", "0", "-o", str(tmp_path)]) == 2
    assert "explore.json must be a file that explore wrote" in capsys.readouterr().err
    (tmp_path / "explore.json").write_text(json.dumps({"points": [row | {"config": {"batch": 1}}]}))
    assert main(["explore", "--apply", "0", "-o", str(tmp_path)]) == 2
    assert "configuration point-0: key 'acc_banks' is missing" in capsys.readouterr().err
