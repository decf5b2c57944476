"""The script in examples/ runs as a user runs it: its imports are all that differs from TVM's."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[3] / "examples" / "tvm_resnet18.py"


def test_resnet_18(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), "--size", "33", "--classes", "10", "--target", "numpy"])
    runpy.run_path(str(SCRIPT), run_name="__main__")
    out = capsys.readouterr().out
    assert "fused functions, 9 of them a convolution, an addition and relu" in out
    assert out.rstrip().endswith("saved, loaded, and the same") and "FuseOps" in out


def test_only_imports_name_this_project() -> None:
    for line in SCRIPT.read_text().splitlines():
        if "relay_hw" in line:
            assert line.startswith("from relay_hw.compat") and "  # " in line, line
