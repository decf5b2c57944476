"""Pre-quantized graphs as integers: against the QNN meaning bit for bit, against onnxruntime by a rounding step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import relay_hw as relay
from relay_hw.accel.sim.functional import FunctionalDevice
from relay_hw.frontend import from_onnx
from relay_hw.interp import evaluate
from relay_hw.ir.expr import Call
from relay_hw.ir.module import IRModule
from relay_hw.ir.visit import post_order
from relay_hw.quantize.prequantized import is_prequantized, realize_prequantized
from relay_hw.runtime import CompileOptions, compile_model
from relay_hw.runtime.execute import Executor
from relay_hw.transform.graph import op_name
from tests.relay_hw.qdq_networks import Net, RandomNet

RNG = np.random.default_rng(11)
FLOATS = {
    "add", "nn.bias_add", "nn.relu", "nn.avg_pool2d", "nn.global_avg_pool2d", "nn.conv2d_transpose", "qnn.conv2d",
    "copy",
}  # fmt: skip
MODELS = Path(__file__).parents[3].parent / "shared" / "models" / "resnet8_cifar10"
E = {"float32": TensorProto.FLOAT, "uint8": TensorProto.UINT8, "int8": TensorProto.INT8}


def operators(mod: IRModule) -> set[str]:
    return {op_name(node) for node in post_order(mod["main"].body) if isinstance(node, Call)}


def onnxruntime_output(model: Any, x: np.ndarray) -> np.ndarray:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    return onnxruntime.InferenceSession(model.SerializeToString(), options).run(None, {"x": x})[0]


def realized(model: Any) -> IRModule:
    module, _ = from_onnx(model, freeze_params=True)
    assert is_prequantized(module)
    return realize_prequantized(module)


def compare(model: Any, shape: Sequence[int], step: float, share: float = 0.02) -> IRModule:
    """Integers without float layers; onnxruntime's numbers but for `share` of them, which are off by one step."""
    mod = realized(model)
    assert not operators(mod) & {"nn.conv2d_transpose", "nn.avg_pool2d", "add", "qnn.conv2d", "nn.relu"}
    x = RNG.normal(0, 1.5, shape).astype(np.float32)
    got, want = np.asarray(evaluate(mod, {"x": x})), onnxruntime_output(model, x)
    off = np.abs(got - want) / step
    assert off.max() < 1.01 and (off > 0.5).mean() <= share
    return mod


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("attrs", [{"pads": [1, 1, 1, 1]}, {"strides": [2, 2]}, {"group": 4, "pads": [0, 1, 2, 1]}])
def test_qdq_convolution(dtype: str, attrs: dict[str, Any]) -> None:
    net = Net((1, 4, 8, 9), dtype)
    shift = 0 if dtype == "int8" else 128
    x = net.on_grid("x", 0.05, 7 + shift)
    y = net.on_grid(net.add("Relu", [net.conv(RNG, x, (4, 8), **attrs)]), 0.04, -100 + shift)
    assert "fixed.requantize" in operators(compare(net.model(y), net.shape, 0.04))


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_qdq_block(dtype: str) -> None:
    """A residual block, pooling, a matrix product: each on the integers of the one before."""
    shift = 0 if dtype == "int8" else 128
    net = Net((1, 4, 6, 6), dtype)
    x = net.on_grid("x", 0.05, 3 + shift)
    y = net.on_grid(net.conv(RNG, x, (4, 4), pads=[1, 1, 1, 1]), 0.06, -9 + shift)
    total = net.on_grid(net.add("Clip", [net.add("Add", [x, y]), net.weight(0.0), net.weight(6.0)]), 0.03, -128 + shift)
    pooled = net.add("MaxPool", [total], kernel_shape=[2, 2], strides=[2, 2])
    mean = net.on_grid(net.add("GlobalAveragePool", [pooled]), 0.03, -128 + shift)
    flat = net.add("Flatten", [mean])
    w = net.constant(RNG.integers(-127, 128, (4, 5)).astype(np.int8), 0.01, 0)
    y = net.on_grid(net.add("Add", [net.add("MatMul", [flat, w]), net.weight(RNG.normal(size=5))]), 0.03, shift)
    mod = compare(net.model(y), net.shape, 0.03, share=0.4)
    assert {"fixed.add", "fixed.sum_pool2d", "nn.dense"} <= operators(mod)
    assert all(var.dtype == "int8" for var in (n.type for n in post_order(mod["main"].body) if op_name(n) == "clip"))


def test_whatever_moves_elements_moves_integers() -> None:
    net = Net((1, 4, 8, 9), "int8")
    x = net.on_grid("x", 0.05, 7)
    y = net.on_grid(net.conv(RNG, x, (4, 8), pads=[1, 1, 1, 1]), 0.04, -5)
    z = net.on_grid(net.add("GlobalMaxPool", [net.add("DepthToSpace", [y], blocksize=2)]), 0.04, -5)
    mod = compare(net.model(z), net.shape, 0.04)
    order = [op_name(node) for node in post_order(mod["main"].body) if isinstance(node, Call)]
    assert order[-3:] == ["nn.depth_to_space", "nn.global_max_pool2d", "qnn.dequantize"]


def test_a_rescaling_and_a_concatenation() -> None:
    net = Net((1, 4, 4, 4), "int8")
    x = net.on_grid("x", 0.05, 3)
    left, right = net.on_grid(x, 0.0413, -5), net.on_grid(net.conv(RNG, x, (4, 4), size=1), 0.0719, 9)
    y = net.on_grid(net.add("Concat", [left, right], axis=1), 0.0637, 1)
    compare(net.model(y), net.shape, 0.0637)


@pytest.mark.parametrize("groups", [1, 4])
@pytest.mark.parametrize("low", [60, 0])
def test_a_weight_zero_point_is_taken_off(low: int, groups: int) -> None:
    """What then has nine bits takes two int8 weights; groups of channels cannot read their data twice."""
    net = Net((1, 4, 5, 5), "uint8")
    x = net.on_grid("x", 0.05, 121)
    weight = RNG.integers(low, 200, (4, 4 // groups, 3, 3)).astype(np.uint8)
    weight[0, 0, 0] = (low, 199, 130)
    y = net.on_grid(net.add("Conv", [x, net.constant(weight, 0.004, 150)], pads=[1, 1, 1, 1], group=groups), 0.04, 128)
    if groups == 1 or low == 60:
        found = operators(compare(net.model(y), net.shape, 0.04))
        assert "fixed.requantize" in found and ("concatenate" in found) == (low == 0)
    else:
        assert "fixed.requantize" not in operators(realized(net.model(y)))


@pytest.mark.parametrize("zero", [0, 200, 255])
def test_a_dense_weight_of_nine_bits(zero: int) -> None:
    net = Net((2, 6), "uint8")
    x = net.on_grid("x", 0.05, 121)
    weight = RNG.integers(0, 256, (6, 5)).astype(np.uint8)
    weight[0, :2] = (255, 0)
    w = net.constant(weight, 0.004, zero)
    compare(net.model(net.on_grid(net.add("MatMul", [x, w]), 0.03, 128)), net.shape, 0.03)


def test_transposed_convolution_and_product() -> None:
    net = Net((1, 4, 5, 5), "int8")
    x = net.on_grid("x", 0.05, 7)
    weight = RNG.integers(-127, 128, (4, 3, 3, 3)).astype(np.int8)
    scales = RNG.uniform(0.002, 0.01, 3).astype(np.float32)
    up = net.add(
        "ConvTranspose", [x, net.constant(weight, scales, np.zeros(3), axis=1)], strides=[2, 2], pads=[1, 0, 0, 1]
    )
    found = operators(compare(net.model(net.on_grid(up, 0.0437, 3)), net.shape, 0.0437))
    assert "fixed.conv2d_transpose" in found
    net = Net((2, 4, 5), "int8")
    x = net.on_grid("x", 0.05, 0)
    product = net.add("MatMul", [x, net.add("Transpose", [x], perm=[0, 2, 1])])
    assert "nn.batch_matmul" in operators(compare(net.model(net.on_grid(product, 0.0871, 9)), net.shape, 0.0871))


def qnn_layer(rounding: str, data: str, zeros: tuple[int, int]) -> IRModule:
    x = relay.var("x", shape=(1, 3, 7, 6), dtype=data)
    weight = relay.const(RNG.integers(-128, 128, (8, 3, 3, 3)).astype(np.int8))
    scales = RNG.uniform(0.001, 0.02, 8).astype(np.float32)
    acc = relay.qnn.op.conv2d(
        x, weight, relay.const(zeros[0], "int32"), relay.const(0, "int32"), relay.const(0.05), relay.const(scales),
        kernel_size=(3, 3), channels=8, padding=(1, 0, 1, 2),
    )  # fmt: skip
    acc = relay.nn.bias_add(acc, relay.const(RNG.integers(-9000, 9000, 8).astype(np.int32)))
    y = relay.qnn.op.requantize(
        acc, relay.const(scales * np.float32(0.05)), relay.const(0, "int32"), relay.const(0.09),
        relay.const(zeros[1], "int32"), axis=1, rounding=rounding, out_dtype=data,
    )  # fmt: skip
    return IRModule.from_expr(relay.Function([x], y))


@pytest.mark.parametrize("rounding", ["UPWARD", "TONEAREST", "TONEAREST_EVEN"])
@pytest.mark.parametrize(("data", "zeros"), [("int8", (5, -7)), ("uint8", (140, 90))])
def test_relay_layers_keep_every_bit(rounding: str, data: str, zeros: tuple[int, int]) -> None:
    mod = qnn_layer(rounding, data, zeros)
    new = realize_prequantized(mod)
    assert "fixed.requantize" in operators(new) and "qnn.conv2d" not in operators(new)
    info = np.iinfo(data)
    for _ in range(3):
        x = RNG.integers(info.min, info.max + 1, (1, 3, 7, 6)).astype(data)
        want, got = np.asarray(evaluate(mod, {"x": x})), np.asarray(evaluate(new, {"x": x}))
        assert got.dtype == want.dtype and np.array_equal(got, want)


def test_relay_text_runs_on_the_device() -> None:
    mod = qnn_layer("UPWARD", "uint8", (140, 90))
    compiled = compile_model(mod, CompileOptions(config="tiny"))
    assert compiled.strategy.name == "prequantized"
    assert [row.operator for row in compiled.layers if row.where == "accel"] == ["accel.conv2d"]
    x = RNG.integers(0, 256, (4, 3, 7, 6)).astype(np.uint8)
    want = np.concatenate([np.asarray(evaluate(mod, {"x": one[None]})) for one in x])
    assert np.array_equal(run(compiled, {"x": x}), want)


def run(compiled: Any, inputs: Mapping[str, np.ndarray]) -> np.ndarray:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        artifact = compiled.save(Path(folder) / "build")
        result = Executor(artifact, FunctionalDevice(compiled.config)).run(inputs)
    return next(iter(result.outputs.values()))


def test_reasons_of_what_stays_on_the_host() -> None:
    x, scale = relay.var("x", shape=(1, 4), dtype="int8"), relay.const(RNG.uniform(0.1, 0.2, 3).astype(np.float32))
    one, zero = relay.const(0.5), relay.const(0, "int32")
    weight = relay.var("w", shape=(3, 4), dtype="int8")
    acc = relay.qnn.op.dense(x, weight, zero, zero, one, one, units=3)
    out = relay.qnn.op.dequantize(acc, scale, zero, axis=1)
    compiled = compile_model(IRModule.from_expr(relay.Function([x, weight], out)), CompileOptions(config="tiny"))
    reasons = {row.operator: row.reason for row in compiled.layers}
    assert reasons["qnn.dense"].startswith(
        "qnn.dense is part of no composite: its weight must be constant, and its result must be read by one"
    )


def test_qdq_network_on_the_device() -> None:
    net = Net((1, 4, 6, 6), "uint8")
    x = net.on_grid("x", 0.05, 120)
    a = net.on_grid(net.add("Relu", [net.conv(RNG, x, (4, 8), pads=[1, 1, 1, 1])]), 0.04, 0)
    b = net.on_grid(net.conv(RNG, a, (8, 8), scale=0.04, pads=[1, 1, 1, 1]), 0.06, 131)
    y = net.on_grid(net.add("Add", [a, b]), 0.07, 100)
    module, params = from_onnx(net.model(y))
    compiled = compile_model(module, CompileOptions(config="tiny"), params=params)
    assert {row.operator for row in compiled.layers if row.where == "host"} == {"qnn.quantize", "qnn.dequantize"}
    x = RNG.normal(0, 1.5, (3, 4, 6, 6)).astype(np.float32)
    integers = compiled.stages["quantized"]
    want = np.concatenate([np.asarray(evaluate(integers, {"x": one[None]})) for one in x])
    assert np.array_equal(run(compiled, {"x": x}), want)


@pytest.mark.parametrize("seed", range(30))
def test_random_networks(seed: int) -> None:
    """Nothing but conversions stays in floats; results are those of the floats but for ties and what follows them."""
    made = RandomNet(seed)
    module, _ = from_onnx(made.model(), freeze_params=True)
    new = realize_prequantized(module)
    assert not operators(new) & FLOATS
    x = np.random.default_rng(seed).normal(0, 1.3, made.net.shape).astype(np.float32)
    want, got = np.asarray(evaluate(module, {"x": x})), np.asarray(evaluate(new, {"x": x}))
    steps = np.abs(got - want) / made.step
    assert steps.max() < 3.01 and steps.mean() < 0.05
    if seed in (5, 10, 15):
        compiled = compile_model(module, CompileOptions(config="tiny"))
        reference = np.asarray(evaluate(compiled.stages["quantized"], {"x": x}))
        assert np.array_equal(run(compiled, {"x": x}), reference)


def test_qonnx_weights_of_four_bits() -> None:
    domain = "qonnx.custom_op.general"
    one = [numpy_helper.from_array(np.array(v, np.float32), n) for n, v in (("zero", 0), ("four", 4), ("eight", 8))]
    weight = numpy_helper.from_array(RNG.normal(size=(6, 4, 3, 3)).astype(np.float32), "w")
    scales = [numpy_helper.from_array(np.array(v, np.float32), n) for n, v in (("sx", 0.1), ("sy", 0.5), ("sw", 0.3))]
    nodes = [
        helper.make_node("Quant", ["x", "sx", "zero", "eight"], ["xq"], domain=domain, signed=1),
        helper.make_node("Quant", ["w", "sw", "zero", "four"], ["wq"], domain=domain, signed=1, narrow=1),
        helper.make_node("Conv", ["xq", "wq"], ["c"]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("Quant", ["r", "sy", "zero", "four"], ["y"], domain=domain, signed=0),
    ]
    graph = helper.make_graph(
        nodes, "net", [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 4, 5, 5))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], [weight, *one, *scales],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 13), helper.make_opsetid(domain, 1)]
    module, _ = from_onnx(helper.make_model(graph, opset_imports=opsets), freeze_params=True)
    new = realize_prequantized(module)
    x = RNG.normal(size=(1, 4, 5, 5)).astype(np.float32)
    want, got = np.asarray(evaluate(module, {"x": x})), np.asarray(evaluate(new, {"x": x}))
    assert "fixed.requantize" in operators(new) and len(np.unique(got)) > 4
    assert np.abs(got - want).max() < 0.51 and (got != want).mean() < 0.03


def test_qdq_of_four_bits() -> None:
    """Weights and activations of element type int4, per channel."""
    import ml_dtypes

    four = [("zero", np.zeros(()).astype(ml_dtypes.int4)), ("zeros", np.zeros(6).astype(ml_dtypes.int4))]
    weight = RNG.integers(-8, 8, (6, 4, 3, 3)).astype(ml_dtypes.int4)
    numbers = [("sx", np.float32(0.1)), ("sy", np.float32(0.4)), ("sw", RNG.uniform(0.05, 0.2, 6).astype(np.float32))]
    values = [numpy_helper.from_array(np.asarray(v), n) for n, v in (*four, ("w", weight), *numbers)]
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "sx", "zero"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "sx", "zero"], ["d"]),
        helper.make_node("DequantizeLinear", ["w", "sw", "zeros"], ["wd"], axis=0),
        helper.make_node("Conv", ["d", "wd"], ["c"]),
        helper.make_node("QuantizeLinear", ["c", "sy", "zero"], ["p"]),
        helper.make_node("DequantizeLinear", ["p", "sy", "zero"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes, "net", [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 4, 5, 5))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], values,
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])
    x = RNG.normal(size=(1, 4, 5, 5)).astype(np.float32)
    module, _ = from_onnx(model, freeze_params=True)
    want = np.asarray(evaluate(module, {"x": x}))
    open_module, params = from_onnx(model)
    assert np.array_equal(np.asarray(evaluate(open_module, {"x": x, **params})), want)
    new = realize_prequantized(module)
    assert "fixed.requantize" in operators(new) and len(np.unique(want)) > 8
    got = np.asarray(evaluate(new, {"x": x}))
    assert np.abs(got - want).max() < 0.41 and (got != want).mean() < 0.05


def test_layers_inside_loops() -> None:
    """A QDQ layer in the body of a loop whose count is an input: integers inside, one region called again and again."""
    net = Net((1, 6), "int8")
    x = net.on_grid("h", 0.05, 3)
    w = net.constant(RNG.integers(-127, 128, (6, 6)).astype(np.int8), 0.004, 0)
    y = net.on_grid(net.add("Add", [net.add("MatMul", [x, w]), net.weight(RNG.normal(size=6))]), 0.03, -5)
    keep = helper.make_node("Identity", ["go"], ["same"])
    info = helper.make_tensor_value_info
    body = helper.make_graph(
        [keep, *net.nodes], "body",
        [info("i", TensorProto.INT64, ()), info("go", TensorProto.BOOL, ()), info("h", TensorProto.FLOAT, (1, 6))],
        [info("same", TensorProto.BOOL, ()), info(y, TensorProto.FLOAT, (1, 6))],
        [numpy_helper.from_array(value, name) for name, value in net.weights.items()],
    )  # fmt: skip
    graph = helper.make_graph(
        [helper.make_node("Loop", ["n", "", "x"], ["y"], body=body)], "net",
        [info("x", TensorProto.FLOAT, (1, 6)), info("n", TensorProto.INT64, ())],
        [info("y", TensorProto.FLOAT, (1, 6))],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    module, params = from_onnx(model)
    compiled = compile_model(module, CompileOptions(config="tiny"), params=params)
    assert "accel.dense" in [row.operator for row in compiled.layers if row.where == "accel"]
    data = {"x": RNG.normal(0, 1.5, (2, 1, 6)).astype(np.float32), "n": np.array([3, 1])}
    got = run(compiled, data)
    for k in range(2):
        one = {name: value[k] for name, value in data.items()}
        assert np.array_equal(np.asarray(evaluate(compiled.stages["quantized"], one)), got[k].reshape(1, 6))
        assert np.abs(np.asarray(evaluate(module, {**one, **params})) - got[k]).max() < 0.1


def test_what_has_no_integer_form_stays() -> None:
    """Scales that are inputs, activations quantized by channel: the host computes them as they are."""
    x, scale = relay.var("x", shape=(2, 3)), relay.var("s", shape=())
    q = relay.qnn.op.quantize(x, scale, relay.const(0, "int32"), out_dtype="int8")
    mod = IRModule.from_expr(relay.Function([x, scale], relay.qnn.op.dequantize(q, scale, relay.const(0, "int32"))))
    new = realize_prequantized(mod)
    data = RNG.normal(size=(2, 3)).astype(np.float32)
    inputs = {"x": data, "s": np.float32(0.1)}
    assert np.array_equal(np.asarray(evaluate(new, inputs)), np.asarray(evaluate(mod, inputs)))


FILES = (("model_int8_qdq_from_tflite", "test_int8_nhwc"), ("model_int8_qop_ort", "test"))


def _samples(model: str, data: str) -> tuple[Any, dict[str, np.ndarray], np.ndarray]:
    import onnxruntime

    if not (MODELS / f"{model}.onnx").is_file():
        pytest.skip(f"{MODELS / model}.onnx is not there")
    session = onnxruntime.InferenceSession(str(MODELS / f"{model}.onnx"))
    name = session.get_inputs()[0].name
    x = np.load(MODELS / f"{data}.npz")[name]
    want = np.concatenate([session.run(None, {name: one[None]})[0] for one in x])
    module, params = from_onnx(MODELS / f"{model}.onnx")
    return (module, params), {name: x}, want.reshape(len(x), -1)


@pytest.mark.parametrize(("model", "data"), FILES)
def test_resnet8_agrees_with_onnxruntime(model: str, data: str) -> None:
    (module, params), inputs, want = _samples(model, data)
    ((name, x),) = inputs.items()
    for one, theirs in zip(x[:4], want, strict=False):
        assert np.abs(np.asarray(evaluate(module, {name: one[None], **params})) - theirs).max() == 0
    frozen, _ = from_onnx(MODELS / f"{model}.onnx", freeze_params=True)
    new = realize_prequantized(frozen)
    assert not operators(new) & {"qnn.conv2d", "qnn.dense", "nn.avg_pool2d", "nn.relu", "nn.bias_add"}
    got = [np.asarray(evaluate(new, {name: one[None]})).argmax() for one in x[:12]]
    assert got == want[:12].argmax(axis=1).tolist()


@pytest.mark.long
@pytest.mark.parametrize(("model", "data"), FILES)
def test_resnet8_on_the_devices(model: str, data: str) -> None:
    """All images on the functional device, one on the Verilog."""
    from relay_hw.target.accel.devices import open_device

    (module, params), inputs, want = _samples(model, data)
    compiled = compile_model(module, params=params)
    got = run(compiled, inputs).reshape(len(want), -1)
    assert (got.argmax(axis=1) == want.argmax(axis=1)).mean() >= 0.995
    ((name, x),) = inputs.items()
    for k in (0, 1):
        mine = np.asarray(evaluate(compiled.stages["quantized"], {name: x[k][None]}))
        assert np.array_equal(mine.reshape(-1), got[k])
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        artifact = compiled.save(Path(folder) / "build")
        device = open_device("rtl", compiled.config)
        outputs = Executor(artifact, device).run({name: x[:1]}).outputs
    assert np.array_equal(next(iter(outputs.values())).reshape(-1), got[0])
