"""Methods of rounding: against brute force on small problems, and against what they promise on networks."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from relay_hw import op
from relay_hw.analysis import infer_type
from relay_hw.errors import QuantizeError
from relay_hw.interp import evaluate
from relay_hw.ir.expr import Call, Function, Var
from relay_hw.ir.module import IRModule
from relay_hw.ir.types import TensorType
from relay_hw.ir.visit import post_order
from relay_hw.quantize import Budget, Calibration, Strategy, WeightRange, WeightRounding, quantize, realize_module
from relay_hw.quantize.layers import plan_layers
from relay_hw.quantize.methods import layerwise_replay
from relay_hw.quantize.methods.adaround import Wanted, learned_rounding
from relay_hw.quantize.methods.columns import columns, from_rows, to_rows
from relay_hw.quantize.methods.gptq import adapt, second_order
from relay_hw.quantize.methods.knapsack import Option
from relay_hw.quantize.methods.mixed import choose
from relay_hw.quantize.number import QParams, layer_weights, quantize_weight, weight_scales
from relay_hw.quantize.plan import make_plan
from relay_hw.quantize.steps import LinearStep
from relay_hw.transform.pipelines import simplify_pipeline
from tests.relay_hw.quantize.networks import images as _data
from tests.relay_hw.quantize.networks import network as _network
from tests.relay_hw.quantize.networks import noise as _noise

W4 = Strategy("w4", weight_bits=4, calibration=Calibration.MSE, weight_range=WeightRange.MSE)


def _correlated(rng: np.random.Generator, depth: int, count: int) -> np.ndarray:
    mix = rng.normal(size=(depth, depth)) * np.linspace(2, 0.1, depth)
    return (mix @ rng.normal(size=(depth, count)))[None]


def test_second_order_beats_the_nearest_and_is_near_the_best():
    rng = np.random.default_rng(0)
    worse = ratio = 0.0
    for _ in range(10):
        rows = rng.normal(size=(1, 1, 6))
        x = _correlated(rng, 6, 400)
        scale = np.full((1, 1), 0.5)
        x = x - x.mean(axis=2, keepdims=True)

        def error(whole: np.ndarray, rows: np.ndarray = rows, x: np.ndarray = x) -> float:
            return float(np.square((whole * 0.5 - rows) @ x).sum())

        found = error(second_order(rows, scale[..., None], x, 7))
        nearest = error(np.rint(rows / 0.5))
        best = min(error(np.floor(rows / 0.5) + np.array(up)) for up in product((0, 1), repeat=6))
        worse += found > nearest
        ratio += found / best / 10
    assert worse <= 1 and ratio < 3


def test_second_order_without_correlation_is_the_nearest():
    rows = np.random.default_rng(0).normal(size=(2, 3, 5))
    # Orthogonal inputs of equal power: no weight can make up for another.
    x = np.tile(np.concatenate([np.eye(5), -np.eye(5)], axis=1), (2, 1, 1))
    found = second_order(rows, np.full((2, 3, 1), 0.25), x, 127)
    np.testing.assert_array_equal(found, np.rint(rows / 0.25))


def test_adapted_rows_undo_a_change_of_the_inputs():
    rng = np.random.default_rng(0)
    wanted = rng.normal(size=(1, 4, 5000))
    rows = rng.normal(size=(1, 3, 4))
    changed = adapt(rows, wanted, wanted * 2)
    assert np.abs(changed - rows / 2).max() < 0.05 * np.abs(rows).max()
    np.testing.assert_allclose(adapt(rows, wanted, wanted), rows)


def test_learned_rounding_beats_the_nearest():
    rng = np.random.default_rng(0)
    rows, x = rng.normal(size=(1, 8, 12)), _correlated(rng, 12, 600)
    scales = np.full((1, 8), 0.6)
    target = rows @ x
    found = learned_rounding(rows, scales[..., None], Wanted(x, target, np.zeros((1, 8)), (0.0, np.inf)), 7, 400, 0)
    assert np.isin(found - np.clip(np.floor(rows / 0.6), -7, 7), (0, 1)).all()

    def error(whole: np.ndarray) -> float:
        return float(np.square(np.maximum((whole * 0.6) @ x, 0) - np.maximum(target, 0)).sum())

    assert error(found) < 0.5 * error(np.rint(rows / 0.6))
    again = learned_rounding(rows, scales[..., None], Wanted(x, target, np.zeros((1, 8)), (0.0, np.inf)), 7, 400, 0)
    np.testing.assert_array_equal(found, again)


@pytest.mark.parametrize("layouts", [("NCHW", "OIHW"), ("NHWC", "HWIO")])
@pytest.mark.parametrize("groups", [1, 2, 4])
def test_rows_times_columns_is_the_convolution(layouts, groups):
    rng = np.random.default_rng(0)
    data_layout, kernel_layout = layouts
    sizes = {"N": 2, "C": 4, "H": 6, "W": 5}
    kernel = {"O": 8, "I": 4 // groups, "H": 3, "W": 2}
    x = Var("x", TensorType(tuple(sizes[c] for c in data_layout), "float32"))
    w = rng.normal(size=[kernel[c] for c in kernel_layout]).astype("float32")
    conv = op.nn.conv2d(x, op.const(w), strides=(2, 1), padding=(1, 0, 2, 1), dilation=(1, 2), groups=groups,
                        data_layout=data_layout, kernel_layout=kernel_layout)  # fmt: skip
    mod = infer_type(IRModule.from_expr(Function([x], conv)))
    (step,) = (one for one in make_plan(mod["main"].body).steps if isinstance(one, LinearStep))
    moved = np.moveaxis(step.linear.weight, step.linear.weight_axis, 0)
    rows = to_rows(step, moved)
    np.testing.assert_array_equal(from_rows(step, rows, moved), moved)
    data = rng.normal(size=tuple(sizes[c] for c in data_layout)).astype("float32")
    plain = rows @ columns(step, data)
    want = np.moveaxis(evaluate(mod, [data]), data_layout.index("C"), 0).reshape(plain.shape[0] * plain.shape[1], -1)
    np.testing.assert_allclose(plain.reshape(want.shape), want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("rounding", list(WeightRounding))
def test_weights_round_by_the_rule(rounding):
    rule = Strategy("s", weight_rounding=rounding, seed=3).weights
    weight = np.array([[0.5, 1.5, -0.5, -1.5, 0.25, 0.75, -2.0, 126.7, 500.0]])
    found = quantize_weight(weight, np.ones(1), rule, [1])[0].tolist()
    wanted = {
        WeightRounding.HALF_UP: [1, 2, 0, -1, 0, 1, -2, 127, 127],
        WeightRounding.HALF_AWAY: [1, 2, -1, -2, 0, 1, -2, 127, 127],
        WeightRounding.FLOOR: [0, 1, -1, -2, 0, 0, -2, 126, 127],
    }
    nearest = (WeightRounding.HALF_EVEN, WeightRounding.ADAROUND, WeightRounding.GPTQ)
    wanted |= {one: [0, 2, 0, -2, 0, 1, -2, 127, 127] for one in nearest}
    if rounding is not WeightRounding.STOCHASTIC:
        assert found == wanted[rounding]
        return
    assert found[6:7] == [-2] and found[8] == 127 and found[0] in (0, 1)
    assert found == quantize_weight(weight, np.ones(1), rule, [1])[0].tolist()


def test_stochastic_rounding_is_right_in_the_mean_and_follows_its_seed():
    weight = np.full((1, 20_000), 0.3)
    rule = Strategy("s", weight_rounding=WeightRounding.STOCHASTIC).weights
    first = quantize_weight(weight, np.ones(1), rule)
    assert abs(first.mean() - 0.3) < 0.02 and set(np.unique(first)) == {0, 1}
    assert (first != quantize_weight(weight, np.ones(1), replace(rule, seed=1))).any()
    assert (first != quantize_weight(weight, np.ones(1), rule, [5])).any()


def test_weight_ranges_of_least_error_err_less():
    weight = np.random.default_rng(0).standard_t(3, (4, 200))
    errors = {}
    for kind in WeightRange:
        rule = Strategy("s", weight_bits=4, weight_range=kind).weights
        scales = weight_scales(weight, rule)
        rounded = quantize_weight(weight, scales[:, None], rule) * scales[:, None]
        errors[kind] = np.square(rounded - weight).sum(axis=1)
    assert (errors[WeightRange.MSE] <= errors[WeightRange.MAX]).all()
    assert errors[WeightRange.MSE].sum() < 0.8 * errors[WeightRange.MAX].sum()


def test_biases_of_few_bits_are_multiples_of_a_power_of_two():
    given = QParams(2.0**-4, 0, -128, 127)
    rule = Strategy("s", bias_bits=8, power_of_two=True, per_channel=False).weights
    bias = np.array([0.9, -0.33, 0.004])
    layer = layer_weights(np.ones((3, 2)), bias, given, rule, "x")
    held = layer.unfolded * given.scale * layer.scales
    np.testing.assert_allclose(held, np.rint(bias * 128) / 128, atol=given.scale * layer.scales[0] / 2)


def test_corrected_biases_make_the_mean_right():
    mod, data = _network(), _data()
    plain, corrected = (quantize(mod, replace(W4, bias_correction=flag), data) for flag in (False, True))
    assert _noise(mod, corrected, _data(seed=2)) < 0.95 * _noise(mod, plain, _data(seed=2))


@pytest.mark.parametrize("rounding", [WeightRounding.GPTQ, WeightRounding.ADAROUND])
def test_learned_weights_are_better_on_data_that_they_did_not_see(rounding):
    mod, data = _network(), _data()
    plain = quantize(mod, replace(W4, bias_correction=True), data)
    found = quantize(mod, replace(W4, bias_correction=True, weight_rounding=rounding, steps=300), data)
    assert _noise(mod, found, _data(seed=2)) < 0.75 * _noise(mod, plain, _data(seed=2))


def test_training_is_better_on_data_that_it_did_not_see():
    mod, data = _network(), _data(256)
    start = replace(W4, bias_correction=True, weight_bits=3)
    plain = quantize(mod, start, data)
    found = quantize(mod, replace(start, epochs=40, learning_rate=1e-3), data)
    assert _noise(mod, found, _data(seed=2)) < 0.7 * _noise(mod, plain, _data(seed=2))


def test_mixed_precision_keeps_its_budget_and_beats_the_other_way_round():
    mod, data = _network(), _data()
    strategy = replace(W4, weight_bits=8, bias_correction=True, budget=Budget.BYTES, budget_share=0.8)
    realized = realize_module(mod, strategy, data)
    widths = [choice.weight_bits for choice in realized.strategy.layers]
    assert set(widths) == {4, 8} and realized.strategy.budget is None
    flipped = replace(
        realized.strategy,
        layers=tuple(
            replace(choice, weight_bits=12 - (choice.weight_bits or 0)) for choice in realized.strategy.layers
        ),
    )
    test = _data(seed=2)
    assert _noise(mod, realized.mod, test) < _noise(mod, quantize(mod, flipped, data), test)
    names = plan_layers(realized.reference["main"].body, W4)
    sizes = [step.linear.weight.size for step in names.linear]
    used = sum(size * bits / 8 for size, bits in zip(sizes, widths, strict=True))
    assert used <= 0.8 * sum(sizes)


def test_cycles_are_of_an_accelerator():
    with pytest.raises(QuantizeError, match=r"strategy m: a cycle budget must have an accelerator that counts"):
        quantize(_network(), replace(W4, name="m", budget=Budget.CYCLES), _data())


def test_a_given_price_and_a_given_width_are_kept():
    mod, data = _network(), _data()
    layers = plan_layers(simplify_pipeline()(mod)["main"].body, W4)
    first, *rest = [layers.names[step] for step in layers.linear]
    strategy = replace(W4, weight_bits=8, budget=Budget.CYCLES, budget_share=0.99)
    asked: list[tuple[str, int]] = []

    def cost(layer: str, bits: int) -> float:
        asked.append((layer, bits))
        return bits if layer == first else 8.0

    found = realize_module(mod, strategy, data, cost=cost).strategy
    assert {choice.layer: choice.weight_bits for choice in found.layers} == {first: 4, **dict.fromkeys(rest, 8)}
    assert {layer for layer, _ in asked} == {first, *rest}


def test_the_best_candidate_is_the_best_on_held_out_samples():
    mod, data = _network(), _data()
    strategy = Strategy("best", candidates=("w4a4", "int8", "w4a8"))
    found = realize_module(mod, strategy, data)
    assert found.strategy.name == "best" and found.strategy.summary == "int8, the best of w4a4, int8, w4a8"
    assert _noise(mod, found.mod, _data(seed=2)) == _noise(mod, quantize(mod, "int8", data), _data(seed=2))
    with pytest.raises(QuantizeError, match=r"calibration data must hold at least 2 samples to choose .* not 1"):
        quantize(mod, strategy, _data(1))


def test_budgets_out_of_reach_are_refused():
    options = {"a": [Option("a", 4, 0.1, 5.0), Option("a", 8, 0.0, 10.0)], "b": [Option("b", 8, 0.0, 10.0)]}
    strategy = Strategy("m", budget=Budget.BYTES, budget_share=0.5)
    with pytest.raises(QuantizeError, match=r"strategy m: budget_share must be at least 0\.750 .*, not 0\.5"):
        choose(options, strategy)
    assert [one.bits for one in choose(options, replace(strategy, budget_share=0.75))] == [4, 8]


def test_what_was_saved_too_much_goes_back():
    """`a` is cheap to narrow and saves little; after `b` had to follow, `a` fits wide again."""
    options = {
        "a": [Option("a", 4, 0.001, 1.0), Option("a", 8, 0.0, 2.0)],
        "b": [Option("b", 4, 1.0, 50.0), Option("b", 8, 0.0, 100.0)],
    }
    strategy = Strategy("m", budget=Budget.BYTES, budget_share=0.6)
    assert [one.bits for one in choose(options, strategy)] == [8, 4]


@pytest.mark.parametrize("rounding", list(WeightRounding))
def test_no_weight_leaves_its_width(rounding):
    mod, data = _network(), _data(8)
    strategy = replace(W4, weight_bits=3, weight_rounding=rounding, bias_correction=True, steps=20)
    found = quantize(mod, strategy, data)
    weights = [n.args[1].data for n in post_order(found["main"].body)
               if isinstance(n, Call) and n.op.name in ("nn.conv2d", "nn.dense")]  # fmt: skip
    assert len(weights) == 4 and all(np.abs(weight).max() <= 3 for weight in weights)


def test_more_samples_are_made_of_few():
    mod, test = _network(), _data(seed=2)
    gptq = replace(W4, weight_bits=3, weight_rounding=WeightRounding.GPTQ, bias_correction=True)
    few, more = (_noise(mod, quantize(mod, replace(gptq, augment=n), _data(16)), test) for n in (0, 15))
    assert more < few
    with pytest.raises(QuantizeError, match="augment must be an integer from 0 to 100, not 101"):
        replace(gptq, augment=101)


def test_what_no_later_layer_reads_is_dropped_and_changes_nothing(monkeypatch):
    mod, gptq = _network(), replace(W4, weight_rounding=WeightRounding.GPTQ, bias_correction=True)
    found = quantize(mod, gptq, _data(16))
    dropped = []
    monkeypatch.setattr(
        layerwise_replay, "_forget", lambda known, node: dropped.append(sum(node in one for one in known))
    )
    assert _noise(found, quantize(mod, gptq, _data(16)), _data(seed=2)) == 0.0
    assert len(dropped) >= 6 and all(dropped)
