"""The whole walk on real images: scikit-learn's 8x8 digits, a network fitted here, every device and configuration."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import helper, numpy_helper
from sklearn.datasets import load_digits

from relay_hw.accel.isa.config import config_names, load_config
from relay_hw.build_module import bind_params_by_name
from relay_hw.interp import evaluate
from relay_hw.runtime.artifact import Artifact
from relay_hw.runtime.compile import compile_model
from relay_hw.runtime.execute import Executor
from relay_hw.runtime.models import load_model
from relay_hw.runtime.options import CompileOptions
from relay_hw.target.accel.devices import close_device, open_device

FILTERS, TRAINED, CALIBRATED, RTL_IMAGES = 12, 1400, 64, 25
Array = NDArray[Any]


@dataclass(frozen=True)
class Digits:
    images: Array  # float32 [N, 1, 8, 8] in [0, 1]
    labels: Array

    @property
    def held_out(self) -> Array:
        return self.images[TRAINED:]


@pytest.fixture(scope="module")
def digits() -> Digits:
    raw = load_digits()
    order = np.random.default_rng(7).permutation(len(raw.target))
    images = (raw.images[order] / 16).astype(np.float32)[:, None]
    return Digits(images, raw.target[order])


def features(images: Array, weight: Array, bias: Array) -> Array:
    """ReLU of a 3x3 convolution with padding 1, largest of 2x2, flattened: what the network computes before `dense`."""
    padded = np.pad(images[:, 0], ((0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (1, 2))
    maps = np.maximum(np.einsum("nhwij,oij->nohw", windows, weight[:, 0]) + bias[:, None, None], 0)
    return maps.reshape(len(images), FILTERS, 4, 2, 4, 2).max((3, 5)).reshape(len(images), -1)


@pytest.fixture(scope="module")
def model_path(digits: Digits, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Random filters below, least squares on top: an honest classifier in a tenth of a second."""
    random = np.random.default_rng(11)
    weight = random.normal(0, 0.5, (FILTERS, 1, 3, 3)).astype(np.float32)
    bias = random.normal(0, 0.2, FILTERS).astype(np.float32)
    x = features(digits.images[:TRAINED], weight, bias)
    x1 = np.concatenate([x, np.ones((len(x), 1), np.float32)], 1)
    targets = np.eye(10, dtype=np.float32)[digits.labels[:TRAINED]]
    solution = np.linalg.solve(x1.T @ x1 + 0.5 * np.eye(x1.shape[1]), x1.T @ targets).astype(np.float32)
    tensors = {"w": weight, "b": bias, "dense_w": solution[:-1].T.copy(), "dense_b": solution[-1]}
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], name="conv", kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"], name="relu"),
        helper.make_node("MaxPool", ["r"], ["p"], name="pool", kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Flatten", ["p"], ["f"], name="flatten"),
        helper.make_node("Gemm", ["f", "dense_w", "dense_b"], ["scores"], name="dense", transB=1),
    ]
    value = lambda name, shape: helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)  # noqa: E731
    initializers = [numpy_helper.from_array(array, name) for name, array in tensors.items()]
    graph = helper.make_graph(nodes, "digits", [value("x", [1, 1, 8, 8])], [value("scores", [1, 10])], initializers)
    path = tmp_path_factory.mktemp("digits") / "digits.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    return path


@pytest.fixture(scope="module", params=config_names())
def build(request: pytest.FixtureRequest, model_path: Path, digits: Digits, tmp_path_factory: Any) -> Artifact:
    """The network compiled for each configuration in turn."""
    model = load_model(model_path)
    calibration = {"x": digits.images[:CALIBRATED]}
    compiled = compile_model(
        model.mod,
        CompileOptions(config=load_config(request.param), strategy="int8", name="digits"),
        params=model.params,
        calibration=calibration,
    )
    return compiled.save(tmp_path_factory.mktemp(request.param) / "build")


def run(build: Artifact, device: str | None, images: Array) -> tuple[Array, list[int] | None]:
    opened = open_device(device, build.manifest.config) if device else None
    result = Executor(build, opened).run({"x": images})
    if opened is not None:
        close_device(opened)
    return result.outputs["scores"].reshape(len(images), 10), result.cycles


def test_integers_keep_the_accuracy(build: Artifact, model_path: Path, digits: Digits) -> None:
    model = load_model(model_path)
    main = bind_params_by_name(model.mod["main"], model.params)
    bound = model.mod.with_functions({"main": main})
    images, labels = digits.held_out, digits.labels[TRAINED:]
    exact = np.concatenate([np.asarray(evaluate(bound, [image[None]])) for image in images])
    scores, _ = run(build, "functional", images)
    assert (exact.argmax(1) == labels).mean() >= 0.95
    assert (scores.argmax(1) == labels).mean() >= 0.95
    assert (scores.argmax(1) == exact.argmax(1)).mean() >= 0.98


def test_devices_agree_to_the_last_bit(build: Artifact, digits: Digits) -> None:
    images = digits.held_out[:RTL_IMAGES]
    reference, _ = run(build, None, images)
    functional, _ = run(build, "functional", images)
    cycle, cycles = run(build, "cycle", images)
    rtl, rtl_cycles = run(build, "rtl", images)
    assert (functional == reference).all() and (cycle == reference).all() and (rtl == reference).all()
    assert cycles is not None and len(set(cycles)) == 1, "timing must not depend on data"
    assert cycles == rtl_cycles
