"""MergeDeviceComposites on integer graphs: which composites, what they hold, what `legal` changes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relay_hw import op
from relay_hw.interp import evaluate
from relay_hw.ir.expr import Call, Constant, Function, Tuple
from relay_hw.ir.visit import post_order
from relay_hw.op.rows import exponentials
from relay_hw.quantize import quantize
from relay_hw.target.accel.composites import MergeDeviceComposites, swap_pair
from tests.relay_hw.random_cnn import random_cnn, random_input
from tests.relay_hw.transform.checks import module, var

RNG = np.random.default_rng(3)
X = var("x", 1, 4, 6, 6, dtype="int8")
ONES = {"y_multiplier": 3, "r_multiplier": 5, "shift": 3, "y_zero_point": 2, "r_zero_point": -7}


def _ints(*shape, dtype="int8"):
    return op.const(RNG.integers(-100, 100, shape).astype(dtype))


def _conv(x, out=4, kernel=3, **attrs):
    weight = _ints(out, 4, kernel, kernel)
    return op.nn.conv2d(x, weight, out_dtype="int32", **attrs)


def _requantize(acc, channels=4):
    return op.fixed.requantize(acc, _ints(channels, dtype="int32"), 3, 10)


def _pad(x, value=5, width=((0, 0), (0, 0), (1, 1), (1, 1))):
    return op.nn.pad(x, width, op.const(np.int8(value)))


def _merge(body, *wanted, legal=None, params=(X,)):
    """`body` merges into composites of these names, in order, and keeps its value; returns the composites."""
    mod = module(body, *params)
    new = MergeDeviceComposites(legal)(mod)
    values = [RNG.integers(-128, 128, p.type_annotation.shape).astype("int8") for p in params]
    for wanted_value, value in zip(_flat(evaluate(mod, values)), _flat(evaluate(new, values)), strict=True):
        np.testing.assert_array_equal(value, wanted_value)
    found = composites(new["main"])
    assert [function.attrs["Composite"] for function in found] == list(wanted)
    assert all(function.attrs["Primitive"] == 1 for function in found)
    return found


def _flat(value):
    return value if isinstance(value, tuple) else (value,)


def composites(main: Function) -> list[Function]:
    return [node.op for node in post_order(main) if isinstance(node, Call) and isinstance(node.op, Function)]


def inner(function: Function) -> list[str]:
    return [node.op.name for node in post_order(function.body) if isinstance(node, Call)]


def test_each_composite():
    (conv,) = _merge(_requantize(_conv(_pad(X))), "accel.conv2d")
    assert inner(conv) == ["nn.pad", "nn.conv2d", "fixed.requantize"] and len(conv.params) == 1
    (pool,) = _merge(op.nn.max_pool2d(_pad(X), (2, 2)), "accel.max_pool2d")
    assert inner(pool) == ["nn.pad", "nn.max_pool2d"]
    (average,) = _merge(_requantize(op.fixed.sum_pool2d(X, (2, 2))), "accel.sum_pool2d")
    assert inner(average) == ["fixed.sum_pool2d", "fixed.requantize"]
    (dense,) = _merge(_requantize(op.nn.dense(op.reshape(X, (1, -1)), _ints(4, 144), out_dtype="int32")), "accel.dense")
    assert inner(dense) == ["reshape", "nn.dense", "fixed.requantize"]
    (add,) = _merge(op.fixed.add(X, X, **ONES), "accel.add")
    assert inner(add) == ["fixed.add"] and len(add.params) == 2


def test_tables_join_what_is_before_them():
    results = _ints(256)
    (conv,) = _merge(op.fixed.table(_requantize(_conv(X)), results), "accel.conv2d")
    assert inner(conv) == ["nn.conv2d", "fixed.requantize", "fixed.table"] and len(conv.params) == 1
    shared = _requantize(_conv(X, padding=(1, 1)))
    (summed,) = _merge(op.fixed.add(op.fixed.table(shared, results), X, **ONES), "accel.conv2d")
    assert inner(summed) == ["nn.conv2d", "fixed.requantize", "fixed.table", "fixed.add"]
    (add,) = _merge(op.fixed.table(op.fixed.add(X, X, **ONES), results), "accel.add")
    assert inner(add) == ["fixed.add", "fixed.table"] and len(add.params) == 2
    (mul,) = _merge(op.fixed.table(op.fixed.mul(X, X, multiplier=3, shift=5), results), "accel.mul")
    assert inner(mul) == ["fixed.mul", "fixed.table"]
    (alone,) = _merge(op.fixed.table(X, results), "accel.table")
    assert inner(alone) == ["fixed.table"]
    computed = var("t", 256, dtype="int8")
    _merge(op.fixed.table(X, computed), params=(X, computed))


ROWS, OTHER = var("rows", 2, 6, 8, dtype="int8"), var("other", 2, 4, 12, dtype="int8")


@pytest.mark.parametrize("name", ["softmax", "layer_norm", "rms_norm"])
def test_functions_of_rows(name):
    """With the reshapes around that keep the rows, not with others; numbers that are computed make none."""
    first, second = (_ints(8, dtype="int16"), _ints(8, dtype="int32"))
    if name == "softmax":
        first, second = op.const(exponentials(0.1)), op.const(np.array([5, 7], np.int32))

    def row(x, first=first, second=second):
        return op.fixed.softmax(x, first, second) if name == "softmax" else getattr(op.fixed, name)(x, first, second, 9)

    (alone,) = _merge(row(ROWS), f"accel.{name}", params=(ROWS,))
    assert inner(alone) == [f"fixed.{name}"] and len(alone.params) == 1
    around = op.reshape(row(op.reshape(ROWS, (2, 1, 6, 8))), (12, 8))
    (whole,) = _merge(around, f"accel.{name}", params=(ROWS,))
    assert inner(whole) == ["reshape", f"fixed.{name}", "reshape"]
    (inside,) = _merge(row(op.reshape(ROWS, (2, 2, 3, 8))), f"accel.{name}", params=(ROWS,))
    assert inner(inside) == ["reshape", f"fixed.{name}"]
    (other,) = _merge(row(op.reshape(OTHER, (2, 6, 8))), f"accel.{name}", params=(OTHER,))
    assert inner(other) == [f"fixed.{name}"]


def test_constant_operands_lie_outside():
    """Positions that are added, factors of a product, a token in front of others: activations that are constant."""
    whole = _ints(1, 4, 6, 6)
    (add,) = _merge(op.fixed.add(X, whole, **ONES), "accel.add")
    assert len(add.params) == 2
    (mul,) = _merge(op.fixed.mul(whole, X, multiplier=3, shift=5), "accel.mul")
    assert len(mul.params) == 2
    (conv,) = _merge(op.fixed.add(whole, _requantize(_conv(X, padding=(1, 1))), **ONES), "accel.conv2d")
    assert inner(conv) == ["nn.conv2d", "fixed.requantize", "fixed.add"] and len(conv.params) == 2
    layers = (_requantize(_conv(X)), _ints(1, 4, 4, 4))
    joined = _requantize(_conv(op.concatenate(layers, axis=2)))
    _, move, _ = _merge(joined, "accel.conv2d", "accel.move", "accel.conv2d")
    assert len(move.params) == 2


def test_weights_lie_inside_and_the_rest_outside():
    (conv,) = _merge(_requantize(_conv(X)), "accel.conv2d")
    constants = [node for node in post_order(conv) if isinstance(node, Constant)]
    assert sorted(c.data.shape for c in constants) == [(4,), (4, 4, 3, 3)]
    assert [p.name_hint for p in conv.params] == ["x"]
    assert conv.params[0].type_annotation == X.type_annotation


def test_a_residual_add_joins_the_layer_before_it():
    y = _requantize(_conv(X, padding=(1, 1)))
    for body in (op.fixed.add(y, X, **ONES), op.fixed.add(X, y, **ONES)):
        (conv,) = _merge(body, "accel.conv2d")
        assert inner(conv) == ["nn.conv2d", "fixed.requantize", "fixed.add"]
        assert [p.name_hint for p in conv.params] == ["x", "r"]


def test_of_two_layers_the_later_one_takes_the_add():
    left, right = _requantize(_conv(X, padding=(1, 1))), _requantize(_conv(X, kernel=1))
    first, second = _merge(op.fixed.add(left, right, **ONES), "accel.conv2d", "accel.conv2d")
    assert inner(first) == ["nn.conv2d", "fixed.requantize"] and "fixed.add" in inner(second)
    assert second.body.args[0].op.name == "fixed.requantize"


def test_what_others_read_is_not_taken_in():
    y = _requantize(_conv(X, padding=(1, 1)))
    _merge(op.fixed.add(y, op.fixed.add(y, X, **ONES), **ONES), "accel.conv2d", "accel.pairs")
    padded = _pad(X)
    both = op.concatenate([_requantize(_conv(padded)), _requantize(_conv(padded))], 1)
    for conv in _merge(both, "accel.conv2d", "accel.conv2d"):
        assert inner(conv) == ["nn.pad", "nn.conv2d", "fixed.requantize"], "each reader pads for itself"
    _merge(Tuple([_requantize(_conv(padded)), op.nn.relu(padded)]), "accel.conv2d")
    acc = _conv(X)
    _merge(op.concatenate([_requantize(acc), _requantize(acc)], 1))


def test_what_no_composite_matches_stays():
    weight = var("w", 4, 4, 3, 3, dtype="int8")
    _merge(_requantize(op.nn.conv2d(X, weight, out_dtype="int32")), params=(X, weight))
    _merge(op.cast(op.nn.max_pool2d(op.cast(X, "float32"), (2, 2)), "int8"))
    _merge(_requantize(op.cast(X, "int32")))
    three = op.reshape(X, (2, 72))
    (dense,) = _merge(_requantize(op.nn.dense(three, _ints(4, 72), out_dtype="int32")), "accel.dense")
    assert inner(dense) == ["nn.dense", "fixed.requantize"]


def test_legal_chooses_the_size():
    y = _requantize(_conv(_pad(X)))

    def no(*names):
        return lambda f: "no" if any(name in inner(f) for name in names) else None

    body = op.fixed.add(y, X, **ONES)
    both = _merge(body, "accel.conv2d", "accel.add", legal=lambda f: "no" if len(inner(f)) > 3 else None)
    assert [len(inner(f)) for f in both] == [3, 1]
    conv, _add = _merge(body, "accel.conv2d", "accel.add", legal=lambda f: "no" if len(inner(f)) in (3, 4) else None)
    assert inner(conv) == ["nn.conv2d", "fixed.requantize"]
    small, _ = _merge(body, "accel.conv2d", "accel.add", legal=no("nn.pad"))
    assert inner(small) == ["nn.conv2d", "fixed.requantize"]
    refused = _merge(body, "accel.conv2d", "accel.add", legal=lambda f: "no")
    assert [len(inner(f)) for f in refused] == [3, 1]


def test_legal_sees_typed_functions():
    seen = []

    def legal(function):
        seen.append(function)
        assert function.func_type.ret_type == function.body.checked_type
        assert all(node.checked_type is not None for node in post_order(function) if isinstance(node, Call))

    _merge(op.fixed.add(_requantize(_conv(X, padding=(1, 1))), X, **ONES), "accel.conv2d", legal=legal)
    assert seen


def test_merging_twice_changes_nothing():
    mod = MergeDeviceComposites()(module(_requantize(_conv(X)), X))
    assert MergeDeviceComposites()(mod) is mod


@settings(max_examples=50, deadline=None)
@given(*[st.integers(-128, 127)] * 5, *[st.integers(0, 2**31 - 1)] * 2, st.integers(0, 62))
def test_swapped_pairs_are_the_same(y, r, yz, rz, z, my, mr, shift):
    a, b = var("a", 1, dtype="int8"), var("b", 1, dtype="int8")
    call = op.fixed.add(a, b, my, mr, shift, yz, rz, z)
    values = {"a": np.array([y], "int8"), "b": np.array([r], "int8")}
    zeros = {"y_zero_point": yz, "r_zero_point": rz, "zero_point": z}
    times = op.fixed.mul(a, b, multiplier=my % (1 << 22), shift=shift, **zeros)
    for pair in (call, times):
        swapped = swap_pair(pair)
        assert swapped.args == (b, a)
        np.testing.assert_array_equal(evaluate(module(pair, a, b), values), evaluate(module(swapped, a, b), values))


@pytest.mark.parametrize("pair", ["fixed.add", "fixed.mul"])
def test_dense_layers_take_in_a_second_operand(pair):
    x, r = var("x", 6, 8, dtype="int8"), var("r", 6, 4, dtype="int8")
    layer = _requantize(op.nn.dense(x, _ints(4, 8), out_dtype="int32"))
    joined = op.fixed.add(r, layer, **ONES) if pair == "fixed.add" else op.fixed.mul(r, layer, multiplier=3, shift=5)
    (dense,) = _merge(joined, "accel.dense", params=(x, r))
    assert inner(dense) == ["nn.dense", "fixed.requantize", pair] and len(dense.params) == 2


@pytest.mark.parametrize("seed", range(12))
def test_keeps_the_result_of_quantized_networks(seed):
    mod = random_cnn(seed)
    quantized = quantize(mod, calibration=random_input(mod, seed, 2))
    inputs = random_input(mod, seed)
    np.testing.assert_array_equal(evaluate(quantized, inputs), evaluate(MergeDeviceComposites()(quantized), inputs))
