"""Operators in native code against their reference semantics: every elementwise one on every element type of C."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import relay_hw as relay
from relay_hw import op
from relay_hw.backend.flat import flatten
from relay_hw.backend.native import NativeModule, compile_native, find_compiler
from relay_hw.backend.native.nodes import C_TYPES
from relay_hw.errors import EvalError, RelayHwError
from relay_hw.ir.expr import Call, Function, Op, Trait, Tuple, Var
from relay_hw.ir.module import IRModule
from relay_hw.ir.types import TensorType
from relay_hw.op import get, with_trait
from relay_hw.transform import InferType

pytestmark = pytest.mark.skipif(find_compiler() is None, reason="no C compiler on PATH")
# Without attributes; `cast` and `clip` have a test of their own.
PLAIN = sorted(name for name in with_trait(Trait.ELEMENTWISE) if get(name).attrs_type is None)
# Whose last bits differ from one library of mathematics to the next.
ROUNDED = {
    "acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "exp", "fast_exp", "fast_tanh", "log", "log10",
    "log2", "sigmoid", "sin", "sinh", "tan", "tanh", "power", "rsqrt", "erf", "fast_erf",
}  # fmt: skip
EDGES = {"f": [0.0, -0.0, 1.0, -1.5, 2.5, np.inf, -np.inf, np.nan, 88.0, -104.0, 1e-3, 0.7], "b": [True, False]}


def values(dtype: str, seed: int, count: int = 200) -> np.ndarray:
    rng, kind = np.random.default_rng(seed), np.dtype(dtype).kind
    if kind == "b":
        return rng.integers(0, 2, count).astype(bool)
    if kind == "f":
        return np.concatenate([np.array(EDGES["f"]), rng.normal(0, 3, count - len(EDGES["f"]))]).astype(dtype)
    info = np.iinfo(dtype)
    small = rng.integers(max(-9, int(info.min)), 10, count // 2).astype(dtype)
    large = rng.integers(info.min, info.max, count - count // 2, dtype=dtype, endpoint=True)
    return rng.permutation(np.concatenate([small, large, np.array([info.min, info.max, 1], dtype)]))[:count]


def arguments(operator: Op, dtype: str) -> list[np.ndarray]:
    given = [values(dtype, seed) for seed in range(operator.num_inputs)]
    if operator.name == "where":
        given[0] = values("bool", 7)
    if "shift" in operator.name:
        given[1] = (np.arange(200) % (np.dtype(dtype).itemsize * 8 + 3)).astype(dtype)
    if ("div" in operator.name or "mod" in operator.name) and np.dtype(dtype).kind != "f":
        given[1] = np.where(given[1] == 0, 1, given[1]).astype(dtype)
    return given


def expected(operator: Op, args: list[np.ndarray], ty: TensorType) -> np.ndarray | None:
    try:
        with np.errstate(all="ignore"):
            return operator.reference(None, args, ty)
    except (TypeError, ValueError, EvalError):
        return None


@pytest.fixture(scope="module")
def module() -> tuple[NativeModule, dict[str, tuple[str, list[np.ndarray], np.ndarray]]]:
    """Every operator on every element type, a function each, compiled together; with arguments and results."""
    functions: dict[str, Function] = {}
    cases: dict[str, tuple[str, list[np.ndarray], np.ndarray]] = {}
    for name in PLAIN:
        for dtype in C_TYPES:
            operator, args = get(name), arguments(get(name), dtype)
            params = [Var(f"x{k}", TensorType(arg.shape, str(arg.dtype))) for k, arg in enumerate(args)]
            key = f"{name.replace('.', '_')}_{dtype}"
            try:
                typed = InferType()(IRModule({"main": Function(params, Call(operator, params))}))["main"]
            except RelayHwError:
                continue
            want = expected(operator, args, typed.func_type.ret_type)  # type: ignore[arg-type]
            if want is not None:
                functions[key], cases[key] = typed, (name, args, want)
    flat = {key: flatten(function, key) for key, function in functions.items()}
    return compile_native(flat, {}, ("-O0",)), cases


def test_elementwise_operators(module: Any) -> None:
    compiled, cases = module
    assert len(cases) > 300
    for key, (name, args, want) in cases.items():
        have = compiled.call(key, args)
        assert have.dtype == want.dtype and have.shape == want.shape, key
        if want.dtype.kind == "f" and name in ROUNDED:
            rtol = 1e-6 if want.dtype == np.float32 else 1e-13
            np.testing.assert_allclose(have, want, rtol=rtol, atol=0, equal_nan=True, err_msg=key)
        else:
            np.testing.assert_array_equal(have, want, err_msg=key)


def test_few_elementwise_operators_are_left_to_numpy(module: Any) -> None:
    """Those of integers that C would round, and fixed-point ones."""
    assert set(module[0].left_to_numpy) <= ROUNDED | {
        "fixed.add", "reinterpret", "bitwise_not", "sqrt", "add", "multiply", "maximum", "minimum", "left_shift",
        "right_shift", "abs", "ceil", "floor", "round", "trunc", "nn.relu", "sign", "divide", "trunc_divide",
        "floor_divide", "mod", "trunc_mod", "floor_mod", "broadcast_to_like", "full_like", "subtract", "negative",
        "hardswish",
    }  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_hardswish_of_floats_is_c(dtype: str) -> None:
    module, _ = compiled(f"def @main(%x: Tensor[(200), {dtype}]) {{ hardswish(%x) }}")
    x = values(dtype, 1)
    assert not module.left_to_numpy
    np.testing.assert_array_equal(
        module.call("main", [x]), get("hardswish").reference(None, [x], TensorType(x.shape, dtype))
    )


def compiled(text: str) -> tuple[NativeModule, IRModule]:
    mod = InferType()(relay.fromtext('#[version = "0.0.5"]\n' + text))
    return compile_native({name: flatten(f, name) for name, f in mod.functions.items()}, mod.types), mod


X, B = Var("x", TensorType((2, 3, 4), "float32")), Var("b", TensorType((3,), "float32"))
F32 = np.float32
MOVES = [
    op.transpose(X, [2, 0, 1]),
    op.reshape(op.transpose(X), [4, -1]),
    op.strided_slice(X, begin=[1, 0, 3], end=[2, 3, 0], strides=[1, 1, -2]),
    op.split(X, 3, axis=1),
    op.split(X, [1, 3], axis=2),
    op.concatenate(Tuple([X, X * op.const(F32(2)), X]), axis=1),
    op.stack(Tuple([X, X]), axis=1),
    op.expand_dims(op.sum(X, 1), 0) + op.expand_dims(op.sum(X, 1), 1),
    op.squeeze(op.take(op.reshape(X, [2, 1, 12]), op.const(1), axis=0)),
    op.take(X, op.const(9), axis=2, mode="wrap"),
    op.take(op.take(X, op.const(-4), axis=0), op.const(2), axis=1),
    op.nn.bias_add(X, B),
    op.nn.bias_add(X, op.sum(X, [0, 1]), axis=2),
    op.nn.batch_flatten(X),
    op.broadcast_to(B, [2, 4, 3]),
    op.max(X, [0, 2]),
    op.min(X, 1, keepdims=True),
    op.mean(X, 0, exclude=True),
    op.sum(X),
    op.nn.dense(X, op.reshape(X, [6, 4])),
    op.nn.dense(X * op.const(F32(2)), op.ones((5, 4), "float32")),
    op.nn.matmul(X, op.transpose(op.reshape(X, [6, 4]))),
    op.nn.matmul(X, op.reshape(X, [3, 8]), transpose_a=True),
    op.nn.batch_matmul(X, X),
    op.nn.batch_matmul(X, X, transpose_a=True, transpose_b=False),
    op.clip(X, -0.5, 0.25),
    op.cast(X * op.const(F32(9)), "int8"),
    op.where(op.greater(X, op.const(F32(0))), X, op.zeros_like(X)),
    op.all(op.greater(X, op.const(F32(-1))), 1),
    op.any(op.greater(X, op.const(F32(1)))),
    op.full(op.const(F32(1.5)), (2, 0, 3), "float32"),
    op.reverse(X, 1),
    op.maximum(op.maximum(X, op.const(F32(0))), op.negative(op.transpose(op.transpose(X)))),
    op.repeat(X, 2, 1),
    op.tile(X, [2]),
]


def test_operators_that_move_sum_and_multiply() -> None:
    """All in one program, on views of views."""
    mod = InferType()(IRModule({f"f{k}": Function([X, B], body) for k, body in enumerate(MOVES)}))
    module = compile_native({name: flatten(f, name) for name, f in mod.functions.items()}, {}, ("-O1",))
    rng = np.random.default_rng(0)
    args = [rng.normal(size=(2, 3, 4)).astype("float32"), rng.normal(size=3).astype("float32")]
    for k, body in enumerate(MOVES):
        have, want = module.call(f"f{k}", args), relay.create_executor("debug", mod).evaluate(f"f{k}")(*args)
        for one, other in zip(*(v if isinstance(v, tuple) else (v,) for v in (have, want)), strict=True):
            assert one.dtype == other.dtype and one.shape == other.shape, body
            np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-6, err_msg=str(body))
    assert set(module.left_to_numpy) == {"repeat", "tile"}


def test_products_of_integers_wrap_and_are_exact() -> None:
    x, w = Var("x", TensorType((3, 40), "int8")), Var("w", TensorType((5, 40), "int8"))
    u = Var("u", TensorType((40, 2), "int64"))
    parts = [op.nn.dense(x, w, out_dtype="int32"), op.nn.dense(x, w), op.nn.matmul(op.cast(x, "int64"), u),
             op.sum(x, 1), op.prod(x, 0)]  # fmt: skip
    mod = InferType()(IRModule({"main": Function([x, w, u], Tuple(parts))}))
    module = compile_native({"main": flatten(mod["main"], "main")}, {})
    rng = np.random.default_rng(1)
    args = [rng.integers(-128, 128, (3, 40)).astype("int8"), rng.integers(-128, 128, (5, 40)).astype("int8"),
            rng.integers(-(2**62), 2**62, (40, 2))]  # fmt: skip
    for have, want in zip(
        module.call("main", args), relay.create_executor("debug", mod).evaluate()(*args), strict=True
    ):
        assert have.dtype == want.dtype
        np.testing.assert_array_equal(have, want)
    assert module.left_to_numpy == ()


def test_exp_and_tanh_are_within_two_units_of_the_last_place() -> None:
    module, _ = compiled(
        "def @e(%x: Tensor[(20000), float32]) { exp(%x) } def @t(%x: Tensor[(20000), float32]) { tanh(%x) }"
    )
    for name, exact, reach in (("e", np.exp, 87), ("t", np.tanh, 12)):
        x = np.linspace(-reach, reach, 20000).astype("float32")
        want = exact(x.astype("float64"))
        error = np.abs(module.call(name, [x]) - want) / np.spacing(np.abs(want).astype("float32"))
        assert error.max() < 2
