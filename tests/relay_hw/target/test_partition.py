"""PartitionDevice: results kept bit for bit, everything recorded, regions as few as possible."""

from __future__ import annotations

import hashlib

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from relay_hw import op
from relay_hw.interp import evaluate
from relay_hw.ir.expr import Call, Constant, Function, GlobalVar, If, Op, Tuple, TupleGetItem
from relay_hw.ir.visit import post_order
from relay_hw.quantize import quantize
from relay_hw.span import Span
from relay_hw.target.accel.rules import AccelRules
from relay_hw.target.partition import BORDER_OPERATORS, MOVING_OPERATORS, PartitionDevice
from relay_hw.target.pipeline import partition_pipeline
from relay_hw.transform import InferType
from relay_hw.transform.graph import op_name
from tests.relay_hw.random_cnn import random_cnn, random_input
from tests.relay_hw.transform.checks import module, operators, var


def _quantized(seed):
    mod = random_cnn(seed)
    return quantize(mod, calibration=random_input(mod, seed, 2))


def _some_legal(salt: int):
    """Refuses about a third of the composites, always the same ones."""

    def legal(function: Function) -> str | None:
        digest = hashlib.sha256(f"{salt}{function.attrs['Composite']}{function.func_type}".encode()).digest()
        return f"refused by {salt}" if digest[0] < 85 else None

    return legal


def _calls(function: Function) -> list[Call]:
    return [node for node in post_order(function.body) if isinstance(node, Call)]


def _check_shape(mod) -> None:
    """What runtime and tensorize rely on."""
    main = mod["main"]
    for call in _calls(main):
        assert isinstance(call.op, GlobalVar)
        assert all(isinstance(part.op, GlobalVar) for part in call.args if isinstance(part, Call))
    order = [call.op.name_hint for call in _calls(main)]
    names = [name for name in mod.functions if name != "main"]
    assert sorted(order) == sorted(names), "each function is called once"
    for name in names:
        function = mod[name]
        where = function.attrs["Compiler"]
        assert name.startswith(where) and function.attrs["global_symbol"] == name
        assert not any(isinstance(arg, (Tuple, Constant)) for call in _calls(main) for arg in call.args)
        for call in _calls(function):
            if where == "host":
                assert isinstance(call.op, Op), "host functions hold operators"
        if where == "accel":
            outer = [c for c in _calls(function) if isinstance(c.op, Function)]
            assert outer and all("Composite" in c.op.attrs for c in outer)
    _check_records(mod)


def _check_records(mod) -> None:
    records = mod.attrs["partition"]
    assert len({record.name for record in records}) == len(records)
    found: dict[str, list[str]] = {}
    for record in records:
        assert record.where == mod[record.function].attrs["Compiler"]
        assert bool(record.reason) == (record.where == "host")
        found.setdefault(record.function, []).append(record.operator)
    for name, function in mod.functions.items():
        if name == "main":
            continue
        if function.attrs["Compiler"] == "host":
            wanted = operators(mod, name)
        else:
            wanted = [c.op.attrs["Composite"] for c in _calls(function) if isinstance(c.op, Function)]
        assert sorted(found[name]) == sorted(wanted)
        kinds = {operator in BORDER_OPERATORS for operator in wanted if operator not in MOVING_OPERATORS}
        assert len(kinds) <= 1, "border operators keep to themselves"


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32), st.integers(0, 3))
def test_keeps_every_bit_whatever_is_legal(seed, salt):
    mod, inputs = _quantized(seed), random_input(random_cnn(seed), seed)
    new = partition_pipeline(AccelRules(_some_legal(salt) if salt else None))(mod)
    np.testing.assert_array_equal(evaluate(new, inputs), evaluate(mod, inputs))
    _check_shape(new)


def test_a_classifier_is_host_device_host():
    rng, x = np.random.default_rng(0), var("x", 1, 3, 8, 8)
    conv = op.nn.conv2d(x, op.const(rng.normal(size=(4, 3, 3, 3)).astype("float32")))
    flat = op.nn.batch_flatten(op.nn.max_pool2d(op.nn.relu(conv), (2, 2), (2, 2)))
    body = op.nn.softmax(op.nn.dense(flat, op.const(rng.normal(size=(5, 36)).astype("float32"))))
    mod = quantize(module(body, x), calibration={"x": rng.normal(size=(2, 3, 8, 8)).astype("float32")})
    new = partition_pipeline(AccelRules())(mod)
    assert [name for name in new.functions if name != "main"] == ["host_0", "accel_0", "host_1"]
    assert operators(new, "host_0") == ["qnn.quantize"]
    assert operators(new, "host_1") == ["qnn.dequantize", "nn.softmax"]
    assert [r.operator for r in new.attrs["partition"]] == [
        "qnn.quantize", "accel.conv2d", "accel.max_pool2d", "accel.dense", "qnn.dequantize", "nn.softmax",
    ]  # fmt: skip
    reasons = {r.operator: r.reason for r in new.attrs["partition"]}
    assert (
        reasons["nn.softmax"]
        == "no rule quantizes nn.softmax: where the order of scores is enough, the model can end before it"
    )


def test_the_reason_of_a_refused_composite_goes_to_each_of_its_operators():
    rng, x = np.random.default_rng(0), var("x", 1, 3, 8, 8)
    conv = op.nn.conv2d(x, op.const(rng.normal(size=(4, 3, 3, 3)).astype("float32")), padding=(1, 1))
    mod = quantize(module(conv, x), calibration={"x": rng.normal(size=(2, 3, 8, 8)).astype("float32")})
    new = partition_pipeline(AccelRules(lambda f: f"{f.attrs['Composite']} is too large"))(mod)
    refused = [r.operator for r in new.attrs["partition"] if r.reason == "accel.conv2d is too large"]
    assert refused == ["nn.pad", "nn.conv2d", "fixed.requantize"]
    assert not any(name.startswith("accel") for name in new.functions)


def test_a_pad_that_no_composite_may_take_in_says_why():
    rng, x = np.random.default_rng(0), var("x", 1, 3, 8, 8)
    conv = op.nn.conv2d(x, op.const(rng.normal(size=(4, 3, 1, 1)).astype("float32")), padding=(1, 1))
    mod = quantize(module(conv, x), calibration={"x": rng.normal(size=(2, 3, 8, 8)).astype("float32")})

    def legal(function: Function) -> str | None:
        assert function.func_type.arg_types[0] == function.params[0].type_annotation
        return "padding is too wide" if any(op_name(call) == "nn.pad" for call in _calls(function)) else None

    new = partition_pipeline(AccelRules(legal))(mod)
    reasons = {r.operator: (r.where, r.reason) for r in new.attrs["partition"]}
    assert reasons["nn.pad"] == ("host", "padding is too wide")
    assert reasons["accel.conv2d"] == ("accel", "")


def test_names_come_from_the_source_and_are_unique():
    x = var("x", 2, dtype="int8")
    span = Span("conv_7")
    one = Call(op.get("cast"), [x], op.get("cast").attrs_type("float32"), span=span)
    two = Call(op.get("sigmoid"), [one], span=span)
    new = PartitionDevice(AccelRules())(module(two, x))
    assert [r.name for r in new.attrs["partition"]] == ["conv_7", "conv_7 #2"]


def test_tuples_and_several_outputs_cross_regions():
    x = var("x", 4, 6)
    parts = op.split(op.exp(x), 2)
    left, right = TupleGetItem(parts, 0), TupleGetItem(parts, 1)
    soft = op.nn.softmax(left)
    whole = op.concatenate(parts, 0)
    body = Tuple([op.concatenate([op.tanh(soft), right], 0), soft, whole, x, Tuple([left, op.const(np.float32(1))])])
    mod = module(body, x)
    new = PartitionDevice(AccelRules())(mod)
    value = np.random.default_rng(0).normal(size=(4, 6)).astype("float32")

    def flat(item):
        return [leaf for part in item for leaf in flat(part)] if isinstance(item, tuple) else [item]

    for wanted, found in zip(flat(evaluate(mod, [value])), flat(evaluate(new, [value])), strict=True):
        np.testing.assert_array_equal(wanted, found)
    assert [name for name in new.functions if name != "main"] == ["host_0", "host_1", "host_2"]
    assert [operators(new, f"host_{k}") for k in (1,)] == [["nn.softmax"]]


def test_without_operators_nothing_is_split():
    x = var("x", 4)
    new = PartitionDevice(AccelRules())(module(x, x))
    assert list(new.functions) == ["main"] and new.attrs["partition"] == ()


def test_control_flow_without_fragments_stays():
    x, c = var("x", 4), var("c", dtype="bool")
    mod = PartitionDevice(AccelRules())(module(If(c, x, op.exp(x)), x, c))
    assert list(mod.functions) == ["main"] and mod.attrs["partition"] == ()


def test_fragments_between_branches_are_split():
    x, c = var("x", 4), var("c", dtype="bool")
    mod = partition_pipeline(AccelRules())(module(If(c, op.log(op.exp(x)), op.exp(x)), x, c))
    assert [record.operator for record in mod.attrs["partition"]] == ["exp", "log", "exp"]
    assert {record.function for record in mod.attrs["partition"]} == {"host_0", "host_1"}
    for is_true in (True, False):
        value = evaluate(mod, [np.ones(4, "float32"), np.bool_(is_true)])
        np.testing.assert_allclose(value, 1 if is_true else np.e, rtol=1e-6)


def test_what_moves_elements_goes_with_the_border():
    """A reverse between the last layer and its dequantize was a host function of its own, which TVM had to compile."""
    rng, x = np.random.default_rng(0), var("x", 1, 3, 8, 8)
    conv = op.nn.relu(op.nn.conv2d(x, op.const(rng.normal(size=(4, 3, 3, 3)).astype("float32"))))
    body = op.nn.softmax(op.reverse(conv, 2), 1)
    mod = quantize(module(body, x), calibration={"x": rng.normal(size=(2, 3, 8, 8)).astype("float32")})
    new = partition_pipeline(AccelRules())(mod)
    assert operators(new, "host_1") == ["reverse", "qnn.dequantize", "nn.softmax"]


def test_an_accumulator_that_two_layers_scale_is_computed_for_each() -> None:
    """Equal sums with different scales behind them: merged, they would belong to no layer."""
    x = var("x", 1, 16, 6, 6, dtype="int8")
    weight = op.const(np.arange(16 * 16).astype(np.int8).reshape(16, 16, 1, 1))

    def scaled(shift: int) -> Call:
        total = op.nn.conv2d(x, weight, out_dtype="int32")
        numbers = {"multiplier": (1,), "shift": (shift,), "zero_point": 0, "rounding": "half_up", "axis": 1}
        return op.fixed.requantize(total, op.const(np.zeros(16, np.int32)), a_min=-128, a_max=127, **numbers)

    joined = op.concatenate([scaled(4), scaled(5)], axis=1)
    partitioned = partition_pipeline(AccelRules())(InferType()(module(op.nn.max_pool2d(joined, (2, 2)), x)))
    assert {record.where for record in partitioned.attrs["partition"]} == {"accel"}
