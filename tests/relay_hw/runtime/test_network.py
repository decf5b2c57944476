"""The network that a build keeps: operators with their operands, sources and numbers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from relay_hw.errors import ArtifactError
from relay_hw.report import Network, Node
from relay_hw.runtime.artifact import Artifact, load_artifact
from relay_hw.runtime.compile import compile_model
from relay_hw.runtime.models import load_model
from relay_hw.runtime.options import CompileOptions
from relay_hw.text import parse
from tests.relay_hw.small_models import images, save_branches, save_mixed

SMALL = CompileOptions(config="tiny", host_target="numpy")


def built(folder: Path, save: object = save_branches) -> Artifact:
    model = load_model(save(folder / "net.onnx"))  # type: ignore[operator]
    made = compile_model(model.mod, SMALL, params=model.params, calibration={"image": images(4, 2)})
    return made.save(folder / "build")


@pytest.fixture(scope="module")
def artifact(tmp_path_factory: pytest.TempPathFactory) -> Artifact:
    return built(tmp_path_factory.mktemp("network"))


def by_name(network: Network) -> dict[str, tuple[int, Node]]:
    return {node.name: (number, node) for number, node in enumerate(network.nodes)}


def test_operators_read_what_they_read_in_the_model(artifact: Artifact) -> None:
    found = by_name(artifact.network)
    edges = {(artifact.network.nodes[k].name, name) for name, (_, node) in found.items() for k in node.inputs}
    # The sum is a part of conv_b's composite.
    assert edges == {
        ("image", "quantize image"), ("quantize image", "conv_a"), ("conv_a", "conv_b"), ("conv_b", "pool"),
        ("pool", "conv_c"), ("conv_c", "fc"), ("fc", "dequantize fc"), ("dequantize fc", "scores"),
        ("scores", "output"),
    }  # fmt: skip
    assert found["conv_b"][1].inputs


def test_each_layer_has_its_node(artifact: Artifact) -> None:
    layers = artifact.manifest.layers
    nodes = [node for node in artifact.network.nodes if node.layer >= 0]
    assert sorted(node.layer for node in nodes) == list(range(len(layers)))
    for node in nodes:
        row = layers[node.layer]
        assert (node.name, node.operator, node.where) == (row.name, row.operator, row.where)
    assert artifact.network.problem(len(layers)) == ""


def test_lines_are_those_of_the_imported_module(artifact: Artifact) -> None:
    lines = artifact.stage_text("imported").split("\n")
    parse("\n".join(lines))
    node = by_name(artifact.network)["conv_a"][1]
    assert node.names[0] == "conv_a" and "nn.conv2d" in node.relay[0].text
    for one in artifact.network.nodes:
        for line in one.relay:
            assert lines[line.number - 1].strip() == line.text


def test_numbers_are_those_of_the_quantizer(artifact: Artifact) -> None:
    node = by_name(artifact.network)["fc"][1]
    assert node.dtype == "int8" and node.shape == "1x5" and node.scale and node.noise_db and 10 < node.noise_db < 80
    assert by_name(artifact.network)["scores"][1].scale is None


def test_layers_on_the_host_are_nodes_too(tmp_path: Path) -> None:
    found = by_name(built(tmp_path, save_mixed).network)
    assert found["squash"][1].where == "host" and found["squash"][1].inputs


def test_a_damaged_network_is_refused(artifact: Artifact, tmp_path: Path) -> None:
    assert Network((Node("a", "b", "host", (0,), -1, "", ""),)).problem(0) == (
        "node 0 must read nodes before it, not [0]"
    )
    assert Network((Node("a", "b", "host", (), 3, "", ""),)).problem(2) == "node 0 must have one of 2 layers, not 3"
    file = artifact.path / "network.json"
    row = json.loads(file.read_text())
    row["nodes"][0]["layer"] = 99
    before = file.read_bytes()
    try:
        file.write_text(json.dumps(row))
        with pytest.raises(ArtifactError, match=r"network.json must have SHA-256 .*; it is damaged"):
            load_artifact(artifact.path)
    finally:
        file.write_bytes(before)
