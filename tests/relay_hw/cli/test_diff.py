"""`relay-hw diff`: two strategies of one network, whose sums are those of both profiles."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from relay_hw.cli.data import save_npz
from relay_hw.cli.main import main
from tests.relay_hw.small_models import images, save_branches

Captured = pytest.CaptureFixture[str]


def run(capsys: Captured, *arguments: str | Path, status: int = 0) -> str:
    assert main([str(one) for one in arguments]) == status
    said = capsys.readouterr()
    return said.out if status == 0 else said.err


def test_int8_beside_w4a8(tmp_path: Path, capsys: Captured) -> None:
    save_npz(tmp_path / "data.npz", {"image": images(8, 5)})
    model = save_branches(tmp_path / "net.onnx")
    builds = {"int8": tmp_path / "a", "w4a8": tmp_path / "b"}
    for strategy, folder in builds.items():
        config = "default" if strategy == "int8" else "w4"
        run(capsys, "compile", model, "-o", folder, "--calibration", tmp_path / "data.npz", "--quantize", strategy,
            "--config", config)  # fmt: skip
    profiles = [json.loads(run(capsys, "profile", folder, "--json")) for folder in builds.values()]
    row = json.loads(run(capsys, "diff", *builds.values(), "--json"))
    assert row["matched"] == len(row["pairs"]) == len(profiles[0]["layers"])
    for side, profile in zip(("a", "b"), profiles, strict=True):
        assert row[side]["cycles"] == profile["cycles"] == sum(pair["cycles"][side] for pair in row["pairs"])
        assert [pair[side] for pair in row["pairs"]] == profile["layers"]
    assert row["gained"] == profiles[0]["cycles"] - profiles[1]["cycles"]
    page = tmp_path / "diff.html"
    text = run(capsys, "diff", *builds.values(), "-o", page)
    assert f"page: {page}" in text and "strategy: int8 -> w4a8" in text
    assert f"{profiles[1]['cycles']:,}" in page.read_text()
    same = run(capsys, "diff", builds["int8"], builds["int8"])
    assert f"both take {profiles[0]['cycles']:,} cycles" in same


def test_what_is_no_build_is_refused(tmp_path: Path, capsys: Captured) -> None:
    assert "must" in run(capsys, "diff", tmp_path, tmp_path, status=2)
