"""Rewriting by callbacks and partitioning keep the value; partitions are closed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import relay_hw as relay
from relay_hw import op
from relay_hw.analysis import structural_equal
from relay_hw.dataflow_pattern import (
    DFPatternCallback,
    dominates,
    is_constant,
    is_op,
    is_tuple_get_item,
    is_var,
    partition,
    rewrite,
    rewriting,
    wildcard,
)
from relay_hw.errors import InputError
from relay_hw.interp import evaluate
from relay_hw.ir.expr import Call, Expr, Function, Tuple
from relay_hw.ir.visit import post_order
from relay_hw.transform import InferType
from tests.relay_hw.random_cnn import random_cnn, random_input
from tests.relay_hw.transform.checks import assert_close, module, operators, var

X, Y = var("x", 2), var("y", 2)


class AddToSubtract(DFPatternCallback):
    def __init__(self, **options: bool) -> None:
        super().__init__(**options)
        self.a, self.b = wildcard(), wildcard()
        self.pattern = self.a + self.b

    def callback(self, pre: Expr, post: Expr, node_map: object) -> Expr:
        return op.subtract(node_map[self.a][0], op.negative(node_map[self.b][0]))


def test_every_match_is_rewritten_inside_out() -> None:
    body = op.add(op.add(X, Y), op.exp(op.add(Y, Y)))
    new = rewrite(AddToSubtract(), body)
    assert operators(module(new, X, Y)).count("subtract") == 3 and "add" not in operators(module(new, X, Y))
    values = [np.float32([1, 2]), np.float32([3, -4])]
    assert_close(evaluate(module(body, X, Y), values), evaluate(module(new, X, Y), values), "rewrite")


def test_rewriting_goes_on_until_nothing_changes() -> None:
    inner = wildcard()

    def drop(pre: Expr, post: Expr, node_map: object) -> Expr:
        return op.negative(node_map[inner][0])

    pattern = is_op("negative")(is_op("negative")(is_op("negative")(inner)))
    body: Expr = X
    for _ in range(9):
        body = op.negative(body)
    assert operators(module(pattern.rewrite(drop, body), X)) == ["negative"]


def test_a_callback_that_returns_post_changes_nothing() -> None:
    class Nothing(AddToSubtract):
        def callback(self, pre: Expr, post: Expr, node_map: object) -> Expr:
            assert pre is post
            return post

    body = op.add(X, Y)
    assert rewrite(Nothing(), body) is body


def test_rewrite_once_and_types() -> None:
    class Deeper(DFPatternCallback):
        def __init__(self) -> None:
            super().__init__(require_type=True, rewrite_once=True)
            self.pattern = is_op("exp")(wildcard())

        def callback(self, pre: Expr, post: Expr, node_map: object) -> Expr:
            assert pre.checked_type == relay.TensorType((2,))
            return op.exp(post)

    assert operators(module(rewrite(Deeper(), Function([X], op.exp(X))).body, X)) == ["exp", "exp"]
    assert operators(module(rewrite(Deeper(), op.exp(X)), X)) == ["exp", "exp"]


def test_callbacks_without_end_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rewriting, "_MAX_ROUNDS", 50)
    grow = is_op("exp")(wildcard())
    small = DFPatternCallback()
    small.pattern = grow
    small.callback = lambda pre, post, node_map: op.sqrt(node_map[grow][0].args[0])
    back = DFPatternCallback()
    back.pattern = is_op("sqrt")(wildcard())
    back.callback = lambda pre, post, node_map: op.exp(op.copy(post.args[0]))
    with pytest.raises(InputError, match="callbacks must come to an end, not still rewrite after 50 rounds"):
        rewrite([small, back], op.exp(X))
    with pytest.raises(InputError, match="DFPatternCallback must set its pattern"):
        rewrite(DFPatternCallback(), X)
    small.pattern = grow
    del small.callback
    with pytest.raises(InputError, match="DFPatternCallback must have a method callback"):
        rewrite(small, op.exp(X))


def test_batch_norm_from_its_parts() -> None:
    """A pattern over twelve operators, found and replaced."""
    data, mean, variance, beta, gamma, epsilon = (wildcard() for _ in range(6))
    normal = (data - mean) / is_op("sqrt")(variance + epsilon)
    pattern = gamma * normal + beta

    def replace(pre: Expr, post: Expr, node_map: object) -> Expr:
        names = (data, gamma, beta, mean, variance)
        parts = [node_map[part][0] for part in names]
        eps = float(node_map[epsilon][0].data)
        return relay.TupleGetItem(op.nn.batch_norm(*parts, epsilon=eps), 0)

    x = var("x", 2, 3)
    vectors = [op.const(np.float32([1, 2, 3]) + index) for index in range(4)]
    small = op.const(np.float32(0.25))
    body = op.add(
        op.divide(op.multiply(vectors[0], op.subtract(x, vectors[1])), op.sqrt(op.add(vectors[2], small))), vectors[3]
    )
    new = pattern.rewrite(replace, body)
    assert operators(module(new, x)) == ["nn.batch_norm"]
    value = np.random.default_rng(0).normal(size=(2, 3)).astype("float32")
    np.testing.assert_allclose(evaluate(module(new, x), [value]), evaluate(module(body, x), [value]), rtol=1e-5)


def conv(x: Expr) -> Expr:
    return op.nn.conv2d(x, op.const(np.ones((4, 4, 3, 3), "float32")), padding=1)


IMAGE = var("image", 1, 4, 6, 6)
CONV_RELU = is_op("nn.relu")(is_op("nn.conv2d")(wildcard(), is_constant()))


def _functions(root: Expr) -> list[Function]:
    return [n for n in post_order(root) if isinstance(n, Function) and "PartitionedFromPattern" in n.attrs]


def test_partition_makes_functions() -> None:
    body = op.nn.relu(conv(op.nn.relu(conv(IMAGE))))
    new = CONV_RELU.partition(body, {"Composite": "dsp.conv"})
    first, second = _functions(new)
    assert first.attrs == {"Composite": "dsp.conv", "PartitionedFromPattern": "nn.conv2d_nn.relu_"}
    assert [param.name_hint for param in second.params] == ["FunctionVar_0_0"]
    value = {"image": np.random.default_rng(0).normal(size=(1, 4, 6, 6)).astype("float32")}
    assert_close(evaluate(module(body, IMAGE), value), evaluate(module(new, IMAGE), value), "partition")
    assert partition(CONV_RELU, new) is new or len(_functions(partition(CONV_RELU, new))) == 2


def test_a_match_that_is_read_from_outside_stays() -> None:
    y = conv(IMAGE)
    body = Tuple([op.nn.relu(y), y])
    assert CONV_RELU.partition(body) is body or not _functions(CONV_RELU.partition(body))


def test_check_may_refuse() -> None:
    body = op.nn.relu(conv(IMAGE))
    seen: list[Expr] = []
    assert CONV_RELU.partition(body, check=lambda root: bool(seen.append(root))) is body
    assert seen == [body]


def test_wildcards_are_parameters_and_shared_ones_are_one() -> None:
    a = wildcard()
    new = (is_op("exp")(a) + a).partition(op.add(op.exp(X), X))
    (function,) = _functions(new)
    assert len(function.params) == 1 and isinstance(new, Call) and list(new.args) == [X]


def test_a_diamond_is_one_function() -> None:
    unary = wildcard().has_attr({"TOpPattern": 0})(wildcard())
    pattern = dominates(is_op("nn.conv2d")(wildcard(), wildcard()), unary, is_op("add")(wildcard(), wildcard()))
    y = conv(IMAGE)
    body = op.nn.relu(op.add(op.exp(y), op.negative(y)))
    new = pattern.partition(body)
    (function,) = _functions(new)
    assert sorted(operators(module(function.body))) == ["add", "exp", "negative", "nn.conv2d"]
    value = {"image": np.random.default_rng(0).normal(size=(1, 4, 6, 6)).astype("float32")}
    assert_close(evaluate(module(body, IMAGE), value), evaluate(module(new, IMAGE), value), "diamond")


def test_titles() -> None:
    pattern = is_op("nn.relu")(is_tuple_get_item(is_op("split")(is_var()), 0))
    (function,) = _functions(pattern.partition(op.nn.relu(relay.TupleGetItem(op.split(X, 2), 0))))
    assert function.attrs["PartitionedFromPattern"] == "split_TupleGetItem0_nn.relu_"


@settings(max_examples=15)
@given(st.integers(0, 2**32))
def test_networks_keep_their_results(seed: int) -> None:
    mod = InferType()(random_cnn(seed))
    inputs = random_input(mod, seed)
    unary = is_op("nn.relu") | is_op("clip") | is_op("nn.leaky_relu")
    pattern = is_op("nn.conv2d")(wildcard(), is_constant()).optional(lambda x: is_op("nn.bias_add")(x, is_constant()))
    new = pattern.optional(lambda x: unary(x)).partition(mod["main"])
    assert isinstance(new, Function)
    typed = InferType()(mod.with_functions({"main": new}))
    assert_close(evaluate(mod, inputs), evaluate(typed, inputs), f"random_cnn({seed})")
    assert structural_equal(typed["main"].func_type, mod["main"].func_type)
