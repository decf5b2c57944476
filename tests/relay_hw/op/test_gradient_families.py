"""Gradients of reductions, shapes, selections, matrix products, pools, norms and losses, to the second order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import relay_hw as relay
from relay_hw import op
from relay_hw.analysis.infer import infer_expr
from relay_hw.errors import UnsupportedError
from relay_hw.ir.expr import Call, Expr, Function, Let, Var
from relay_hw.ir.types import TupleType
from relay_hw.transform import gradient
from tests.relay_hw.op.gradient_checks import EXECUTOR, check, type_of


def real(*shape: int, seed: int = 0, low: float = 0.3, high: float = 2.0) -> np.ndarray:
    """Distinct numbers of both signs, away from 0 and from each other."""
    rng = np.random.default_rng(seed + 17 * len(shape) + sum(shape))
    count = int(np.prod(shape))
    numbers = np.linspace(low, high, count) if count else np.zeros(0)
    return (rng.permutation(numbers) * rng.choice([-1.0, 1.0], count)).reshape(shape)


def positive(*shape: int, seed: int = 0) -> np.ndarray:
    return np.abs(real(*shape, seed=seed))


def ints(*values: Any) -> np.ndarray:
    return np.array(values, "int32")


Case = tuple[str, Callable[..., Expr], tuple[Any, ...]]

REDUCTIONS: list[Case] = [
    ("sum", lambda x: op.sum(x, (0, 2)), (real(2, 3, 2),)),
    ("sum all", lambda x: op.sum(x), (real(2, 3),)),
    ("sum none", lambda x: op.sum(x, (), exclude=True), (real(2, 3),)),
    ("sum exclude", lambda x: op.sum(x, 1, exclude=True), (real(2, 3, 2),)),
    ("mean", lambda x: op.mean(x, -1, keepdims=True), (real(2, 3),)),
    ("max", lambda x: op.max(x, 1), (real(2, 4),)),
    ("max all", lambda x: op.max(x), (real(2, 3),)),
    ("min", lambda x: op.min(x, (0, 1), keepdims=True), (real(2, 2, 2),)),
    ("prod", lambda x: op.prod(x, 1), (real(2, 4),)),
    ("prod two axes", lambda x: op.prod(x, (0, 2), keepdims=True), (real(2, 2, 3),)),
    ("prod with zeros", lambda x: op.prod(x, 1), (real(3, 3) * np.array([[0, 1, 1], [0, 0, 1], [0, 0, 0]]),)),
    ("variance", lambda x: op.variance(x, 1), (real(2, 4),)),
    ("variance unbiased", lambda x, m: op.variance(x, 1, unbiased=True, with_mean=m), (real(2, 4), real(2, 1))),
    ("std", lambda x: op.std(x, 0), (real(3, 2),)),
    ("logsumexp", lambda x: op.logsumexp(x, 1), (real(2, 3),)),
    ("mean_variance", lambda x: op.mean_variance(x, (0, 1)), (real(2, 3),)),
]
SHAPES: list[Case] = [
    ("reshape", lambda x: op.reshape(x, (3, -1)), (real(2, 3),)),
    ("reverse_reshape", lambda x: op.reverse_reshape(x, (-1, 0)), (real(2, 3, 2),)),
    ("reshape_like", op.reshape_like, (real(2, 3), real(6))),
    ("batch_flatten", op.nn.batch_flatten, (real(2, 3, 2),)),
    ("transpose", lambda x: op.transpose(x, (1, 2, 0)), (real(2, 3, 2),)),
    ("transpose all", op.transpose, (real(2, 3),)),
    ("transpose negative", lambda x: op.transpose(x, (-1, 0, 1)), (real(2, 3, 2),)),
    ("expand_dims", lambda x: op.expand_dims(x, 1, 2), (real(2, 3),)),
    ("squeeze", lambda x: op.squeeze(x, 1), (real(2, 1, 3),)),
    ("squeeze all", op.squeeze, (real(1, 2, 1),)),
    ("layout", lambda x: op.layout_transform(x, "NCHW", "NCHW2c"), (real(1, 4, 2, 1),)),
    ("broadcast_to", lambda x: op.broadcast_to(x, (2, 3, 2)), (real(3, 1),)),
    ("broadcast_to_like", op.broadcast_to_like, (real(3, 1), real(2, 3, 2))),
    ("collapse_sum_to", lambda x: op.collapse_sum_to(x, (3, 1)), (real(2, 3, 2),)),
    ("collapse_sum_like", op.collapse_sum_like, (real(2, 3, 2), real(3, 1))),
    ("tile", lambda x: op.tile(x, (2, 1, 3)), (real(2, 2),)),
    ("tile fewer", lambda x: op.tile(x, (2,)), (real(2, 2),)),
    ("repeat", lambda x: op.repeat(x, 2, 1), (real(2, 3),)),
    ("upsampling", lambda x: op.nn.upsampling(x, 2, 3), (real(1, 2, 2, 2),)),
    ("upsampling, channels last", lambda x: op.nn.upsampling(x, 1, 2, "NHWC"), (real(1, 2, 2, 2),)),
    ("repeat flat", lambda x: op.repeat(x, 3), (real(2, 2),)),
    ("full", lambda x: op.full(x, (2, 3)), (real(),)),
    ("full_like", op.full_like, (real(2, 2), real())),
    ("space_to_batch_nd", lambda x: op.nn.space_to_batch_nd(x, (2, 1), [(1, 0), (0, 0)]), (real(2, 3, 2),)),
    ("batch_to_space_nd", lambda x: op.nn.batch_to_space_nd(x, (2, 2), [(1, 0), (0, 1)]), (real(4, 2, 2),)),
    ("dilate", lambda x: op.nn.dilate(x, (2, 3)), (real(2, 3),)),
    ("slice_like", lambda x, y: op.slice_like(x, y, (1,)), (real(2, 4), real(3, 2))),
    ("meshgrid", lambda x, y: op.meshgrid((x, y))[0], (real(2), real(3))),
    ("meshgrid xy", lambda x, y: op.meshgrid((x, y), "xy")[1], (real(2), real(3))),
    ("meshgrid of a split", lambda x: op.meshgrid(op.split(x, 2))[1], (real(4),)),
    ("sequence_mask", lambda x, n: op.sequence_mask(x, n, 5.0, 1), (real(2, 3), ints(1, 3))),
    ("image resize", lambda x: op.image.resize2d(x, (5, 2), method="cubic"), (real(1, 2, 3, 4),)),
    (
        "image resize nearest",
        lambda x: op.image.resize1d(x, (5,), layout="NWC", method="nearest_neighbor"),
        (real(1, 3, 2),),
    ),
    ("zeros", lambda x: x * op.zeros((2,), "float64"), (real(2),)),
]
SELECTIONS: list[Case] = [
    ("concatenate", lambda x, y: op.concatenate((x, y, x), 1), (real(2, 1), real(2, 3))),
    ("concatenate tuple", lambda t, x: op.concatenate(relay.Tuple([x, t[1]]), -1), ((real(1), real(2, 2)), real(2, 1))),
    ("stack", lambda x, y: op.stack((x, y), -1), (real(2, 3), real(2, 3, seed=1))),
    ("split", lambda x: op.split(x, (1, 3), 1), (real(2, 4),)),
    ("split one", lambda x: op.split(x, 2, 0)[1], (real(4, 2),)),
    ("slice", lambda x: op.strided_slice(x, (0, 1), (2, 3)), (real(2, 4),)),
    ("slice strided", lambda x: op.strided_slice(x, (1, 0), (5, 4), (3, 2)), (real(5, 4),)),
    ("slice backwards", lambda x: op.strided_slice(x, (-1, 3), (-6, 0), (-2, -1)), (real(5, 4),)),
    ("slice axes", lambda x: op.strided_slice(x, (1,), (2,), slice_mode="size", axes=(1,)), (real(2, 4),)),
    ("slice empty", lambda x: op.sum(op.strided_slice(x, (2,), (2,))), (real(4),)),
    ("reverse", lambda x: op.reverse(x, 1), (real(2, 3),)),
    ("take flat", op.take, (real(2, 3), ints([0, 5], [5, 9]))),
    ("take", lambda x, i: op.take(x, i, axis=1), (real(2, 3, 2), ints([0, 2], [2, -1]))),
    ("take wrapped", lambda x, i: op.take(x, i, axis=-1, mode="wrap"), (real(2, 3), ints(-1, 4))),
    ("take scalar", lambda x, i: op.take(x, i, axis=0), (real(2, 3), np.int32(1).reshape(()))),
    ("take batched", lambda x, i: op.take(x, i, axis=2, batch_dims=1), (real(2, 2, 3), ints([0, 2], [1, 1]))),
    ("pad", lambda x, v: op.nn.pad(x, [(1, 0), (0, 2)], v), (real(2, 2), real())),
    ("pad and crop", lambda x, v: op.nn.pad(x, [(-1, 1), (2, -1)], v), (real(3, 3), real())),
    ("pad edge", lambda x: op.nn.pad(x, [(1, 2), (0, 1)], pad_mode="edge"), (real(2, 3),)),
    ("pad reflect", lambda x: op.nn.pad(x, [(1, 1), (2, 0)], pad_mode="reflect"), (real(2, 3),)),
    ("mirror_pad", lambda x: op.nn.mirror_pad(x, [(1, 1), (0, 2)]), (real(2, 3),)),
    ("gather", lambda x, i: op.gather(x, 1, i), (real(2, 3), ints([0, 0, 2, -1], [1, 2, 2, 0]))),
    ("gather_nd", op.gather_nd, (real(2, 3, 2), ints([0, 1, 1], [2, 0, 0]))),
    ("gather_nd batch", lambda x, i: op.gather_nd(x, i, batch_dims=1), (real(2, 3, 2), ints([[0, 2], [1, 1]]))),
    (
        "scatter add",
        lambda x, i, u: op.scatter_elements(x, i, u, 1, "add"),
        (real(2, 3), ints([1, 1], [0, 2]), real(2, 2)),
    ),
    ("scatter", lambda x, i, u: op.scatter_elements(x, i, u, 0), (real(3, 2), ints([1, 0]), real(1, 2))),
    ("scatter_nd add", lambda x, i, u: op.scatter_nd(x, i, u, "add"), (real(3, 2), ints([1, 1]), real(2, 2))),
    ("scatter_nd", op.scatter_nd, (real(3, 2), ints([2, 0], [1, 0]), real(2))),
    ("one_hot", lambda i, a, b: op.one_hot(i, a, b, 3, 0, "float64"), (ints([0, 2], [1, 5]), real(), real(seed=1))),
    ("where", op.where, (np.array([True, False]), real(3, 2), real(2))),
]
PRODUCTS: list[Case] = [
    ("dense", op.nn.dense, (real(2, 3), real(4, 3))),
    ("dense of three axes", op.nn.dense, (real(2, 2, 3), real(2, 3))),
    ("matmul", op.nn.matmul, (real(2, 3), real(3, 4))),
    ("bias_add", op.nn.bias_add, (real(2, 3, 2), real(3))),
    ("bias_add last", lambda x, b: op.nn.bias_add(x, b, -1), (real(2, 3), real(3))),
    ("prelu", op.nn.prelu, (real(2, 3, 2), real(3))),
    ("prelu last", lambda x, a: op.nn.prelu(x, a, axis=-1), (real(2, 3), real(3))),
]
NORMS: list[Case] = [
    ("softmax", op.nn.softmax, (real(2, 3),)),
    ("softmax first", lambda x: op.nn.softmax(x, 0), (real(2, 3),)),
    ("fast_softmax", op.nn.fast_softmax, (real(2, 3),)),
    ("log_softmax", op.nn.log_softmax, (real(2, 3),)),
    ("batch_norm", op.nn.batch_norm, (real(2, 2, 2), real(2), real(2, seed=1), real(2, seed=2), positive(2))),
    ("batch_norm plain", lambda x, *p: op.nn.batch_norm(x, *p, axis=-1, center=False, scale=False)[0],
     (real(3, 2), real(2), real(2, seed=1), real(2, seed=2), positive(2))),
    ("batch_norm trained", lambda x, g, b: op.nn.batch_norm(
        x, g, b, op.mean(x, 1, exclude=True), op.variance(x, 1, exclude=True))[0],
     (real(3, 2, 2), real(2), real(2, seed=1))),
    ("layer_norm", op.nn.layer_norm, (real(2, 4), real(4), real(4, seed=1))),
    ("layer_norm first", lambda x, g, b: op.nn.layer_norm(x, g, b, axis=0), (real(3, 2), real(3), real(3, seed=1))),
    ("instance_norm", op.nn.instance_norm, (real(2, 2, 3), real(2), real(2, seed=1))),
    ("group_norm", lambda x, g, b: op.nn.group_norm(x, g, b, 2), (real(1, 4, 3), real(4), real(4, seed=1))),
    ("group_norm last", lambda x, g, b: op.nn.group_norm(x, g, b, 2, axis=2),
     (real(1, 2, 4), real(4), real(4, seed=1))),
    ("l2_normalize", lambda x: op.nn.l2_normalize(x, 1e-3, 1), (real(2, 3),)),
    ("l2_normalize all", lambda x: op.nn.l2_normalize(x, 1e-3), (real(2, 3),)),
    ("lrn", lambda x: op.nn.lrn(x, size=3, alpha=0.5), (real(1, 4, 2),)),
    ("dropout", op.nn.dropout, (real(2, 3),)),
    ("cross_entropy", op.nn.cross_entropy, (positive(2, 3), positive(2, 3, seed=1))),
    ("nll_loss", op.nn.nll_loss, (real(2, 3), ints(2, 0), positive(3))),
    ("nll_loss of pixels", lambda x, t, w: op.nn.nll_loss(x, t, w, "none", 1),
     (real(1, 2, 3), ints([0, 1, 1]), positive(2))),
    ("hardswish", op.nn.hardswish, (real(2, 6, high=4.0),)),
    ("cross_entropy_with_logits", op.nn.cross_entropy_with_logits, (real(2, 3), positive(2, 3))),
]  # fmt: skip
CASES = REDUCTIONS + SHAPES + SELECTIONS + PRODUCTS + NORMS


@pytest.mark.parametrize(("build", "values"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_derivatives(build: Callable[..., Expr], values: tuple[Any, ...]) -> None:
    check(build, *values)


def first_real(body: Expr) -> Expr:
    """A tensor that can be differentiated, of a result that may be a tuple."""
    ty = infer_expr(body).type
    return op.sum(body[0] if isinstance(ty, TupleType) else body)


@pytest.mark.parametrize("way", ["function", "match"])
@pytest.mark.parametrize(("build", "values"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_operators_in_function_values_and_arms(build: Callable[..., Expr], values: tuple[Any, ...], way: str) -> None:
    """Gradients ask for the types of their arguments; there these are variables that differentiation makes."""
    outer, inner = ([Var(f"x{k}", type_of(v), checked_type=type_of(v)) for k, v in enumerate(values)] for _ in range(2))
    plain = Function(outer, first_real(build(*outer)))
    f = Var("f")
    if way == "function":
        body: Expr = Let(f, Function(inner, first_real(build(*inner))), Call(f, outer))
    else:
        pattern = relay.PatternTuple([relay.PatternVar(var) for var in inner])
        body = relay.Match(relay.Tuple(outer), [relay.Clause(pattern, first_real(build(*inner)))])
    wanted = EXECUTOR.evaluate(gradient(plain))(*values)
    found = EXECUTOR.evaluate(gradient(Function(outer, body)))(*values)
    for slope, other in zip(found[1], wanted[1], strict=True):
        for part, expected in zip(*((x if isinstance(x, tuple) else (x,)) for x in (slope, other)), strict=True):
            np.testing.assert_array_equal(part, expected)


@settings(max_examples=12)
@given(st.booleans(), st.booleans(), st.sampled_from(((), (2,), (1, 2))))
def test_matmul(flip_a: bool, flip_b: bool, lead: tuple[int, ...]) -> None:
    a, b = real(*lead, 3, 2), real(2, 4)
    a = np.swapaxes(a, -1, -2) if flip_a else a
    check(lambda x, y: op.nn.matmul(x, y, transpose_a=flip_a, transpose_b=flip_b), a, b.T if flip_b else b)


@settings(max_examples=12)
@given(st.booleans(), st.booleans(), st.sampled_from(((2, 2), (1, 2), (2, 1))))
def test_batch_matmul(flip_a: bool, flip_b: bool, batches: tuple[int, int]) -> None:
    a, b = real(batches[0], 3, 2), real(batches[1], 2, 2)
    a, b = (np.swapaxes(x, 1, 2) if flip else x for x, flip in ((a, flip_a), (b, flip_b)))
    check(lambda x, y: op.nn.batch_matmul(x, y, transpose_a=flip_a, transpose_b=flip_b), a, b)


CONVOLUTION = st.fixed_dictionaries(
    {
        "rank": st.integers(1, 2),
        "groups": st.sampled_from((1, 1, 2)),
        "kernel": st.integers(1, 3),
        "stride": st.integers(1, 3),
        "dilation": st.integers(1, 2),
        "before": st.integers(0, 2),
        "after": st.integers(0, 2),
        "size": st.integers(5, 6),
        "is_last": st.booleans(),
    }
)


def layouts(rank: int, is_last: bool, weight: str) -> tuple[str, str]:
    spatial = "HW"[2 - rank :]
    return ("N" + spatial + "C", spatial + weight[::-1]) if is_last else ("NC" + spatial, weight + spatial)


@settings(max_examples=25)
@given(CONVOLUTION)
def test_convolutions(c: dict[str, Any]) -> None:
    rank, groups = c["rank"], c["groups"]
    data_layout, kernel_layout = layouts(rank, c["is_last"], "OI")
    x, w = real(2, 2, *[c["size"]] * (rank - 1), 5), real(2, 2 // groups, *[c["kernel"]] * rank)
    if c["is_last"]:
        x, w = np.moveaxis(x, 1, -1), np.moveaxis(w, (0, 1), (-1, -2))
    conv = op.nn.conv1d if rank == 1 else op.nn.conv2d
    padding = [c["before"]] * rank + [c["after"]] * rank
    check(
        lambda a, b: conv(a, b, strides=c["stride"], padding=padding, dilation=c["dilation"], groups=groups,
                          data_layout=data_layout, kernel_layout=kernel_layout),
        np.ascontiguousarray(x), np.ascontiguousarray(w), second=rank == 1,
    )  # fmt: skip


@settings(max_examples=25)
@given(CONVOLUTION, st.integers(0, 3))
def test_transposed_convolutions(c: dict[str, Any], extra: int) -> None:
    rank, groups = c["rank"], c["groups"]
    data_layout, kernel_layout = layouts(rank, c["is_last"], "IO")
    x, w = real(1, 2, *[3] * rank), real(2, 4 // groups // 2, *[c["kernel"] + 1] * rank)
    if c["is_last"]:
        x, w = np.moveaxis(x, 1, -1), np.moveaxis(w, (0, 1), (-1, -2))
    conv = op.nn.conv1d_transpose if rank == 1 else op.nn.conv2d_transpose
    padding = [min(c["before"], 1)] * rank + [min(c["after"], 1)] * rank
    check(
        lambda a, b: conv(a, b, strides=c["stride"], padding=padding, dilation=c["dilation"], groups=groups,
                          data_layout=data_layout, kernel_layout=kernel_layout, output_padding=extra),
        np.ascontiguousarray(x), np.ascontiguousarray(w), second=rank == 1,
    )  # fmt: skip


def test_convolutions_of_three_axes() -> None:
    check(lambda x, w: op.nn.conv3d(x, w, padding=1, strides=2), real(1, 2, 3, 2, 3), real(2, 2, 2, 1, 2), second=False)
    check(lambda x, w: op.nn.conv3d_transpose(x, w, strides=2), real(1, 1, 2, 1, 2), real(1, 2, 2, 2, 1), second=False)


POOLING = st.fixed_dictionaries(
    {
        "rank": st.integers(1, 2),
        "pool_size": st.integers(2, 3),
        "strides": st.integers(1, 3),
        "dilation": st.integers(1, 2),
        "before": st.integers(0, 1),
        "after": st.integers(0, 1),
        "ceil_mode": st.booleans(),
        "is_last": st.booleans(),
    }
)


@settings(max_examples=40)
@given(POOLING, st.sampled_from(("max", "avg", "avg with padding")))
def test_pools(c: dict[str, Any], kind: str) -> None:
    rank = c["rank"]
    pool = getattr(op.nn, f"{kind[:3]}_pool{rank}d")
    extra = {"count_include_pad": True} if kind == "avg with padding" else {}
    x = real(1, 2, *(6, 5)[:rank])
    x = np.ascontiguousarray(np.moveaxis(x, 1, -1)) if c["is_last"] else x
    layout, _ = layouts(rank, c["is_last"], "OI")
    padding = [c["before"]] * rank + [c["after"]] * rank
    check(
        lambda a: pool(a, c["pool_size"], c["strides"], c["dilation"], padding, layout, "", c["ceil_mode"], **extra),
        x,
        second=rank == 1,
    )


GLOBAL: list[Case] = [
    ("global_avg", op.nn.global_avg_pool2d, (real(2, 2, 2, 3),)),
    ("global_max", lambda x: op.nn.global_max_pool2d(x, "NHWC"), (real(2, 2, 3, 2),)),
    ("adaptive avg", lambda x: op.nn.adaptive_avg_pool2d(x, (3, 2)), (real(1, 2, 4, 5),)),
    ("adaptive avg last", lambda x: op.nn.adaptive_avg_pool1d(x, 2, "NWC"), (real(1, 5, 2),)),
    ("adaptive max", lambda x: op.nn.adaptive_max_pool2d(x, (3, 2)), (real(1, 2, 4, 5),)),
    ("adaptive max 1", lambda x: op.nn.adaptive_max_pool1d(x, 2), (real(1, 2, 5),)),
    ("max 3", lambda x: op.nn.max_pool3d(x, 2, 1), (real(1, 1, 2, 3, 2),)),
    ("avg 3", lambda x: op.nn.avg_pool3d(x, 2, 1, 1, 1), (real(1, 1, 2, 2, 2),)),
    ("adaptive max 3", lambda x: op.nn.adaptive_max_pool3d(x, (1, 2, 2)), (real(1, 1, 2, 3, 2),)),
    ("adaptive avg 3", lambda x: op.nn.adaptive_avg_pool3d(x, (1, 2, 1)), (real(1, 1, 2, 3, 2),)),
]


@pytest.mark.parametrize(("build", "values"), [case[1:] for case in GLOBAL], ids=[case[0] for case in GLOBAL])
def test_global_and_adaptive_pools(build: Callable[..., Expr], values: tuple[Any, ...]) -> None:
    check(build, *values)


def test_every_operator_on_real_numbers_has_a_gradient() -> None:
    without = {one.name for one in op.OPS if one.gradient is None}
    steps = {name for name in without if name.startswith(("qnn.", "fixed.")) or name.endswith("_argmax")}
    logic = {"all", "any", "argmax", "argmin", "isfinite", "isinf", "isnan", "reinterpret", "fixed_point_multiply"}
    comparisons = {"equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "left_shift", "right_shift"}
    boxes = {name for name in without if name.endswith(("non_max_suppression", "get_valid_counts", "roi_pool"))}
    rest = without - steps - logic - comparisons - boxes
    assert {name for name in rest if not name.startswith(("bitwise_", "logical_"))} == set()


def test_no_gradient_of_a_product_that_is_stored() -> None:
    x, i = relay.var("x", shape=(2,), dtype="float64"), relay.const(np.array([0]))
    with pytest.raises(UnsupportedError, match="the gradient of scatter_nd must be of mode add or update, not mul"):
        check(lambda a: op.scatter_nd(a, relay.const(np.array([[0]])), relay.const(np.ones(1)), "mul"), real(2))
    with pytest.raises(UnsupportedError, match="operator reinterpret must have a gradient to be differentiated"):
        check(lambda a: op.reinterpret(a, "float64"), real(2))
    assert x is not i
