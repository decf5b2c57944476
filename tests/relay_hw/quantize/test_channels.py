"""Channels scaled and doubled: the network means the same, and rounding costs less."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from relay_hw import op
from relay_hw.analysis import infer_type
from relay_hw.ir.expr import Expr, Function, Var
from relay_hw.ir.module import IRModule
from relay_hw.ir.types import TensorType
from relay_hw.quantize import Calibration, Strategy, quantize
from relay_hw.quantize.batch import run_samples
from relay_hw.quantize.layers import plan_layers
from relay_hw.quantize.methods.equalize import equalize, measure
from relay_hw.quantize.methods.stretches import find_stretches
from relay_hw.quantize.methods.twins import add_twins
from relay_hw.quantize.plan import make_plan
from relay_hw.quantize.steps import LinearStep
from relay_hw.transform.pipelines import simplify_pipeline
from tests.relay_hw.quantize.networks import images as _data
from tests.relay_hw.quantize.networks import network as _network
from tests.relay_hw.quantize.networks import noise as _noise


def _equalized(mod: IRModule, strategy: Strategy, data: dict[str, np.ndarray]) -> IRModule:
    body = equalize(mod, plan_layers(mod["main"].body, strategy), data)
    return infer_type(IRModule({"main": Function(mod["main"].params, body)}))


def test_equalization_keeps_the_function_and_fills_the_integers():
    mod, data = simplify_pipeline()(_network()), _data()
    strategy = Strategy("s", calibration=Calibration.MSE)
    other = _equalized(mod, strategy, data)
    np.testing.assert_allclose(run_samples(mod, data), run_samples(other, data), rtol=1e-4, atol=1e-6)

    def spread(one: IRModule) -> float:
        """How far the largest values of the first layer's channels are from each other."""
        layers = plan_layers(one["main"].body, strategy)
        stretch = find_stretches(one["main"].body, layers.plan)[0]
        high = measure(one, layers, data, [stretch])[stretch.tensors[0]].high
        return float(np.log(high[high > 0]).std())

    assert spread(other) < 0.1 * spread(mod)
    plain, found = (quantize(mod, replace(strategy, equalize=flag), data) for flag in (False, True))
    assert _noise(mod, found, _data(seed=2)) < 0.8 * _noise(mod, plain, _data(seed=2))


def _residual(bound: float | None = None) -> IRModule:
    """Two branches of a sum, a pooling, two readers; activations end at `bound` where one is given."""
    rng = np.random.default_rng(3)

    def conv(x: Expr, *shape: int) -> Expr:
        sizes = np.exp(rng.normal(size=(shape[0], 1, 1, 1))) / np.sqrt(np.prod(shape[1:]))
        weight = op.const((rng.normal(size=shape) * sizes).astype("float32"))
        pad = (shape[2] // 2, shape[2] // 2)
        bias = op.const((rng.normal(size=shape[0]) * 0.1).astype("float32"))
        return op.nn.bias_add(op.nn.conv2d(x, weight, padding=pad), bias)

    def active(x: Expr) -> Expr:
        return op.nn.relu(x) if bound is None else op.clip(x, 0.0, bound)

    x = Var("x", TensorType((1, 3, 8, 8), "float32"))
    y = active(conv(x, 8, 3, 3, 3))
    z = active(op.add(conv(y, 8, 8, 3, 3), y))
    z = op.nn.max_pool2d(z, (2, 2), (2, 2))
    out = op.add(conv(z, 6, 8, 1, 1), conv(z, 6, 8, 3, 3))
    return simplify_pipeline()(infer_type(IRModule.from_expr(Function([x], out))))


def test_equalization_goes_through_sums():
    mod, data = _residual(), _data()
    stretches = find_stretches(mod["main"].body, make_plan(mod["main"].body))
    # The sum ties both branches and the pooling together; the readers' own sum is the result, and stays.
    assert [(len(one.makers), len(one.readers), len(one.tensors)) for one in stretches] == [(2, 3, 4)]
    other = _equalized(mod, Strategy("s"), data)
    weights = [step.linear.weight for step in make_plan(mod["main"].body).steps if isinstance(step, LinearStep)]
    changed = [step.linear.weight for step in make_plan(other["main"].body).steps if isinstance(step, LinearStep)]
    assert any((old != new).any() for old, new in zip(weights, changed, strict=True))
    np.testing.assert_allclose(run_samples(mod, data), run_samples(other, data), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("bound", [0.5, 3.0, 1e3])
def test_equalization_keeps_clipped_activations(bound):
    """Channels that come near the bound stay as they are; others have room for values that calibration did not show."""
    mod = _residual(bound)
    other = _equalized(mod, Strategy("s"), _data())
    for seed in (1, 2, 3):
        data = _data(seed=seed)
        want = run_samples(mod, data)
        np.testing.assert_allclose(run_samples(other, data), want, rtol=1e-3, atol=1e-4 * np.abs(want).max())


def test_twins_keep_the_function_and_hold_more_than_one_channel():
    mod, data = simplify_pipeline()(_network()), _data()
    strategy = Strategy("s", calibration=Calibration.MSE)
    body = add_twins(mod, plan_layers(mod["main"].body, strategy), data)
    other = infer_type(IRModule({"main": Function(mod["main"].params, body)}))
    shapes = [step.linear.weight.shape for step in make_plan(body).steps if isinstance(step, LinearStep)]
    # 8 channels become 16 of the convolution and of the depthwise one; 12 stay, with a flatten behind them.
    assert shapes == [(16, 3, 3, 3), (16, 1, 3, 3), (12, 16, 1, 1), (5, 192)]
    plain, found = (quantize(mod, replace(strategy, twins=flag), data) for flag in (False, True))
    rounding = _noise(mod, plain, _data(seed=2))
    # Quarters of a step cancel but where a ReLU takes one of them: much less than what rounding costs.
    assert _noise(mod, other, _data(seed=2)) < 0.4 * rounding
    assert _noise(mod, found, _data(seed=2)) < 0.85 * rounding


def test_twins_are_the_channels_that_rounding_hurts_most():
    rng = np.random.default_rng(0)
    x = Var("x", TensorType((1, 3, 4, 4)))
    zeros = op.const(np.zeros(14, "float32"))
    y = op.nn.relu(op.nn.bias_add(op.nn.conv2d(x, op.const(rng.normal(size=(14, 3, 1, 1)).astype("float32"))), zeros))
    late = rng.normal(size=(4, 14, 1, 1)).astype("float32")
    late[:, [2, 9]] *= 20
    mod = infer_type(IRModule.from_expr(Function([x], op.nn.conv2d(y, op.const(late)))))
    data = {"x": rng.normal(size=(16, 3, 4, 4)).astype("float32")}
    body = add_twins(mod, plan_layers(mod["main"].body, Strategy("s")), data)
    first, second = (step.linear.weight for step in make_plan(body).steps if isinstance(step, LinearStep))
    assert first.shape == (16, 3, 1, 1) and second.shape == (4, 16, 1, 1)
    np.testing.assert_array_equal(first[14:], first[[2, 9]])
    np.testing.assert_array_equal(second[:, [2, 9]], late[:, [2, 9]] / 2)
    np.testing.assert_array_equal(second[:, 14:], late[:, [2, 9]] / 2)
    np.testing.assert_array_equal(second[:, 3], late[:, 3])
