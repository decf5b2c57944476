"""The layer benchmark: the workloads are VTA's, its tables add up."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

from relay_hw.accel.isa.config import AccelConfig, load_config
from relay_hw.target.accel.roofline import layer_cost

# Multiply-accumulates and cycles at 256 products a cycle, from VTA's table; C1 with its 3 channels.
TABLE = {
    "C1": (118_013_952, 460_992), "C2": (115_605_504, 451_584), "C3": (57_802_752, 225_792), "C4": (6_422_528, 25_088),
    "C5": (115_605_504, 451_584), "C6": (57_802_752, 225_792), "C7": (6_422_528, 25_088), "C8": (115_605_504, 451_584),
    "C9": (57_802_752, 225_792), "C10": (6_422_528, 25_088), "C11": (115_605_504, 451_584),
}  # fmt: skip


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    """The script as a module."""
    folder = str(Path(__file__).parents[2] / "scripts")
    sys.path.insert(0, folder)
    try:
        import bench_layers
    finally:
        sys.path.remove(folder)
    return bench_layers


@pytest.fixture(scope="module")
def config() -> AccelConfig:
    return load_config("default")


def test_the_workloads_are_those_of_the_table(bench: ModuleType, config: AccelConfig) -> None:
    costs = {work.name: layer_cost(work.composite(config)) for work in bench.RESNET18}
    assert {name: (cost.macs, -(-cost.macs // 256)) for name, cost in costs.items()} == TABLE
    assert sum(work.count * TABLE[work.name][1] for work in bench.RESNET18 if work.name != "C1") == 6_623_232
    assert costs["C4"].array_cycles(config) == 25_088


def test_the_script_measures_layers_and_networks(
    bench: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bench.json"
    arguments = ["--layers", "C4", "--networks", "resnet8,ds_cnn", "--size", "24", "--output", str(path)]
    assert bench.main(arguments) == 0
    result = json.loads(path.read_text())
    (row,) = result["layers"]
    assert row["cycles"] == sum(row["causes"].values()) == row["counters"]["CYCLES"]
    assert row["causes"]["products"] == row["roofline_cycles"] == 25_088
    assert row["causes"]["lanes"] == 0
    resnet8, ds_cnn = result["networks"]
    for network in (resnet8, ds_cnn):
        assert network["cycles"] == sum(network["causes"].values()) == sum(r["cycles"] for r in network["layers"])
        assert 0 < network["roofline"] < 1
    assert resnet8["regions"] == 1
    assert resnet8["device_macs"] == sum(layer["macs"] for layer in resnet8["layers"])
    assert {entry["operator"] for entry in resnet8["host"]} == {"qnn.quantize", "qnn.dequantize", "nn.softmax"}
    assert all(entry["reason"] for network in (resnet8, ds_cnn) for entry in network["host"])
    text = capsys.readouterr().out
    assert f"{row['cycles']:,}" in text
    assert "host: 1 x nn.softmax" in text


BAD = [
    (["--layers", "C12"], "name must be one of C1, C2,"),
    (["--layers", "none", "--networks", "alexnet"], "name must be one of resnet18,"),
    (["--config", "huge"], "configuration must be one of default,"),
]


@pytest.mark.parametrize(("arguments", "sentence"), BAD)
def test_bad_input(
    bench: ModuleType, arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert bench.main([*arguments, "--output", str(tmp_path / "x.json")]) == 2
    assert sentence in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
