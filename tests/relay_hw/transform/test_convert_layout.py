"""ConvertLayout: as few transforms as possible, and the same numbers; Legalize."""

from __future__ import annotations

import numpy as np
import pytest

from relay_hw import op
from relay_hw.errors import InputError, TypeCheckError
from relay_hw.interp import evaluate
from relay_hw.ir.expr import Call, Expr, Tuple, TupleGetItem, Var
from relay_hw.ir.module import IRModule
from relay_hw.ir.types import TensorType
from relay_hw.ir.visit import post_order
from relay_hw.transform import ConvertLayout, FoldConstant, InferType, Legalize, module_pass
from relay_hw.transform.graph import is_op, make
from relay_hw.transform.redirect import redirect
from tests.relay_hw.random_cnn import random_cnn, random_input
from tests.relay_hw.transform.checks import assert_close, count, module, operators, var

RNG = np.random.default_rng(0)
X = var("x", 1, 4, 6, 6)
NHWC = ConvertLayout({"nn.conv2d": ["NHWC", "default"]})


def vector(size: int) -> Expr:
    return op.const(RNG.uniform(0.5, 2, size).astype("float32"))


def conv(x: Expr) -> Expr:
    return op.nn.conv2d(x, op.const(RNG.normal(size=(4, 4, 3, 3)).astype("float32")), padding=1)


INNER = {
    "relu": lambda x: op.nn.relu(x),
    "bias": lambda x: op.nn.bias_add(x, vector(4)),
    "channels": lambda x: op.add(x, op.const(np.ones((4, 1, 1), "float32"))),
    "scalar": lambda x: op.multiply(x, op.const(np.float32(2))),
    "residual": lambda x: op.add(x, op.exp(x)),
    "pool": lambda x: op.nn.max_pool2d(x, (2, 2), (2, 2)),
    "pad": lambda x: op.nn.pad(x, ((0, 0), (0, 0), (1, 0), (0, 2))),
    "batch norm": lambda x: TupleGetItem(op.nn.batch_norm(x, *(vector(4) for _ in range(4))), 0),
    "softmax": lambda x: op.nn.softmax(x, axis=1),
    "fast softmax": lambda x: op.nn.fast_softmax(x, axis=1),
    "layer norm": lambda x: op.nn.layer_norm(x, vector(4), vector(4), axis=1),
    "any": lambda x: op.where(op.any(op.greater(x, op.const(np.float32(0))), axis=[1], keepdims=True), x, op.exp(x)),
    "concatenate": lambda x: op.concatenate([op.nn.relu(x), x], axis=2),
    "split": lambda x: op.add(TupleGetItem(op.split(x, 2, axis=2), 0), TupleGetItem(op.split(x, 2, axis=2), 1)),
    "mean": lambda x: op.multiply(x, op.mean(x, axis=[2, 3], keepdims=True)),
}


@pytest.mark.parametrize("name", INNER)
def test_operators_between_layers_follow(name: str) -> None:
    mod = InferType()(module(conv(INNER[name](conv(X))), X))
    new = FoldConstant()(NHWC(mod))
    assert count(new)["layout_transform"] == 2, new.astext()
    assert 'data_layout="NHWC", kernel_layout="HWIO"' in new.astext()
    x = {"x": RNG.normal(size=(1, 4, 6, 6)).astype("float32")}
    assert_close(evaluate(mod, x), evaluate(new, x), name)


def test_operators_of_another_kind_get_the_old_layout() -> None:
    mod = InferType()(module(conv(op.reshape(conv(X), (1, 4, 36, 1))), X))
    new = FoldConstant()(NHWC(mod))
    assert count(new)["layout_transform"] == 4
    x = {"x": RNG.normal(size=(1, 4, 6, 6)).astype("float32")}
    assert_close(evaluate(mod, x), evaluate(new, x), "reshape")


def test_a_mean_over_the_image_needs_no_transform_back() -> None:
    mod = InferType()(module(op.mean(conv(X), axis=[2, 3]), X))
    new = FoldConstant()(NHWC(mod))
    assert count(new)["layout_transform"] == 1
    x = {"x": RNG.normal(size=(1, 4, 6, 6)).astype("float32")}
    assert_close(evaluate(mod, x), evaluate(new, x), "mean")


def test_one_transform_back_for_all_readers() -> None:
    y = conv(X)
    new = FoldConstant()(NHWC(module(Tuple([y, op.reshape(y, (144,)), y]), X)))
    assert count(new)["layout_transform"] == 2


def test_other_kernels_default_and_round_trip() -> None:
    mod = InferType()(module(conv(X), X))
    assert ConvertLayout()(mod) is mod and ConvertLayout({"nn.conv2d": ["default"]})(mod) is mod
    assert ConvertLayout({"nn.conv2d": ["NCHW", "OIHW"]})(mod) is mod
    new = ConvertLayout({"nn.conv2d": ["NHWC", "OHWI"]})(mod)
    assert 'kernel_layout="OHWI"' in new.astext()
    back = ConvertLayout({"nn.conv2d": ["NCHW"]})(NHWC(mod))
    x = {"x": RNG.normal(size=(1, 4, 6, 6)).astype("float32")}
    for one in (new, back):
        assert_close(evaluate(mod, x), evaluate(one, x), "round trip")
    with pytest.raises(InputError, match=r"the data layout of nn\.conv2d must be a permutation of NCHW, not NCHW4c"):
        ConvertLayout({"nn.conv2d": ["NCHW4c"]})(mod)
    with pytest.raises(InputError, match=r"the kernel layout of nn\.conv2d must be a permutation of OIHW, not unknown"):
        ConvertLayout({"nn.conv2d": ["CHWN"]})(mod)


@pytest.mark.parametrize("seed", range(8))
def test_networks(seed: int) -> None:
    mod = InferType()(random_cnn(seed))
    inputs = random_input(mod, seed)
    layouts = {name: ["NHWC"] for name in ("nn.conv2d", "nn.max_pool2d", "nn.conv2d_transpose")}
    new = ConvertLayout(layouts)(mod)
    assert_close(evaluate(mod, inputs), evaluate(new, inputs), f"random_cnn({seed})")


def test_a_pass_that_loses_a_transform_is_refused() -> None:
    """Height, width and channels are equal: only the layouts in the types tell the difference."""
    ty = TensorType((1, 6, 6, 6), "float32", "NCHW")
    x, weight = Var("x", ty), op.const(np.ones((6, 6, 3, 3), "float32"))
    good = NHWC(module(op.nn.relu(op.nn.conv2d(x, weight, padding=1)), x))
    assert good["main"].func_type.ret_type == ty

    @module_pass(opt_level=0)
    def drop(mod: IRModule, context: object) -> IRModule:
        first = next(n for n in post_order(mod["main"]) if isinstance(n, Call) and is_op(n, "layout_transform"))
        new = redirect(mod["main"], lambda node: first.args[0] if node is first else None)
        return IRModule.from_expr(new)

    with pytest.raises(TypeCheckError, match=r"nn\.conv2d.* must have layout NHWC, not NCHW"):
        drop(good)


def test_legalization() -> None:
    a, b = var("a", 2, 3), var("b", 3, 4)
    body = op.nn.matmul(a, b)
    mod = InferType()(module(body, a, b))
    new = Legalize()(mod)
    assert operators(new) == ["transpose", "nn.dense"]
    values = [RNG.normal(size=(2, 3)).astype("float32"), RNG.normal(size=(3, 4)).astype("float32")]
    assert_close(evaluate(mod, values), evaluate(new, values), "matmul")
    assert operators(Legalize()(module(op.squeeze(op.nn.batch_flatten(X), axis=[0]), X))) == ["reshape", "reshape"]
    own = Legalize({"exp": lambda call: make("nn.relu", call.args)})
    assert operators(own(module(op.exp(op.exp(X)), X))) == ["nn.relu", "nn.relu"]
    assert Legalize({})(mod) is mod


@pytest.mark.parametrize(("layer", "layout"), [("nn.conv1d_transpose", "NWC"), ("nn.conv1d", "NWC")])
def test_layers_of_one_axis_and_their_pools(layer: str, layout: str) -> None:
    x, weight = var("x", 1, 4, 6), op.const(RNG.normal(size=(4, 4, 3)).astype("float32"))
    build = getattr(op.nn, layer.removeprefix("nn."))
    mod = InferType()(module(op.nn.adaptive_avg_pool1d(op.nn.relu(build(x, weight)), 2), x))
    new = FoldConstant()(ConvertLayout({layer: [layout, "default"]})(mod))
    assert operators(new) == ["layout_transform", layer, "nn.relu", "nn.adaptive_avg_pool1d", "layout_transform"]
    values = {"x": RNG.normal(size=(1, 4, 6)).astype("float32")}
    assert_close(evaluate(mod, values), evaluate(new, values), layer)
