"""Parameters of kind Dim, Shape and BaseType in the text: reading, typing, printing, JSON, running."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import relay_hw as relay
from relay_hw.analysis import structural_equal, structural_hash
from relay_hw.errors import InputError, ParseError, RelayHwError, TypeCheckError
from relay_hw.ir.dims import dim_text
from relay_hw.ir.types import Kind
from relay_hw.text import load_json, parse, save_json

GROW = """
def @grow[n: Dim, s: Dim, k: Dim](%x: Tensor[(n, s, k), float32]) -> Tensor[(s + 1, k * n), float32] {
  %0 = reshape(transpose(%x, axes=[1, 2, 0]), newshape=[0, -3]);
  concatenate((%0, sum(%0, axis=[0], keepdims=True)), axis=0)
}
"""
HALF = """
def @half[n: Dim, m: Dim](%x: Tensor[(n, 4), float32]) -> Tensor[(m, 8), float32] where (n == 2 * m, m > 0) {
  reshape(%x, newshape=[-1, 8])
}
"""
TWICE = "def @twice[s: Shape, b: BaseType](%x: Tensor[s, b]) -> Tensor[s, b] { %x + %x }\n"


def module(text: str) -> relay.IRModule:
    """Parsed, and the same after printing and after JSON."""
    mod = parse('#[version = "0.0.5"]\n' + text)
    for again in (parse(mod.astext()), load_json(save_json(mod))):
        assert structural_equal(mod, again)
        assert structural_hash(mod) == structural_hash(again)
    return mod


def main(body: str, params: str = "%x: Tensor[(6, 4), float32]") -> str:
    return f"def @main({params}) {{ {body} }}"


def result(mod: relay.IRModule, name: str = "main") -> str:
    return str(mod[name].func_type.ret_type)


def refusal(text: str, kind: type[RelayHwError] = TypeCheckError) -> str:
    with pytest.raises(kind) as caught:
        module(text)
    assert caught.value.span is not None
    return caught.value.message


def test_the_function_of_the_rfc_has_a_checked_type() -> None:
    mod = module(GROW)
    assert str(mod["grow"].func_type) == (
        "fn [n: Dim, s: Dim, k: Dim](Tensor[(n, s, k), float32]) -> Tensor[(s + 1, k * n), float32]"
    )


def test_a_wrong_result_type_of_it_is_refused() -> None:
    wrong = GROW.replace("(s + 1, k * n)", "(s + 1, k + n)")
    assert refusal(wrong) == (
        "result of @grow must be Tensor[(s + 1, k + n), float32], not Tensor[(s + 1, k * n), float32]"
    )


@pytest.mark.parametrize(
    ("given", "wanted"),
    [("2, 3, 5", "4, 10"), ("2, m, 5", "m + 1, 10"), ("?, 3, 5", "4, ?"), ("m, m, m", "m + 1, m * m")],
)
def test_each_call_has_its_own_sizes(given: str, wanted: str) -> None:
    mod = module(GROW + main("@grow(%x)", f"%x: Tensor[({given}), float32]"))
    assert result(mod) == f"Tensor[({wanted}), float32]"


@given(st.tuples(*[st.integers(1, 4)] * 3))
@settings(max_examples=20)
def test_values_have_the_sizes_that_the_type_says(sizes: tuple[int, int, int]) -> None:
    n, s, k = sizes
    mod = parse('#[version = "0.0.5"]\n' + GROW)
    x = np.random.default_rng(0).standard_normal(sizes).astype("float32")
    value = relay.create_executor(mod=mod).evaluate("grow")(x)
    assert value.shape == (s + 1, k * n)
    rows = x.transpose(1, 2, 0).reshape(s, k * n)
    assert np.allclose(value, np.concatenate([rows, rows.sum(0, keepdims=True)]))


def test_conditions_are_solved_at_the_call() -> None:
    assert result(module(HALF + main("@half(%x)"))) == "Tensor[(3, 8), float32]"
    even = module(HALF + main("@half(%x)", "%x: Tensor[(2 * k + 2, 4), float32]"))
    assert result(even) == "Tensor[(k + 1, 8), float32]"


@pytest.mark.parametrize(
    ("size", "reason"),
    [
        ("7", "call of @half must have 7 == 2 * m"),
        ("2 * k + 1", "call of @half must have 2 * k + 1 == 2 * m"),
        ("0", "call of @half must have 0 > 0"),
        ("2 * k", "call of @half must have k > 0"),
    ],
)
def test_conditions_that_a_call_does_not_meet(size: str, reason: str) -> None:
    assert refusal(HALF + main("@half(%x)", f"%x: Tensor[({size}, 4), float32]")) == reason


def test_a_body_may_use_the_conditions() -> None:
    module(
        "def @f[n: Dim, m: Dim](%x: Tensor[(n), float32], %y: Tensor[(m + m), float32]) -> Tensor[(n), float32]"
        " where (n == 2 * m) { @same(%x, %y) }\n"
        "def @same[d: Dim](%x: Tensor[(d), float32], %y: Tensor[(d), float32]) -> Tensor[(d), float32] { %x + %y }"
    )


def test_without_the_condition_the_same_body_is_refused() -> None:
    text = (
        "def @f[n: Dim, m: Dim](%x: Tensor[(n), float32], %y: Tensor[(m + m), float32]) { @same(%x, %y) }\n"
        "def @same[d: Dim](%x: Tensor[(d), float32], %y: Tensor[(d), float32]) -> Tensor[(d), float32] { %x + %y }"
    )
    assert refusal(text) == "argument 2 of @same must be Tensor[(n), float32], not Tensor[(2 * m), float32]"


def test_a_condition_of_the_caller_serves_the_callee() -> None:
    inner = "def @inner[n: Dim](%x: Tensor[(n), int32]) -> int32 where (n >= 2) { sum(%x) }\n"
    outer = "def @outer[k: Dim](%x: Tensor[(k), int32]) -> int32 {where}{{ @inner(%x) }}"
    module(inner + outer.format(where="where (k > 3) "))
    assert refusal(inner + outer.format(where="where (k > 0) ")) == "call of @inner must have k >= 2"


def test_equations_may_wait_for_later_arguments() -> None:
    text = (
        "def @f[n: Dim, k: Dim](%x: Tensor[(n * k), int32], %y: Tensor[(k), int32]) -> Tensor[(n), int32]"
        " { sum(reshape(%x, newshape=[-1, 3]), axis=[1]) }"
    )
    assert "must be Tensor[(n), int32]" in refusal(text)
    fixed = (
        "def @f[n: Dim, k: Dim](%x: Tensor[(n * k), int32], %y: Tensor[(k), int32]) -> Tensor[(k * n), int32] { %x }\n"
    )
    mod = module(fixed + main("@f(%a, %b)", "%a: Tensor[(12), int32], %b: Tensor[(4), int32]"))
    assert result(mod) == "Tensor[(12), int32]"
    args = main("@f(%a, %b)", "%a: Tensor[(12), int32], %b: Tensor[(5), int32]")
    assert "dimension must be" in refusal(fixed + args) or "must be" in refusal(fixed + args)


def test_shapes_and_element_types_as_parameters() -> None:
    mod = module(TWICE + main("(@twice(%x), @twice(%y))", "%x: Tensor[(2, 3), int8], %y: float64"))
    assert result(mod) == "(Tensor[(2, 3), int8], float64)"
    assert [var.kind for var in mod["twice"].type_params] == [Kind.SHAPE, Kind.BASE_TYPE]
    x = np.ones((2, 3), "int8")
    pair = relay.create_executor(mod=mod).evaluate()(x, 2.5)
    assert np.array_equal(pair[0], x * 2)
    assert pair[1] == 5.0


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (TWICE.replace("%x + %x", "nn.softmax(%x)"), "must have a shape of known rank, not Tensor[s, b]"),
        (
            "def @f[s: Shape, t: Shape](%x: Tensor[s, int8], %y: Tensor[t, int8]) { %x + %y }",
            "arguments of add must have one shape or be scalars, not Tensor[s, int8] and Tensor[t, int8]",
        ),
        (
            "def @f[a: BaseType, b: BaseType](%x: Tensor[(2), a], %y: Tensor[(2), b]) { %x + %y }",
            "the element types of add's arguments must be equal, not a and b",
        ),
    ],
)
def test_parameters_stand_for_anything(text: str, reason: str) -> None:
    assert reason in refusal(text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("def @f[n: Dim](%x: n) { 1 }", "type parameter n must have kind Type here, not Dim"),
        ("def @f[A](%x: Tensor[(A), int8]) { 1 }", "type parameter A must have kind Dim here, not Type"),
        ("def @f[A](%x: Tensor[(2), A]) { 1 }", "type parameter A must have kind BaseType here, not Type"),
        ("def @f[b: BaseType](%x: Tensor[b, int8]) { 1 }", "type parameter b must have kind Shape here, not BaseType"),
        ("def @f(%x: Tensor[s, int8]) { 1 }", "shape s must be a type parameter of kind Shape"),
        ("def @f[n: Size](%x: int8) { 1 }", "kind must be Type, Dim, Shape or BaseType, not Size"),
        ("def @f[n: Dim](%x: int8) -> int8 where (n) { %x }", "where must have a comparison of dimensions here, not )"),
        ("def @f(%x: Tensor[(floordiv(n, 0)), int8]) { 1 }", "divisor of a dimension must be at least 1, not 0"),
        ("def @f(%x: Tensor[(n +), int8]) { 1 }", "dimension must be an integer of at least 0 or ?, not )"),
    ],
)
def test_kinds_are_kept_apart(text: str, reason: str) -> None:
    assert refusal(text, ParseError) == reason


def test_type_arguments_can_be_given() -> None:
    phantom = "def @phantom[A, n: Dim, s: Shape, b: BaseType](%x: int32) -> int32 { %x }\n"
    mod = module(phantom + main("@phantom[(bool,), 3 * 4, (2, 3), int8](1)", ""))
    call = mod["main"].body
    assert isinstance(call, relay.Call)
    assert [str(arg) for arg in call.type_args] == ["(bool,)", "12", "(2, 3)", "int8"]
    assert "@phantom[(bool,), 12, (2, 3), int8](1)" in mod.astext()
    assert "must have kind Dim, not be int32" in refusal(phantom + main("@phantom[bool, int32, (2, 3), int8](1)", ""))
    assert refusal(phantom + main("@phantom[bool](1)", "")) == "@phantom must have 4 type arguments, not 1"
    assert "the program leaves it open" in refusal(phantom + main("@phantom(1)", ""))


def test_an_empty_list_can_say_what_it_is_empty_of() -> None:
    data = "type List[A] { Cons(A, List[A]), Nil }\n"
    parse('#[version = "0.0.5"]\n' + data + main("let %l = Nil[int32]; 1", ""))
    assert "must be annotated" in refusal(data + main("let %l = Nil; 1", ""))


def test_parameters_of_any_kind_in_function_types() -> None:
    text = (
        "def @both(%f: fn [n: Dim, b: BaseType](Tensor[(n), b]) -> Tensor[(2 * n), b] where (n > 0)) {\n"
        "  (%f([1, 2]), %f([1f, 2f, 3f]))\n}"
    )
    assert result(module(text), "both") == "(Tensor[(4), int32], Tensor[(6), float32])"


def test_names_that_clash_are_told_apart() -> None:
    inner = relay.TypeVar("n", Kind.DIM)
    x = relay.var("x", relay.TensorType((inner.dim,), "float32"))
    y = relay.var("y", relay.TensorType((relay.ir.types.DimVar("n"),), "float32"))
    function = relay.Function([x, y], relay.Tuple([x, y]), None, [inner])
    mod = relay.transform.InferType()(relay.IRModule({"main": function}))
    again = parse(mod.astext())
    types = again["main"].func_type.arg_types
    assert str(types[0]) != str(types[1])


def test_arguments_must_agree_with_each_other() -> None:
    mod = module("def @main[n: Dim](%x: Tensor[(n), int32], %y: Tensor[(n + 1), int32]) where (n != 3) { 1 }")
    call = relay.create_executor(mod=mod).evaluate()
    assert call([1, 2], [1, 2, 3]) == 1
    with pytest.raises(
        InputError, match=r"input y of @main must be Tensor\[\(3\), int32\], not Tensor\[\(2\), int32\]"
    ):
        call([1, 2], [1, 2])
    with pytest.raises(InputError, match="inputs of @main must have 3 != 3"):
        call([1, 2, 3], [1, 2, 3, 4])


@pytest.mark.parametrize(
    "dim",
    ["n", "n + 1", "2 * n - m", "floordiv(n + 1, 2)", "n * n - 3", "floormod(n, 4)", "(n + 1) * (m - 2)", "-3 + n"],
)
def test_dimensions_are_printed_as_they_are_read(dim: str) -> None:
    mod = module(f"def @main(%x: Tensor[({dim}), int8]) {{ 1 }}")
    ty = mod["main"].params[0].type
    assert isinstance(ty, relay.TensorType)
    again = module(f"def @main(%x: Tensor[({dim_text(ty.shape[0])}), int8]) {{ 1 }}")
    assert structural_equal(mod, again)


def test_lanes_of_vector_types() -> None:
    mod = module("def @main(%x: Tensor[(4), int8x4]) -> Tensor[(4), int8x4] { %x }")
    assert result(mod) == "Tensor[(4), int8x4]"
    with pytest.raises(InputError, match="must be Tensor"):
        relay.create_executor(mod=mod).evaluate()(np.zeros(4, "int8"))


@pytest.mark.parametrize(
    ("text", "shape", "dtype"),
    [("[1, 2, 3]", (3,), "int32"), ("[[1f, 2f]]", (1, 2), "float32"), ("[True]", (1,), "bool")],
)
def test_tensor_literals(text: str, shape: tuple[int, ...], dtype: str) -> None:
    mod = module(main(text, ""))
    body = mod["main"].body
    assert isinstance(body, relay.Constant)
    assert (body.data.shape, str(body.data.dtype)) == (shape, dtype)


def test_tensor_literal_of_variables_stacks_them() -> None:
    mod = module(main("[%x, %x * 2f]"))
    assert result(mod) == "Tensor[(2, 6, 4), float32]"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[1, 2f]", "elements of a tensor must have one type, not int32 and float32"),
        ("[[1], 2]", "elements of a tensor must have one type, not Tensor[(1), int32] and int32"),
        ("[]", "tensor must have at least one element"),
    ],
)
def test_tensor_literals_that_are_none(text: str, reason: str) -> None:
    assert refusal(main(text, ""), ParseError) == reason


def test_a_polynomial_that_would_fill_the_memory_is_refused() -> None:
    names = " + ".join(f"d{index}" for index in range(12))
    text = f"def @main(%x: Tensor[({' * '.join([f'({names})'] * 12)}), int8]) {{ 1 }}"
    assert refusal(text, ParseError) == "dimension must have at most 1000 terms"
    doubled = "def @f(%x: Tensor[(n), int8]) { %x }\n" + main(
        "reshape(%x, newshape=[-3, -2])", f"%x: Tensor[({names}, {names.replace('d', 'e')}), int8]"
    )
    assert parse('#[version = "0.0.5"]\n' + doubled)


@pytest.mark.parametrize("kind", ["Shape", "BaseType"])
def test_parameters_that_a_call_leaves_open_are_refused(kind: str) -> None:
    phantom = f"def @phantom[t: {kind}](%x: int32) -> int32 {{ %x }}\n"
    assert "the program leaves it open" in refusal(phantom + main("@phantom(1)", ""))
    given_type = {"Shape": "(2, 3)", "BaseType": "int8"}[kind]
    module(phantom + main(f"@phantom[{given_type}](1)", ""))


def test_a_size_that_a_call_leaves_open_is_unknown() -> None:
    text = "def @any[n: Dim](%x: int32) -> Tensor[(n), int32] { @any(%x) }\n" + main("@any(1)", "")
    assert result(module(text)) == "Tensor[(?), int32]"


def test_a_product_of_many_factors() -> None:
    for count in (255, 256):
        assert parse(f'#[version = "0.0.5"]\ndef @main(%x: Tensor[({" * ".join(["n"] * count)}), int8]) {{ %x }}\n')
    with pytest.raises(ParseError, match=r"^<text>:2:\d+: dimension must have at most 256 factors in a product$"):
        parse(f'#[version = "0.0.5"]\ndef @main(%x: Tensor[({" * ".join(["n"] * 258)}), int8]) {{ %x }}\n')
