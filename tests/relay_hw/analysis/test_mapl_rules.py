"""The rules of the MAPL paper: figure 5 (kinds of types) and figure 6 (types of expressions), one test a rule.

Each shows a program that the rule types and programs that its premises refuse. The names are the paper's.
"""

from __future__ import annotations

import pytest

import relay_hw as relay
from relay_hw.analysis import infer_expr, infer_type
from relay_hw.errors import RelayHwError
from relay_hw.ir.types import Kind
from relay_hw.text import parse, parse_expr
from relay_hw.transform import gradient

BASE_TYPES = ["bool", "bfloat16", "float16", "float32", "float64"] + [
    f"{sign}int{width}" for sign in ("", "u") for width in (8, 16, 32, 64)
]


def module(text: str) -> relay.IRModule:
    return parse('#[version = "0.0.5"]\n' + text)


def type_of(expr: str, params: str = "") -> str:
    """The type that inference gives `expr` with the parameters in scope."""
    return str(module(f"def @main({params}) {{ {expr} }}")["main"].func_type.ret_type)


def annotated(ty: str, type_params: str = "") -> str:
    """`ty` read, checked and printed, as a parameter's annotation."""
    mod = module(f"def @main{type_params}(%x: {ty}) {{ () }}")
    return str(mod["main"].params[0].type)


def refuse(text: str) -> str:
    with pytest.raises(RelayHwError) as caught:
        module(text)
    return caught.value.message


def refuse_expr(expr: str, params: str = "") -> str:
    return refuse(f"def @main({params}) {{ {expr} }}")


# Figure 5


@pytest.mark.parametrize("name", BASE_TYPES)
def test_basetype_t(name: str) -> None:
    assert annotated(f"Tensor[(2), {name}]") == f"Tensor[(2), {name}]"
    assert refuse("def @main(%x: Tensor[(2), int7]) { 1 }").startswith("element type must be like int8")
    assert "must have kind Type here, not BaseType" in refuse("def @main[b: BaseType](%x: b) { 1 }")


@pytest.mark.parametrize("shape", ["()", "(1)", "(0, 3)", "(2, 3, 4, 5)"])
def test_shape_t(shape: str) -> None:
    wanted = "int8" if shape == "()" else f"Tensor[{shape}, int8]"
    assert annotated(f"Tensor[{shape}, int8]") == wanted
    assert "dimension must be an integer of at least 0" in refuse("def @main(%x: Tensor[(-1), int8]) { 1 }")
    assert "must have kind Type here, not Shape" in refuse("def @main[s: Shape](%x: s) { 1 }")


def test_tensor_t() -> None:
    assert annotated("Tensor[s, b]", "[s: Shape, b: BaseType]") == "Tensor[s, b]"
    swapped = refuse("def @main[s: Shape, b: BaseType](%x: Tensor[b, s]) { 1 }")
    assert swapped == "type parameter b must have kind Shape here, not BaseType"
    # A tensor holds numbers, no functions and no tuples.
    assert "element type must be" in refuse("type L { N } def @main(%x: Tensor[(2), L]) { 1 }")


def test_arrow_t() -> None:
    assert annotated("fn (int8, Tensor[(2), bool]) -> (int8, int8)")
    assert "must have kind Type here, not Dim" in refuse("def @main[n: Dim](%f: fn (n) -> int8) { 1 }")
    assert "must have kind Type here, not Shape" in refuse("def @main[s: Shape](%f: fn (int8) -> s) { 1 }")


@pytest.mark.parametrize("kind", ["Shape", "Type", "BaseType"])
def test_quantifier_t(kind: str) -> None:
    used = {"Shape": "Tensor[t, int8]", "Type": "t", "BaseType": "Tensor[(2), t]"}[kind]
    written = {"Shape": "t: Shape", "Type": "t", "BaseType": "t: BaseType"}[kind]
    assert annotated(f"fn [{written}]({used}) -> {used}") == f"fn [{written}]({used}) -> {used}"
    assert "kind must be Type, Dim, Shape or BaseType, not Sort" in refuse("def @main(%f: fn [t: Sort]() -> t) { 1 }")
    # The variable is known in the body of the quantifier only.
    assert "t" in refuse(f"def @main(%f: fn [{written}]({used}) -> {used}, %x: {used}) {{ 1 }}")


def test_product_t() -> None:
    assert annotated("(int8, (), (bool,))") == "(int8, (), (bool,))"
    assert "must have kind Type here, not Dim" in refuse("def @main[n: Dim](%x: (int8, n)) { 1 }")


def test_ref_t() -> None:
    assert annotated("ref(ref(Tensor[(2), int8]))") == "ref(ref(Tensor[(2), int8]))"
    assert "must have kind Type here, not BaseType" in refuse("def @main[b: BaseType](%x: ref(b)) { 1 }")


# Figure 6


def test_type_int_literal() -> None:
    assert type_of("3") == type_of("-3") == "int32"
    assert type_of("3i64") == "int64"
    assert "integer must fit int16" in refuse_expr("40000i16")


def test_type_float_literal() -> None:
    assert type_of("3f") == type_of("-1.5e2f") == "float32"
    assert type_of("3f64") == "float64"


def test_type_bool_literal() -> None:
    assert type_of("True") == type_of("False") == "bool"


def test_type_tensor_literal() -> None:
    assert type_of("[1, 2, 3]") == "Tensor[(3), int32]"
    assert type_of("[[True], [False]]") == "Tensor[(2, 1), bool]"
    assert type_of("[%x, %x]", "%x: Tensor[(4, 5), float32]") == "Tensor[(2, 4, 5), float32]"
    assert "elements of a tensor must have one type" in refuse_expr("[1, 2f]")
    assert "the element types of stack's arguments must be equal" in refuse_expr("[%x, 2f]", "%x: int32")
    assert "the shapes of stack must be equal" in refuse_expr("[%x, 2]", "%x: Tensor[(1), int32]")


def test_type_product() -> None:
    assert type_of("(1, (2f, True), ())") == "(int32, (float32, bool), ())"
    assert type_of("(1,)") == "(int32,)"


def test_type_projection() -> None:
    assert type_of("(1, 2f, True).1") == "float32"
    assert type_of("%p.1.0", "%p: (int8, (bool, int8))") == "bool"
    assert refuse_expr("(1, 2f).2") == "index of a tuple of 2 fields must be in [0, 2), not 2"
    assert refuse_expr("%x.0", "%x: int8") == "value before .0 must be a tuple, not int8"


def test_type_let() -> None:
    assert type_of("let %x = (1, 2f); %x.1") == "float32"
    assert type_of("let %x = 1; let %x = 2f; %x") == "float32"
    assert refuse_expr("let %x: bool = 1; %x") == "value of %x must be bool, not int32"
    assert "must be bound before it is used" in refuse_expr("(let %x = 1; %x) + %y")


@pytest.mark.parametrize("op", ["negative(%x)", "multiply(%x, %x)"])
def test_type_unaryop(op: str) -> None:
    for ty in ("Tensor[(2, 3), float32]", "int8", "Tensor[(n), int64]"):
        assert type_of(op, f"%x: {ty}") == ty
    mod = module(f"def @main[s: Shape, b: BaseType](%x: Tensor[s, b]) {{ {op} }}")
    assert str(mod["main"].func_type.ret_type) == "Tensor[s, b]"
    assert "must be a tensor" in refuse_expr(op, "%x: (int8,)")


@pytest.mark.parametrize("sign", ["+", "-", "*", "/"])
def test_type_noncomp_binaryop(sign: str) -> None:
    for ty in ("Tensor[(2, 3), float32]", "int32"):
        assert type_of(f"%x {sign} %y", f"%x: {ty}, %y: {ty}") == ty
    mod = module(f"def @main[s: Shape, b: BaseType](%x: Tensor[s, b], %y: Tensor[s, b]) {{ %x {sign} %y }}")
    assert str(mod["main"].func_type.ret_type) == "Tensor[s, b]"
    assert "element types" in refuse_expr(f"%x {sign} %y", "%x: int32, %y: float32")
    sizes = "%x: Tensor[(2), int32], %y: Tensor[(3), int32]"
    assert "must broadcast, not (2,) and (3,)" in refuse_expr(f"%x {sign} %y", sizes)


@pytest.mark.parametrize("sign", ["==", "!=", ">", "<", ">=", "<="])
def test_type_comp_binaryop(sign: str) -> None:
    params = "%x: Tensor[(2, 3), float32], %y: Tensor[(2, 3), float32]"
    assert type_of(f"%x {sign} %y", params) == "Tensor[(2, 3), bool]"
    mod = module(f"def @main[s: Shape, b: BaseType](%x: Tensor[s, b], %y: Tensor[s, b]) {{ %x {sign} %y }}")
    assert str(mod["main"].func_type.ret_type) == "Tensor[s, bool]"
    assert "element types" in refuse_expr(f"%x {sign} %y", "%x: int32, %y: bool")


def test_type_function_definition() -> None:
    text = "def @f(%n: int32, %x: float32) -> float32 { if (%n == 0) { %x } else { @f(%n - 1, %x * 2f) } }"
    assert str(module(text)["f"].func_type) == "fn (int32, float32) -> float32"
    # The function itself is in scope with its declared type.
    assert refuse(text.replace("%n - 1, ", "")) == "@f must have 2 arguments, not 1"
    assert refuse(text.replace("-> float32", "-> int32")) == "branches of if must have one type, not float32 and int32"
    wrong = refuse("def @f(%n: int32) -> bool { %n }")
    assert wrong == "result of @f must be bool, not int32"
    local = "let %f = fn (%n: int32) -> int32 { if (%n == 0) { 0 } else { %f(%n - 1) } }; %f"
    assert type_of(local) == "fn (int32) -> int32"


def test_type_call() -> None:
    params = "%f: fn (int32, float32) -> bool, %x: float32"
    assert type_of("%f(1, %x)", params) == "bool"
    assert refuse_expr("%f(%x, 1)", params) == "argument 1 of %f must be int32, not float32"
    assert refuse_expr("%f(1)", params) == "%f must have 2 arguments, not 1"
    assert refuse_expr("%x(1)", params) == "%x must be a function to be called, not float32"


def test_type_if() -> None:
    assert type_of("if (%c) { 1 } else { 2 }", "%c: bool") == "int32"
    assert refuse_expr("if (%c) { 1 } else { 2 }", "%c: int32") == "condition of if must be bool, not int32"
    assert "condition of if must be bool" in refuse_expr("if (%c) { 1 } else { 2 }", "%c: Tensor[(1), bool]")
    two = refuse_expr("if (%c) { 1 } else { 2f }", "%c: bool")
    assert two == "branches of if must have one type, not int32 and float32"


def test_type_zero() -> None:
    assert type_of('zeros(shape=[2, 3], dtype="int8")') == "Tensor[(2, 3), int8]"
    mod = module("def @main[s: Shape, b: BaseType](%x: Tensor[s, b]) { zeros_like(%x) }")
    assert str(mod["main"].func_type.ret_type) == "Tensor[s, b]"
    assert "'int7' not understood" in refuse_expr('zeros(shape=[2], dtype="int7")')
    assert "the sizes of zeros must be at least 0, not (-2,)" in refuse_expr('zeros(shape=[-2], dtype="int8")')


def test_type_gradient() -> None:
    mod = module("def @main(%x: Tensor[(2, 3), float32], %y: float32) { sum(%x * %y) }")
    grad = gradient(mod["main"], mod)
    typed = infer_type(mod.with_functions({"main": grad}))
    assert str(typed["main"].func_type) == (
        "fn (Tensor[(2, 3), float32], float32) -> (float32, (Tensor[(2, 3), float32], float32))"
    )


def test_type_ref() -> None:
    assert type_of("ref(%x)", "%x: Tensor[(2), int8]") == "ref(Tensor[(2), int8])"
    assert type_of("ref(fn (%x: int8) { %x })") == "ref(fn (int8) -> int8)"


def test_type_val_ref() -> None:
    assert type_of("ref_read(%r)", "%r: ref((int8, bool))") == "(int8, bool)"
    assert "argument of ref_read must be ref(" in refuse_expr("ref_read(%x)", "%x: int8")


def test_type_set_ref() -> None:
    assert type_of("ref_write(%r, 1)", "%r: ref(int32)") == "()"
    assert refuse_expr("ref_write(%r, 1f)", "%r: ref(int32)") == "argument 2 of ref_write must be int32, not float32"
    assert "argument 1 of ref_write must be ref(int32)" in refuse_expr("ref_write(%x, 1)", "%x: int32")


def test_the_rules_assume_that_type_variables_are_solved_first() -> None:
    identity = "def @id[A](%x: A) -> A { %x }\n"
    mod = module(identity + "def @main(%x: int8) { (@id(%x), @id((True, @id(1f)))) }")
    assert str(mod["main"].func_type.ret_type) == "(int8, (bool, float32))"
    open_var = relay.TypeVar("A", Kind.TYPE)
    with pytest.raises(RelayHwError, match="type parameter A must be declared by a function around it"):
        infer_expr(relay.Function([relay.var("x", open_var)], relay.const(1)))
    assert isinstance(parse_expr("1"), relay.Constant)
