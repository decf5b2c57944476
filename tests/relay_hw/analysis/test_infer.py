"""Type inference, rule by rule. Programs are written in the text format where that reads better."""

# Tables hold one-line programs.
# ruff: noqa: E501

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

import relay_hw as relay
from relay_hw.analysis import infer_expr, infer_type
from relay_hw.errors import TypeCheckError, WellFormedError
from relay_hw.ir.expr import Op, Solver
from relay_hw.ir.types import TensorType, Type
from relay_hw.ir.visit import post_order

LIST = "type List[A] { Cons(A, List[A]), Nil }\n"
I32 = relay.scalar_type("int32")
F3 = relay.TensorType((3,))


def program(body: str) -> relay.IRModule:
    return relay.fromtext(f'#[version = "0.0.5"]\n{body}', "p.relay")


def result(body: str, name: str = "main") -> str:
    return str(program(body)[name].func_type.ret_type)


# Each rule: (name, definitions, type of @main's result)
RULES = [
    ("int literal", "def @main() { 1 }", "int32"),
    ("long literal", "def @main() { 3000000000 }", "int64"),
    ("short literal", "def @main() { 1i16 }", "int16"),
    ("float literal", "def @main() { 1f }", "float32"),
    ("double literal", "def @main() { 1.5f64 }", "float64"),
    ("half literal", "def @main() { 1f16 }", "float16"),
    ("bool literal", "def @main() { True }", "bool"),
    ("unit", "def @main() { () }", "()"),
    ("tuple", "def @main() { (1, 2f, ()) }", "(int32, float32, ())"),
    ("projection", "def @main() { (1, 2f).1 }", "float32"),
    ("variable", "def @main(%x: Tensor[(2, 3), int8]) { %x }", "Tensor[(2, 3), int8]"),
    ("operator", "def @main(%x: Tensor[(2, 1), int8], %y: Tensor[(3), int8]) { %x + %y }", "Tensor[(2, 3), int8]"),
    ("comparison", "def @main(%x: Tensor[(2), int8]) { %x < %x }", "Tensor[(2), bool]"),
    ("let", "def @main() { let %x = 1; let %y = (%x, %x); %y }", "(int32, int32)"),
    ("annotated let", "def @main() { let %x: int32 = 1; %x }", "int32"),
    ("shadowing", "def @main() { let %x = 1; let %x1 = 2f; let %x = %x1; %x }", "float32"),
    ("sequence", "def @main() { 1; 2f }", "float32"),
    ("if", "def @main(%c: bool) { if (%c) { 1 } else { 2 } }", "int32"),
    ("function", "def @main() { fn (%x: int32) { (%x,) } }", "fn (int32) -> (int32,)"),
    ("call", "def @main() { (fn (%x) { %x })(1f) }", "float32"),
    ("curried call", "def @main() { (fn (%x) { fn (%y) { (%x, %y) } })(1f)(2) }", "(float32, int32)"),
    ("higher order", "def @main() { let %f = fn (%g, %x) { %g(%g(%x)) }; %f(fn (%x) { %x + 1 }, 2) }", "int32"),
    ("unknown callee", "def @main(%f: fn (int32) -> bool) { (fn (%g) { %g(1) })(%f) }", "bool"),
    ("local recursion", "def @main() { let %f = fn (%n: int32) { if (%n < 1) { 0 } else { %f(%n - 1) } }; %f(3) }", "int32"),
    ("global", "def @f(%x: int32) { (%x, %x) }\ndef @main() { @f(1) }", "(int32, int32)"),
    ("global defined later", "def @main() { @f(1) }\ndef @f(%x: int32) { (%x, %x) }", "(int32, int32)"),
    ("recursion", "def @main(%n: int32) { if (%n < 1) { %n } else { @main(%n - 1) } }", "int32"),
    (
        "mutual recursion",
        "def @even(%n: int32) { if (%n < 1) { True } else { @odd(%n - 1) } }\n"
        "def @odd(%n: int32) { if (%n < 1) { False } else { @even(%n - 1) } }\ndef @main() { @even(4) }",
        "bool",
    ),
    ("polymorphic global", "def @id[A](%x: A) -> A { %x }\ndef @main() { (@id(1), @id(True)) }", "(int32, bool)"),
    ("polymorphic, no result given", "def @id[A](%x: A) { %x }\ndef @main() { (@id(1), @id(2f)) }", "(int32, float32)"),
    ("polymorphic let", "def @main() { let %id = fn [A](%x: A) { %x }; (%id(1), %id(2f)) }", "(int32, float32)"),
    (
        "polymorphic argument",
        "def @id[A](%x: A) -> A { %x }\ndef @twice(%f: fn (int32) -> int32) { %f(%f(1)) }\ndef @main() { @twice(@id) }",
        "int32",
    ),
    (
        "two type parameters",
        "def @compose[A, B, C](%f: fn (B) -> C, %g: fn (A) -> B) { fn (%x: A) { %f(%g(%x)) } }\n"
        "def @main() { @compose(fn (%x: int32) { (%x, %x) }, fn (%y: bool) { 3 }) }",
        "fn (bool) -> (int32, int32)",
    ),
    ("ref", "def @main() { ref(1) }", "ref(int32)"),
    ("ref_read", "def @main() { ref_read(ref(1f)) }", "float32"),
    ("ref_write", "def @main() { let %r = ref(1); ref_write(%r, 2) }", "()"),
    ("constructor", LIST + "def @main() { Cons(1, Nil) }", "List[int32]"),
    ("constructor as function", LIST + "def @main() { let %c = Cons; %c(1f, Nil) }", "List[float32]"),
    ("type without parameters", "type Nat { S(Nat), Z }\ndef @main() { S(S(Z)) }", "Nat"),
    ("match", LIST + "def @main(%l: List[int32]) { match (%l) { Cons(%x, _) => %x, Nil => 0 } }", "int32"),
    ("match on a tuple", "def @main(%t: (int32, bool)) { match (%t) { (%a, %b) => %b } }", "bool"),
    ("partial match", LIST + "def @main(%l: List[bool]) { match? (%l) { Cons(%x, _) => %x } }", "bool"),
    ("match infers its data", LIST + "def @f(%l) { match (%l) { Cons(%x, _) => %x, Nil => 1f } }\ndef @main() { 0 }", "int32"),
    (
        "map",
        LIST + "def @map[A, B](%f: fn (A) -> B, %l: List[A]) -> List[B] "
        "{ match (%l) { Cons(%h, %t) => Cons(%f(%h), @map(%f, %t)), Nil => Nil } }\n"
        "def @main(%l: List[int32]) { @map(fn (%x) { %x < 1 }, %l) }",
        "List[bool]",
    ),
    ("Any in a branch", "def @main(%a: Tensor[(3), float32], %b: Tensor[(?), float32]) { if (True) { %a } else { %b } }", "Tensor[(?), float32]"),
    ("Any as argument", "def @f(%x: Tensor[(?), float32]) { %x }\ndef @main(%a: Tensor[(3), float32]) { @f(%a) }", "Tensor[(?), float32]"),
    ("Any broadcast", "def @main(%a: Tensor[(3), float32], %b: Tensor[(?), float32]) { %a + %b }", "Tensor[(3), float32]"),
    ("hole", "def @main() { let %x: _ = 1; %x }", "int32"),
    ("hole in a type", "def @main() { let %x: (_, bool) = (1f, True); %x.0 }", "float32"),
    ("weight from its use", "def @main(%x: Tensor[(1, 4), float32], %w) { nn.dense(%x, %w, units=3) }", "Tensor[(1, 3), float32]"),
    ("symbolic dimension", "def @f(%x: Tensor[(n, 4), float32]) { %x }\ndef @main(%a: Tensor[(7, 4), float32]) { @f(%a) }", "Tensor[(7, 4), float32]"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "ty"), [rule[1:] for rule in RULES], ids=[rule[0] for rule in RULES])
def test_rule(body: str, ty: str) -> None:
    assert result(body) == ty


def test_parameter_and_result_annotations_are_filled() -> None:
    mod = program("def @main(%x: Tensor[(1, 4), float32], %w) { nn.dense(%x, %w, units=3) }")
    main = mod["main"]
    assert str(main.params[1].type_annotation) == "Tensor[(3, 4), float32]"
    assert str(main.ret_type) == "Tensor[(1, 3), float32]"


def test_calls_record_their_type_arguments() -> None:
    mod = program("def @id[A](%x: A) -> A { %x }\ndef @main() { @id(True) }")
    call = mod["main"].body
    assert isinstance(call, relay.Call) and call.type_args == (relay.scalar_type("bool"),)


def test_given_type_arguments_hold() -> None:
    a = relay.TypeVar("A")
    x = relay.Var("x", a)
    identity = relay.Function([x], x, a, [a])
    mod = relay.IRModule({"id": identity})
    good = relay.Call(relay.GlobalVar("id"), [relay.const(1)], type_args=[I32])
    assert infer_expr(good, mod).type == I32
    bad = relay.Call(relay.GlobalVar("id"), [relay.const(1.0)], type_args=[I32])
    with pytest.raises(TypeCheckError, match="argument 1 of @id must be int32, not float32"):
        infer_expr(bad, mod)
    with pytest.raises(TypeCheckError, match="@id must have 1 type argument, not 2"):
        infer_expr(relay.Call(relay.GlobalVar("id"), [relay.const(1)], type_args=[I32, I32]), mod)


def test_every_node_is_typed_and_a_second_run_keeps_all_nodes() -> None:
    mod = program(LIST + "def @main(%l: List[int32], %c: bool) {\n  let %r = ref(1);\n"
                  "  let %f = fn (%x) { %x + ref_read(%r) };\n"
                  "  %0 = if (%c) { (%f(1), 2) } else { (3, 4) };\n  ref_write(%r, %0.1);\n"
                  "  match (%l) { Cons(%x, _) => %x, Nil => %0.0 }\n}")  # fmt: skip
    for node in post_order(mod["main"]):
        assert isinstance(node, Op) or node.checked_type is not None, node
    assert infer_type(mod) is mod


def test_sharing_is_kept() -> None:
    x = relay.var("x", shape=(3,))
    y = relay.negative(x)
    typed = infer_expr(relay.Tuple([y, y, relay.negative(x)]))
    assert isinstance(typed, relay.Tuple)
    assert typed.fields[0] is typed.fields[1] and typed.fields[0] is not typed.fields[2]
    assert typed.fields[0].args[0] is typed.fields[2].args[0]  # type: ignore[attr-defined]


def test_unchanged_functions_stay_the_same_objects() -> None:
    mod = program("def @f() { 1 }\ndef @main() { @f() }")
    x = relay.var("x", shape=(1,))
    new = infer_type(mod.with_functions({"g": relay.Function([x], x)}))
    assert new["f"] is mod["f"] and new["main"] is mod["main"] and new["g"].checked_type is not None


# Each error: (name, definitions, sentence with its place)
ERRORS = [
    ("argument", "def @f(%x: int32) { %x }\ndef @main() { @f(1f) }", "p.relay:3:18: argument 1 of @f must be int32, not float32"),
    ("argument count", "def @f(%x: int32) { %x }\ndef @main() { @f() }", "p.relay:3:15: @f must have 1 argument, not 0"),
    ("operator argument count", "def @main() { nn.relu(1, 2) }", "p.relay:2:15: nn.relu must have 1 argument, not 2"),
    ("condition", "def @main() { if (1) { 1 } else { 2 } }", "p.relay:2:19: condition of if must be bool, not int32"),
    ("branches", "def @main() { if (True) { 1 } else { 2f } }", "p.relay:2:15: branches of if must have one type, not int32 and float32"),
    ("arms", LIST + "def @main() { match (Cons(1, Nil)) { Cons(_, _) => 1, Nil => () } }", "p.relay:3:15: arms of match must have one type, not int32 and ()"),
    ("pattern", LIST + "def @main() { match (1) { Nil => 1, _ => 2 } }", "p.relay:3:15: type of pattern Nil must be int32, not List[_]"),
    ("pattern parts", LIST + "def @main(%l: List[int32]) { match (%l) { Cons(%x) => 1, _ => 2 } }", "p.relay:3:30: pattern Cons must have 2 parts, not 1"),
    ("missing arm", LIST + "def @main(%l: List[int32]) { match (%l) { Cons(%x, Nil) => 1 } }", "p.relay:3:30: match must have an arm for Cons(_, Cons(_, _)), Nil, or be written match?"),
    ("callee", "def @main() { 1(2) }", "p.relay:2:15: constant must be a function to be called, not int32"),
    ("projection", "def @main() { (1, 2).2 }", "p.relay:2:15: index of a tuple of 2 fields must be in [0, 2), not 2"),
    ("projection of a number", "def @main() { let %x = 1; %x.0 }", "p.relay:2:27: value before .0 must be a tuple, not int32"),
    ("let", "def @main() { let %x: bool = 1; %x }", "p.relay:2:30: value of %x must be bool, not int32"),
    ("result", "def @main() -> bool { 1 }", "p.relay:2:23: result of @main must be bool, not int32"),
    ("reference", "def @main() { let %r = ref(1); ref_write(%r, 2f) }", "p.relay:2:46: argument 2 of ref_write must be int32, not float32"),
    ("no reference", "def @main() { ref_read(1) }", "p.relay:2:24: argument of ref_read must be ref(_), not int32"),
    ("parameter left open", "def @main(%x) { %x }", "p.relay:2:11: type of %x must be annotated: the program leaves it open (_)"),
    ("result left open", LIST + "def @main() { Nil }", "p.relay:3:15: type of the result of Nil must be annotated: the program leaves it open (List[_])"),
    ("infinite type", "def @main() { fn (%x) { %x(%x) } }", "p.relay:2:25: type of %x must be _, not fn (_) -> _"),
    ("unbound in its own value", "def @main() { let %a = %a + 1; %a }", "p.relay:2:19: %a in @main must be used only where it is bound"),
    ("type arguments", LIST + "def @main(%l: List) { 1 }", "p.relay:3:11: type List must have 1 type argument, not 0"),
    ("operator as value", "def @main() { (add, 1) }", "p.relay:2:16: operator add must be called, not used as a value: wrap it in a function"),
    ("broadcast", "def @main(%x: Tensor[(2), int8], %y: Tensor[(3), int8]) { %x + %y }", "p.relay:2:59: the shapes of add's arguments must broadcast, not (2,) and (3,)"),
    ("weight", "def @main(%x: Tensor[(1, 3), float32], %w: Tensor[(10, 4), float32]) { nn.dense(%x, %w, units=None) }", "p.relay:2:72: the weight of nn.dense must be Tensor[(10, 3), float32], not Tensor[(10, 4), float32]"),
    ("dtype", "def @main(%x: int32, %y: int8) { %x + %y }", "p.relay:2:34: the element types of add's arguments must be equal, not int32 and int8"),
    ("rigid type parameter", "def @f[A](%x: A) -> A { 1 }\ndef @main() { 0 }", "p.relay:2:25: result of @f must be A, not int32"),
    ("rigid dimension", "def @main(%x: Tensor[(n), int8]) -> Tensor[(3), int8] { %x }", "p.relay:2:1: result of @main must be Tensor[(3), int8], not Tensor[(n), int8]"),
    ("two sizes for one symbol", "def @f(%x: Tensor[(n), int8], %y: Tensor[(n), int8]) { 0 }\ndef @main(%a: Tensor[(1), int8], %b: Tensor[(2), int8]) { @f(%a, %b) }", "p.relay:3:59: argument 2 of @f must be Tensor[(1), int8], not Tensor[(2), int8]"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "sentence"), [case[1:] for case in ERRORS], ids=[case[0] for case in ERRORS])
def test_error(body: str, sentence: str) -> None:
    with pytest.raises((TypeCheckError, WellFormedError)) as caught:
        program(body)
    assert str(caught.value) == sentence
    assert "\n" not in str(caught.value)


def test_unknown_global_and_constructor() -> None:
    with pytest.raises(WellFormedError, match=r"@g in @main must be a function of the module \(@main\)"):
        infer_type(relay.IRModule({"main": relay.Function([], relay.Call(relay.GlobalVar("g"), []))}))
    stray = relay.Constructor("Stray", [], relay.GlobalTypeVar("T"))
    with pytest.raises(WellFormedError, match="constructor Stray must be defined in the module"):
        infer_expr(relay.Call(stray, []))


def test_free_variables_of_an_expression_need_annotations() -> None:
    assert infer_expr(relay.var("x", shape=(3,))).type == F3
    with pytest.raises(WellFormedError, match="%x must be bound before it is used"):
        infer_expr(relay.var("x"))
    with pytest.raises(WellFormedError, match="%x in @main must be bound before it is used"):
        infer_type(relay.IRModule({"main": relay.Function([], relay.var("x", shape=(3,)))}))


def test_kinds() -> None:
    a, header = relay.TypeVar("A"), relay.GlobalTypeVar("T")
    with pytest.raises(TypeCheckError, match="type parameter A must be declared by a function around it"):
        infer_expr(relay.Var("x", a))
    shape = relay.TypeVar("S", relay.Kind.SHAPE)
    x = relay.Var("x", shape)
    with pytest.raises(TypeCheckError, match="type parameter S must have kind Type here, not Shape"):
        infer_expr(relay.Function([x], x, None, [shape]))
    with pytest.raises(TypeCheckError, match=r"type T must be defined in the module \(defined: none\)"):
        infer_expr(relay.Var("x", header))
    wrong = relay.TypeData(header, (), (relay.Constructor("C", [], relay.GlobalTypeVar("U")),))
    with pytest.raises(TypeCheckError, match="constructor C of T must belong to T, not U"):
        infer_type(relay.IRModule({}, {"T": wrong}))
    loose = relay.TypeData(header, (), (relay.Constructor("C", [a], header),))
    with pytest.raises(TypeCheckError, match="type parameter A must be declared"):
        infer_type(relay.IRModule({}, {"T": loose}))


def test_constants_hold_numbers() -> None:
    with pytest.raises(TypeCheckError, match="constant must hold numbers or booleans, not <U1"):
        infer_expr(relay.Constant("a"))  # type: ignore[arg-type]


def test_types_that_grow_without_end_are_refused() -> None:
    nested, doubled = relay.Tuple([]), relay.Tuple([])
    for _ in range(300):
        nested = relay.Tuple([nested])
    with pytest.raises(TypeCheckError, match="type must be nested at most 200 deep, not 201"):
        infer_expr(nested)
    for _ in range(64):
        doubled = relay.Tuple([doubled, doubled])
    with pytest.raises(TypeCheckError, match="type must have at most 100000 parts, not 131071"):
        infer_expr(doubled)
    value: relay.Expr = relay.Var("x")
    body = value
    for _ in range(5000):
        body = relay.RefRead(body)
    with pytest.raises(TypeCheckError, match="nested"):
        infer_expr(relay.Function([value], body))


# Relations that ask for more than their arguments tell at first.


def follow(types: Sequence[Type], attrs: Any, solver: Solver) -> Type | None:
    """Both arguments have one type; waits for the first to be known."""
    if not isinstance(types[0], TensorType):
        return None
    solver.unify(types[0], types[1])
    return types[0]


def test_a_relation_is_tried_again_when_its_arguments_are_known() -> None:
    op = Op("test.follow", 2, follow, lambda attrs, values, ty: values[0])
    x, y, z = relay.var("x"), relay.var("y"), relay.var("z")
    # y waits for x, z for y; x is known last of all.
    body = relay.Tuple([relay.Call(op, [y, z]), relay.Call(op, [x, y]), relay.Call(op, [relay.const(1), x])])
    func = infer_expr(relay.Function([x, y, z], body))
    assert str(func.type) == "fn (int32, int32, int32) -> (int32, int32, int32)"


def test_a_projection_waits_for_its_tuple() -> None:
    t = relay.var("t")
    func = relay.Function([t], relay.TupleGetItem(t, 1))
    call = relay.Call(func, [relay.Tuple([relay.const(1), relay.const(True)])])
    assert infer_expr(call).type == relay.scalar_type("bool")


def test_a_relation_names_the_argument_that_does_not_fit() -> None:
    op = Op("test.follow", 2, follow, lambda attrs, values, ty: values[0])
    with pytest.raises(TypeCheckError, match=r"^argument 2 of test.follow must be int32, not bool$"):
        infer_expr(relay.Call(op, [relay.const(1), relay.const(True)]))


def test_a_relation_that_never_learns_enough() -> None:
    op = Op("test.shy", 1, lambda types, attrs, solver: None, lambda attrs, values, ty: values[0])
    with pytest.raises(
        TypeCheckError, match=r"arguments of test.shy must have types that fix its result, not \(int32\)"
    ):
        infer_expr(relay.Call(op, [relay.const(1)]))


def test_what_a_relation_does_not_foresee_becomes_a_sentence() -> None:
    op = Op("test.bad", 1, lambda types, attrs, solver: attrs.missing, lambda attrs, values, ty: values[0])
    with pytest.raises(TypeCheckError, match=r"arguments and attributes of test.bad must fit together, not \(int32\)"):
        infer_expr(relay.Call(op, [relay.const(1)]))


def test_attributes_must_be_the_operators_own() -> None:
    with pytest.raises(TypeCheckError, match="attributes of add must be absent, not 3"):
        infer_expr(relay.Call(relay.op.get("add"), [relay.const(1)] * 2, 3))
    with pytest.raises(TypeCheckError, match=r"attributes of nn.softmax must be SoftmaxAttrs, not None"):
        infer_expr(relay.Call(relay.op.get("nn.softmax"), [relay.const(1.0)]))


def test_inference_is_deterministic() -> None:
    text = program(LIST + "def @main(%l: List[int32]) { match (%l) { Cons(%x, _) => (%x, fn (%y: int32) { %y + %x }), Nil"
                   " => (0, fn (%z) { %z }) } }").astext(show_types=True)  # fmt: skip
    again = relay.fromtext(text).astext(show_types=True)
    assert text == again


def test_no_depth_limit() -> None:
    x = relay.var("x", shape=(3,))
    chain: relay.Expr = x
    for _ in range(20_000):
        chain = relay.add(chain, x)
    assert infer_expr(chain).type == F3
    names = [relay.var(f"v{index}") for index in range(20_000)]
    body: relay.Expr = names[-1]
    for index in reversed(range(20_000)):
        body = relay.Let(names[index], relay.negative(names[index - 1] if index else x), body)
    assert infer_type(relay.IRModule.from_expr(relay.Function([x], body)))["main"].func_type.ret_type == F3
    nest: relay.Expr = x
    for _ in range(5_000):
        nest = relay.If(relay.const(True), nest, x)
    assert infer_expr(nest).type == F3
