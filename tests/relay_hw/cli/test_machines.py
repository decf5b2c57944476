"""`compile --machine`: a program on several devices from the command line, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from relay_hw.cli.main import main
from tests.relay_hw.runtime.test_placement import TEXT


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "devices.relay"
    path.write_text(TEXT)
    return path


def test_a_program_runs_on_its_devices(program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    build, out = tmp_path / "build", tmp_path / "out.npz"
    assert main(["compile", str(program), "-o", str(build), "--host", "numpy", "--machine", "cuda=numpy"]) == 0
    table = capsys.readouterr().out
    assert "it copies from cpu(0) to cuda(0)" in table.replace("\n", " ") and "device_copy" in table
    np.savez(tmp_path / "x.npz", x=np.int32([[1, 2, 3], [4, 5, 6]]))
    assert main(["run", str(build), "--input", str(tmp_path / "x.npz"), "--output", str(out)]) == 0
    assert np.load(out)["output"].tolist() == [[10, 15, 20], [25, 30, 35]]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "device must be one of cpu, ext_dev, not cuda(0)"),
        (["--machine", "cuda"], "a machine must be DEVICE=HOST, such as cuda=cuda:sm_90, not cuda"),
        (["--machine", "cuda=metal"], "host must be one of llvm, cuda, opencl, numpy, not metal"),
        (["--machine", "opencl=numpy"], "device must be one of cpu, ext_dev, opencl, not cuda(0)"),
    ],
)
def test_machines_that_are_missing(
    program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], sentence: str
) -> None:
    assert main(["compile", str(program), "-o", str(tmp_path / "build"), "--host", "numpy", *words]) != 0
    assert sentence in capsys.readouterr().err
