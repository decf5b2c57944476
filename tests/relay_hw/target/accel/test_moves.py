"""Networks with joins, slices and upsampling: nothing between two layers of the device goes to the host."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from relay_hw import op
from relay_hw.analysis import infer_type
from relay_hw.interp import evaluate
from relay_hw.ir.expr import Expr, Function, Trait, Tuple, Var
from relay_hw.ir.module import IRModule
from relay_hw.ir.types import TensorType
from relay_hw.runtime import CompileOptions, compile_model
from relay_hw.runtime.execute import Executor
from relay_hw.target.accel.devices import open_device
from relay_hw.target.accel.move_groups import MOVES


def _conv(rng: np.random.Generator, x: Expr, inputs: int, outputs: int, kernel: int = 3, stride: int = 1) -> Expr:
    weight = rng.uniform(-1, 1, (outputs, inputs, kernel, kernel)).astype("float32") / np.sqrt(inputs * kernel**2)
    padding = (kernel // 2, kernel // 2)
    return op.nn.relu(op.nn.conv2d(x, op.const(weight), strides=(stride, stride), padding=padding))


def _join(*parts: Expr) -> Expr:
    return op.concatenate(Tuple(parts), axis=1)


def _network(rng: np.random.Generator) -> IRModule:
    """A small U-net: down, up, joined with what was before, and a slice of the channels."""
    x = Var("x", TensorType((1, 3, 12, 12), "float32"))
    before = _conv(rng, x, 3, 32)
    low = _conv(rng, before, 32, 32, stride=2)
    up = op.nn.upsampling(low, 2, 2)
    both = _join(before, up, _conv(rng, before, 32, 16, 1))
    part = op.strided_slice(both, (0, 32), (1, 80), axes=(0, 1))
    return infer_type(IRModule.from_expr(Function([x], _conv(rng, part, 48, 5, 1))))


@pytest.mark.parametrize("config", ["default", "tiny", "wide"])
def test_nothing_between_layers_on_the_host(config: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    mod = _network(rng)
    data = {"x": rng.uniform(-1, 1, (4, 3, 12, 12)).astype("float32")}
    compiled = compile_model(mod, CompileOptions(config=config), calibration=data)
    host = [row.operator for row in compiled.layers if row.where == "host"]
    assert host == ["qnn.quantize", "qnn.dequantize"] and len(compiled.segments) == 1
    artifact = compiled.save(tmp_path / "build")
    have = Executor(artifact, open_device("functional", artifact.config)).run(data).outputs["output"]
    assert np.array_equal(have, Executor(artifact, None).run(data).outputs["output"])
    want = np.concatenate([evaluate(mod, {"x": data["x"][n : n + 1]}) for n in range(4)])
    assert np.abs(have.reshape(want.shape) - want).max() < 0.06 * np.abs(want).max()


def test_clip_behind_a_slice_on_the_device() -> None:
    rng = np.random.default_rng(2)
    x = Var("x", TensorType((1, 3, 8, 8), "float32"))
    both = _conv(rng, x, 3, 32)
    part = op.clip(op.strided_slice(both, (0, 16), (1, 32), axes=(0, 1)), 0.1, 0.4)
    mod = infer_type(IRModule.from_expr(Function([x], _join(part, _conv(rng, both, 32, 5, 1)))))
    compiled = compile_model(mod, calibration={"x": rng.uniform(-1, 1, (4, 3, 8, 8)).astype("float32")})
    host = [row.operator for row in compiled.layers if row.where == "host"]
    assert "clip" not in host and "strided_slice" not in host and "accel.clip" not in host


def test_moves_that_are_one_only_apart() -> None:
    """A slice from the middle of a block, then upsampling: no copies of blocks and no pixels in their places."""
    rng = np.random.default_rng(3)
    x = Var("x", TensorType((1, 3, 6, 6), "float32"))
    part = op.strided_slice(_conv(rng, x, 3, 32), (0, 5), (1, 25), axes=(0, 1))
    mod = infer_type(IRModule.from_expr(Function([x], _conv(rng, op.nn.upsampling(part, 2, 2), 20, 5))))
    compiled = compile_model(mod, calibration={"x": rng.uniform(-1, 1, (4, 3, 6, 6)).astype("float32")})
    assert [row.operator for row in compiled.layers if row.where == "host"] == ["qnn.quantize", "qnn.dequantize"]
    assert [row.operator for row in compiled.layers].count("accel.move") == 2


def test_average_pools_with_padding() -> None:
    """What stands for 0 is a number of its own: the pool takes the pad in."""
    rng = np.random.default_rng(1)
    x = Var("x", TensorType((1, 3, 12, 12), "float32"))
    y = op.nn.avg_pool2d(_conv(rng, x, 3, 8), (3, 3), (2, 2), padding=(1, 1), count_include_pad=True)
    mod = infer_type(IRModule.from_expr(Function([x], _conv(rng, y, 8, 5, 1))))
    compiled = compile_model(mod, calibration={"x": rng.uniform(-1, 1, (4, 3, 12, 12)).astype("float32")})
    assert [row.operator for row in compiled.layers if row.where == "host"] == ["qnn.quantize", "qnn.dequantize"]


def test_what_the_accelerator_moves_only_moves_elements() -> None:
    """A concatenation joins several tensors; all others are of one."""
    assert set(MOVES) - {"concatenate"} <= set(op.with_trait(Trait.MOVES))
