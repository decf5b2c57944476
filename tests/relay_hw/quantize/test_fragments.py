"""Quantization of programs with control flow: fragments by what reaches them, sums of layers as one layer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import relay_hw as relay
from relay_hw.errors import QuantizeError
from relay_hw.ir.expr import Call, Expr, Function, Op, Var
from relay_hw.ir.visit import post_order
from relay_hw.quantize import find_strategy, quantize
from relay_hw.quantize.fragments import KEPT_CALLS, _Calls, fragment_modules, record
from relay_hw.quantize.main import realize_module
from relay_hw.quantize.report import layer_noise
from relay_hw.quantize.strategy import LayerChoice
from relay_hw.quantize.sums import find_sums, merge_sums
from relay_hw.runtime.compile import bind_params
from relay_hw.transform import InferType, OutlineFragments, simplify_pipeline
from tests.relay_hw import recurrent

INT8 = find_strategy("int8")


def outlined(program: Any) -> relay.IRModule:
    mod, weights = program
    return OutlineFragments()(simplify_pipeline()(InferType()(bind_params(mod, weights))))


def test_fragments_see_every_call() -> None:
    """A loop of three steps: its fragment is called three times a sample, with the state of each step."""
    mod = outlined(recurrent.lstm(16, 8, 3))
    names = list(fragment_modules(mod))
    assert len(names) == 1
    data = recurrent.sequences(2, 3, 16)
    seen = record(mod, names, {"x": data.reshape(-1, 1, 16)})[names[0]]
    params = {p.name_hint: p.tensor_type.static_shape for p in mod[names[0]].params}
    assert {name: len(values) // (params[name] or (1,))[0] for name, values in seen.items()} == dict.fromkeys(params, 6)
    counters = next(values for name, values in seen.items() if values.dtype == np.int32)
    assert counters.tolist() == [0, 1, 2, 0, 1, 2]


def test_calls_are_thinned_out_evenly() -> None:
    calls = _Calls(["a", "b"])
    for number in range(3 * KEPT_CALLS):
        calls.take(0, np.full((1, 2), number))
        calls.take(1, np.int64(number))
    found = calls.arrays()
    assert len(found["a"]) == len(found["b"]) <= KEPT_CALLS and calls.count == 3 * KEPT_CALLS
    assert set(np.diff(found["b"])) == {4} and (found["a"][:, 0] == found["b"]).all()


def test_a_fragment_that_nothing_reaches_stays_float() -> None:
    mod, weights = recurrent.branches()
    data = {"x": np.ones((2, 16), "float32"), "k": np.full(2, 9, "int32")}
    new = quantize(bind_params(mod, weights), calibration=data)
    names = [
        n.op.name for f in new.functions.values() for n in post_order(f) if isinstance(n, Call) and isinstance(n.op, Op)
    ]
    assert names.count("qnn.quantize") == 1 and "nn.dense" in names


def test_noise_of_layers_inside_of_loops() -> None:
    mod, weights = recurrent.lstm(16, 8, 3)
    data = {"x": recurrent.sequences(4, 3, 16)}
    realized = realize_module(bind_params(mod, weights), calibration=data)
    rows = layer_noise(realized, data)
    assert len(rows) == 1 and rows[0].operator == "nn.dense" and rows[0].sqnr_db > 25


def test_exceptions_of_a_strategy_name_layers_of_any_fragment() -> None:
    mod, weights = recurrent.treelstm()
    data = {"tree": recurrent.trees(mod, 4)}
    wrong = replace(INT8, name="own", layers=(LayerChoice("nowhere", weight_bits=4),))
    with pytest.raises(QuantizeError, match=r"strategy own: layer must be one of .*, not nowhere"):
        quantize(bind_params(mod, weights), wrong, data)


def sum_of_layers(rng: np.random.Generator, count: int, batch: int, sizes: list[int], shared: bool) -> relay.IRModule:
    params = [Var(f"x{k}", relay.TensorType((batch, size), "float32")) for k, size in enumerate(sizes)]
    total: Expr | None = None
    for k in range(count):
        param = params[k % len(params)]
        weight = rng.normal(size=(6, sizes[k % len(params)])).astype("float32")
        layer: Expr = relay.nn.dense(param, relay.const(weight), units=6)
        if k % 2:
            layer = relay.nn.bias_add(layer, relay.const(rng.normal(size=6).astype("float32")))
        total = layer if total is None else relay.add(total, layer)
    assert total is not None
    body = relay.Tuple([total, relay.exp(total)]) if shared else relay.tanh(total)
    return InferType()(relay.IRModule({"main": Function(params, body)}))


@settings(max_examples=30, deadline=None)
@given(
    st.integers(2, 5), st.integers(1, 3), st.lists(st.integers(1, 9), min_size=1, max_size=3), st.booleans(), st.data()
)
def test_merged_sums_compute_the_same(count: int, batch: int, sizes: list[int], shared: bool, data: Any) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    mod = sum_of_layers(rng, count, batch, sizes, shared)
    scales = [10.0 ** data.draw(st.integers(-3, 3)) for _ in sizes]
    values = {
        f"x{k}": (rng.normal(size=(4 * batch, size)) * scale).astype("float32")
        for k, (size, scale) in enumerate(zip(sizes, scales, strict=True))
    }
    new = merge_sums(mod, values)
    dense = [
        n
        for n in post_order(new["main"].body)
        if isinstance(n, Call) and isinstance(n.op, Op) and n.op.name == "nn.dense"
    ]
    assert len(dense) == 1 and len(find_sums(new["main"])) == 0
    args = [values[f"x{k}"][:batch] for k in range(len(sizes))]
    want, have = (relay.create_executor("debug", m).evaluate()(*args) for m in (mod, new))
    for one, other in zip(
        np.atleast_1d(have) if not shared else have, np.atleast_1d(want) if not shared else want, strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4 * max(scales))


def test_merged_inputs_fill_one_range() -> None:
    """An input a thousand times as small as the other keeps its share of the sum."""
    rng = np.random.default_rng(0)
    mod = sum_of_layers(rng, 2, 1, [16, 16], False)
    data = {"x0": rng.normal(size=(64, 16)).astype("float32"), "x1": 1e-3 * rng.normal(size=(64, 16)).astype("float32")}
    new = merge_sums(mod, data)
    factor = [n.args[1] for n in post_order(new["main"].body) if isinstance(n, Call) and n.op.name == "multiply"]
    assert len(factor) == 1 and 512 <= float(factor[0].data) <= 2048
    assert np.log2(float(factor[0].data)) % 1 == 0


def test_sums_with_other_readers_or_shapes_stay() -> None:
    x = Var("x", relay.TensorType((1, 4), "float32"))
    w = relay.const(np.ones((4, 4), "float32"))
    inner = relay.nn.dense(x, w, units=4)
    for body in (
        relay.Tuple([relay.add(inner, relay.nn.dense(relay.exp(x), w, units=4)), inner]),
        relay.add(inner, x),
        relay.add(inner, relay.const(np.ones((1, 4), "float32"))),
        relay.add(inner, relay.nn.dense(relay.exp(x), x, units=1)),
        relay.add(inner, inner),
    ):
        mod = InferType()(relay.IRModule({"main": Function([x], body)}))
        assert find_sums(mod["main"]) == []
        assert merge_sums(mod, {"x": np.ones((1, 4), "float32")}) is mod
