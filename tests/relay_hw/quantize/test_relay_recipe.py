"""Relay's own quantizer: its settings, its defaults, its way of being called."""

from __future__ import annotations

import numpy as np
import pytest

from relay_hw import op
from relay_hw.analysis import infer_type
from relay_hw.errors import QuantizeError
from relay_hw.interp import evaluate
from relay_hw.ir.expr import Call, Constant, Expr, Function, Op, Var
from relay_hw.ir.module import IRModule
from relay_hw.ir.types import TensorType
from relay_hw.ir.visit import post_order
from relay_hw.quantize import current_qconfig, find_strategy, qconfig, quantize


def _mod() -> tuple[IRModule, dict[str, np.ndarray]]:
    """Three convolutions and a dense layer; weights are parameters."""
    rng = np.random.default_rng(0)
    shapes = {"w0": (4, 3, 3, 3), "w1": (8, 4, 3, 3), "w2": (8, 8, 1, 1), "w3": (5, 512)}
    params = {name: (rng.normal(size=shape) * 0.2).astype("float32") for name, shape in shapes.items()}
    free = {name: Var(name, TensorType(shape, "float32")) for name, shape in shapes.items()}
    x = Var("x", TensorType((1, 3, 8, 8), "float32"))
    y: Expr = op.nn.relu(op.nn.conv2d(x, free["w0"], padding=(1, 1)))
    y = op.nn.relu(op.nn.conv2d(y, free["w1"], padding=(1, 1)))
    y = op.nn.relu(op.nn.conv2d(y, free["w2"]))
    y = op.nn.dense(op.nn.batch_flatten(y), free["w3"])
    return infer_type(IRModule.from_expr(Function([x, *free.values()], y))), params


def _weights(mod: IRModule) -> list[np.ndarray]:
    """Weights of convolutions and dense layers in order."""
    calls = [n for n in post_order(mod["main"].body) if isinstance(n, Call) and isinstance(n.op, Op)]
    weights = [call.args[1] for call in calls if call.op.name in ("nn.conv2d", "nn.dense")]
    return [weight.data for weight in weights if isinstance(weight, Constant)]


def _dtypes(mod: IRModule) -> list[str]:
    return [str(weight.dtype) for weight in _weights(mod)]


def _dataset() -> list[dict[str, np.ndarray]]:
    rng = np.random.default_rng(1)
    return [{"x": rng.normal(size=(1, 3, 8, 8)).astype("float32")} for _ in range(16)]


def test_defaults_are_the_published_ones():
    config = current_qconfig()
    assert (config.nbit_input, config.nbit_weight, config.nbit_activation) == (8, 8, 32)
    assert (config.calibrate_mode, config.global_scale, config.weight_scale) == ("global_scale", 8.0, "power2")
    assert config.skip_dense_layer and tuple(config.skip_conv_layers or ()) == (0,) and config.rounding == "UPWARD"
    assert not config.do_simulation and config.round_for_shift and config.calibrate_chunk_by == -1


def test_the_first_convolution_and_dense_layers_stay_float():
    mod, params = _mod()
    found = quantize(mod, params)
    assert _dtypes(found) == ["float32", "int8", "int8", "float32"]
    scales = [n.args[1].data for n in post_order(found["main"].body)
              if isinstance(n, Call) and n.op.name in ("qnn.quantize", "qnn.dequantize")]  # fmt: skip
    assert {float(scale) for scale in scales} == {8.0 / 128}
    sample = _dataset()[0]
    want, have = evaluate(mod, {**sample, **params}), evaluate(found, sample)
    assert np.abs(want - have).max() < 0.3 * np.abs(want).max()


def test_weights_have_the_power_of_two_above_the_largest():
    mod, params = _mod()
    found = _weights(quantize(mod, params))[1].astype(np.float64)
    weight = params["w1"]
    scale = 2.0 ** np.ceil(np.log2(np.abs(weight).max())) / 128
    np.testing.assert_array_equal(found, np.clip(np.rint(weight / scale), -127, 127))


def test_settings_hold_inside_of_with():
    mod, params = _mod()
    with qconfig(skip_conv_layers=[], skip_dense_layer=False, global_scale=4.0):
        assert current_qconfig().global_scale == 4.0
        with qconfig(skip_conv_layers=[1, 2]):
            assert _dtypes(quantize(mod, params)) == ["int8", "float32", "float32", "float32"]
        assert _dtypes(quantize(mod, params=params)) == ["int8"] * 4
    assert current_qconfig().global_scale == 8.0


@pytest.mark.parametrize("global_scale", [3.0, 2.0, 5.0])
def test_a_global_scale_is_taken_as_it_is(global_scale):
    """Relay's steps are of global_scale / 128, a power of two or not; those of weights are powers of two."""
    mod, params = _mod()
    with qconfig(global_scale=global_scale, skip_conv_layers=[], skip_dense_layer=False):
        found = quantize(mod, params)
    scales = [n.args[1].data for n in post_order(found["main"].body)
              if isinstance(n, Call) and n.op.name in ("qnn.quantize", "qnn.dequantize")]  # fmt: skip
    assert {float(scale) for scale in scales} == {float(np.float32(global_scale / 128))}
    scale = 2.0 ** np.ceil(np.log2(np.abs(params["w1"]).max())) / 128
    np.testing.assert_array_equal(_weights(found)[1], np.clip(np.rint(params["w1"] / scale), -127, 127))
    sample = _dataset()[0]
    want, have = evaluate(mod, {**sample, **params}), evaluate(found, sample)
    held = np.clip(want, -global_scale, global_scale * 127 / 128)
    assert np.abs(held - have).max() <= 0.3 * global_scale


@pytest.mark.parametrize("mode", ["kl_divergence", "percentile"])
@pytest.mark.parametrize("weight_scale", ["power2", "max"])
def test_calibration_from_a_dataset(mode, weight_scale):
    mod, params = _mod()
    with qconfig(calibrate_mode=mode, weight_scale=weight_scale, rounding="TONEAREST", skip_conv_layers=None):
        found = quantize(mod, params, dataset=_dataset())
        with pytest.raises(QuantizeError, match="needs calibration data"):
            quantize(mod, params)
    assert _dtypes(found) == ["int8", "int8", "int8", "float32"]
    assert 'half_away' in {n.attrs.rounding for n in post_order(found["main"].body)
                           if isinstance(n, Call) and n.op.name == "fixed.requantize"}  # fmt: skip


def test_simulation_stays_float_and_is_near_the_integers():
    mod, params = _mod()
    with qconfig(do_simulation=True):
        simulated = quantize(mod, params)
    names = {n.op.name for n in post_order(simulated["main"].body) if isinstance(n, Call) and isinstance(n.op, Op)}
    assert "relay.op.annotation.simulated_quantize" in names and "fixed.requantize" not in names
    sample = _dataset()[0]
    have, want = evaluate(simulated, sample), evaluate(quantize(mod, params), sample)
    assert np.abs(want - have).max() < 0.05 * np.abs(want).max()


def test_only_enabled_operators_are_quantized():
    mod, params = _mod()
    with qconfig(debug_enabled_ops=["nn.dense"], skip_dense_layer=False):
        assert _dtypes(quantize(mod, params)) == ["float32"] * 3 + ["int8"]


def test_the_strategy_tvm_is_the_same_recipe():
    mod, params = _mod()
    from relay_hw.runtime.compile import bind_params

    ours = quantize(bind_params(mod, params), find_strategy("tvm"))
    theirs = quantize(mod, params)
    for left, right in zip(_weights(ours), _weights(theirs), strict=True):
        np.testing.assert_array_equal(left, right)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: qconfig(global_scal=1), "setting of qconfig must be one of nbit_input, .*, not global_scal; did you"),
        (lambda: qconfig(calibrate_mode="best"), "calibrate_mode of qconfig must be one of global_scale, .*, not best"),
        (lambda: qconfig(dtype_input="int16"), "dtype_input of qconfig must be one of int8, not int16"),
        (lambda: quantize(*_mod(), dataset=[]), "dataset must hold at least one batch, not none"),
        (lambda: quantize(*_mod(), dataset=[{"x": np.zeros(1)}, {"y": np.zeros(1)}]), "must hold the same inputs"),
    ],
)  # fmt: skip
def test_what_is_refused(make, sentence):
    with pytest.raises(QuantizeError, match=sentence):
        make()
