"""The record of cycles: complete, and a small network is not slower than it was."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from examples.models import NETWORKS
from scripts import bench_compile as bench


@pytest.mark.parametrize("memory", ["standard", "ulx3s"])
def test_a_small_network_is_not_slower_than_recorded(memory: str) -> None:
    row = bench.compiled(bench.ROOT, "ds_cnn", memory)
    assert 0 < row["cycles"] <= bench.recorded()["cycles"][memory]["ds_cnn"]


def test_the_record_has_every_network() -> None:
    record = bench.recorded()
    assert list(record["cycles"]) == list(bench.MEMORIES)
    assert set(record["cycles"]["standard"]) == {example.name for example in NETWORKS} >= set(record["cycles"]["ulx3s"])


def test_a_slower_network_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    record = {"commit": "HEAD", "cycles": {"standard": {"ds_cnn": 1000}}}
    (tmp_path / "cycles.json").write_text(json.dumps(record))
    monkeypatch.setattr(bench, "RECORD", tmp_path / "cycles.json")
    for cycles, status in ((1000, 0), (1001, 1)):
        monkeypatch.setattr(bench, "compiled", lambda *_, cycles=cycles: {"cycles": cycles, "seconds": 1.0})
        assert bench.main(["--networks", "ds_cnn", "--memory", "standard"]) == status
        assert ("more cycles than in cycles.json: ds_cnn on standard" in capsys.readouterr().out) is bool(status)
