"""Whole random networks through TVM: fusion across operators must not change what they compute."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relay_hw import op
from relay_hw.analysis import infer_type
from relay_hw.backend.flat import FlatFunction, evaluate, flatten
from relay_hw.backend.tvm import build_library, load_library
from relay_hw.ir.expr import Constant, Expr, Function, Var
from relay_hw.ir.module import IRModule
from relay_hw.ir.types import TensorType
from tests.needs import needs_tvm
from tests.relay_hw.random_cnn import random_cnn, random_input

pytestmark = needs_tvm

# 78 pads a sum of convolutions.
SEEDS = (3, 7, 11, 19, 23, 42, 61, 78)


def network(seed: int) -> IRModule:
    return infer_type(random_cnn(seed))


def padded_convolution() -> IRModule:
    """A convolution whose only reader pads it: the border has no tile."""
    x = Var("x", TensorType((1, 3, 6, 6), "float32"))
    weight = Constant(np.random.default_rng(0).normal(size=(5, 3, 3, 3)).astype(np.float32))
    y: Expr = op.nn.relu(op.nn.conv2d(x, weight, padding=(1, 1), channels=5, kernel_size=(3, 3)))
    return infer_type(IRModule({"main": Function([x], op.nn.pad(y, ((0, 0), (0, 0), (1, 2), (0, 1)), 7.5))}))


MODULES = {f"net_{seed}": network(seed) for seed in SEEDS} | {"padded": padded_convolution()}
FUNCTIONS: dict[str, FlatFunction] = {name: flatten(mod["main"], name) for name, mod in MODULES.items()}


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path: Path = tmp_path_factory.mktemp("networks") / "host.so"
    return load_library(path, build_library(list(FUNCTIONS.values()), path))


@pytest.mark.parametrize("name", list(FUNCTIONS))
def test_equals_the_interpreter(name: str, library: Any) -> None:
    for seed in range(2):
        args = list(random_input(MODULES[name], seed).values())
        want = evaluate(FUNCTIONS[name], args)
        got = library.call(name, args)
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5 * (1 + np.abs(want).max()))


def test_the_same_functions_give_the_same_library(tmp_path: Path) -> None:
    functions = [FUNCTIONS["padded"], FUNCTIONS["net_3"]]
    for name in ("one.so", "two.so"):
        build_library(functions, tmp_path / name)
    assert (tmp_path / "one.so").read_bytes() == (tmp_path / "two.so").read_bytes()
