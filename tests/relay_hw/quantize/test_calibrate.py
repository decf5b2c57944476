"""Calibration: ranges of what was seen, and data that does not fit."""

from __future__ import annotations

import numpy as np
import pytest

from relay_hw import op
from relay_hw.analysis import infer_type
from relay_hw.errors import QuantizeError
from relay_hw.ir.expr import Function, TupleGetItem, Var
from relay_hw.ir.module import IRModule
from relay_hw.ir.types import ANY, TensorType
from relay_hw.quantize import find_strategy, quantize
from relay_hw.quantize.calibration import calibrate
from relay_hw.support.progress import ProgressStep, Steps


def _module(batch: int = 1) -> IRModule:
    a, b = Var("a", TensorType((batch, 2, 3, 3))), Var("b", TensorType((batch, 4)))
    conv = op.nn.conv2d(a, op.const(np.ones((2, 2, 1, 1), "float32")))
    dense = op.nn.dense(b, op.const(np.ones((18, 4), "float32")))
    return IRModule.from_expr(Function([a, b], op.add(op.nn.batch_flatten(conv), dense)))


def _data(n: int = 3) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {"a": rng.normal(size=(n, 2, 3, 3)).astype("float32"), "b": rng.normal(size=(n, 4)).astype("float32")}


def test_ranges_are_those_of_all_samples():
    x = Var("x", TensorType((1, 4)))
    parts = op.split(op.negative(x), 2, 1)
    left = TupleGetItem(parts, 0)
    mod = infer_type(IRModule.from_expr(Function([x], op.exp(left))))
    main = mod["main"]
    (left,) = main.body.args
    data = np.array([[1, 2, 9, 9], [-5, 0, 9, 9], [3, 1, 9, 9]], "float32")
    tensors = dict.fromkeys([main.params[0], left, main.body], find_strategy("int8-minmax").activations)
    ranges = calibrate(mod, tensors, {"x": data, "ignored": data})
    assert ranges[main.params[0]] == (-5.0, 9.0)
    assert ranges[left] == (-3.0, 5.0)
    assert ranges[main.body] == (float(np.exp(np.float32(-3))), float(np.exp(np.float32(5))))


def test_progress_counts_to_the_end():
    seen: list[ProgressStep] = []
    quantize(_module(), calibration=_data(4), progress=Steps(seen.append))
    assert seen == [ProgressStep("calibrating", 4, done) for done in range(5)]


def test_a_network_of_batch_two_takes_two_samples_at_once():
    seen: list[ProgressStep] = []
    quantize(_module(2), calibration=_data(4), progress=Steps(seen.append))
    assert seen == [ProgressStep("calibrating", 2, done) for done in range(3)]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda d: None, "strategy int8 needs calibration data: give an array for each input"),
        (lambda d: {"a": d["a"]}, "calibration data must hold input b, not only a"),
        (lambda d: {}, "calibration data must hold input a, not only nothing"),
        (lambda d: d | {"a": d["a"][:, :1]}, r"input a must have the shape \(N, 2, 3, 3\), not \(3, 1, 3, 3\)"),
        (lambda d: d | {"b": d["b"][0]}, r"input b must have the shape \(N, 4\), not \(4,\)"),
        (lambda d: d | {"b": d["b"][:2]}, "as many samples for each input, not a 3, b 2"),
        (lambda d: d | {"a": d["a"][:0]}, "input a must hold a multiple of 1 samples, at least one, not 0"),
        (lambda d: d | {"a": d["a"].astype(str)}, "input a must be numbers, not <U"),
        (
            lambda d: d | {"b": d["b"] * np.nan},
            r"calibration data of input b must hold finite numbers, not NaN \(sample 0, index",
        ),
    ],
)
def test_data_that_does_not_fit_is_refused(change, sentence):
    with pytest.raises(QuantizeError, match=sentence):
        quantize(_module(), calibration=change(_data()))


def test_an_odd_number_of_samples_does_not_fit_batch_two():
    with pytest.raises(QuantizeError, match="input a must hold a multiple of 2 samples, at least one, not 3"):
        quantize(_module(2), calibration=_data(3))


def test_an_unknown_shape_is_refused():
    x = Var("x", TensorType((ANY, 4)))
    mod = IRModule.from_expr(Function([x], op.nn.relu(x)))
    with pytest.raises(QuantizeError, match=r"input x must have a known shape to be calibrated, not \(\?, 4\)"):
        quantize(mod, calibration={"x": np.zeros((1, 4), "float32")})


def test_integers_are_taken_as_numbers():
    data = {name: (value * 10).astype("int16") for name, value in _data().items()}
    quantize(_module(), calibration=data)
