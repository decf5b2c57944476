"""Twenty images of every 8- and 4-bit strategy: interpreter, compiled code, functional simulator and Verilog agree.

Minutes: `make test-compare`. Digits of the demo by default; networks of ../shared/models too where they are there.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relay_hw.accel.isa.config import config_names
from relay_hw.accel.sim.verilator import ToolError, find_toolchain
from relay_hw.backend.tvm import is_installed
from relay_hw.compare.data import read_samples
from relay_hw.compare.evaluate import Evaluator
from relay_hw.compare.network import prepare
from relay_hw.compare.network_work import FLOAT, network_work
from relay_hw.demo.digits import INPUT_NAME, read_digits
from relay_hw.interp import Interpreter
from relay_hw.ir.module import IRModule
from relay_hw.quantize import STRATEGIES, Strategy, realize_module
from relay_hw.runtime.compile import bind_params, compile_model
from relay_hw.runtime.execute import Executor
from relay_hw.runtime.models import load_model
from relay_hw.runtime.options import CompileOptions
from relay_hw.target.accel.devices import close_device, open_device

pytestmark = pytest.mark.long
ROOT = Path(__file__).parents[3]
SHARED = ROOT.parent / "shared" / "models"
IMAGES, SEEN = 20, 32
INTEGER = [strategy for strategy in STRATEGIES if not strategy.simulated]
NETWORKS = ("demo", "resnet8_cifar10")


def network(name: str) -> tuple[IRModule, Mapping[str, Any], Mapping[str, Any]]:
    """Module, images, calibration data."""
    if name == "demo":
        calibration, test = read_digits()
        model = load_model(ROOT / "examples" / "mnist_cnn.onnx")
        data = ({INPUT_NAME: test.images[:IMAGES]}, {INPUT_NAME: calibration.images[:SEEN]})
    else:
        folder = SHARED / name
        if not folder.is_dir():
            pytest.skip(f"{folder} is not there")
        model = load_model(folder / "model.onnx")
        data = tuple(
            {key: array[:count] for key, array in np.load(folder / f"{file}.npz").items() if key != "labels"}
            for file, count in (("test", IMAGES), ("calibration", SEEN))
        )
    return bind_params(model.mod, model.params), data[0], data[1]


def configs_of(strategy: Strategy) -> list[str]:
    """Where the strategy runs: 4-bit weights on 4-bit multipliers too."""
    narrow = strategy.weight_bits <= 4 or strategy.budget is not None
    return ["default"] + (["w4"] if narrow and "w4" in config_names() else [])


@pytest.mark.parametrize("strategy", INTEGER, ids=[strategy.name for strategy in INTEGER])
@pytest.mark.parametrize("name", NETWORKS)
def test_twenty_images_are_equal_everywhere(name: str, strategy: Strategy, tmp_path: Path) -> None:
    mod, images, calibration = network(name)
    prepared = prepare(mod)
    quantized = realize_module(prepared.mod, strategy, calibration).mod
    samples = read_samples(prepared.mod["main"].params, images, "images")
    is_exact = network_work(quantized).macs_of(FLOAT) == 0
    run = Interpreter(quantized)
    wanted = np.concatenate([run.call_global("main", x) for x in samples.take(0, samples.launches)])
    if is_installed():
        compiled = Evaluator(quantized, 0, "tvm").run(samples)
        assert compiled.engine == "tvm", compiled.note
        _check_equal(compiled.outputs, wanted, is_exact, "compiled")
    else:
        print(f"{strategy.name}: TVM is not installed, so nothing is compiled")
    devices = ["functional"] + (["rtl"] if _has_verilator() else [])
    for config in configs_of(strategy):
        built = compile_model(prepared.mod, CompileOptions(config=config, strategy=strategy), quantized=quantized)
        artifact = built.save(tmp_path / config)
        for device_name in devices:
            device = open_device(device_name, artifact.config)
            try:
                result = Executor(artifact, device).run(images)
            finally:
                close_device(device)
            _check_equal(next(iter(result.outputs.values())), wanted, is_exact, f"{device_name} of {config}")


def _check_equal(found: np.ndarray, wanted: np.ndarray, is_exact: bool, where: str) -> None:
    """Bytes; where a strategy leaves layers in float, their last digits depend on who computes them."""
    found = found.reshape(wanted.shape)
    if is_exact:
        np.testing.assert_array_equal(found, wanted, err_msg=where)
    else:
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4 * float(np.abs(wanted).max()), err_msg=where)


def _has_verilator() -> bool:
    try:
        find_toolchain()
    except ToolError as error:
        print(f"no Verilog: {error}")
        return False
    return True
