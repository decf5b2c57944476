"""Softmax and norms of rows become integers where they stand between layers in integers, however they are written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from relay_hw import op
from relay_hw.analysis import infer_expr, infer_type
from relay_hw.interp import evaluate
from relay_hw.ir.expr import Call, Expr, Function, Tuple, Var
from relay_hw.ir.module import IRModule
from relay_hw.ir.types import TensorType
from relay_hw.ir.visit import post_order
from relay_hw.op.base import const
from relay_hw.quantize import quantize
from relay_hw.quantize.main import reference_of
from relay_hw.quantize.number import QParams
from relay_hw.quantize.plan import make_plan
from relay_hw.quantize.row_integers import softmax_in_integers
from relay_hw.quantize.rows import Softmax
from relay_hw.quantize.steps import NormStep, SoftmaxStep
from relay_hw.quantize.strategy import LayerChoice, Strategy
from relay_hw.quantize.strategy_file import find_strategy
from relay_hw.transform.graph import op_name

ROWS, WIDTH = 12, 24
X = Var("x", TensorType((ROWS, WIDTH)))
RNG = np.random.default_rng(0)
GAMMA, BETA = (const(RNG.uniform(low, high, WIDTH).astype("float32")) for low, high in ((0.5, 1.5), (-1, 1)))


def number(value: float) -> Expr:
    return const(np.float32(value))


def dense(x: Expr, seed: int = 0) -> Expr:
    weight = np.random.default_rng(seed).normal(size=(WIDTH, WIDTH)) / np.sqrt(WIDTH)
    return op.nn.dense(x, const(weight.astype("float32")))


def module(body: Expr) -> IRModule:
    return infer_type(IRModule.from_expr(Function([X], body)))


def samples(count: int = 20) -> dict[str, np.ndarray]:
    return {"x": np.random.default_rng(1).normal(size=(count * ROWS, WIDTH)).astype("float32")}


def calls(mod: IRModule) -> list[str]:
    return [op_name(node) for node in post_order(mod["main"].body) if isinstance(node, Call)]


def signal(body: Expr, strategy: str | Strategy = "int8") -> tuple[list[str], float]:
    """Operators of the integer form, and its signal-to-noise ratio in dB."""
    mod = module(body)
    integer = quantize(mod, strategy, samples())
    x = samples(3)["x"][:ROWS]
    want, got = (np.asarray(evaluate(one, {"x": x}), np.float64) for one in (mod, integer))
    return calls(integer), 10 * np.log10(np.square(want).sum() / np.square(want - got).sum())


def deviations(x: Expr) -> tuple[Expr, Expr]:
    centered = op.subtract(x, op.mean(x, (-1,), keepdims=True))
    return centered, op.mean(op.power(centered, number(2)), (-1,), keepdims=True)


def written_out(x: Expr) -> Expr:
    """As ONNX files have it."""
    centered, variance = deviations(x)
    normal = op.divide(centered, op.sqrt(op.add(variance, number(1e-5))))
    return op.add(op.multiply(normal, GAMMA), BETA)


def by_inverse(x: Expr) -> Expr:
    centered = op.subtract(x, op.mean(x, (1,), keepdims=True))
    variance = op.mean(op.multiply(centered, centered), (1,), keepdims=True)
    normal = op.multiply(op.rsqrt(op.add(number(1e-5), variance)), centered)
    return op.add(BETA, op.multiply(GAMMA, normal))


def rms(x: Expr) -> Expr:
    squares = op.mean(op.multiply(x, x), (-1,), keepdims=True)
    return op.multiply(op.multiply(x, op.rsqrt(op.add(squares, number(1e-6)))), GAMMA)


def rms_by_division(x: Expr) -> Expr:
    squares = op.mean(op.power(x, number(2)), (-1,), keepdims=True)
    root = op.sqrt(op.add(squares, number(1e-6)))
    return op.multiply(GAMMA, op.multiply(x, op.divide(number(1), root)))


NORMS: dict[str, tuple[Callable[[Expr], Expr], str]] = {
    "operator": (lambda x: op.nn.layer_norm(x, GAMMA, BETA), "fixed.layer_norm"),
    "no offset": (lambda x: op.nn.layer_norm(x, GAMMA, BETA, center=False), "fixed.layer_norm"),
    "no factor": (lambda x: op.nn.layer_norm(x, GAMMA, BETA, scale=False), "fixed.layer_norm"),
    "written out": (written_out, "fixed.layer_norm"),
    "by inverse": (by_inverse, "fixed.layer_norm"),
    "rms": (rms, "fixed.rms_norm"),
    "rms by division": (rms_by_division, "fixed.rms_norm"),
}


@pytest.mark.parametrize("name", NORMS)
def test_norms_between_layers_are_integers(name: str) -> None:
    make, integer = NORMS[name]
    found, decibel = signal(dense(make(dense(X))))
    assert found == ["qnn.quantize", *["nn.dense", "fixed.requantize"], integer, *found[4:]]
    assert found[4:] == ["nn.dense", "fixed.requantize", "qnn.dequantize"]
    assert decibel > 32


@pytest.mark.parametrize("name", NORMS)
def test_norms_of_what_layers_are_added_to_are_integers(name: str) -> None:
    """The input of a network, its norm in front of a layer, and the sum of both."""
    make, integer = NORMS[name]
    found, decibel = signal(op.add(X, dense(make(X))))
    assert found.count("qnn.quantize") == 1 and integer in found and "nn.layer_norm" not in found
    assert decibel > 32
    alone, _ = signal(dense(make(X)))
    assert integer not in alone


@pytest.mark.parametrize("name", NORMS)
def test_norms_in_front_of_norms_are_integers(name: str) -> None:
    make, integer = NORMS[name]
    found, decibel = signal(dense(op.nn.layer_norm(op.strided_slice(make(dense(X)), (0,), (ROWS,)), GAMMA, BETA)))
    assert found.count("qnn.quantize") == 1 and {integer, "fixed.layer_norm"} <= {*found} and "sqrt" not in found
    assert decibel > 28


def test_a_norm_whose_parts_others_read_stays_float() -> None:
    centered, variance = deviations(dense(X))
    normal = op.divide(centered, op.sqrt(op.add(variance, number(1e-5))))
    found, _ = signal(op.add(dense(normal), centered))
    assert "fixed.layer_norm" not in found and "mean" in found


def over_root(x: Expr, mean: Expr, more: Expr) -> Expr:
    return op.divide(x, op.sqrt(op.add(mean, more)))


@pytest.mark.parametrize(
    "make",
    [
        lambda x: over_root(x, op.mean(op.multiply(x, x), (0,), keepdims=True), number(1)),
        lambda x: over_root(x, op.mean(op.abs(x), (-1,), keepdims=True), number(1)),
        lambda x: over_root(x, op.mean(op.multiply(x, x), (-1,), keepdims=True), op.exp(x)),
        lambda x: op.nn.layer_norm(x, op.sum(X, (0,)), BETA),
    ],
    ids=["other axis", "no squares", "no number", "no constant"],
)
def test_what_is_no_norm_of_rows_stays_float(make: Callable[[Expr], Expr]) -> None:
    found, _ = signal(dense(make(dense(X))))
    assert not {"fixed.layer_norm", "fixed.rms_norm"} & {*found}


def heads(x: Expr) -> Expr:
    return op.transpose(op.reshape(x, (ROWS, 2, WIDTH // 2)), (1, 0, 2))


def attention(soft: Callable[[Expr], Expr]) -> Expr:
    q, k, v = (heads(dense(X, at)) for at in range(3))
    mixed = op.nn.batch_matmul(soft(op.nn.batch_matmul(q, k)), v, transpose_b=False)
    return dense(op.reshape(op.transpose(mixed, (1, 0, 2)), (ROWS, WIDTH)))


MASK = const(np.triu(np.full((1, ROWS, ROWS), -1e9, np.float32), 1))
SEEN, HIDDEN = (const(part) for part in (np.tri(ROWS, dtype=bool)[None], ~np.tri(ROWS, dtype=bool)[None]))
SOFT: dict[str, tuple[Callable[[Expr], Expr], bool]] = {
    "plain": (op.nn.softmax, False),
    "scaled": (lambda x: op.nn.softmax(op.multiply(x, number(0.3))), False),
    "divided": (lambda x: op.nn.fast_softmax(op.divide(x, number(3.5))), False),
    "causal": (lambda x: op.nn.softmax(op.add(op.multiply(x, number(0.3)), MASK)), True),
    "causal, chosen": (lambda x: op.nn.softmax(op.where(SEEN, x, number(-np.inf))), True),
    "causal, hidden": (lambda x: op.nn.softmax(op.where(HIDDEN, number(-1e9), x)), True),
}


@pytest.mark.parametrize("name", SOFT)
def test_attention_is_one_chain_of_integers(name: str) -> None:
    make, causal = SOFT[name]
    found, decibel = signal(attention(make))
    assert found.count("qnn.quantize") == found.count("qnn.dequantize") == found.count("fixed.softmax") == 1
    assert not {"multiply", "divide", "add", "nn.softmax", "nn.fast_softmax"} & {*found}
    floats = replace(find_strategy("int8"), layers=(LayerChoice("*softmax*", quantized=False),))
    kept, before = signal(attention(make), floats)
    assert "fixed.softmax" not in kept and decibel > before - 0.5
    body = quantize(module(attention(make)), "int8", samples())["main"].body
    (soft,) = (node for node in post_order(body) if isinstance(node, Call) and op_name(node) == "fixed.softmax")
    assert soft.attrs.causal == causal and soft.attrs.zero_point == 0


@pytest.mark.parametrize(
    "make",
    [
        lambda x: op.nn.softmax(x, axis=1),
        lambda x: op.nn.softmax(op.add(x, const(np.tril(np.full((ROWS, ROWS), -1e9, np.float32), -1)))),
        lambda x: op.nn.softmax(op.multiply(x, number(-1))),
        lambda x: op.nn.softmax(op.where(HIDDEN, x, number(-1e9))),
        lambda x: op.nn.softmax(op.where(SEEN, x, number(-3))),
    ],
    ids=["other axis", "other mask", "other sign", "other choice", "not far below"],
)
def test_other_softmax_reads_floats(make: Callable[[Expr], Expr]) -> None:
    """Of another axis it stays float; what is in front of it is no part of it."""
    found, _ = signal(attention(make))
    assert "nn.softmax" in found and "fixed.softmax" not in found


def test_softmax_that_ends_a_network_stays_float() -> None:
    for end in (lambda x: op.nn.softmax(x), lambda x: op.reshape(op.nn.softmax(x), (-1,))):
        found, _ = signal(end(dense(X)))
        assert "nn.softmax" in found and "fixed.softmax" not in found


def test_scores_that_others_read_keep_their_factor() -> None:
    scores = op.multiply(op.nn.batch_matmul(heads(dense(X, 1)), heads(dense(X, 2))), number(0.3))
    mixed = op.nn.batch_matmul(op.nn.softmax(scores), heads(dense(X)), transpose_b=False)
    mod = module(Tuple((scores, dense(op.reshape(op.transpose(mixed, (1, 0, 2)), (ROWS, WIDTH))))))
    found = calls(quantize(mod, "int8", samples()))
    assert "multiply" in found and "fixed.softmax" not in found


def test_the_strategy_may_leave_them_in_float() -> None:
    body = reference_of(module(attention(op.nn.softmax)))["main"].body
    steps = make_plan(body).steps
    (soft,) = (step for step in steps if isinstance(step, SoftmaxStep))
    assert not any(isinstance(step, SoftmaxStep) for step in make_plan(body, [soft.output]).steps)
    choice = replace(find_strategy("int8"), layers=(LayerChoice("nn.softmax_*", quantized=False),))
    assert "nn.softmax" in signal(attention(op.nn.softmax), choice)[0]
    norm = reference_of(module(dense(written_out(dense(X)))))["main"].body
    (step,) = (step for step in make_plan(norm).steps if isinstance(step, NormStep))
    assert not any(isinstance(other, NormStep) for other in make_plan(norm, [step.output]).steps)


def test_numbers_beyond_the_integer_form_are_computed_in_floats() -> None:
    """An epsilon of more than 48 bits."""
    found, decibel = signal(dense(op.nn.layer_norm(dense(X), GAMMA, BETA, epsilon=1e12)))
    assert "nn.layer_norm" in found and "fixed.layer_norm" not in found and decibel > 20


@pytest.mark.parametrize("strategy", ["w4a4", "int8-pow2"])
def test_fewer_bits_are_bounds(strategy: str) -> None:
    """The results of fewer bits than 8 are clipped."""
    found, _ = signal(attention(op.nn.softmax), strategy)
    assert (found[found.index("fixed.softmax") + 1] == "clip") == (strategy == "w4a4")


@pytest.mark.parametrize("columns", [300, 3000])
def test_results_that_are_all_small_have_small_units(columns: int) -> None:
    x = infer_expr(Var("x", TensorType((4, columns), "int8")))
    soft = infer_expr(op.nn.softmax(Var("y", TensorType((4, columns)))))
    assert isinstance(soft, Call)
    one = Softmax(soft, soft.args[0], (), 1.0, False)
    rows = np.random.default_rng(3).integers(-128, 128, (4, columns)).astype("int8")
    powers = np.exp(rows * 0.004)
    real = powers / powers.sum(-1, keepdims=True)
    result = QParams(float(real.max()) / 127, 0, -127, 127)
    integer = softmax_in_integers(x, one, QParams(0.004, 0, -128, 127), result)
    assert integer is not None
    found = np.asarray(evaluate(IRModule.from_expr(Function([x], integer)), [rows]))
    assert abs(found - real / result.scale).max() < 0.7
    assert softmax_in_integers(x, one, result, QParams(1e-12, 0, -127, 127)) is None
