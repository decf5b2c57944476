"""`relay-hw demo`: on a fast device in place of the RTL, without a C++ compiler, and with one byte wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relay_hw.accel.sim.functional import FunctionalDevice
from relay_hw.cli.main import main
from relay_hw.demo.walk import Scores, problems

IMAGES = 12


def run(folder: Path, *arguments: str, device: str = "cycle") -> int:
    return main(["demo", "-o", str(folder), "--images", str(IMAGES), "--device", device, *arguments])


def test_the_demo_prints_what_it_promises(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path / "demo") == 0
    text = capsys.readouterr().out
    for line in (
        "float accuracy: ",
        "int8 accuracy: ",
        "top-1 agreement: ",
        f"bit-exact: {IMAGES}/{IMAGES} (cycle against the interpreter, every byte)",
        "cycles per image: ",
        "simulated cycles per second: ",
        "accel.conv2d",
        "qnn.quantize makes integers for the accelerator from floats",
        "report: ",
    ):
        assert line in text
    page = (tmp_path / "demo" / "mnist" / "report.html").read_text()
    assert f"{IMAGES}/{IMAGES}" in page
    # What is printed as the next command runs as it is.
    line = next(line for line in text.splitlines() if line.startswith("next: "))
    for command in line.removeprefix("next: ").split("; "):
        extra = ["--samples", "2"] if " run " in command else []
        assert main([*command.split()[1:], *extra]) == 0
    data = ["--calibration", str(tmp_path / "demo" / "mnist_calibration.npz"), "-o", str(tmp_path / "again")]
    assert main(["compile", str(tmp_path / "demo" / "mnist_cnn.onnx"), *data]) == 0


def test_where_no_verilog_runs_the_functional_simulator_does(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import shutil

    monkeypatch.setattr(shutil, "which", lambda *_args, **_more: None)
    assert run(tmp_path / "demo", "--json", device="rtl") == 0
    captured = capsys.readouterr()
    row = json.loads(captured.out)
    assert (row["device"], row["exact"], row["images"], row["problems"]) == ("functional", IMAGES, IMAGES, [])
    assert "the functional simulator runs instead: " in captured.err


def test_one_wrong_byte_is_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    launches = 0
    real = FunctionalDevice.read

    def read(self: FunctionalDevice, offset: int, size: int) -> Any:
        nonlocal launches
        data = real(self, offset, size)
        if size <= 16:
            launches += 1
            if launches == 5:
                data[0] ^= 1
        return data

    monkeypatch.setattr(FunctionalDevice, "read", read)
    assert run(tmp_path / "demo") == 1
    captured = capsys.readouterr()
    assert f"bit-exact: {IMAGES - 1}/{IMAGES}" in captured.out
    assert f"every image must be bit-exact, not {IMAGES - 1} of {IMAGES}" in captured.err


@pytest.mark.parametrize(
    ("scores", "cycles", "whole", "count"),
    [
        ((0.99, 0.98, 1.0, 1000, 1000), [15_000], True, 0),
        ((0.99, 0.98, 1.0, 1000, 1000), [15_000, 15_001], True, 1),
        ((0.969, 0.98, 1.0, 1000, 1000), None, True, 1),
        ((0.969, 0.96, 1.0, 1000, 1000), None, True, 2),
        ((0.969, 0.96, 1.0, 100, 100), None, False, 0),
        ((0.99, 0.98, 0.989, 1000, 1000), None, True, 1),
        ((0.99, 0.98, 0.98, 99, 100), None, False, 2),
    ],
)
def test_bounds(scores: Any, cycles: Any, whole: bool, count: int) -> None:
    assert len(problems(Scores(*scores), cycles, whole)) == count


def test_every_digit_is_tested_as_often() -> None:
    from relay_hw.demo.digits import read_digits

    calibration, test = read_digits()
    assert np.bincount(test.labels).tolist() == [100] * 10 and len(calibration.labels) == 128
