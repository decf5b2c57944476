"""Functions of one number: what counts as one, what becomes a table, and what the table holds."""

from __future__ import annotations

from collections.abc import Callable
from math import erf

import numpy as np
import pytest

from relay_hw import op
from relay_hw.analysis import infer_expr
from relay_hw.interp import evaluate
from relay_hw.ir.expr import Call, Constant, Expr, Function, Tuple, TupleGetItem, Var
from relay_hw.ir.module import IRModule
from relay_hw.ir.types import TensorType
from relay_hw.ir.visit import post_order
from relay_hw.quantize import quantize
from relay_hw.quantize.number import QParams
from relay_hw.quantize.plan import make_plan
from relay_hw.quantize.pointwise import curved, function_values, functions_of
from relay_hw.transform.graph import is_op
from relay_hw.transform.infer_type import InferType

X = Var("x", TensorType((1, 4, 6, 6)))
RNG = np.random.default_rng(5)


def number(value: float) -> Constant:
    return op.const(np.float32(value))


def conv(x: Expr, out: int = 4, size: int = 1) -> Expr:
    return op.nn.conv2d(x, op.const(RNG.normal(size=(out, 4, size, size)).astype("float32")))


def silu(x: Expr) -> Expr:
    return op.multiply(x, op.sigmoid(x))


def gelu(x: Expr) -> Expr:
    half = op.multiply(x, number(0.5))
    return op.multiply(half, op.add(number(1), op.erf(op.divide(x, number(2**0.5)))))


def hard_swish(x: Expr) -> Expr:
    return op.divide(op.multiply(x, op.clip(op.add(x, number(3)), 0, 6)), number(6))


FUNCTIONS: dict[str, tuple[Callable[[Expr], Expr], Callable[[float], float]]] = {
    "silu": (silu, lambda x: x / (1 + np.exp(-x))),
    "gelu": (gelu, lambda x: 0.5 * x * (1 + erf(x / 2**0.5))),
    "hard swish": (hard_swish, lambda x: x * min(max(x + 3, 0), 6) / 6),
    "tanh": (op.tanh, np.tanh),
    "a power": (lambda x: op.power(x, number(2)), lambda x: x * x),
}


def quantized(body: Expr) -> IRModule:
    samples = RNG.normal(size=(8, 4, 6, 6)).astype("float32")
    return quantize(IRModule.from_expr(Function([X], body)), "int8", {"x": samples})


def calls(mod: IRModule) -> list[str]:
    return [node.op.name for node in post_order(mod["main"].body) if isinstance(node, Call)]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_an_activation_between_layers_is_one_table(name: str) -> None:
    make, _ = FUNCTIONS[name]
    mod = quantized(conv(make(conv(X)), 3))
    assert calls(mod) == ["qnn.quantize", "nn.conv2d", "fixed.requantize", "fixed.table", *calls(mod)[4:]]
    assert calls(mod)[4:] in (
        ["nn.conv2d", "fixed.requantize", "qnn.dequantize"],
        ["nn.pad", "nn.conv2d", "fixed.requantize", "qnn.dequantize"],
    )
    (table,) = (node for node in post_order(mod["main"].body) if isinstance(node, Call) and is_op(node, "fixed.table"))
    assert isinstance(table.args[1], Constant) and table.args[1].data.shape == (256,)


def test_the_nearest_integers_are_in_the_table() -> None:
    """Against the float function of what each integer stands for, for every integer."""
    given, result = QParams(0.05, 12, -128, 127), QParams(1 / 128, -3, -128, 127)
    x = infer_expr(Var("x", TensorType((256,))))
    call = infer_expr(op.tanh(x))
    assert isinstance(call, Call)
    found = result.integers(function_values(call, x, given.reals(np.arange(-128, 128))))
    wanted = [result.quantize(float(np.tanh(np.float32(0.05) * np.float32(q - 12)))) for q in range(-128, 128)]
    assert found.tolist() == wanted
    assert result.integers(np.array([np.nan, np.inf, -np.inf])).tolist() == [-3, 127, -128]


def readers(expr: Expr) -> dict[Expr, list[Expr]]:
    """The calls that read each node."""
    found: dict[Expr, list[Expr]] = {}
    for node in post_order(expr):
        for arg in node.args if isinstance(node, Call) else ():
            found.setdefault(arg, []).append(node)
    return found


def test_what_a_function_of_one_tensor_is() -> None:
    x = infer_expr(X)
    y = infer_expr(Var("y", x.tensor_type))

    def source(expr: Expr) -> Expr | None:
        typed = infer_expr(expr)
        return next((one for one in (x, y) if typed in functions_of(one, readers(typed))), None)

    assert source(silu(x)) is x and source(hard_swish(x)) is x
    assert source(op.add(op.sigmoid(x), y)) is None
    assert source(op.sigmoid(op.nn.softmax(x))) is None
    assert source(op.add(x, op.const(np.full((4, 1, 1), 3, "float32")))) is x
    assert source(op.nn.bias_add(x, op.const(np.full(4, 3, "float32")))) is x
    assert source(op.nn.bias_add(x, op.const(np.arange(4, dtype="float32")))) is None
    assert source(op.add(x, op.const(np.ones((2, 4, 6, 6), "float32")))) is None
    assert source(op.cast(op.sigmoid(x), "float16")) is None


def test_factors_offsets_and_bends_are_no_curves() -> None:
    x = infer_expr(X)

    def is_curved(expr: Expr) -> bool:
        typed = infer_expr(expr)
        return typed in curved(functions_of(x, readers(typed)))

    assert not is_curved(op.nn.relu(op.add(op.multiply(x, number(2)), number(1))))
    assert all(is_curved(make(x)) for make, _ in FUNCTIONS.values())
    assert is_curved(op.nn.relu(op.sigmoid(x)))


@pytest.mark.parametrize("inner", [op.tanh, lambda x: op.multiply(x, x)])
def test_long_functions_take_no_longer(inner: Callable[[Expr], Expr]) -> None:
    """Neither a deep stack nor a time that doubles with each operator: 2,000 of them, one table."""

    def many(x: Expr) -> Expr:
        for _ in range(2000):
            x = inner(x)
        return x

    body = InferType()(IRModule.from_expr(Function([X], conv(many(conv(X))))))["main"].body
    steps = make_plan(body).steps
    assert [type(step).__name__ for step in steps] == ["LinearStep", "TableStep", "LinearStep"]
    (source,) = steps[1].inputs
    assert isinstance(steps[1].output, Call)
    assert function_values(steps[1].output, source, np.zeros(256, "float32")).tolist() == [0] * 256
    floats = many(op.nn.softmax(conv(X)))
    assert len(make_plan(InferType()(IRModule.from_expr(Function([X], floats)))["main"].body).steps) == 2002


def test_a_function_of_two_functions_is_one_of_their_tensor() -> None:
    """One of the two has a table of its own, as a layer reads it; no layer is computed twice."""
    x = conv(X)
    second = op.tanh(x)
    mod = quantized(op.add(conv(op.multiply(op.sigmoid(x), second)), conv(second)))
    assert calls(mod).count("fixed.table") == 2 and calls(mod).count("nn.conv2d") == 3
    assert calls(mod).count("qnn.dequantize") == 1


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_are_those_of_the_operators(name: str) -> None:
    make, exact = FUNCTIONS[name]
    x = infer_expr(Var("x", TensorType((256,))))
    call = infer_expr(make(x))
    assert isinstance(call, Call)
    numbers = np.linspace(-6, 6, 256).astype("float32")
    found = function_values(call, x, numbers)
    np.testing.assert_allclose(found, [exact(float(one)) for one in numbers], rtol=2e-5, atol=1e-6)
    whole = evaluate(IRModule.from_expr(Function([x], call)), [numbers])
    np.testing.assert_array_equal(found, whole)


def test_an_activation_that_no_layer_reads_stays_float() -> None:
    assert "fixed.table" not in calls(quantized(silu(conv(X))))
    assert "fixed.table" not in calls(quantized(op.nn.softmax(silu(conv(X)))))


def test_a_function_without_a_value_stays_float() -> None:
    """Its infinities are refused at run time, where the host makes integers of floats."""
    names = calls(quantized(conv(op.divide(number(1), conv(X)))))
    assert "fixed.table" not in names and names.count("qnn.quantize") == names.count("qnn.dequantize") == 2


def test_of_two_functions_of_one_tensor_each_has_its_table() -> None:
    x = conv(X)
    mod = quantized(op.add(conv(op.sigmoid(x)), conv(op.tanh(x))))
    assert calls(mod).count("fixed.table") == 2 and calls(mod).count("qnn.dequantize") == 1


def test_a_gate_is_a_product() -> None:
    x = conv(X)
    gate = op.sigmoid(conv(op.nn.relu(conv(op.nn.global_avg_pool2d(x)))))
    for body in (op.multiply(x, gate), op.multiply(gate, x), op.multiply(x, conv(X))):
        mod = quantized(conv(body))
        names = calls(mod)
        assert names.count("fixed.mul") == 1 and names.count("qnn.quantize") == names.count("qnn.dequantize") == 1


def test_parts_of_a_tensor_are_slices() -> None:
    parts = op.split(silu(conv(X)), 2, axis=1)
    left, right = (TupleGetItem(parts, index) for index in range(2))
    mod = quantized(op.nn.conv2d(op.concatenate(Tuple([right, left]), 1), op.const(np.ones((2, 4, 1, 1), "float32"))))
    assert calls(mod).count("strided_slice") == 2 and "split" not in calls(mod)
    assert calls(mod).count("qnn.quantize") == 1


@pytest.mark.parametrize("name", FUNCTIONS)
def test_integers_follow_floats(name: str) -> None:
    """The whole network: at least 25 dB on what it was calibrated with."""
    make, _ = FUNCTIONS[name]
    samples = RNG.normal(size=(8, 4, 6, 6)).astype("float32")
    whole = IRModule.from_expr(Function([X], conv(make(conv(X)), 3)))
    mod = quantize(whole, "int8", {"x": samples})
    noise = signal = 0.0
    for sample in samples:
        wanted, found = (np.asarray(evaluate(one, [sample[None]]), float) for one in (whole, mod))
        noise, signal = noise + ((wanted - found) ** 2).sum(), signal + (wanted**2).sum()
    assert 10 * np.log10(signal / noise) > 25
