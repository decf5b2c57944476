"""Layers with strategies of their own, formats without hardware, and samples in batches."""

from __future__ import annotations

import numpy as np
import pytest

from relay_hw import op
from relay_hw.analysis import infer_type
from relay_hw.errors import QuantizeError
from relay_hw.ir.expr import Call, Expr, Function, If, Op, Var
from relay_hw.ir.module import IRModule
from relay_hw.ir.types import TensorType
from relay_hw.ir.visit import post_order
from relay_hw.quantize import Calibration, LayerChoice, LayerPolicy, Strategy, find_strategy, quantize, realize_module
from relay_hw.quantize.batch import batched, run_samples
from relay_hw.quantize.layers import plan_layers
from relay_hw.quantize.report import layer_noise
from relay_hw.span import Span
from tests.relay_hw.random_cnn import random_cnn, random_input


def _mod() -> IRModule:
    rng = np.random.default_rng(0)
    x = Var("x", TensorType((1, 3, 6, 6), "float32"))

    def conv(data: Expr, name: str, *shape: int) -> Expr:
        made = op.nn.conv2d(data, op.const((rng.normal(size=shape) * 0.3).astype("float32")))
        return op.nn.relu(Call(made.op, made.args, made.attrs, span=Span(name)))

    y = conv(conv(conv(x, "one", 4, 3, 3, 3), "two", 4, 4, 3, 3), "three", 4, 4, 1, 1)
    return infer_type(IRModule.from_expr(Function([x], y)))


def _data(count: int = 8) -> dict[str, np.ndarray]:
    return {"x": np.random.default_rng(1).normal(size=(count, 3, 6, 6)).astype("float32")}


def _limits(mod: IRModule) -> list[tuple[int, int] | None]:
    """Largest magnitude of each convolution's weight and largest output; None for float ones."""
    calls = [n for n in post_order(mod["main"].body) if isinstance(n, Call) and isinstance(n.op, Op)]
    tops = [call.attrs.a_max for call in calls if call.op.name == "fixed.requantize"]
    found: list[tuple[int, int] | None] = []
    for call in calls:
        if call.op.name == "nn.conv2d":
            weight = call.args[1].data
            found.append((int(np.abs(weight).max()), tops.pop(0)) if weight.dtype == np.int8 else None)
    return found


def test_edges_and_choices():
    narrow = Strategy("s", weight_bits=4, activation_bits=4)
    assert _limits(quantize(_mod(), narrow, _data())) == [(7, 7)] * 3
    edges = Strategy("s", weight_bits=4, activation_bits=4, first_layer=LayerPolicy.INT8, last_layer=LayerPolicy.FLOAT)
    assert _limits(quantize(_mod(), edges, _data())) == [(127, 127), (7, 7), None]
    choice = Strategy("s", layers=(LayerChoice("t*", weight_bits=3), LayerChoice("three", quantized=False)))
    assert _limits(quantize(_mod(), choice, _data())) == [(127, 127), (3, 127), None]


def test_a_layer_that_does_not_exist_is_refused():
    strategy = Strategy("s", layers=(LayerChoice("four", weight_bits=4),))
    with pytest.raises(QuantizeError, match="strategy s: layer must be one of one, two, three, not four"):
        quantize(_mod(), strategy, _data())


def test_names_are_unique():
    mod = random_cnn(3)
    layers = plan_layers(mod["main"].body, find_strategy("int8"))
    assert len(set(layers.names.values())) == len(layers.names)


def test_one_layer_with_its_own_calibration():
    own = Strategy("s", layers=(LayerChoice("two", calibration=Calibration.PERCENTILE),), percentile=80.0)
    plain, changed = (realize_module(_mod(), one, _data()).probes for one in (Strategy("s"), own))
    scales = [[probe.params.scale for probe in probes] for probes in (plain, changed)]
    assert scales[0][0] == scales[1][0] and scales[1][1] < scales[0][1]


@pytest.mark.parametrize("name", ["fp8-e4m3", "fp8-e5m2", "mxint8", "mxfp8", "mxfp6", "mxfp4"])
def test_formats_are_simulated_in_floats(name):
    mod, data = _mod(), _data()
    realized = realize_module(mod, name, data if find_strategy(name).needs_data else None)
    names = {n.op.name for n in post_order(realized.mod["main"].body) if isinstance(n, Call) and isinstance(n.op, Op)}
    assert "simulated.format" in names and not any(one.startswith("qnn.") for one in names)
    noise = layer_noise(realized, data)
    assert [one.name for one in noise] == ["one", "two", "three"]
    least = {"mxfp4": 7, "fp8-e5m2": 11, "fp8-e4m3": 18, "mxfp8": 13, "mxfp6": 16, "mxint8": 30}[name]
    assert least < min(one.sqnr_db for one in noise) < least + 20


@pytest.mark.parametrize("seed", range(8))
def test_batches_give_each_sample_its_result_bit_by_bit(seed):
    mod = random_cnn(seed)
    data = random_input(mod, seed, 7)
    integer = quantize(mod, "int8-minmax", data)
    together, alone = run_samples(integer, data, 3), run_samples(integer, data, 1)
    for left, right in zip(*(v if isinstance(v, tuple) else (v,) for v in (together, alone)), strict=True):
        np.testing.assert_array_equal(left, right)


def test_networks_that_mix_samples_are_not_batched():
    x = Var("x", TensorType((1, 4), "float32"))
    mixing = infer_type(IRModule.from_expr(Function([x], op.nn.softmax(x, axis=0))))
    assert batched(mixing, 4) is None
    plain = infer_type(IRModule.from_expr(Function([x], op.nn.softmax(x, axis=1))))
    assert batched(plain, 4) is not None
    whole = infer_type(IRModule.from_expr(Function([x], op.multiply(x, op.sum(x)))))
    assert batched(whole, 4) is None
    branch = infer_type(IRModule.from_expr(Function([x], If(op.const(np.bool_(True)), x, op.negative(x)))))
    assert batched(branch, 4) is None
    data = {"x": np.random.default_rng(0).normal(size=(5, 4)).astype("float32")}
    np.testing.assert_array_equal(run_samples(mixing, data), np.ones((5, 4)))


def test_reshapes_to_fixed_sizes_are_widened():
    x = Var("x", TensorType((1, 2, 6), "float32"))
    rows = op.reshape(x, (2, 6))
    same = op.nn.dense(rows, op.const(np.eye(6, dtype="float32")))
    mod = infer_type(IRModule.from_expr(Function([x], op.reshape(same, (1, 12)))))
    assert batched(mod, 3) is not None
    data = {"x": np.random.default_rng(0).normal(size=(7, 2, 6)).astype("float32")}
    np.testing.assert_allclose(run_samples(mod, data, 3), data["x"].reshape(7, 12), rtol=1e-6)
