"""Realized modules equal a second, naive quantizer bit for bit; and the form that the contract asks for."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relay_hw import op
from relay_hw.errors import UnsupportedError
from relay_hw.interp import Interpreter, evaluate
from relay_hw.ir.expr import Call, Constant, Function, If, Let, Op, Tuple, Var
from relay_hw.ir.module import IRModule
from relay_hw.ir.types import TensorType
from relay_hw.ir.visit import post_order
from relay_hw.quantize import Strategy, quantize, realize_module, strategy_names
from relay_hw.quantize.plan import make_plan
from relay_hw.quantize.report import layer_noise
from tests.relay_hw.quantize.naive import Layer, Naive, build
from tests.relay_hw.random_cnn import random_cnn, random_input

# These leave out a good part of the values where samples are few.
CLIPPING = ("int8-kl", "int8-average")

RELU = (0, math.inf)


@st.composite
def networks(draw):
    """A few small layers and the input's shape."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    shape = (1, draw(st.integers(1, 4)), draw(st.integers(3, 6)), draw(st.integers(3, 6)))
    shapes, layers = [shape], []
    for _ in range(draw(st.integers(1, 4))):
        layer, new = _draw_layer(draw, rng, shapes)
        layers.append(layer)
        shapes.append(new)
        if layer.kind == "dense":
            break
    return layers, shape, rng


def _draw_layer(draw, rng, shapes):
    _, channels, rows, columns = shape = shapes[-1]
    activation = draw(st.sampled_from([(-math.inf, math.inf), RELU, (0.0, 0.5), (-0.25, 0.25)]))
    twins = [i for i, other in enumerate(shapes[:-1]) if other == shape]
    kinds = ["conv", "conv", "dense"] + ["max", "avg"] * (min(rows, columns) > 1) + ["add"] * 3 * bool(twins)
    match draw(st.sampled_from(kinds)):
        case "conv":
            return _draw_conv(draw, rng, shape, activation)
        case "dense":
            weight = _values(rng, 3, channels * rows * columns)
            return Layer("dense", weight, draw(st.sampled_from([None, _values(rng, 3)])), activation=activation), (1, 3)
        case "add":
            return Layer("add", source=draw(st.sampled_from(twins)), activation=activation), shape
        case kind:
            stride = draw(st.integers(1, 2))
            new = (1, channels, (rows - 2) // stride + 1, (columns - 2) // stride + 1)
            return Layer(kind, stride=stride), new


def _draw_conv(draw, rng, shape, activation):
    _, channels, rows, columns = shape
    kernel, stride = draw(st.integers(1, min(3, rows, columns))), draw(st.integers(1, 2))
    padding = draw(st.sampled_from([(0, 0, 0, 0), (kernel // 2,) * 4, (1, 0, 2, 1)]))
    groups = draw(st.sampled_from([1, channels]))
    out = groups * draw(st.integers(1, 2)) if groups > 1 else draw(st.sampled_from([channels, 3]))
    weight = _values(rng, out, channels // groups, kernel, kernel)
    bias = draw(st.sampled_from([None, _values(rng, out)]))
    new = (1, out, (rows + padding[0] + padding[2] - kernel) // stride + 1,
           (columns + padding[1] + padding[3] - kernel) // stride + 1)  # fmt: skip
    return Layer("conv", weight, bias, stride, padding, groups, activation=activation), new


def _values(rng, *shape):
    return rng.uniform(-1, 1, shape).astype("float32")


@settings(max_examples=80, deadline=None)
@given(networks())
def test_equals_the_naive_quantizer(network):
    layers, shape, rng = network
    mod, _ = build(layers, shape)
    data = rng.normal(size=(3, *shape[1:])).astype("float32")
    naive = Naive(layers, shape, data)
    quantized = quantize(mod, "int8-minmax", {"x": data})
    sample = (rng.normal(size=shape) * 1.5).astype("float32")
    wanted = naive.run(sample)[-1].astype("int8")
    last = quantized["main"].body
    assert last.op.name == "qnn.dequantize"
    integer = Interpreter(IRModule.from_expr(Function(quantized["main"].params, last.args[0])))
    np.testing.assert_array_equal(integer.call_global("main", [sample]), wanted)
    assert last.args[1].data == np.float32(float(naive.params[-1].scale))
    assert last.args[2].data == naive.params[-1].zero


def _operators(mod) -> list[str]:
    return [n.op.name for n in post_order(mod["main"]) if isinstance(n, Call) and isinstance(n.op, Op)]


def _named(mod, name) -> list[Call]:
    return [n for n in post_order(mod["main"]) if isinstance(n, Call) and isinstance(n.op, Op) and n.op.name == name]


def _quantize(body, *params, strategy="int8", samples=4, **options):
    mod = IRModule.from_expr(Function(params, body))
    rng = np.random.default_rng(0)
    data = {p.name_hint: rng.normal(size=(samples, *p.type_annotation.shape[1:])).astype("float32") for p in params}
    return quantize(mod, strategy, data, **options), data


X = Var("x", TensorType((1, 4, 8, 8)))
W = op.const(np.random.default_rng(1).normal(size=(4, 4, 3, 3)).astype("float32"))


def test_a_padded_convolution_pads_with_the_zero_point():
    mod, _ = _quantize(op.nn.conv2d(X, W, padding=(1, 2, 0, 1)), X)
    assert _operators(mod) == ["qnn.quantize", "nn.pad", "nn.conv2d", "fixed.requantize", "qnn.dequantize"]
    (pad,), (conv,), (first,) = _named(mod, "nn.pad"), _named(mod, "nn.conv2d"), _named(mod, "qnn.quantize")
    assert pad.attrs.pad_width == ((0, 0), (0, 0), (1, 0), (2, 1))
    assert pad.args[1].data == first.args[2].data != 0
    assert conv.attrs.padding == (0, 0, 0, 0) and conv.attrs.out_dtype == "int32"


def test_a_symmetric_convolution_keeps_its_padding():
    mod, _ = _quantize(op.nn.conv2d(X, W, padding=(1, 2, 0, 1)), X, strategy="int8-symmetric")
    assert _operators(mod) == ["qnn.quantize", "nn.conv2d", "fixed.requantize", "qnn.dequantize"]
    assert _named(mod, "nn.conv2d")[0].attrs.padding == (1, 2, 0, 1)


def test_activations_are_bounds_of_the_requantization():
    mod, _ = _quantize(op.nn.relu(op.nn.conv2d(X, W)), X)
    (call,) = _named(mod, "fixed.requantize")
    assert (call.attrs.zero_point, call.attrs.a_min, call.attrs.a_max) == (-128, -128, 127)
    mod, _ = _quantize(op.nn.relu(op.nn.conv2d(X, W)), X, strategy="int8-symmetric")
    (call,) = _named(mod, "fixed.requantize")
    assert (call.attrs.zero_point, call.attrs.a_min, call.attrs.a_max) == (0, 0, 127)


def test_multiplier_bits_and_rounding_reach_every_requantization():
    body = op.nn.relu(op.add(op.nn.conv2d(X, W, padding=(1, 1)), X))
    strategy = Strategy("mine", rounding="half_even", per_channel=False)
    mod, _ = _quantize(body, X, strategy=replace(strategy, multiplier_bits=12))
    (scale,), (add,) = _named(mod, "fixed.requantize"), _named(mod, "fixed.add")
    for call in (scale, add):
        assert call.attrs.multiplier_bits == 12 and call.attrs.rounding == "half_even"
    assert len(scale.attrs.multiplier) == 1 and 2**11 <= scale.attrs.multiplier[0] < 2**12
    assert max(add.attrs.y_multiplier, add.attrs.r_multiplier) >= 2**11


def test_power_of_two_scales_make_power_of_two_multipliers():
    mod, _ = _quantize(op.nn.conv2d(X, W), X, strategy="int8-pow2")
    (call,) = _named(mod, "fixed.requantize")
    assert all(m & (m - 1) == 0 for m in call.attrs.multiplier)


def test_low_bits_stay_in_their_range():
    strategy = Strategy("w3a4", weight_bits=3, activation_bits=4)
    mod, data = _quantize(op.nn.max_pool2d(op.nn.conv2d(X, W), (2, 2)), X, strategy=strategy)
    assert "clip" in _operators(mod), "the input's integers are clipped to 4 bits"
    weight = _named(mod, "nn.conv2d")[0].args[1]
    assert np.abs(weight.data).max() == 3
    seen = []
    evaluate(mod, {"x": data["x"][:1] * 3}, observe=lambda node, value: seen.append(value))
    # The first integer tensor is the conversion before its clip.
    eight = [value for value in seen if value.dtype == np.int8][1:]
    assert len(eight) == 3 and all(value.min() >= -8 and value.max() <= 7 for value in eight)


def test_what_has_no_integer_form_stays_float_between_conversions():
    body = op.nn.conv2d(op.nn.softmax(op.nn.conv2d(X, W), axis=1), W)
    mod, _ = _quantize(body, X)
    assert _operators(mod) == [
        "qnn.quantize", "nn.conv2d", "fixed.requantize", "qnn.dequantize", "nn.softmax",
        "qnn.quantize", "nn.conv2d", "fixed.requantize", "qnn.dequantize",
    ]  # fmt: skip


def test_a_network_without_layers_stays_float():
    mod, _ = _quantize(op.nn.softmax(op.reshape(op.nn.relu(X), (1, -1))), X)
    assert _operators(mod) == ["nn.relu", "reshape", "nn.softmax"]


def test_one_tensor_is_converted_once():
    body = op.concatenate([op.sigmoid(X), op.nn.conv2d(X, W, padding=(1, 1)), op.nn.conv2d(X, W, padding=(1, 1))], 1)
    mod, _ = _quantize(op.add(op.nn.relu(body), op.tanh(body)), X)
    quantized = [call.args[0] for call in _named(mod, "qnn.quantize")]
    assert len(set(quantized)) == len(quantized)
    dequantized = [call.args[0] for call in _named(mod, "qnn.dequantize")]
    assert len(set(dequantized)) == len(dequantized)


def test_concatenated_tensors_share_their_scale():
    left = op.nn.conv2d(X, W)
    right = op.nn.max_pool2d(op.multiply(X, op.const(np.float32(9))), (3, 3))
    mod, _ = _quantize(op.nn.conv2d(op.concatenate([left, right], 1), op.const(np.ones((2, 8, 1, 1), "float32"))), X)
    assert _operators(mod).count("concatenate") == 1 and _operators(mod).count("qnn.dequantize") == 1
    first = _named(mod, "fixed.requantize")[0]
    (scaled,) = [c for c in _named(mod, "qnn.quantize") if isinstance(c.args[0], Call)]
    assert first.attrs.zero_point == scaled.args[2].data


def test_a_tensor_with_two_readers_keeps_its_activation_apart():
    conv = op.nn.conv2d(X, W)
    mod, _ = _quantize(Tuple([op.nn.relu(conv), conv]), X)
    assert _operators(mod).count("clip") == 1
    (clip,) = _named(mod, "clip")
    assert clip.checked_type.dtype == "int8"


def test_averages_with_uneven_windows_stay_float():
    uneven = op.nn.avg_pool2d(X, (3, 3), padding=(1, 1))
    assert "nn.avg_pool2d" in _operators(_quantize(uneven, X)[0])
    even = op.nn.avg_pool2d(X, (3, 3), padding=(1, 1), count_include_pad=True)
    mod, data = _quantize(even, X)
    assert _operators(mod) == ["qnn.quantize", "nn.pad", "fixed.sum_pool2d", "fixed.requantize", "qnn.dequantize"]
    wanted = evaluate(IRModule.from_expr(Function([X], even)), [data["x"][:1]])
    np.testing.assert_allclose(evaluate(mod, [data["x"][:1]]), wanted, atol=0.03)


def test_channels_last_and_several_outputs():
    x = Var("x", TensorType((1, 6, 6, 3)))
    weight = op.const(np.random.default_rng(0).normal(size=(3, 3, 3, 5)).astype("float32"))
    conv = op.nn.conv2d(x, weight, padding=(1, 1), data_layout="NHWC", kernel_layout="HWIO")
    body = Tuple([op.nn.relu(op.nn.bias_add(conv, op.const(np.arange(5, dtype="float32")), axis=3)), x])
    mod, data = _quantize(body, x)
    (call,) = _named(mod, "fixed.requantize")
    assert call.attrs.axis == 3 and len(call.attrs.multiplier) == 5
    sample = data["x"][:1]
    wanted = evaluate(IRModule.from_expr(Function([x], body)), [sample])
    found = evaluate(mod, [sample])
    np.testing.assert_allclose(found[0], wanted[0], atol=0.12)
    np.testing.assert_array_equal(found[1], sample)


def test_named_values_are_read_through():
    a, b = Var("a"), Var("b")
    body = Let(a, op.nn.conv2d(X, W), Let(b, op.nn.relu(a), b))
    mod, _ = _quantize(body, X)
    assert _operators(mod) == ["qnn.quantize", "nn.conv2d", "fixed.requantize", "qnn.dequantize"]


def test_control_flow_is_refused():
    body = If(op.const(np.bool_(True)), X, X)
    condition = Var("c", TensorType((), "bool"))
    assert _operators(_quantize(body, X)[0]) == []
    body = If(condition, op.nn.relu(X), X)
    with pytest.raises(UnsupportedError, match="main must be a graph of operator calls and tuples, not contain If"):
        make_plan(body)


def test_types_and_inputs_stay():
    for seed in range(10):
        mod = random_cnn(seed)
        new = quantize(mod, calibration=random_input(mod, seed, 2))
        assert [p.name_hint for p in new["main"].params] == ["x"]
        assert evaluate(new, random_input(mod, seed)).dtype == np.float32


def test_quantizing_is_deterministic():
    from relay_hw.analysis import structural_equal

    mod = random_cnn(5)
    data = random_input(mod, 5, 3)
    first, second = quantize(mod, calibration=data), quantize(mod, calibration=data)
    assert structural_equal(first["main"], second["main"])
    constants = [[n.data.tobytes() for n in post_order(m["main"]) if isinstance(n, Constant)] for m in (first, second)]
    assert constants[0] == constants[1]


@pytest.mark.parametrize(
    "strategy", [name for name in strategy_names() if name.startswith("int8") and name not in CLIPPING]
)
def test_noise_stays_low_on_random_networks(strategy):
    """int8 holds a layer to about 6 dB for each bit below full scale; power-of-two scales lose up to two bits."""
    floor = 8.0 if strategy == "int8-pow2" else 15.0
    for seed in range(15):
        mod = random_cnn(seed)
        data = random_input(mod, seed, 4)
        for noise in layer_noise(realize_module(mod, strategy, data), data):
            assert noise.sqnr_db > floor, (seed, noise)


def test_more_bits_mean_less_noise():
    mod = random_cnn(3)
    data = random_input(mod, 3, 4)
    totals = []
    for bits in (3, 5, 8):
        strategy = Strategy("t", weight_bits=bits, activation_bits=bits)
        totals.append(min(n.sqnr_db for n in layer_noise(realize_module(mod, strategy, data), data)))
    assert totals[0] + 6 < totals[1] and totals[1] + 6 < totals[2]


def test_noise_names_layers_by_their_source():
    from relay_hw.span import Span

    conv = op.nn.conv2d(X, W)
    named = Call(conv.op, conv.args, conv.attrs, span=Span("Conv_3"))
    mod = IRModule.from_expr(Function([X], named))
    data = {"x": np.random.default_rng(0).normal(size=(2, 4, 8, 8)).astype("float32")}
    (noise,) = layer_noise(realize_module(mod, calibration=data), data)
    assert (noise.name, noise.operator) == ("Conv_3", "nn.conv2d") and 25 < noise.sqnr_db < 60


@pytest.mark.parametrize(
    ("build", "channels"),
    [
        (lambda y: op.nn.depth_to_space(y, 2), 1),
        (lambda y: op.nn.space_to_depth(y, 2), 16),
        (lambda y: op.nn.mirror_pad(y, ((0, 0), (0, 0), (1, 1), (2, 0))), 4),
        (lambda y: op.broadcast_to(y, (1, 4, 6, 6)), 4),
        (lambda y: op.reverse(op.strided_slice(y, (0, 0), (1, 2)), 1), 2),
    ],
)
def test_operators_that_move_elements_move_integers(build, channels):
    """Whatever the strategy rounds, elements are those that the floats would have been."""
    rng, x = np.random.default_rng(1), Var("x", TensorType((1, 4, 6, 6), "float32"))
    first = op.nn.conv2d(x, op.const(rng.normal(size=(4, 4, 3, 3)).astype("float32")), padding=(1, 1))
    last = op.nn.conv2d(build(first), op.const(rng.normal(size=(2, channels, 1, 1)).astype("float32")))
    mod, _ = _quantize(last, x)
    assert [_operators(mod).count(name) for name in ("qnn.quantize", "qnn.dequantize")] == [1, 1]
