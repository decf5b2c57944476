"""Resize by whole factors: sums of shifts, onnxruntime's numbers, one launch on the accelerator."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from relay_hw.accel.sim.functional import FunctionalDevice
from relay_hw.frontend import from_onnx
from relay_hw.interp import evaluate
from relay_hw.runtime.compile import compile_model
from relay_hw.runtime.execute import Executor
from relay_hw.runtime.options import CompileOptions
from tests.relay_hw.transform.checks import count

RNG = np.random.default_rng(0)
SHAPE = (1, 3, 5, 6)


def model(mode: str, coordinates: str, scales: tuple[float, float], layers: bool = False) -> onnx.ModelProto:
    """A resize, between two layers where `layers` asks for them."""
    tensors = [numpy_helper.from_array(np.float32([1, 1, *scales]), "scales")]
    resize = helper.make_node(
        "Resize", ["b" if layers else "x", "", "scales"], ["c" if layers else "y"], mode=mode,
        coordinate_transformation_mode=coordinates,
    )  # fmt: skip
    nodes = [resize]
    if layers:
        tensors += [
            numpy_helper.from_array((RNG.normal(size=shape) / 5).astype(np.float32), name)
            for name, shape in (("w1", (8, 3, 3, 3)), ("w2", (4, 8, 3, 3)))
        ]
        first = [helper.make_node("Conv", ["x", "w1"], ["a"], pads=[1] * 4), helper.make_node("Relu", ["a"], ["b"])]
        nodes = [*first, resize, helper.make_node("Conv", ["c", "w2"], ["y"], pads=[1] * 4)]
    graph = helper.make_graph(
        nodes,
        "resize",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, SHAPE)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        tensors,
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    made.ir_version = 8
    return made


@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("coordinates", ["half_pixel", "pytorch_half_pixel", "asymmetric", "align_corners"])
@pytest.mark.parametrize("scales", [(2.0, 2.0), (3.0, 1.0), (4.0, 2.0), (1.5, 2.0), (5.0, 5.0)])
def test_the_numbers_of_onnxruntime(mode: str, coordinates: str, scales: tuple[float, float]) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    if coordinates == "align_corners" and scales[0] == 1.5:
        scales = (1.6, 2.0)  # onnxruntime and ONNX's reference differ where a size is no whole number
    made = model(mode, coordinates, scales)
    x = RNG.normal(size=SHAPE).astype(np.float32)
    session = onnxruntime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    mod, params = from_onnx(made)
    (want,) = session.run(None, {"x": x})
    np.testing.assert_allclose(evaluate(mod, {"x": x, **params}), want, rtol=1e-4, atol=1e-5)
    if coordinates != "align_corners" and all(scale in (1, 2, 3, 4) for scale in scales):
        assert count(mod)["take"] == 0


@pytest.mark.parametrize("coordinates", ["half_pixel", "asymmetric"])
@pytest.mark.parametrize("scales", [(2.0, 2.0), (3.0, 1.0), (4.0, 4.0)])
def test_between_layers_it_runs_in_one_launch(coordinates: str, scales: tuple[float, float], tmp_path: Path) -> None:
    mod, params = from_onnx(model("linear", coordinates, scales, layers=True))
    data = {"x": RNG.normal(size=(4, *SHAPE)).astype(np.float32)}
    options = CompileOptions(config="tiny", host_target="numpy")
    build = compile_model(mod, options, params=params, calibration=data).save(tmp_path / "build")
    assert {row.operator for row in build.manifest.layers if row.where == "host"} == {"qnn.quantize", "qnn.dequantize"}
    want, got = (Executor(build, device).run(data) for device in (None, FunctionalDevice(build.config)))
    np.testing.assert_array_equal(got.outputs["y"], want.outputs["y"])
    exact = np.stack([np.asarray(evaluate(mod, {"x": sample, **params})) for sample in data["x"]])
    noise = want.outputs["y"].reshape(exact.shape) - exact
    assert 20 * np.log10(np.linalg.norm(exact) / np.linalg.norm(noise)) > 28
