"""Traits: each operator that claims one is executed, and does what the trait says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from relay_hw import op
from relay_hw.analysis import infer_type
from relay_hw.analysis.products import call_macs
from relay_hw.interp import evaluate
from relay_hw.ir.expr import Call, Function, Trait, Tuple, Var
from relay_hw.ir.module import IRModule
from relay_hw.ir.types import TensorType
from relay_hw.op import with_trait

# By operator: attributes, and the arguments behind the first.
Cases = Mapping[str, tuple[dict[str, Any], tuple[Any, ...]]]
SHAPE = (2, 4, 6, 8)
RNG = np.random.default_rng(0)
VECTOR = RNG.normal(size=4).astype("float32")


def ints(*numbers: int) -> np.ndarray:
    return np.array(numbers, "int64")


MOVES: Cases = {
    "copy": ({}, ()),
    "reshape": ({"newshape": (4, -1)}, ()),
    "contrib_reverse_reshape": ({"newshape": (-1, 12)}, ()),
    "reshape_like": ({}, (np.zeros((8, 48)),)),
    "transpose": ({"axes": (0, 2, 3, 1)}, ()),
    "expand_dims": ({"axis": 1}, ()),
    "squeeze": ({}, ()),
    "nn.batch_flatten": ({}, ()),
    "layout_transform": ({"src_layout": "NCHW", "dst_layout": "NCHW2c"}, ()),
    "broadcast_to": ({"shape": (3, *SHAPE)}, ()),
    "broadcast_to_like": ({}, (np.zeros((3, *SHAPE)),)),
    "tile": ({"reps": (1, 2, 1, 3)}, ()),
    "repeat": ({"repeats": 2, "axis": 1}, ()),
    "strided_slice": ({"begin": (0, 3), "end": (2, 0), "strides": (1, -2)}, ()),
    "take": ({"axis": 1}, (ints(3, 0, 0),)),
    "nn.mirror_pad": ({"pad_width": ((0, 0), (1, 1), (2, 0), (0, 0)), "mode": "REFLECT"}, ()),
    "reverse": ({"axis": 2}, ()),
    "gather": ({"axis": 0}, (RNG.integers(0, 2, SHAPE),)),
    "gather_nd": ({}, (np.array([[0, 1, 1], [3, 0, 2]]),)),
    "nn.upsampling": ({"scale_h": 2, "scale_w": 3}, ()),
    "nn.depth_to_space": ({"block_size": 2}, ()),
    "nn.space_to_depth": ({"block_size": 2}, ()),
    "dyn.reshape": ({}, (ints(8, 48),)),
    "dyn.squeeze": ({}, (ints(),)),
    "dyn.expand_dims": ({}, (np.array(1),)),
    "dyn.broadcast_to": ({}, (ints(3, *SHAPE),)),
    "dyn.tile": ({}, (ints(2, 1, 1, 1),)),
    "dyn.strided_slice": ({}, (ints(0, 1), ints(2, 4), ints(1, 2))),
    "reverse_sequence": ({"seq_axis": 1, "batch_axis": 0}, (ints(2, 4),)),
}
WINDOWS = {rank: {"pool_size": (2,) * rank, "strides": (2,) * rank} for rank in (1, 2, 3)}
POOLS: Cases = {
    **{f"nn.{kind}_pool{rank}d{end}": (WINDOWS[rank], ()) for rank in (1, 2, 3)
       for kind, end in (("max", ""), ("avg", ""), ("max", "_argmax"))},
    **{f"nn.adaptive_{kind}_pool{rank}d{end}": ({"output_size": (2,) * rank}, ()) for rank in (1, 2, 3)
       for kind, end in (("max", ""), ("avg", ""), ("max", "_argmax"))},
    **{f"nn.global_{kind}": ({}, ()) for kind in ("max_pool2d", "avg_pool2d", "max_pool2d_argmax")},
    "fixed.sum_pool2d": (WINDOWS[2], ()),
}  # fmt: skip
KEEPS_SCALE: Cases = {
    **MOVES,
    **{name: case for name, case in POOLS.items() if "max" in name and "argmax" not in name},
    "max": ({"axis": (1, 3)}, ()),
    "min": ({"axis": (0,)}, ()),
    "sort": ({"axis": 1}, ()),
}
REDUCES: Cases = {name: ({"axis": (1, 3)}, ()) for name in ("all", "any", "max", "mean", "min", "prod", "sum")}
SCALES = (RNG.uniform(0.1, 1, 4).astype("float32"), RNG.integers(-5, 5, 4).astype("int32"))
ALONG_AXIS: Cases = {
    **{name: ({"axis": 1}, ()) for name in ("nn.softmax", "nn.fast_softmax", "nn.log_softmax", "concatenate")},
    "split": ({"indices_or_sections": (1,), "axis": 1}, ()),
    "nn.batch_norm": ({"axis": 1}, (VECTOR, VECTOR, VECTOR, np.abs(VECTOR))),
    "nn.prelu": ({"axis": 1}, (VECTOR,)),
    "nn.bias_add": ({"axis": 1}, (VECTOR,)),
    "nn.layer_norm": ({"axis": 1}, (VECTOR, VECTOR)),
    "qnn.quantize": ({"axis": 1, "out_dtype": "int8"}, SCALES),
    "qnn.dequantize": ({"axis": 1}, SCALES),
    "qnn.requantize": ({"axis": 1, "out_dtype": "int8"}, (*SCALES, np.float32(0.5), np.int32(3))),
    "qnn.concatenate": ({"axis": 1}, ()),
    "fixed.requantize": (
        {"axis": 1, "multiplier": (1, 2, 3, 4), "shift": (1, 2, 3, 4)}, (ints(5, 6, 7, 8).astype("int32"),)),
    "simulated.format": ({"axis": 1, "format": "mxfp4"}, ()),
}  # fmt: skip
ANCHORS: Mapping[str, tuple[dict[str, Any], tuple[int, ...], tuple[int, ...]]] = {
    **{f"nn.conv{rank}d": ({}, (1, 2, *(5,) * rank), (3, 2, *(3,) * rank)) for rank in (1, 2, 3)},
    **{f"nn.conv{rank}d_transpose": ({}, (1, 2, *(3,) * rank), (2, 3, *(2,) * rank)) for rank in (1, 2, 3)},
    "fixed.conv2d_transpose": ({}, (1, 2, 3, 3), (2, 3, 2, 2)),
    "nn.dense": ({"units": None}, (2, 5), (3, 5)),
    "nn.matmul": ({"units": None}, (2, 5), (5, 3)),
    "nn.batch_matmul": ({"transpose_b": True}, (2, 4, 5), (2, 3, 5)),
    "qnn.conv2d": ({"kernel_size": (3, 3), "channels": 3}, (1, 2, 5, 5), (3, 2, 3, 3)),
    "qnn.dense": ({"units": 3}, (2, 5), (3, 5)),
    "qnn.batch_matmul": ({"transpose_b": True}, (2, 4, 5), (2, 3, 5)),
    "qnn.conv2d_transpose": ({}, (1, 2, 3, 3), (2, 3, 2, 2)),
    "einsum": ({"equation": "ij,kj->ik"}, (2, 5), (3, 5)),
}
ELEMENT_TYPES = {
    **dict.fromkeys(("bitwise_not", "bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift"), "int32"),
    **dict.fromkeys(("logical_not", "logical_and", "logical_or", "logical_xor"), "bool"),
    "fixed_point_multiply": "int32",
    **dict.fromkeys(("fixed.add", "fixed.mul"), "int8"),
}
ELEMENT_ATTRS: Mapping[str, dict[str, Any]] = {
    "clip": {"a_min": -0.5, "a_max": 0.5},
    "cast": {"dtype": "int8"},
    "reinterpret": {"dtype": "int32"},
    "nn.leaky_relu": {"alpha": 0.1},
    "fixed_point_multiply": {"multiplier": 1 << 30, "shift": 1},
    "fixed.mul": {"multiplier": 3, "shift": 2, "y_zero_point": 1},
    "fixed.add": {"y_multiplier": 3, "r_multiplier": 5, "shift": 2, "y_zero_point": 1},
}


def call(name: str, attrs: dict[str, Any], *args: Any) -> Call:
    one = op.get(name)
    record = one.attrs_type(**attrs) if one.attrs_type is not None else None
    return Call(one, args, record)


def run(build: Callable[..., Call], *values: Any) -> Any:
    """The value of a call on variables that hold `values`."""
    arrays = [np.asarray(value) for value in values]
    variables = [Var(f"x{k}", TensorType(array.shape, str(array.dtype))) for k, array in enumerate(arrays)]
    return evaluate(infer_type(IRModule.from_expr(Function(variables, build(*variables)))), arrays)


def shape_for(name: str) -> tuple[int, ...]:
    """Of the first argument: pools over one or three axes have others."""
    for rank in (1, 3):
        if f"pool{rank}d" in name:
            return (2, 4, *(6,) * rank)
    return SHAPE


def test_every_claim_is_tested() -> None:
    claims = {
        Trait.MOVES: MOVES,
        Trait.KEEPS_SCALE: KEEPS_SCALE,
        Trait.POOLS: POOLS,
        Trait.REDUCES: REDUCES,
        Trait.ALONG_AXIS: ALONG_AXIS,
        Trait.ANCHOR: ANCHORS,
    }
    assert {trait: set(cases) for trait, cases in claims.items()} == {trait: set(with_trait(trait)) for trait in claims}


FOLLOWS = {
    Trait.RESHAPES: Trait.PERMUTES,
    Trait.PERMUTES: Trait.MOVES,
    Trait.MOVES: Trait.KEEPS_SCALE,
    Trait.MARK: Trait.KEEPS_AXES,
    Trait.ELEMENTWISE: Trait.KEEPS_AXES,
    Trait.ALONG_AXIS: Trait.KEEPS_AXES,
    Trait.ON_CHANNELS: Trait.KEEPS_AXES,
}


def test_what_follows_from_a_trait() -> None:
    for less, more in FOLLOWS.items():
        assert set(with_trait(less)) <= set(with_trait(more))
    for name in with_trait(Trait.ON_CHANNELS) + with_trait(Trait.ALONG_AXIS):
        assert hasattr(op.get(name).attrs_type, "axis")
    assert not set(with_trait(Trait.EFFECT)) & set(with_trait(Trait.MOVES))


@pytest.mark.parametrize("name", MOVES)
def test_what_moves_elements_gives_those_of_its_operand(name: str) -> None:
    """Which ones is seen where elements are their own numbers; it is the same for any others, of any type."""
    attrs, rest = MOVES[name]
    numbers = np.arange(np.prod(SHAPE)).reshape(SHAPE)
    places = np.asarray(run(lambda *args: call(name, attrs, *args), numbers.astype("int32"), *rest))
    for dtype in ("int8", "float32"):
        data = RNG.integers(-100, 100, SHAPE).astype(dtype)
        found = run(lambda *args: call(name, attrs, *args), data, *rest)
        assert np.asarray(found).dtype == dtype
        np.testing.assert_array_equal(found, data.reshape(-1)[places])
    flat = places.reshape(-1)
    assert op.get(name).has(Trait.PERMUTES) == np.array_equal(np.sort(flat), numbers.reshape(-1))
    keeps_order = np.array_equal(flat, numbers.reshape(-1))
    assert op.get(name).has(Trait.RESHAPES) == (keeps_order and name != "copy")


@pytest.mark.parametrize("name", KEEPS_SCALE)
def test_what_keeps_the_scale_commutes_with_dequantization(name: str) -> None:
    attrs, rest = KEEPS_SCALE[name]
    data, scale, zero = RNG.integers(-128, 128, shape_for(name)).astype("int8"), np.float32(0.037), 11
    real = (data.astype("float32") - zero) * scale
    whole = np.asarray(run(lambda *args: call(name, attrs, *args), data, *rest))
    floats = np.asarray(run(lambda *args: call(name, attrs, *args), real, *rest))
    assert whole.dtype == "int8"
    np.testing.assert_array_equal((whole.astype("float32") - zero) * scale, floats)
    np.testing.assert_array_equal(np.rint(floats / scale) + zero, whole)


@pytest.mark.parametrize("name", with_trait(Trait.ELEMENTWISE))
def test_elementwise_operators_commute_with_any_order_of_elements(name: str) -> None:
    one, dtype = op.get(name), ELEMENT_TYPES.get(name, "float32")
    values = [RNG.uniform(0.1, 4, (3, 7)) for _ in range(one.num_inputs)]
    args = [value.astype(dtype) if dtype != "bool" else value > 2 for value in values]
    if name == "where":
        args[0] = values[0] > 2
    if name == "full_like":
        args[1] = np.float32(2.5)
    order = RNG.permutation(21)

    def applied(*operands: np.ndarray) -> np.ndarray:
        build = lambda *variables: call(name, ELEMENT_ATTRS.get(name, {}), *variables)  # noqa: E731
        return np.asarray(run(build, *operands))

    def moved(value: np.ndarray) -> np.ndarray:
        return value.reshape(-1)[order].reshape(3, 7) if np.ndim(value) else value

    np.testing.assert_array_equal(applied(*map(moved, args)), moved(applied(*args)))


@pytest.mark.parametrize("name", REDUCES)
def test_reductions_do_not_know_an_order(name: str) -> None:
    data = RNG.integers(-3, 4, SHAPE).astype("int32") if name not in ("all", "any") else RNG.integers(0, 2, SHAPE) > 0
    lines = data.transpose(0, 2, 1, 3).reshape(2, 6, 32)
    mixed = RNG.permuted(lines, axis=2).reshape(2, 6, 4, 8).transpose(0, 2, 1, 3)
    build = lambda x: call(name, {"axis": (1, 3)}, x)  # noqa: E731
    np.testing.assert_array_equal(run(build, data), run(build, mixed))


@pytest.mark.parametrize("name", POOLS)
def test_pools_treat_every_channel_alike(name: str) -> None:
    data = RNG.integers(-100, 100, shape_for(name)).astype("int8")
    build = lambda x: call(name, POOLS[name][0], x)  # noqa: E731
    channels = [3, 0, 2, 1]
    np.testing.assert_array_equal(run(build, data[:, channels]), np.asarray(run(build, data))[:, channels])
    # And `layout` says where the spatial axes are.
    letters = "NC" + "DHW"[3 - (data.ndim - 2) :]
    last = "N" + letters[2:] + "C"
    order = [letters.index(letter) for letter in last]
    laid = lambda x: call(name, {**POOLS[name][0], "layout": last}, x)  # noqa: E731
    np.testing.assert_array_equal(run(laid, data.transpose(order)), np.asarray(run(build, data)).transpose(order))


@pytest.mark.parametrize("name", ALONG_AXIS)
def test_all_axes_but_one_are_alike(name: str) -> None:
    attrs, rest = ALONG_AXIS[name]
    dtypes = {
        "qnn.dequantize": "int8",
        "qnn.requantize": "int32",
        "fixed.requantize": "int32",
        "qnn.concatenate": "int8",
    }
    data = (RNG.normal(size=SHAPE) * 50).astype(dtypes.get(name, "float32"))
    order = (3, 0, 1, 2)

    def parts(value: np.ndarray, axis: int) -> list[np.ndarray]:
        def build(first: Var, *others: Var) -> Call:
            given = (Tuple((first, first)), *others) if name.endswith("concatenate") else (first, *others)
            if name == "qnn.concatenate":
                scales, zeros = (Tuple([op.const(kind(one)) for one in (2, 3)]) for kind in (np.float32, np.int32))
                given = (given[0], scales, zeros, op.const(np.float32(4)), op.const(np.int32(1)))
            return call(name, {**attrs, "axis": axis}, *given)

        found = run(build, value, *rest)
        return list(found) if isinstance(found, tuple) else [found]

    for before, after in zip(parts(data, 1), parts(data.transpose(order), 2), strict=True):
        if np.ndim(before) == 4:
            np.testing.assert_allclose(before.transpose(order), after, rtol=1e-5)


@pytest.mark.parametrize("name", ANCHORS)
def test_anchors_are_sums_of_products_and_are_counted(name: str) -> None:
    attrs, *shapes = ANCHORS[name]
    dtype = "int8" if name.startswith(("qnn.", "fixed.")) else "float32"
    extra = [op.const(v) for v in (np.int32(0), np.int32(0), np.float32(1), np.float32(1)) if name.startswith("qnn.")]

    def build(*args: Var) -> Call:
        return call(name, attrs, *((Tuple(args),) if name == "einsum" else args), *extra)

    left, other, right = (RNG.integers(-9, 10, shape).astype(dtype) for shape in (shapes[0], shapes[0], shapes[1]))
    total = run(build, left + other, right)
    np.testing.assert_array_equal(total, run(build, left, right) + run(build, other, right))
    variables = [Var(letter, TensorType(shape, dtype)) for letter, shape in zip("xw", shapes, strict=True)]
    typed = infer_type(IRModule.from_expr(Function(variables, build(*variables))))["main"].body
    assert isinstance(typed, Call) and call_macs(typed) > 0


@pytest.mark.parametrize("name", with_trait(Trait.MARK))
def test_marks_give_back_their_argument(name: str) -> None:
    attrs = {"device_copy": {"src_virtual_device": "cpu", "dst_virtual_device": "cpu"}, "on_device": {}}
    data = RNG.normal(size=(2, 3)).astype("float32")
    np.testing.assert_array_equal(run(lambda x: call(name, attrs.get(name, {"compiler": "toy"}), x), data), data)
