"""FuseOps on the worked cases of the algorithm, DefuseOps as its inverse, and both on random networks."""

from __future__ import annotations

import numpy as np
import pytest

import relay_hw as relay
from relay_hw import op
from relay_hw.analysis import structural_equal
from relay_hw.interp import evaluate
from relay_hw.ir.expr import Call, Expr, Function, Let, Op, Tuple, TupleGetItem
from relay_hw.ir.module import IRModule
from relay_hw.ir.visit import post_order
from relay_hw.transform import DefuseOps, FuseOps, InferType, PassContext
from tests.relay_hw.random_cnn import random_cnn, random_input
from tests.relay_hw.transform.checks import assert_close, module, var

IMAGE = (1, 16, 8, 8)


def groups(mod: IRModule) -> list[list[str]]:
    """The operators of each fused function in order of evaluation, the functions sorted."""
    found = []
    for node in post_order(mod["main"]):
        if isinstance(node, Function) and "Primitive" in node.attrs:
            found.append([n.op.name for n in post_order(node) if isinstance(n, Call) and isinstance(n.op, Op)])
    return sorted(found)


def fuse(body: Expr, *params: relay.Var, level: int = 2) -> list[list[str]]:
    return groups(FuseOps(level)(module(body, *params)))


def conv(x: Expr, channels: int = 16) -> Call:
    weight = op.const(np.zeros((channels, 16, 3, 3), "float32"))
    return op.nn.conv2d(x, weight, padding=1, channels=channels, kernel_size=3)


X = var("x", *IMAGE)


def test_elementwise_chain() -> None:
    y = op.exp(op.add(X, op.const(np.float32(1))))
    assert fuse(op.nn.relu(y), X) == [["add", "exp", "nn.relu"]]
    assert fuse(op.nn.relu(y), X, level=0) == [["add"], ["exp"], ["nn.relu"]]


def test_scalars_stay_inside_and_parameters_are_shared() -> None:
    mod = FuseOps(2)(module(op.add(op.multiply(X, op.const(np.float32(2))), X), X))
    (function,) = [n for n in post_order(mod["main"]) if isinstance(n, Function) and "Primitive" in n.attrs]
    assert len(function.params) == 1 and function.params[0].name_hint == "p0"
    assert function.attrs == {"Primitive": 1}


def test_a_convolution_takes_in_what_follows() -> None:
    y = op.nn.relu(op.add(conv(X), op.const(np.ones((1, 16, 1, 1), "float32"))))
    assert fuse(y, X) == [["nn.conv2d", "add", "nn.relu"]]


def test_a_residual_block_fuses_into_its_second_convolution() -> None:
    y = conv(X)
    assert fuse(op.nn.relu(op.add(y, conv(y))), X) == [["nn.conv2d"], ["nn.conv2d", "add", "nn.relu"]]


def test_a_diamond_fuses_into_the_convolution_above() -> None:
    y = conv(X)
    z = op.add(op.exp(y), op.negative(y))
    assert fuse(op.nn.relu(z), X) == [["nn.conv2d", "exp", "negative", "add", "nn.relu"]]


def test_two_convolutions_never_share_a_function() -> None:
    assert fuse(op.add(conv(X), conv(op.exp(X))), X) == [["exp"], ["nn.conv2d"], ["nn.conv2d", "add"]]


def test_a_reduction_takes_in_what_comes_before_and_nothing_after() -> None:
    y = op.sum(op.exp(X), axis=1)
    assert fuse(op.exp(y), X) == [["exp"], ["exp", "sum"]]


def test_injective_operators_fuse_in_the_second_phase() -> None:
    y = op.nn.relu(op.transpose(op.reshape(X, (1, 16, 64)), axes=[0, 2, 1]))
    assert fuse(y, X) == [["reshape", "transpose", "nn.relu"]]
    assert fuse(op.nn.relu(op.reshape(conv(X), (1, 1024))), X) == [["nn.conv2d"], ["reshape", "nn.relu"]]


def test_a_tuple_at_the_end_is_not_fused_into() -> None:
    assert fuse(Tuple([op.exp(X), op.negative(X)]), X) == [["exp"], ["negative"]]


def test_fields_fuse_through_a_tuple_that_an_injective_operator_reads() -> None:
    joined = op.concatenate([op.exp(X), op.negative(X)], axis=1)
    assert fuse(op.nn.relu(joined), X) == [["exp", "negative", "concatenate", "nn.relu"]]


def test_tuples_in_the_middle_and_after_each_other() -> None:
    one = op.const(np.float32(1))
    start = op.squeeze(X)
    branch = op.add(op.add(op.squeeze(start), one), one)
    joined = op.concatenate([op.add(start, one), branch, op.add(start, one)], axis=0)
    (only,) = fuse(op.add(op.squeeze(joined), one), X)
    assert sorted(only) == sorted(["squeeze", "add", "squeeze", "add", "add", "add", "concatenate", "squeeze", "add"])

    def triple(x: Expr) -> Expr:
        return op.concatenate([op.add(x, one), op.add(x, one), op.add(x, one)], axis=1)

    y = op.add(op.nn.max_pool2d(triple(triple(triple(X))), (2, 2), (2, 2)), one)
    found = fuse(Tuple([y, op.add(y, one)]), X)
    assert sorted(map(len, found)) == [1, 2, 12] and ["nn.max_pool2d", "add"] in found


def test_parallel_layers_are_joined_outside_of_them() -> None:
    assert fuse(op.concatenate([conv(X), conv(X)], axis=1), X) == [["concatenate"], ["nn.conv2d"], ["nn.conv2d"]]


def test_parallel_injective_operators() -> None:
    y = op.add(X, op.const(np.float32(1)))
    z, u = op.squeeze(y, axis=[0]), op.transpose(op.squeeze(y, axis=[0]), axes=[0, 1, 2])
    (only,) = fuse(op.left_shift(op.cast(z, "int32"), op.cast(u, "int32")), X)
    assert sorted(only) == ["add", "cast", "cast", "left_shift", "squeeze", "squeeze", "transpose"]


def test_split_and_its_parts() -> None:
    parts = op.split(X, 2, axis=1)
    both = op.add(TupleGetItem(parts, 0), TupleGetItem(parts, 1))
    assert fuse(both, X) == [["split", "add"]]


def test_stop_fusion_cuts_and_disappears() -> None:
    from relay_hw.op.annotation import stop_fusion

    assert fuse(op.exp(stop_fusion(op.exp(X))), X) == [["exp"], ["exp"]]


def test_branches_and_bindings_are_borders() -> None:
    c, name = relay.var("c", "bool"), relay.var("y")
    assert fuse(relay.If(c, op.exp(op.exp(X)), op.negative(X)), c, X) == [["exp", "exp"], ["negative"]]
    assert fuse(Let(name, op.exp(X), op.exp(name)), X) == [["exp"], ["exp"]]
    inside = Function([relay.var("z", shape=IMAGE)], op.exp(op.exp(X)))
    assert fuse(Tuple([op.exp(X), inside]), X) == [["exp"], ["exp", "exp"]]


def test_effects_and_fused_functions_stay_outside() -> None:
    mod = FuseOps(2)(module(op.exp(op.debug(op.exp(X))), X))
    assert groups(mod) == [["exp"], ["exp"]] and "debug(" in mod.astext()
    again = FuseOps(2)(mod)
    assert groups(again) == groups(mod)


def test_the_size_of_a_group_is_bounded() -> None:
    body: Expr = X
    for _ in range(10):
        body = op.exp(body)
    with PassContext(config={"relay.FuseOps.max_depth": 4}):
        assert sorted(map(len, fuse(body, X))) == [2, 4, 4]


def test_reshapes_alone_are_marked() -> None:
    mod = FuseOps(2)(module(op.reshape(op.reshape(X, (16, 64)), (64, 16)), X))
    (function,) = [n for n in post_order(mod["main"]) if isinstance(n, Function) and "Primitive" in n.attrs]
    assert function.attrs == {"Primitive": 1, "relay.reshape_only": 1}


def test_constants_are_parameters_unless_linked() -> None:
    mod = module(op.add(X, op.const(np.ones(IMAGE, "float32"))), X)
    assert "meta[relay.Constant][0]) " in FuseOps(2)(mod).astext().replace(")", ") ")
    with PassContext(config={"relay.FuseOps.link_params": True}):
        linked = FuseOps(2)(mod)
    (function,) = [n for n in post_order(linked["main"]) if isinstance(n, Function) and "Primitive" in n.attrs]
    assert len(function.params) == 1


@pytest.mark.parametrize("seed", range(6))
def test_networks(seed: int) -> None:
    mod = InferType()(random_cnn(seed))
    inputs = random_input(mod, seed)
    fused = FuseOps(2)(mod)
    assert_close(evaluate(mod, inputs), evaluate(fused, inputs), f"random_cnn({seed})")
    outside = [n for n in post_order(DefuseOps()(fused)["main"]) if isinstance(n, Function) and "Primitive" in n.attrs]
    assert not outside
    assert structural_equal(InferType()(DefuseOps()(fused)), mod)
