"""Samples in, samples out: a first axis for samples, and what comes out for one fits in for the next."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from relay_hw import op
from relay_hw.ir.expr import Function, Tuple, Var
from relay_hw.ir.module import IRModule
from relay_hw.ir.types import TensorType
from relay_hw.runtime.compile import compile_model
from relay_hw.runtime.execute import Executor
from relay_hw.runtime.manifest import TensorInfo
from relay_hw.runtime.options import CompileOptions
from relay_hw.runtime.ports import joined, read_samples


@pytest.mark.parametrize("shape", [(1, 4), (2, 1, 4), (2, 3), (1,), (3,), (), (1, 1, 4)])
def test_outputs_have_the_form_of_inputs(shape: tuple[int, ...]) -> None:
    row = TensorInfo("state", shape, "float32")
    values = [np.random.default_rng(k).normal(size=shape).astype(np.float32) for k in range(3)]
    array = joined([row], values)["state"]
    count, samples = read_samples([row], {"state": array})
    assert count == 3 and len(array) == 3
    for value, sample in zip(values, samples["state"], strict=True):
        np.testing.assert_array_equal(sample, value)


def test_a_state_is_fed_back(tmp_path: Path) -> None:
    """Two layers of state as many exporters write them, (layers, batch, size): the first axis is no batch."""
    x, state = Var("x", TensorType((1, 4), "float32")), Var("state", TensorType((2, 1, 4), "float32"))
    new = op.tanh(op.add(state, op.reshape(x, (1, 1, 4))))
    module = IRModule({"main": Function([x, state], Tuple([op.mean(new, axis=(0,)), new]))})
    artifact = compile_model(module, CompileOptions(strategy="float", host_target="numpy")).save(tmp_path / "build")
    executor = Executor(artifact, None)
    data = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
    want, given = np.zeros((2, 1, 4), np.float32), np.zeros((1, 2, 1, 4), np.float32)
    for row in data:
        found = executor.run({"x": row[None], "state": given}).outputs
        given, want = found["output_1"], np.tanh(want + row)
        assert found["output_0"].shape == (1, 4) and given.shape == (1, 2, 1, 4)
    np.testing.assert_allclose(given[0], want, rtol=1e-6)
    many = executor.run({"x": data, "state": np.zeros((3, 2, 1, 4), np.float32)}).outputs
    assert many["output_1"].shape == (3, 2, 1, 4)
