"""Caches that grow by a layer's rows: products read their parts, the host joins them, and the result stays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relay_hw import op
from relay_hw.accel.isa.config import load_config
from relay_hw.interp import evaluate
from relay_hw.ir.expr import Call, Expr, Function, Tuple, Var
from relay_hw.ir.visit import post_order
from relay_hw.op.rows import exponentials
from relay_hw.target.accel.composites import MergeDeviceComposites
from relay_hw.target.accel.split_caches import split_caches
from relay_hw.tensorize import why_not
from relay_hw.transform.graph import is_op, outer_order, shape_of
from relay_hw.transform.infer_type import InferType
from tests.relay_hw.transform.checks import module, var
from tests.targets import target_for

RNG = np.random.default_rng(3)
TABLE = op.const(RNG.permutation(np.arange(-128, 128)).astype(np.int8))
DEFAULT = load_config("default")


def _stage(product: Expr, columns: int, each: bool = False) -> Expr:
    """A product's int32 as int8, with one multiplier or one for each column."""
    count = columns if each else 1
    multipliers, shifts = RNG.integers(1 << 10, 1 << 14, count), [21] * count
    bias = op.const(RNG.integers(-9999, 9999, columns).astype(np.int32))
    return op.fixed.requantize(product, bias, tuple(map(int, multipliers)), tuple(shifts), axis=2)


def attention(heads: int, past: int, new: int, width: int, each: bool = False) -> tuple[list[Var], list[Expr]]:
    """Inputs: queries, caches, what becomes new keys and values; then context, keys and values."""
    q = var("q", heads, new, width, dtype="int8")
    before = [var(name, heads, past, width, dtype="int8") for name in ("keys", "values")]
    added = [var(name, heads, new, width, dtype="int8") for name in ("k", "v")]
    caches = [op.concatenate([a, op.fixed.table(b, TABLE)], axis=1) for a, b in zip(before, added, strict=True)]
    columns = past + new
    scores = op.nn.batch_matmul(q, caches[0], out_dtype="int32", transpose_b=True)
    weights = op.fixed.softmax(_stage(scores, columns, each), op.const(exponentials(0.1)))
    turned = op.transpose(caches[1], (0, 2, 1))
    mixed = op.nn.batch_matmul(weights, turned, out_dtype="int32", transpose_b=True)
    return [q, *before, *added], [_stage(mixed, width), *caches]


def function(params: Sequence[Var], results: Sequence[Expr]) -> Function:
    body = results[0] if len(results) == 1 else Tuple(list(results))
    return InferType()(module(body, *params))["main"]


def products(found: Function) -> list[tuple[Any, Any]]:
    """Shapes of the operands of each product."""
    calls = [node for node in post_order(found.body) if is_op(node, "nn.batch_matmul") and isinstance(node, Call)]
    return [(shape_of(call.args[0]), shape_of(call.args[1])) for call in calls]


def check(before: Function, after: Function) -> None:
    data = [RNG.integers(-128, 128, shape_of(param)).astype(np.int8) for param in before.params]
    values = [evaluate(module(part.body, *part.params), data) for part in (before, after)]
    for one, other in zip(*((v if isinstance(v, tuple) else (v,)) for v in values), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("whole", [1, 3])
@pytest.mark.parametrize("each", [False, True])
@pytest.mark.parametrize("past, new, first", [(16, 1, 16), (31, 1, 16), (40, 3, 32), (47, 20, 32)])
def test_products_read_parts(past: int, new: int, first: int, each: bool, whole: int) -> None:
    params, results = attention(2, past, new, 32, each)
    before = function(params, results[:whole])
    after = split_caches(before, DEFAULT)
    rest = past + new - first
    assert products(after) == [
        ((2, new, 32), (2, first, 32)),
        ((2, new, 32), (2, rest, 32)),
        ((2, new, past + new), (2, 32, past + new)),
    ]
    check(before, after)


def test_what_is_no_cache_stays() -> None:
    params, results = attention(2, 15, 1, 32)
    short = function(params, results)
    assert split_caches(short, DEFAULT) is short
    params, results = attention(2, 16, 1, 32)
    for name in ("tiny", "ecp5", "w4"):
        plain = function(params, results)
        assert split_caches(plain, load_config(name)) is plain
    x = var("x", 2, 16, 32, dtype="int8")
    both = op.concatenate([x, x], axis=1)
    host = function([x], [_stage(op.nn.batch_matmul(x, both, out_dtype="int32", transpose_b=True), 32)])
    assert split_caches(host, DEFAULT) is host


def test_keys_that_are_turned_twice_are_plain() -> None:
    params, results = attention(1, 16, 2, 16)
    keys = op.transpose(op.transpose(results[1], (0, 2, 1)), (0, 2, 1))
    scores = op.nn.batch_matmul(params[0], keys, out_dtype="int32", transpose_b=True)
    before = function(params, [_stage(scores, 18)])
    after = split_caches(before, DEFAULT)
    assert [right for _, right in products(after)] == [(1, 16, 16), (1, 2, 16)]
    check(before, after)


@settings(max_examples=30, deadline=None)
@given(sizes=st.tuples(*(st.integers(1, most) for most in (3, 50, 20, 40))), each=st.booleans())
def test_any_cache(sizes: tuple[int, int, int, int], each: bool) -> None:
    params, results = attention(*sizes, each)
    before = function(params, results)
    check(before, split_caches(before, DEFAULT))


def test_the_host_joins_what_is_a_result() -> None:
    """Of a cache the device gives the new rows alone."""
    params, results = attention(2, 40, 1, 32)
    target = target_for("default")
    merge = MergeDeviceComposites(lambda composite: why_not(composite, target), target)
    # Results go to floats, as in networks.
    found = [op.qnn.dequantize(result, op.const(np.float32(0.1)), op.const(np.int32(0))) for result in results]
    mod = merge(InferType()(module(Tuple(found), *params)))
    body = mod["main"].body
    assert isinstance(body, Tuple)
    caches = [node.args[0] for node in body.fields[1:] if isinstance(node, Call)]
    assert all(is_op(cache, "concatenate") for cache in caches)
    turned = [node for node in outer_order(body) if is_op(node, "transpose")]
    assert [shape_of(node) for node in turned] == [(2, 32, 32)]
