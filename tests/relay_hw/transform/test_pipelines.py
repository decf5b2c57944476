"""The pipelines as a whole, and what holds for every pass."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import relay_hw.transform
from relay_hw import op
from relay_hw.interp import evaluate
from relay_hw.ir.expr import TupleGetItem
from relay_hw.quantize import quantize
from relay_hw.target.accel.composites import MergeDeviceComposites
from relay_hw.target.accel.rules import AccelRules
from relay_hw.target.pipeline import partition_pipeline
from relay_hw.transform import PASSES, Pass, Sequential, simplify_pipeline
from relay_hw.transform.base import FunctionPass
from relay_hw.transform.sequential import Pipeline
from tests.relay_hw.random_cnn import random_cnn, random_input
from tests.relay_hw.transform.checks import assert_keeps_result, module, operators, var

# Results of these may differ by a rounding step, or by an approximation.
EXACT = [step for step in PASSES if step.__name__ not in ("FakeQuantizationToInteger", "FastMath", "RewriteNumerics")]


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32))
def test_simplification_keeps_the_result(seed):
    assert_keeps_result(simplify_pipeline(), seed)


@pytest.mark.parametrize("seed", range(10))
def test_simplification_ends(seed):
    """A second run finds nothing."""
    once = simplify_pipeline()(random_cnn(seed))
    assert operators(simplify_pipeline()(once)) == operators(once)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("step", EXACT)
def test_passes_keep_every_bit_of_integer_networks(step, seed):
    mod = random_cnn(seed)
    quantized = quantize(mod, calibration=random_input(mod, seed, 2))
    inputs = random_input(mod, seed)
    np.testing.assert_array_equal(evaluate(step()(quantized), inputs), evaluate(quantized, inputs))


@pytest.mark.parametrize("step", [*PASSES, MergeDeviceComposites])
def test_passes_leave_partitioned_functions_alone(step):
    mod = random_cnn(1)
    done = partition_pipeline(AccelRules())(quantize(mod, calibration=random_input(mod, 1, 2)))
    new = step()(done)
    for name in new.functions:
        if name != "main":
            assert new[name] is done[name]


def test_a_trained_block_becomes_plain():
    """pad, convolution, add, batch norm, dropout, pool, ReLU: one convolution, one bias, one ReLU, one pool."""
    rng, x = np.random.default_rng(0), var("x", 1, 3, 8, 8)
    value = lambda *shape: op.const(rng.uniform(0.1, 1, shape).astype("float32"))  # noqa: E731
    body = op.nn.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)), op.const(np.float32(0)))
    body = op.add(op.nn.conv2d(body, op.multiply(value(4, 3, 3, 3), value(4, 1, 1, 1))), value(4, 1, 1))
    body = TupleGetItem(op.nn.batch_norm(body, value(4), value(4), value(4), value(4)), 0)
    body = op.nn.relu(op.nn.max_pool2d(op.nn.dropout(body), (2, 2), (2, 2)))
    new = simplify_pipeline()(module(body, x))
    assert operators(new) == ["nn.conv2d", "nn.bias_add", "nn.relu", "nn.max_pool2d"]


def test_every_pass_of_the_folder_is_listed():
    folder = Path(relay_hw.transform.__file__).parent
    found = set()
    for path in folder.glob("*.py"):
        for item in vars(import_module(f"relay_hw.transform.{path.stem}")).values():
            if isinstance(item, type) and issubclass(item, Pass) and not item.__name__.startswith("_"):
                found.add(item)
    assert found - {Pass, FunctionPass, Sequential, Pipeline} == set(PASSES)


def test_names_are_unique():
    assert len({step.name for step in PASSES}) == len(PASSES)
