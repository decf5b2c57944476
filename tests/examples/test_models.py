"""The example networks: published sizes, sane activations, one meaning, equal bytes, and a command line."""

from __future__ import annotations

import hashlib
from functools import partial
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from examples.models import NETWORKS, find
from examples.models.__main__ import listing, main
from examples.models.builder import INPUT, Network, images, same
from examples.models.exact import GRID
from relay_hw.frontend import from_onnx
from relay_hw.interp import evaluate
from relay_hw.ir.expr import Call, Op
from relay_hw.ir.module import IRModule
from relay_hw.ir.visit import post_order
from relay_hw.quantize import quantize
from relay_hw.runtime.compile import bind_params
from relay_hw.target.accel.rules import AccelRules
from relay_hw.target.pipeline import partition_pipeline
from relay_hw.tensorize import why_not
from relay_hw.transform.infer_type import InferType
from relay_hw.transform.pipelines import simplify_pipeline
from tests.targets import target_for

# Millions of multiply-accumulates and parameters as published (papers, torchvision; MLPerf Tiny, whose counts hold the
# statistics of batch norms, too).
PUBLISHED = {
    "resnet18": (1814.1, 11_689_512),
    "resnet34": (3663.8, 21_797_672),
    "resnet50": (4089.2, 25_557_032),
    "mobilenet_v1": (568.7, 4_231_976),
    "mobilenet_v2": (300.8, 3_504_872),
    "densenet121": (2834.2, 7_978_856),
    "mobilenet_v3_small": (56.5, 2_542_856),
    "efficientnet_b0": (385.8, 5_288_548),
    # Without the 16 numbers that make a distance of a distribution.
    "yolov8n": (4371.5, 3_157_184),
}
PUBLISHED_TINY = {"resnet8": (12.50, 78_666), "ds_cnn": (2.66, 24_908), "wake_words": (7.49, 221_794)}
# The grouped layers of VTA's table: size of the map, channels, stride, and how often the network has them.
GROUPED = (
    (112, 32, 1, 1), (112, 64, 2, 1), (56, 128, 1, 1), (56, 128, 2, 1), (28, 256, 1, 1),
    (28, 256, 2, 1), (14, 512, 1, 5), (14, 512, 2, 1), (7, 1024, 1, 1),
)  # fmt: skip
CONVOLUTIONS = ("nn.conv2d", "nn.conv2d_transpose")
# Statistics of batch norms; how much larger a map becomes.
_NOT_TRAINED = ("norm_mean", "norm_var", "_scales")


def calls(mod: IRModule, *names: str) -> list[Call]:
    return [
        e for e in post_order(mod["main"].body) if isinstance(e, Call) and isinstance(e.op, Op) and e.op.name in names
    ]


def shape(expr: Any) -> tuple[int, ...]:
    return expr.type.static_shape


def macs(mod: IRModule) -> int:
    """Products that the imported network asks for."""
    total = 0
    for call in calls(mod, "nn.conv2d", "nn.dense", "nn.conv2d_transpose"):
        weight = shape(call.args[1])
        # A transposed convolution spreads each input element, the others gather for each output element.
        elements = shape(call.args[0]) if call.op.name == "nn.conv2d_transpose" else shape(call)
        total += prod(elements) * prod(weight[1:])
    return total


def test_work_and_parameters_are_the_published_ones(built) -> None:
    example = built.example
    mod, params = from_onnx(built.at_published_size())
    assert macs(mod) == example.macs
    assert "x".join(map(str, shape(mod["main"].params[0])[1:])) == example.input
    assert "x".join(map(str, shape(mod["main"].body)[1:])) == example.output
    if example.name in PUBLISHED:
        trained = [array.size for name, array in params.items() if not name.endswith(_NOT_TRAINED)]
        assert (round(example.macs / 1e6, 1), sum(trained)) == PUBLISHED[example.name]
    if example.name in PUBLISHED_TINY:
        count = sum(array.size for array in params.values())
        assert (round(example.macs / 1e6, 2), count) == PUBLISHED_TINY[example.name]


def test_the_grouped_layers_are_those_of_the_table(built) -> None:
    if built.example.name != "mobilenet_grouped":
        return
    mod, _ = from_onnx(built.at_published_size())
    found = [call for call in calls(mod, "nn.conv2d") if call.attrs.groups > 1]
    rows = [
        (shape(call.args[0])[2], shape(call)[1], call.attrs.strides[0], call.attrs.groups, shape(call.args[1])[1])
        for call in found
    ]
    assert rows == [(*row[:3], row[1] // 16, 16) for row in GROUPED for _ in range(row[3])]


def test_transposed_convolutions_are_those_of_the_table(built) -> None:
    if built.example.name != "dcgan":
        return
    mod, _ = from_onnx(built.model)
    rows = [(shape(c.args[0])[2], *shape(c.args[1]), shape(c)[2]) for c in calls(mod, "nn.conv2d_transpose")]
    assert rows == [(4, 1024, 512, 4, 4, 8), (8, 512, 256, 4, 4, 16), (16, 256, 128, 4, 4, 32), (32, 128, 3, 4, 4, 64)]


def test_activations_neither_vanish_nor_explode(built) -> None:
    """On images that the statistics were not taken from."""
    pytest.importorskip("onnxruntime")
    kinds = {node.name: node.op_type for node in built.model.graph.node}
    for name, value in built.values.items():
        if kinds[name] == "BatchNormalization":
            assert 0.5 < value.std() < 2.5, f"{name} has deviation {value.std()}"
            assert abs(value.mean()) < 0.7, f"{name} has mean {value.mean()}"
        if kinds[name] in ("BatchNormalization", "Conv", "ConvTranspose", "Gemm", "Add"):
            assert np.abs(value).max() < 40, f"{name} reaches {np.abs(value).max()}"
        if kinds[name] in ("Relu", "Clip"):
            assert 0.1 < (value > 0).mean() < 0.9, f"{name}: {(value > 0).mean():.2f} of the values are positive"
    # The network still sees the image at its end: two images do not give nearly the same.
    last = [name for name, kind in kinds.items() if kind in ("Conv", "ConvTranspose", "Gemm")][-1]
    first, second = built.values[last]
    assert (first - second).std() > 0.1 * first.std()


def test_the_importer_and_onnxruntime_agree(built) -> None:
    pytest.importorskip("onnxruntime")
    mod, params = from_onnx(built.model)
    want = list(built.values.values())[-1][:1]
    have = evaluate(mod, {"input": built.images[:1], **params})
    np.testing.assert_allclose(have, want, rtol=1e-3, atol=1e-4 * np.abs(want).max())


def test_sample_images_pass_through_the_layers_as_in_onnxruntime() -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    net = Network("all", (4, 11, 10), seed=3)
    x = net.conv(net.input, "conv", 8, (3, 4), 2, same(net.input.shape, (3, 4), 2), groups=2, bias=True)
    x = net.norm_relu6(x, "conv")
    x = net.norm_relu(net.conv(x, "deep", 8, 3, 1, 1, groups=8), "deep")
    x = net.max_pool(net.add(x, x, "add"), "pool", 3, 1, 1)
    x = net.halved(net.concat([x, net.relu(x, "relu")], "join"), "half")
    x = net.conv_transpose(x, "deconv", 5, 4, 2, 1)
    x = net.dense(net.flatten(net.average_pool(x, "average"), "flatten"), "fc", 12, bias=False)
    x = net.conv(net.reshape(x, "reshape", (1, 3, 2, 2)), "last", 6, 2)
    x = net.flatten(net.global_average_pool(x, "global"), "flat")
    session = onnxruntime.InferenceSession(net.model(x, "out").SerializeToString(), providers=["CPUExecutionProvider"])
    for data, want in zip(net.input.data[:3], x.data[:3], strict=True):
        have = session.run(None, {"input": (data[None] / GRID).astype(np.float32)})[0]
        np.testing.assert_allclose(have[0], want / GRID, atol=0.01)


SAME = [
    ((1, 3, 32, 32), (3, 3), 1, (1, 1, 1, 1)),
    ((1, 3, 32, 32), (3, 3), 2, (0, 0, 1, 1)),
    ((1, 1, 49, 10), (10, 4), 2, (4, 1, 5, 1)),
    ((1, 8, 8, 8), (1, 1), 2, (0, 0, 0, 0)),
]


@pytest.mark.parametrize(("shape", "kernel", "stride", "pads"), SAME)
def test_same_padding(shape: tuple[int, ...], kernel: tuple[int, int], stride: int, pads: tuple[int, ...]) -> None:
    assert same(shape, kernel, stride) == pads


def digest(model: onnx.ModelProto) -> str:
    hashes = hashlib.sha256()
    for tensor in model.graph.initializer:
        hashes.update(tensor.name.encode() + onnx.numpy_helper.to_array(tensor).tobytes())
    return hashes.hexdigest()[:16]


@pytest.mark.parametrize(
    "name", ["resnet8", "ds_cnn", "wake_words", "mobilenet_v1", "mobilenet_v2", "mobilenet_grouped", "densenet121"]
)
def test_a_whole_network_is_one_program(name: str) -> None:
    """The host converts at both ends and ends a classifier; small inputs, since sizes do not matter here."""
    sizes = {"ds_cnn": 49}
    model = find(name).model(sizes.get(name, 32))
    mod, params = from_onnx(model)
    shape = [axis.dim_value for axis in model.graph.input[0].type.tensor_type.shape.dim]
    legal = partial(why_not, config=target_for("default"))
    partitioned = partition_pipeline(AccelRules(legal))(
        quantize(simplify_pipeline()(InferType()(bind_params(mod, params))), calibration={INPUT: images(shape[1:], 2)})
    )
    records = partitioned.attrs["partition"]
    assert {record.operator for record in records if record.where == "host"} <= {
        "qnn.quantize", "qnn.dequantize", "nn.softmax",
    }  # fmt: skip
    assert len({record.function for record in records if record.where == "accel"}) == 1


def test_bytes_depend_on_the_seed_alone() -> None:
    """The digests hold on every machine: sums are exact in any order."""
    model = find("ds_cnn").model()
    assert digest(model) == "3b2e91d272af2422"
    assert digest(find("resnet8").model()) == "97f803f863f4f90a"
    assert digest(find("ds_cnn").model(seed=1)) != digest(model)


def test_the_command_line_writes_model_and_images(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "new" / "net.onnx"
    assert main(["resnet8", "-o", str(path), "--images", "3", "--size", "16"]) == 0
    assert path.read_bytes() == find("resnet8").model(16).SerializeToString(deterministic=True)
    with np.load(path.with_suffix(".npz")) as data:
        assert data["input"].shape == (3, 3, 16, 16) and data["input"].dtype == np.float32
        assert abs(data["input"].mean()) < 0.3 and 0.7 < data["input"].std() < 1.3
    assert "3 samples of 3x16x16" in capsys.readouterr().out


def test_the_table_and_the_page_agree(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert capsys.readouterr().out.strip() == listing()
    page = (Path(__file__).parents[2] / "examples" / "models" / "README.md").read_text()
    for example in NETWORKS:
        assert f"| `{example.name}` | {example.input} | {example.output} | {example.macs:,} |" in page


BAD_INPUT = [
    (["alexnet"], "network must be one of resnet18, resnet34,"),
    (["resnet8", "--size", "0"], "size must be at least 1, not 0"),
    (["resnet8", "--images", "-1"], "images must be at least 0, not -1"),
]


@pytest.mark.parametrize(("arguments", "sentence"), BAD_INPUT)
def test_bad_input(arguments: list[str], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*arguments, "-o", str(tmp_path / "x.onnx")]) == 2
    assert sentence in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
