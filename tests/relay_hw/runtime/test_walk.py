"""Random networks through the whole walk: regions equal their meaning in every byte, outputs equal the interpreter."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from relay_hw.interp import Interpreter
from relay_hw.runtime import CompileOptions, Executor, compile_model, open_device
from tests.relay_hw.random_cnn import random_cnn, random_input


@pytest.mark.parametrize(("seed", "config"), [(1, "tiny"), (4, "tiny"), (8, "ecp5"), (15, "default"), (28, "wide")])
def test_the_walk(seed: int, config: str, tmp_path: Path) -> None:
    mod = random_cnn(seed)
    compiled = compile_model(mod, CompileOptions(config=config), calibration=random_input(mod, seed, 4))
    if compiled.host_functions:
        pytest.importorskip("tvm")
    artifact = compiled.save(tmp_path / "build")
    data = random_input(mod, seed + 1000, 2)
    got = Executor(artifact, open_device("cycle", artifact.config)).run(data, keep_regions=True)
    want = Executor(artifact, None).run(data, keep_regions=True)
    assert got.regions.keys() == want.regions.keys() and len(got.regions) == len(artifact.manifest.regions) > 0
    for name, arrays in want.regions.items():
        for left, right in zip(got.regions[name], arrays, strict=True):
            np.testing.assert_array_equal(left, right)

    interpreter = Interpreter(compiled.stages["quantized"])
    (name,) = data
    values = np.concatenate([interpreter.call_global("main", [row[None]]) for row in data[name]])
    if compiled.host_functions:
        np.testing.assert_allclose(got.outputs["output"], values, atol=0.02 * (1e-3 + np.abs(values).max()))
    else:
        np.testing.assert_array_equal(got.outputs["output"], values)
