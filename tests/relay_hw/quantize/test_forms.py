"""Operators without an integer form, written by others: the same floats, nothing left in float, one launch."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relay_hw import op
from relay_hw.accel.sim.functional import FunctionalDevice
from relay_hw.analysis import infer_type
from relay_hw.interp import evaluate
from relay_hw.ir.expr import Call, Expr, Function, Var
from relay_hw.ir.module import IRModule
from relay_hw.ir.types import TensorType
from relay_hw.ir.visit import post_order
from relay_hw.quantize.forms import integer_forms
from relay_hw.quantize.main import realize_module
from relay_hw.quantize.plan import make_plan
from relay_hw.quantize.steps import AddStep, FloatStep
from relay_hw.runtime.compile import compile_model
from relay_hw.runtime.execute import Executor
from relay_hw.runtime.options import CompileOptions
from relay_hw.transform.graph import op_name

RNG = np.random.default_rng(0)
CHANNELS, SIZE = 8, 7
X = Var("x", TensorType((1, 3, SIZE, SIZE), "float32"))
DATA = RNG.normal(size=(6, 1, 3, SIZE, SIZE)).astype(np.float32)


def weight(*shape: int) -> Expr:
    return op.const((RNG.normal(size=shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32))


def layer(x: Expr, channels: int) -> Expr:
    return op.nn.conv2d(x, weight(CHANNELS, channels, 3, 3), padding=1)


def factor(*shape: int) -> Expr:
    return op.const(RNG.uniform(0.5, 2, shape).astype(np.float32))


CASES: dict[str, Callable[[Expr], Expr]] = {
    "batch norm behind a join": lambda x: op.nn.relu(
        op.add(op.multiply(op.concatenate([x, op.nn.relu(x)], 1), factor(16, 1, 1)), factor(1, 16, 1, 1))
    ),
    "factor": lambda x: op.multiply(factor(CHANNELS, 1, 1), op.nn.relu(x)),
    "number": lambda x: op.add(op.nn.relu(x), op.const(np.float32(1.5))),
    "chain": lambda x: op.divide(op.subtract(op.const(np.float32(1)), op.nn.relu(x)), factor(CHANNELS, 1, 1)),
    "negative": lambda x: op.negative(op.nn.relu(x)),
    "difference": lambda x: op.subtract(x, op.nn.relu(x)),
    "absolute": op.abs,
    "leaky": lambda x: op.nn.leaky_relu(x, 0.125),
    "slopes": lambda x: op.nn.prelu(x, factor(CHANNELS)),
    "global maximum": op.nn.global_max_pool2d,
    "maximum": lambda x: op.max(x, axis=(2, 3), keepdims=True),
    "maximum of rows": lambda x: op.max(x, axis=3, keepdims=True),
    "sum": lambda x: op.sum(x, axis=(2, 3), keepdims=True),
    "mean of columns": lambda x: op.mean(x, axis=[2], keepdims=True),
    "mean without padding": lambda x: op.nn.avg_pool2d(x, (3, 3), (1, 1), padding=(1, 1)),
    "mean, last window smaller": lambda x: op.nn.avg_pool2d(x, (2, 2), (2, 2), ceil_mode=True),
}


def more_channels(x: Expr) -> Expr:
    return op.nn.pad(x, ((0, 0), (3, 5), (0, 0), (0, 0)))


def module(body: Expr, x: Var = X) -> IRModule:
    return infer_type(IRModule({"main": Function([x], body)}))


def network(inner: Callable[[Expr], Expr]) -> IRModule:
    return module(inner(layer(X, 3)))


def floats(mod: IRModule) -> list[str]:
    return [op_name(step.output) for step in make_plan(mod["main"].body).steps if isinstance(step, FloatStep)]


@pytest.mark.parametrize("name", CASES)
def test_the_same_floats_and_nothing_left(name: str) -> None:
    mod = network(CASES[name])
    assert floats(mod), "the case needs no rewriting"
    new = integer_forms(mod)
    assert floats(new) == []
    want, got = (np.asarray(evaluate(one, {"x": DATA[0]})) for one in (mod, new))
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
    assert integer_forms(new) is new


@pytest.mark.parametrize("name", CASES)
def test_one_launch_and_the_interpreters_bytes(name: str, tmp_path: Path) -> None:
    body = CASES[name](layer(X, 3))
    channels = 2 * CHANNELS if "join" in name else CHANNELS
    mod = module(op.nn.conv2d(body, weight(4, channels, 1, 1)))
    compiled = compile_model(mod, CompileOptions(config="tiny", host_target="numpy"), calibration={"x": DATA})
    build = compiled.save(tmp_path / "build")
    assert [row.operator for row in build.manifest.layers if row.where == "host"] == ["qnn.quantize", "qnn.dequantize"]
    want = Executor(build, None).run({"x": DATA})
    got = Executor(build, FunctionalDevice(build.config)).run({"x": DATA})
    assert len(got.launches) == len(DATA)
    (result,) = want.outputs.values()
    np.testing.assert_array_equal(next(iter(got.outputs.values())), result)
    exact = np.stack([np.asarray(evaluate(mod, {"x": sample})) for sample in DATA])
    noise = result.reshape(exact.shape) - exact
    assert 20 * np.log10(np.linalg.norm(exact) / np.linalg.norm(noise)) > 25


TOKENS = Var("x", TensorType((1, 9, 16), "float32"))
ROWS = {"x": RNG.normal(size=(8, 9, 16)).astype(np.float32)}


def token_layer(x: Expr, columns: int = 16, seed: int = 1) -> Expr:
    weight = np.random.default_rng(seed).normal(size=(16, columns)).astype(np.float32) / 4
    rows = op.nn.dense(op.reshape(x, (-1, columns)), op.const(weight))
    return op.reshape(rows, (1, -1, 16))


OF_TOKENS: dict[str, Callable[[Expr], Expr]] = {
    "one token": lambda x: op.take(x, op.const(np.int64(0)), axis=1),
    "another": lambda x: op.take(x, op.const(np.int64(8)), axis=-2),
    "mean": lambda x: op.mean(x, axis=(1,)),
    "mean, axis kept": lambda x: op.mean(x, axis=(-2,), keepdims=True),
    "one more token": lambda x: op.concatenate([op.const(np.ones((1, 1, 16), np.float32)), x], 1),
    "places": lambda x: op.add(x, op.const(np.random.default_rng(2).uniform(-1, 1, (1, 9, 16)).astype(np.float32))),
    "gate": lambda x: op.multiply(op.multiply(x, op.sigmoid(x)), token_layer(TOKENS, seed=3)),
}


@pytest.mark.parametrize("name", OF_TOKENS)
def test_what_is_done_to_tokens_is_in_integers(name: str) -> None:
    mod = module(token_layer(op.nn.layer_norm(OF_TOKENS[name](token_layer(TOKENS)), *NORM), seed=4), TOKENS)
    new = integer_forms(mod)
    one = {"x": ROWS["x"][:1]}
    want = np.asarray(evaluate(mod, one))
    np.testing.assert_allclose(evaluate(new, one), want, rtol=1e-4, atol=1e-5)
    assert set(floats(new)) <= {"reshape"}
    realized = realize_module(mod, "int8", ROWS)
    noise = np.asarray(evaluate(realized.mod, one)) - want
    assert 20 * np.log10(np.linalg.norm(want) / np.linalg.norm(noise)) > 25


NORM = tuple(op.const(np.full(16, value, np.float32)) for value in (1, 0))


@pytest.mark.parametrize(
    "inner",
    [
        lambda x: op.take(x, op.const(np.int64(9)), axis=1, mode="clip"),
        lambda x: op.take(x, op.const(np.array([1, 2])), axis=1),
        lambda x: op.mean(x, axis=(2,), keepdims=True),
    ],
    ids=["beyond", "several", "mean of columns"],
)
def test_other_parts_and_means_of_tokens_stay(inner: Callable[[Expr], Expr]) -> None:
    assert set(floats(integer_forms(module(inner(token_layer(TOKENS)), TOKENS)))) & {"take", "mean"}


def test_a_number_for_each_pixel_is_a_gate() -> None:
    new = integer_forms(network(lambda x: op.multiply(x, factor(CHANNELS, SIZE, SIZE))))
    assert floats(new) == []


def test_cells_keep_their_states_in_float() -> None:
    """A product of vectors, as recurrent networks have."""
    x = Var("x", TensorType((1, 16), "float32"))
    layers = (op.nn.dense(x, weight(16, 16)) for _ in range(2))
    assert "multiply" in floats(integer_forms(module(op.nn.dense(op.multiply(*layers), weight(4, 16)), x)))


def test_more_channels_are_a_layer(tmp_path: Path) -> None:
    """A shortcut of the first residual networks: every other pixel, and zeros for the new channels."""
    x = layer(X, 3)
    short = more_channels(op.strided_slice(x, (0, 0, 0, 0), (1, CHANNELS, SIZE, SIZE), (1, 1, 2, 2)))
    mod = module(op.nn.relu(op.add(op.nn.conv2d(x, weight(16, CHANNELS, 3, 3), (2, 2), padding=1), short)))
    new = integer_forms(mod)
    assert floats(new) == [] and "nn.pad" not in new.astext()
    want, got = (np.asarray(evaluate(one, {"x": DATA[0]})) for one in (mod, new))
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
    compiled = compile_model(mod, CompileOptions(config="tiny", host_target="numpy"), calibration={"x": DATA})
    build = compiled.save(tmp_path / "build")
    assert [row.operator for row in build.manifest.layers if row.where == "host"] == ["qnn.quantize", "qnn.dequantize"]


def test_a_leaky_relu_is_one_sum() -> None:
    """Its factors belong to the sum: nothing is rounded on the way."""
    mod = network(CASES["leaky"])
    plan = make_plan(integer_forms(mod)["main"].body)
    (total,) = (step for step in plan.steps if isinstance(step, AddStep))
    assert total.factors == (0.875, 0.125)
    realized = realize_module(mod, "int8", {"x": DATA[:, 0]})
    calls = [op_name(node) for node in post_order(realized.mod["main"]) if isinstance(node, Call)]
    assert calls[calls.index("nn.conv2d") :] == ["nn.conv2d", "fixed.requantize", "clip", "fixed.add", "qnn.dequantize"]


@pytest.mark.parametrize(
    "inner",
    [
        lambda x: op.multiply(op.sigmoid(x), factor(CHANNELS, 1, 1)),  # the host converts it anyway
        lambda x: op.multiply(op.nn.relu(x), op.const(np.float32(np.inf))),
        lambda x: op.divide(op.nn.relu(x), op.const(np.float32(0))),
        lambda x: op.multiply(x, op.nn.relu(x)),
        lambda x: op.max(x, axis=(1,), keepdims=True),
        lambda x: op.nn.prelu(x, op.nn.relu(factor(CHANNELS))),
    ],
)
def test_what_stays(inner: Callable[[Expr], Expr]) -> None:
    mod = network(inner)
    assert integer_forms(mod) is mod


def test_inputs_are_scaled_in_float() -> None:
    mod = module(layer(op.divide(op.subtract(X, factor(3, 1, 1)), factor(3, 1, 1)), 3))
    assert integer_forms(mod) is mod


@given(
    size=st.tuples(*[st.integers(3, 9)] * 2), kernel=st.tuples(*[st.integers(1, 4)] * 2),
    strides=st.tuples(*[st.integers(1, 3)] * 2), padding=st.tuples(*[st.integers(0, 3)] * 4), ceil=st.booleans(),
)  # fmt: skip
def test_any_mean_without_padding(
    size: tuple[int, ...], kernel: tuple[int, ...], strides: tuple[int, ...], padding: tuple[int, ...], ceil: bool
) -> None:
    padding = tuple(min(pad, kernel[axis % 2] - 1) for axis, pad in enumerate(padding))
    x = Var("x", TensorType((1, 2, *size), "float32"))
    if any(size[axis] + padding[axis] + padding[axis + 2] < kernel[axis] for axis in (0, 1)):
        return
    layered = op.nn.conv2d(x, op.const(np.ones((2, 1, 1, 1), np.float32)), groups=2, channels=2)
    pool = op.nn.avg_pool2d(layered, kernel, strides, padding=padding, ceil_mode=ceil)
    mod = module(pool, x)
    data = {"x": RNG.normal(size=(1, 2, *size)).astype(np.float32)}
    np.testing.assert_allclose(evaluate(integer_forms(mod), data), evaluate(mod, data), rtol=1e-5, atol=1e-6)


def test_the_mean_of_a_large_image_is_that_of_means() -> None:
    x = Var("x", TensorType((1, 3, 48, 60)))
    weight = op.const(np.random.default_rng(4).normal(size=(8, 3, 1, 1)).astype("float32"))
    whole = IRModule.from_expr(Function([x], op.nn.global_avg_pool2d(op.nn.conv2d(x, weight))))
    found = integer_forms(infer_type(whole))
    windows = [
        (node.op.name, getattr(node.attrs, "pool_size", None))
        for node in post_order(found["main"].body)
        if isinstance(node, Call) and "pool" in node.op.name
    ]
    assert windows == [("nn.avg_pool2d", (6, 6)), ("nn.global_avg_pool2d", None)]
    sample = np.random.default_rng(5).normal(size=(1, 3, 48, 60)).astype("float32")
    np.testing.assert_allclose(evaluate(found, [sample]), evaluate(whole, [sample]), rtol=1e-4, atol=1e-6)
