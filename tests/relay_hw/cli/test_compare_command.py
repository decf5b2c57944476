"""`relay-hw compare`: the files it writes, and bad input as status 2 with one line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from relay_hw.cli.main import main
from tests.relay_hw.small_models import images, save_data, save_plain


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("compare-command")
    save_plain(path / "plain.onnx")
    save_data(path / "test.npz", 12, seed=5, labels=True)
    save_data(path / "calibration.npz", 6, seed=6)
    return path


def arguments(folder: Path, *more: str, strategies: str = "int8-minmax,int8-pow2") -> list[str]:
    data = ["--data", str(folder / "test.npz"), "--calibration", str(folder / "calibration.npz")]
    where = ["-o", str(folder / "report"), "--config", "tiny", "--processes", "1"]
    return ["compare", str(folder / "plain.onnx"), *data, "--strategies", strategies, *where, *more]


def test_a_report_in_three_files(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments(folder, "--images", "10", "--layers", "conv_b", "--area")) == 0
    text = capsys.readouterr().out
    assert "int8-pow2" in text and text.rstrip().endswith("report.html")
    report = json.loads((folder / "report" / "report.json").read_text())
    assert [row["name"] for row in report["strategies"]] == ["int8-minmax", "int8-pow2"]
    assert report["images"] == 10 and report["best"] in ("int8-minmax", "int8-pow2")
    assert (folder / "report" / "report.csv").read_text().count("\n") == 3
    assert (folder / "report" / "report.html").read_text().count('class="hist"') == 1


def test_as_one_json_object_with_a_strategy_from_a_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "mine.toml").write_text('base = "int8-minmax"\n[[layer]]\nlayer = "conv_b"\nweight_bits = 4\n')
    given = arguments(folder, "--json", "--unlabelled", strategies=f"int8-minmax,{folder / 'mine.toml'}")
    assert main(given) == 0
    row = json.loads(capsys.readouterr().out)
    first, mine = row["strategies"]
    assert mine["name"] == "mine" and mine["top1"] is None
    # Entries of `tiny` are too short to be stored in half of their bytes.
    assert mine["weight_bytes"] == first["weight_bytes"] and mine["gains"] is False


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (["--data", "{}/calibration.npz"], "test data must hold labels or targets"),
        (["--data", "{}/nothing.npz"], "test data {}/nothing.npz must be an existing .npz file"),
        (["--data", "{}/small.npz"], "test data: input image must have the shape (N, 3, 8, 8), not (4, 3, 4, 4)"),
        (["--calibration", "{}/other.npz"], "calibration data must hold input image, not only picture"),
        (["--strategies", "int9"], "strategy must be one of int8,"),
        (["--strategies", "{}/wide.toml"], "weight_bits must be an integer from 2 to 8, not 16"),
        (["--strategies", "{}/lost.toml"], "conv_x"),
        (["--layers", "conv_x"], "layer must be one of conv_a,"),
        (["--name", "boxes"], "output must be one of scores, not boxes"),
        (["--config", "huge"], "configuration must be one of"),
        (["--images", "0"], "a count must be an integer of at least 1, not 0"),
        (["-o", "{}/plain.onnx"], "output {}/plain.onnx must be a folder, not a file"),
    ],
)
def test_bad_input_is_status_2_and_one_line(
    folder: Path, change: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    np.savez(folder / "small.npz", image=images(4, 1)[:, :, :4, :4], labels=np.zeros(4, int))
    np.savez(folder / "other.npz", picture=images(4, 1))
    (folder / "wide.toml").write_text("weight_bits = 16\n")
    (folder / "lost.toml").write_text('[[layer]]\nlayer = "conv_x"\nweight_bits = 4\n')
    given = arguments(folder, *(text.replace("{}", str(folder)) for text in change))
    assert main(given) == 2
    lines = [line for line in capsys.readouterr().err.splitlines() if "error" in line]
    assert len(lines) == 1 and sentence.replace("{}", str(folder)) in lines[0]


def test_no_calibration_for_a_strategy_that_needs_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = arguments(folder)
    at = given.index("--calibration")
    assert main(given[:at] + given[at + 2 :]) == 2
    assert "strategy int8-minmax needs calibration data" in capsys.readouterr().err
