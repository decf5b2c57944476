"""Networks over time: one-dimensional layers run on the accelerator, in one launch, the same bytes everywhere."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from relay_hw import op
from relay_hw.accel.sim.names import CYCLE, FUNCTIONAL, RTL
from relay_hw.analysis import infer_type
from relay_hw.ir.expr import Expr, Function, TupleGetItem, Var
from relay_hw.ir.module import IRModule
from relay_hw.ir.types import TensorType
from relay_hw.runtime.artifact import Artifact
from relay_hw.runtime.compile import compile_model
from relay_hw.runtime.execute import Executor
from relay_hw.runtime.models import load_model
from relay_hw.runtime.options import CompileOptions
from relay_hw.runtime.result import Result
from relay_hw.target.accel.devices import close_device, open_device

RNG = np.random.default_rng(0)


def normal(*shape: int) -> Expr:
    return op.const((RNG.normal(size=shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32))


def norm(x: Expr, channels: int) -> Expr:
    values = (op.const(RNG.uniform(0.5, 1.5, channels).astype(np.float32)) for _ in range(4))
    return op.nn.relu(TupleGetItem(op.nn.batch_norm(x, *values), 0))


def network() -> IRModule:
    """Sound to classes: a long first kernel with a stride, a residual with a depthwise layer, dilation, every pool, a
    transposed layer."""
    x = Var("sound", TensorType((1, 1, 160), "float32"))
    y = norm(op.nn.conv1d(x, normal(8, 1, 16), strides=4, padding=6), 8)
    z = op.nn.relu(op.nn.conv1d(y, normal(8, 1, 5), padding=2, groups=8))
    y = op.nn.max_pool1d(op.nn.relu(op.add(op.nn.conv1d(z, normal(8, 8, 1)), y)), 2, 2)
    y = norm(op.nn.conv1d(y, normal(12, 8, 3), padding=2, dilation=2), 12)
    y = op.nn.avg_pool1d(op.nn.relu(op.nn.conv1d_transpose(y, normal(12, 6, 2), strides=2)), 2, 2)
    y = op.nn.bias_add(op.nn.dense(op.mean(y, axis=[2]), normal(5, 6)), normal(5))
    return infer_type(IRModule({"main": Function([x], y)}))


def run(build: Artifact, name: str, samples: dict[str, np.ndarray]) -> Result:
    device = open_device(name, build.config)
    try:
        return Executor(build, device).run(samples, keep_regions=True)
    finally:
        close_device(device)


def test_one_launch_and_one_result(tmp_path: Path) -> None:
    mod = network()
    samples = {"sound": RNG.normal(size=(6, 1, 1, 160)).astype(np.float32)}
    options = CompileOptions(config="tiny", host_target="numpy")
    compiled = compile_model(mod, options, calibration=samples)
    build = compiled.save(tmp_path / "build")
    assert len(build.programs) == 1
    layers = [row for row in build.manifest.layers if row.macs]
    assert len(layers) == 6 and {row.where for row in layers} == {"accel"}
    want = Executor(build, None).run(samples, keep_regions=True)
    runs = {name: run(build, name, samples) for name in (FUNCTIONAL, CYCLE, RTL)}
    for name, result in runs.items():
        for key, values in want.outputs.items():
            assert result.outputs[key].tobytes() == values.tobytes(), name
    counts = [[launch.stats.counters for launch in runs[name].launches] for name in (CYCLE, RTL)]
    assert counts[0] == counts[1]


def test_a_voice_detector_multiplies_on_the_accelerator(tmp_path: Path) -> None:
    """silero-vad at 16 kHz: a spectrum with a kernel of 256 samples, four layers over time, an LSTM."""
    spec = find_spec("silero_vad")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("package silero-vad is not installed (extra networks)")
    path = Path(next(iter(spec.submodule_search_locations))) / "data" / "silero_vad_16k_op15.onnx"
    time = np.arange(576 * 8) / 16_000
    sound = 0.3 * np.sin(2 * np.pi * 220 * time) * (1 + np.sin(2 * np.pi * 3 * time)) + RNG.normal(0, 0.05, time.size)
    data = {
        "input": sound.astype(np.float32).reshape(8, 1, 576),
        "state": RNG.normal(0, 0.1, (8, 2, 1, 128)).astype(np.float32),
        "sr": np.full(8, 16_000),
    }
    model = load_model(path, shapes={"input": (1, 576), "state": (2, 1, 128)})
    options = CompileOptions(host_target="numpy")
    build = compile_model(model.mod, options, params=model.params, calibration=data).save(tmp_path / "build")
    layers = build.manifest.layers
    on_device = sum(row.macs for row in layers if row.where == "accel")
    assert on_device / sum(row.macs for row in layers) > 0.98
    want, got = (
        Executor(build, None).run(data, 2),
        run(build, FUNCTIONAL, {name: value[:2] for name, value in data.items()}),
    )
    for name, values in want.outputs.items():
        np.testing.assert_array_equal(got.outputs[name], values)
