"""Flat functions: what flattening keeps, what it refuses, and that storing changes nothing."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import relay_hw.op as op
from relay_hw.analysis import infer_type
from relay_hw.backend.flat import FlatFunction, FlatInvoke, evaluate, flatten, used_operators
from relay_hw.backend.store import (
    ConstantPool,
    attrs_from_json,
    attrs_to_json,
    flat_from_json,
    flat_to_json,
    type_from_json,
)
from relay_hw.errors import ArtifactError
from relay_hw.ir.expr import Call, Constant, Expr, Function, GlobalVar, Let, Tuple, TupleGetItem, Var
from relay_hw.ir.module import IRModule
from relay_hw.ir.types import ANY, TensorType, TupleType

F4 = TensorType((4,), "float32")


def typed(function: Function, **others: Function) -> Function:
    return infer_type(IRModule({**others, "main": function}))["main"]


def flat(params: list[Var], body: Expr) -> FlatFunction:
    return flatten(typed(Function(params, body)), "main")


def test_sharing_is_kept() -> None:
    x = Var("x", F4)
    shared: Expr = op.exp(x)
    for _ in range(60):
        shared = op.add(shared, shared)
    function = flat([x], shared)
    assert len(function.nodes) == 62
    assert evaluate(function, [np.zeros(4, np.float32)])[0] == 2.0**60


def test_a_deep_graph_needs_no_recursion() -> None:
    x = Var("x", F4)
    body: Expr = x
    for _ in range(5000):
        body = op.negative(body)
    assert evaluate(flat([x], body), [np.ones(4, np.float32)])[0] == 1.0


def test_lets_and_inner_functions_are_inlined() -> None:
    x, y, a = Var("x", F4), Var("y", F4), Var("a", F4)
    twice = Function([a], op.add(a, a), attrs={"Primitive": 1})
    body = Let(y, Call(twice, [x]), op.multiply(Call(twice, [y]), y))
    function = flat([x], body)
    assert used_operators(function) == {"add": 2, "multiply": 1}
    np.testing.assert_array_equal(evaluate(function, [np.full(4, 3, np.float32)]), np.full(4, 72))


def test_tuples_in_and_out() -> None:
    pair = Var("pair", TupleType([F4, F4]))
    left, right = TupleGetItem(pair, 0), TupleGetItem(pair, 1)
    function = flat([pair], Tuple((right, Tuple((op.add(left, right), left)))))
    one, two = np.ones(4, np.float32), np.full(4, 2, np.float32)
    got = evaluate(function, [(one, two)])
    np.testing.assert_array_equal(got[0], two)
    np.testing.assert_array_equal(got[1][0], one + two)
    np.testing.assert_array_equal(got[1][1], one)


def test_the_parameter_itself_may_be_the_result() -> None:
    x = Var("x", F4)
    assert evaluate(flat([x], x), [np.ones(4, np.float32)]).sum() == 4


def test_global_calls_are_kept_as_invocations() -> None:
    x, y = Var("x", F4), Var("y", F4)
    main = typed(Function([x], Call(GlobalVar("other"), [x])), other=Function([y], op.exp(y)))
    node = flatten(main, "main").nodes[1]
    assert isinstance(node, FlatInvoke) and node.function == "other" and node.args == (0,)


def test_unknown_sizes_are_stored() -> None:
    x = Var("x", TensorType((ANY, 2), "float32"))
    pool = ConstantPool()
    row = json.loads(json.dumps(flat_to_json(flat([x], op.exp(x)), pool)))
    back = flat_from_json(row, pool)
    assert back.params[0].type == TensorType((ANY, 2), "float32")
    for size in (0, 3):
        assert evaluate(back, [np.zeros((size, 2), np.float32)]).tolist() == [[1.0, 1.0]] * size


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        # A text times sizes would be a text of so many copies.
        (
            {"shape": [1 << 20, 1 << 20, "xxxx"]},
            r"shape of a constant must be at most 32 integers of at least 0, not \[",
        ),
        ({"shape": "4"}, "shape of a constant must be at most 32 integers of at least 0, not '4'"),
        ({"shape": [-1, -4]}, r"shape of a constant must be at most 32 integers of at least 0, not \[-1, -4\]"),
        ({"shape": [0, 1 << 63]}, "shape of a constant must be at most 32 integers"),
        ({"shape": [1] * 33}, "shape of a constant must be at most 32 integers"),
        ({"offset": 0.0}, "offset of a constant must be an integer, not 0.0"),
        ({"offset": 64}, r"constant must lie in the 16 bytes stored, not at 64\+16"),
    ],
)
def test_constants_that_nobody_stored(change: dict[str, Any], sentence: str) -> None:
    pool = ConstantPool()
    row = pool.add(np.zeros(4, np.float32))
    with pytest.raises(ArtifactError, match=sentence):
        pool.get(row | change)


@pytest.mark.parametrize("shape", [[-1], ["x"], [1.0], [True]])
def test_types_that_nobody_stored(shape: list[Any]) -> None:
    with pytest.raises(ArtifactError, match="a stored shape must be of integers of at least 0, or null, not "):
        type_from_json({"dtype": "int8", "shape": shape})


def stored(function: FlatFunction) -> tuple[Any, bytes]:
    pool = ConstantPool()
    row = flat_to_json(function, pool)
    return json.loads(json.dumps(row)), bytes(pool)


def sample() -> FlatFunction:
    x = Var("x", TensorType((1, 3, 8, 8), "float32"))
    rng = np.random.default_rng(1)
    weight = Constant(rng.normal(size=(4, 3, 3, 3)).astype(np.float32))
    y = op.nn.conv2d(x, weight, strides=(2, 2), padding=(1, 1), channels=4, kernel_size=(3, 3))
    z = op.nn.pad(op.clip(y, 0.0, float("inf")), ((0, 0), (0, 0), (1, 0), (0, 1)), Constant(np.float32(2)))
    return flat([x], Tuple((op.nn.softmax(op.nn.batch_flatten(z)), TupleGetItem(op.split(y, 2, axis=1), 1))))


def test_storing_changes_nothing() -> None:
    function = sample()
    row, data = stored(function)
    back = flat_from_json(row, ConstantPool(data))
    x = np.random.default_rng(2).normal(size=(1, 3, 8, 8)).astype(np.float32)
    for got, want in zip(evaluate(back, [x]), evaluate(function, [x]), strict=True):
        np.testing.assert_array_equal(got, want)
    assert stored(back) == (row, data) == stored(sample())


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"result": 99}, "result must be a node, not 99"),
        ({"nodes": [{"tuple": [0]}]}, "node 0 must use earlier nodes only"),
        ({"nodes": [{"get": -1, "index": 0}]}, "node 0 must use earlier nodes only"),
        ({"nodes": [{"strange": 1}]}, "a stored node must be an input, a constant, a call or a tuple"),
        ({"nodes": 5}, "a stored host function must have name, nodes and result"),
        ({"name": ["x"]}, "a stored host function must have name, nodes and result"),
        ({"nodes": [{"invoke": {}, "args": [], "type": {}}]}, "a stored node must be an input, a constant"),
        ({"nodes": [{"input": ["x"], "type": {}}]}, "a stored node must be an input, a constant"),
        ({"nodes": [{"global": [], "type": {}}]}, "a stored node must be an input, a constant"),
    ],
)
def test_damaged_rows_are_refused(change: dict[str, Any], sentence: str) -> None:
    row, data = stored(sample())
    with pytest.raises(ArtifactError, match=sentence):
        flat_from_json(row | change, ConstantPool(data))


def test_a_constant_outside_the_pool_is_refused() -> None:
    row, data = stored(sample())
    with pytest.raises(ArtifactError, match="constant must lie in the 100 bytes stored"):
        flat_from_json(row, ConstantPool(data[:100]))


def test_equal_constants_are_stored_once_and_aligned() -> None:
    pool = ConstantPool()
    one = pool.add(np.arange(5, dtype=np.int8))
    two = pool.add(np.arange(6, dtype=np.float64))
    assert pool.add(np.arange(5, dtype=np.int8)) == one
    assert two["offset"] == 64 and len(bytes(pool)) == 64 + 48
    np.testing.assert_array_equal(pool.get(two), np.arange(6.0))


@given(
    st.floats(allow_nan=False),
    st.floats(allow_nan=False),
)
@settings(max_examples=50, deadline=None)
def test_float_attributes_survive(low: float, high: float) -> None:
    clip = op.get("clip")
    assert clip.attrs_type is not None
    attrs = clip.attrs_type(low, high)
    assert attrs_from_json(clip, json.loads(json.dumps(attrs_to_json(attrs), allow_nan=False))) == attrs


def test_attributes_of_every_operator_survive() -> None:
    """Records whose fields all have defaults, with those defaults."""
    seen = 0
    for row in op.OPS:
        if row.attrs_type is None:
            continue
        try:
            attrs = row.attrs_type()
        except TypeError:
            continue
        seen += 1
        assert attrs_from_json(row, json.loads(json.dumps(attrs_to_json(attrs)))) == attrs, row.name
    assert seen > 10
