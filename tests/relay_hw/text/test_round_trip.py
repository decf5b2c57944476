"""Print and parse are inverse: for random programs, for every operator's attributes, for every literal."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import relay_hw as relay
from relay_hw.analysis import infer_type, structural_equal, structural_hash
from relay_hw.interp import ConstructorValue, evaluate
from relay_hw.ir.expr import Expr
from relay_hw.text import parse, parse_expr, print_expr, print_module
from tests.relay_hw.programs import INPUTS, modules

QUIET = settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))


def same(a: Any, b: Any) -> bool:
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, ConstructorValue):
        return a.name == b.name and same(a.fields, b.fields)
    return a.dtype == b.dtype and a.tobytes() == b.tobytes()


@QUIET
@given(modules())
def test_printing_then_parsing_gives_an_equal_program(mod: relay.IRModule) -> None:
    typed = infer_type(mod)
    for show_types in (False, True):
        text = print_module(typed, show_types=show_types)
        again = parse(text)
        assert structural_equal(typed, again), text
        assert structural_hash(typed) == structural_hash(again)
        assert print_module(again, show_types=show_types) == text


@QUIET
@given(modules())
def test_printing_then_parsing_keeps_the_value_and_the_order_of_effects(mod: relay.IRModule) -> None:
    typed = infer_type(mod)
    again = parse(print_module(typed))
    # Names may be made readable, so arguments go by position.
    args = [INPUTS[param.name_hint] for param in typed["main"].params]
    assert same(evaluate(typed, args), evaluate(again, args))


@QUIET
@given(modules())
def test_untyped_programs_print_too(mod: relay.IRModule) -> None:
    assert structural_equal(parse(print_module(mod)), infer_type(mod))


ANY_SCALAR = st.one_of(
    *(
        hnp.arrays(dtype, (), elements=hnp.from_dtype(np.dtype(dtype)))
        for dtype in ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
    ),
    *(hnp.arrays(dtype, ()) for dtype in ("float16", "float32", "float64")),
)
ANY_TENSOR = st.sampled_from(("bool", "int8", "uint64", "float16", "float32", "float64", "int64")).flatmap(
    lambda dtype: hnp.arrays(dtype, hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=3))
)


@settings(max_examples=200, deadline=None)
@given(st.one_of(ANY_SCALAR, ANY_TENSOR))
def test_every_constant(data: np.ndarray) -> None:
    constant = relay.Constant(data)
    again = parse_expr(print_expr(constant))
    assert isinstance(again, relay.Constant)
    assert again.data.dtype == data.dtype and again.data.shape == data.shape
    if data.dtype.kind == "f" and not np.isnan(data).any():
        assert again.data.tobytes() == data.tobytes()
    np.testing.assert_array_equal(again.data, data)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (np.int32(42), "42"),
        (np.int32(-(2**31)), "-2147483648"),
        (np.int16(42), "42i16"),
        (np.int64(42), "42i64"),
        (np.float32(3), "3f"),
        (np.float32(1e-5), "1e-05f"),
        (np.float32(0.1), "0.1f"),
        (np.float32(-0.0), "-0f"),
        (np.float16(3), "3f16"),
        (np.float64(0.1), "0.1f64"),
        (np.float32("inf"), "inff"),
        (np.float64("-inf"), "-inff64"),
        (np.bool_(True), "True"),
        (np.int8(1), "meta[relay.Constant][0]"),
        (np.float32("nan"), "meta[relay.Constant][0]"),
        (np.zeros(1, "int32"), "meta[relay.Constant][0]"),
    ],
)
def test_spelling_of_constants(data: Any, text: str) -> None:
    assert print_expr(relay.Constant(data)).split("\n")[0] == text


ANY_ATTRIBUTE = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(allow_nan=False),
        st.text(st.characters(codec="utf-8")),
    ),
    lambda inner: st.lists(inner, max_size=4).map(tuple),
    max_leaves=6,
)


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(st.sampled_from(("Primitive", "Compiler", "relay.reshape_only", "type", "x1")), ANY_ATTRIBUTE))
def test_every_function_attribute(attrs: dict[str, Any]) -> None:
    function = relay.Function([], relay.const(1), None, [], attrs)
    again = parse_expr(print_expr(function))
    assert isinstance(again, relay.Function) and dict(again.attrs) == attrs
    assert [type(again.attrs[key]) for key in attrs] == [type(value) for value in attrs.values()]


X = relay.var("x", shape=(1, 8, 6, 6))
CALLS: list[Expr] = [
    relay.nn.conv2d(X, relay.var("w"), strides=(2, 1), padding=(1, 1), channels=4, kernel_size=(3, 3)),
    relay.nn.conv2d(X, relay.var("w"), out_dtype="int32"),
    relay.nn.dense(X, relay.var("w")),
    relay.nn.dense(X, relay.var("w"), units=3),
    relay.nn.batch_norm(X, relay.var("a"), relay.var("b"), relay.var("c"), relay.var("d"), epsilon=1e-3),
    relay.nn.max_pool2d(X, pool_size=(2, 2), ceil_mode=True, layout="NHWC"),
    relay.nn.pad(X, ((0, 0), (0, 0), (1, 1), (2, 2))),
    relay.clip(X, 0, 6),
    relay.clip(X, -1.5, float("inf")),
    relay.reshape(X, (1, -1)),
    relay.sum(X, axis=(1, 2), keepdims=True),
    relay.sum(X),
    relay.cast(X, "int8"),
    relay.qnn.op.quantize(X, relay.const(0.1), relay.const(3), out_dtype="uint8"),
    relay.op.fixed.requantize(X, relay.var("b"), (2**30, 5), (3, 4), rounding="half_even"),
]  # fmt: skip


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.op.name)
def test_attributes_of_operators(call: Expr) -> None:
    again = parse_expr(print_expr(call))
    assert isinstance(again, relay.Call) and isinstance(call, relay.Call)
    assert again.op is call.op and again.attrs == call.attrs and type(again.attrs) is type(call.attrs)


def test_defaults_are_left_out_and_attributes_without_default_are_not() -> None:
    text = print_expr(relay.nn.dense(relay.nn.softmax(X), X))
    assert "nn.softmax(%x);" in text and "nn.dense(%0, %x, units=None)" in text


NAMES = ["x", "onnx::Conv_1", "model.0.weight", "a/b", "/conv1/Conv_output_0", "x.1", "1", "", "fn", "let", "a b", "é",
         "_", "x//y", "%", "a.b.", "True", "meta[relay.Constant][0]"]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_any_name_prints_so_that_it_parses(name: str) -> None:
    x, y = relay.Var(name, relay.scalar_type("int32")), relay.Var(name, relay.scalar_type("int32"))
    mod = infer_type(relay.IRModule.from_expr(relay.Function([x, y], relay.subtract(x, y))))
    assert structural_equal(parse(print_module(mod)), mod)


@pytest.mark.parametrize("name", ["x", "onnx::Conv_1", "model.0.weight", "a/b", "/conv1/Conv_output_0", "a.b"])
def test_names_of_real_models_are_kept(name: str) -> None:
    x = relay.Var(name, relay.scalar_type("int32"))
    again = parse(print_module(relay.IRModule.from_expr(relay.Function([x], x))))
    assert again["main"].params[0].name_hint == name


def test_names_begin_anew_in_each_function() -> None:
    x, a = relay.Var("x", relay.scalar_type("int32")), relay.TypeVar("A")
    y = relay.Var("x", a)
    text = print_module(relay.IRModule({"f": relay.Function([x], x), "g": relay.Function([y], y, a, [a])}))
    assert "def @f(%x: int32)" in text and "def @g[A](%x: A) -> A" in text


def test_types_of_every_form() -> None:
    a, b = relay.TypeVar("int"), relay.TypeVar("A")
    types = [
        relay.FuncType((relay.TupleType([]), relay.TupleType([a])), relay.RefType(b)),
        relay.FuncType((b,), b, (b,)),
        relay.TensorType((1, relay.ANY), "uint16"),
        relay.TensorType((), "bfloat16"),
    ]
    params = [relay.Var("p", ty) for ty in types]
    mod = infer_type(relay.IRModule.from_expr(relay.Function(params, relay.Tuple([]), None, [a, b])))
    assert structural_equal(parse(print_module(mod)), mod)


def test_symbolic_dimensions() -> None:
    text = (
        '#[version = "0.0.5"]\ndef @main(%x: Tensor[(n, 4), float32]) -> Tensor[(n, 4), float32] {\n  nn.relu(%x)\n}\n'
    )
    assert print_module(parse(text)) == text


def test_form_of_the_text() -> None:
    text = """#[version = "0.0.5"]
type List[A] {
  Cons(A, List[A]),
  Nil,
}
extern type Storage
def @main(%x: Tensor[(4), float32], %w: Tensor[(4, 4), float32], %l: List[int32]) -> (Tensor[(4), float32], int32) {
  %0 = nn.dense(%x, %w, units=None);
  let %y: Tensor[(4), float32] = nn.relu(%0);
  let %f = fn (%z: Tensor[(4), float32]) -> Tensor[(4), float32] {
    %1 = add(%z, %0);
    add(%1, %y)
  };
  %2 = if (True) {
    %f(%0)
  } else {
    %y
  };
  %3 = (match (%l) {
    Cons(%h, _) => {
      %h
    },
    Nil => {
      0
    },
  });
  (%2, %3)
}
"""
    assert print_module(parse(text)) == text


def test_a_let_as_a_value_stands_in_parentheses() -> None:
    a, b = relay.var("a"), relay.var("b")
    expr = relay.Let(b, relay.Let(a, relay.const(1), relay.add(a, a)), relay.negative(b))
    text = print_expr(expr)
    assert text == "let %b = (\n  let %a = 1;\n  add(%a, %a)\n);\nnegative(%b)\n"
    assert structural_equal(parse_expr(text), expr)


def test_free_variables_are_declared() -> None:
    x = relay.var("x", shape=(2,))
    text = print_expr(relay.add(x, relay.var("y")))
    assert text == "free_var %x: Tensor[(2), float32];\nfree_var %y;\nadd(%x, %y)\n"
    again = parse_expr(text)
    assert [var.name_hint for var in relay.analysis.free_vars(again)] == ["x", "y"]
    assert parse("free_var %x: int32; %x + 1")["main"].params[0].name_hint == "x"


def test_shared_node_of_two_branches_is_written_before_them() -> None:
    shared = relay.negative(relay.const(1))
    text = print_expr(relay.If(relay.const(True), shared, relay.negative(shared)))
    assert text.splitlines()[0] == "%0 = negative(1);" and text.count("negative(1)") == 1


def test_no_depth_limit() -> None:
    x = relay.var("x", "int32")
    chain: Expr = x
    for _ in range(10_000):
        chain = relay.add(chain, x)
    names = [relay.var(f"v{index}") for index in range(10_000)]
    body: Expr = names[-1]
    for index in reversed(range(10_000)):
        body = relay.Let(names[index], relay.negative(names[index - 1] if index else chain), body)
    mod = relay.IRModule.from_expr(relay.Function([x], body))
    typed = infer_type(mod)
    assert structural_equal(parse(print_module(typed)), typed)


@pytest.mark.parametrize(
    "kind", ["parentheses", "calls", "functions", "ifs", "matches", "lets", "sequences", "operators"]
)
def test_deeply_nested_text(kind: str) -> None:
    count = 3 * sys.getrecursionlimit()
    text = {
        "parentheses": "(" * count + "1" + ")" * count,
        "calls": "negative(" * count + "1" + ")" * count,
        "functions": "fn () {" * count + "1" + "}" * count,
        "ifs": "if (True) {" * count + "1" + "} else {2}" * count,
        "matches": "match (1) { %x => " * count + "1" + " }" * count,
        "lets": "let %x = (" * count + "1" + "); %x" * count,
        "sequences": "{" * count + "1" + "}" * count,
        "operators": "1 + (" * count + "1" + ")" * count,
    }[kind]
    expr = parse_expr(text)
    again = parse_expr(print_expr(expr))
    assert structural_equal(again, expr)
