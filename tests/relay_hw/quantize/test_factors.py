"""Factors of groups of weights: their errors, their groups, the layers that have some, what is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from relay_hw.accel.isa.config import load_config
from relay_hw.analysis import infer_type
from relay_hw.errors import QuantizeError
from relay_hw.ir.expr import Constant, Function, Var
from relay_hw.ir.module import IRModule
from relay_hw.ir.types import TensorType
from relay_hw.ir.visit import post_order
from relay_hw.op import expand_dims, nn, reshape, squeeze
from relay_hw.quantize import LayerChoice, Strategy, find_strategy, realize_module
from relay_hw.quantize.choices import WeightRange, WeightRounding
from relay_hw.quantize.factors import factored_scales, image_pixels
from relay_hw.quantize.number import weight_scales
from relay_hw.tensorize.tiles.operands import WeightForm, input_rows, row_factors, weight_form

GROUPED = Strategy("s", weight_bits=4, weight_group=16, weight_range=WeightRange.MSE)


def uneven(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Weights [O, I, ...] of 16 inputs that are large, 16 that are small, and so on."""
    size = np.repeat(rng.choice([0.05, 0.3, 1.0], (shape[0], -(-shape[1] // 16))), 16, axis=1)[:, : shape[1]]
    return (rng.normal(size=shape) * size.reshape(*size.shape, *[1] * (len(shape) - 2))).astype(np.float32)


def network(seed: int = 0) -> IRModule:
    """Two convolutions, a depthwise one, a dense layer behind a flatten, and one more."""
    rng = np.random.default_rng(seed)
    x = Var("x", TensorType((1, 3, 6, 6), "float32"))
    y = nn.relu(nn.conv2d(x, Constant(uneven(rng, 48, 3, 3, 3)), padding=(1, 1, 1, 1)))
    y = nn.relu(nn.conv2d(y, Constant(uneven(rng, 32, 48, 3, 3)), padding=(1, 1, 1, 1)))
    y = nn.relu(nn.conv2d(y, Constant(uneven(rng, 32, 1, 3, 3)), groups=32, padding=(1, 1, 1, 1)))
    y = nn.relu(nn.dense(nn.batch_flatten(y), Constant(uneven(rng, 20, 32, 36).reshape(20, -1))))
    y = nn.dense(reshape(y, (1, 20)), Constant(uneven(rng, 10, 20)))
    return IRModule.from_expr(Function([x], y))


def data(seed: int = 1) -> dict[str, np.ndarray]:
    return {"x": np.random.default_rng(seed).normal(size=(24, 3, 6, 6)).astype(np.float32)}


def integers(mod: IRModule) -> list[np.ndarray]:
    """The weights of layers, in order."""
    nodes = post_order(mod["main"].body)
    return [n.data for n in nodes if isinstance(n, Constant) and n.data.dtype == np.int8 and n.data.ndim >= 2]


@pytest.mark.parametrize("kind", list(WeightRange))
@pytest.mark.parametrize("bits", [2, 3, 4])
def test_a_factor_for_each_group_errs_less_than_a_scale_for_each_channel(kind: WeightRange, bits: int) -> None:
    rng = np.random.default_rng(bits)
    strategy = replace(GROUPED, weight_bits=bits, weight_range=kind)
    rows = uneven(rng, 8, 64).astype(np.float64)
    rule = strategy.weights
    scales, factors = factored_scales(rows, np.arange(64) // 16, rule, None)
    limit, steps = rule.limit, scales[:, None] * factors
    assert factors.min() >= 1 and factors.max() <= rule.most_factor
    assert limit * rule.most_factor == strategy.largest(bits) <= 127
    assert all(len(set(row[n : n + 16].tolist())) == 1 for row in factors for n in range(0, 64, 16))
    whole = np.clip(np.rint(rows / steps), -limit, limit)
    plain = weight_scales(rows, rule)[:, None]
    before = np.clip(np.rint(rows / plain), -limit, limit)
    error, other = (np.square(rows - a).sum() for a in (whole * steps, before * plain))
    assert error < 0.9 * other
    if kind is WeightRange.MAX:
        assert (np.abs(rows) <= steps * limit * (1 + 1e-5)).all(), "every weight is held"


def test_important_weights_err_less() -> None:
    rng = np.random.default_rng(5)
    rows, groups = rng.standard_t(3, (6, 32)), np.arange(32) // 16
    importance = np.where(np.arange(32) % 16 < 4, 100.0, 0.01)[None]
    errors = []
    for given in (importance, None):
        scales, factors = factored_scales(rows, groups, GROUPED.weights, given)
        steps = scales[:, None] * factors
        found = np.clip(np.rint(rows / steps), -7, 7) * steps
        errors.append(float((np.square(rows - found) * importance).sum()))
    assert errors[0] < errors[1]


def test_zeros_and_one_scale_for_all_channels() -> None:
    rows = np.zeros((3, 32))
    rows[1] = 1.0
    one_scale = replace(GROUPED, per_channel=False).weights
    scales, factors = factored_scales(rows, np.arange(32) // 16, one_scale, None)
    assert np.isfinite(scales).all() and len(set(scales.tolist())) == 1 and factors.min() >= 1


@pytest.mark.parametrize("rounding", [WeightRounding.HALF_EVEN, WeightRounding.GPTQ, WeightRounding.ADAROUND])
def test_layers_are_products_of_narrow_weights_and_factors(rounding: WeightRounding) -> None:
    """As LOAD multiplies them; depthwise layers have none, and layers of 8 bits stay as they are."""
    config = load_config("default")
    strategy = replace(GROUPED, weight_rounding=rounding, steps=20, layers=(LayerChoice("*", weight_bits=4),))
    found = integers(realize_module(network(), strategy, data()).mod)
    assert [one.shape for one in found] == [(48, 3, 3, 3), (32, 48, 3, 3), (32, 1, 3, 3), (20, 1152), (10, 20)]
    first, second, depthwise, dense, last = found
    for weight in (np.moveaxis(second, 1, -1), dense.reshape(20, 32, 36).swapaxes(1, 2), last):
        assert weight_form(weight, config, rows=True) is WeightForm.FACTORED
        factors = row_factors(input_rows(weight, config), 8)
        assert factors is not None and len(set(factors.tolist())) > 3
    assert np.abs(depthwise).max() <= 7 and np.abs(first).max() > 7
    eight = integers(realize_module(network(), replace(GROUPED, weight_bits=8), data()).mod)
    assert all(np.abs(weight).max() > 112 for weight in eight)


def test_groups_of_two_bits_fit_arrays_of_four() -> None:
    strategy = replace(find_strategy("w2g16a8-gptq"), first_layer=GROUPED.first_layer)
    weight = np.moveaxis(integers(realize_module(network(), strategy, data()).mod)[1], 1, -1)
    assert np.abs(weight).max() <= 7
    assert weight_form(weight, load_config("w4"), rows=True) is WeightForm.FACTORED
    assert weight_form(weight, load_config("default"), rows=True) is WeightForm.PACKED


def test_groups_that_cannot_be_are_refused() -> None:
    with pytest.raises(QuantizeError, match="weight_group must be an integer from 0 to 4096, not -1"):
        Strategy("s", weight_group=-1)
    with pytest.raises(QuantizeError, match="layer x: weight_group must be an integer from 0 to 4096, not 5000"):
        LayerChoice("x", weight_group=5000)
    with pytest.raises(QuantizeError, match="strategy s: weight_group must be 0 with epochs, not 16"):
        Strategy("s", weight_bits=4, weight_group=16, epochs=2)
    with pytest.raises(QuantizeError, match="strategy mixed: weight_group must be 0 with budget, not 16"):
        replace(find_strategy("mixed"), weight_group=16)


def test_pixels_of_an_image_are_found_through_any_change_of_shape() -> None:
    x = Var("x", TensorType((1, 32, 3, 2), "float32"))
    for flat in (nn.batch_flatten(x), expand_dims(squeeze(reshape(x, (1, 192)), (0,)), 0), reshape(x, (1, -1))):
        function = IRModule.from_expr(Function([x], flat))
        assert image_pixels(infer_type(function)["main"].body) == 6
