"""Reading the text format: every rule of the grammar, and every sentence that a wrong text gets."""

# Tables hold one-line programs.
# ruff: noqa: E501

from __future__ import annotations

import base64
import json
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import relay_hw as relay
from relay_hw.analysis import structural_equal
from relay_hw.errors import ParseError, RelayHwError, TypeCheckError, WellFormedError
from relay_hw.ir.expr import Call
from relay_hw.ir.visit import post_order
from relay_hw.text import parse, parse_expr, parse_tolerant, print_expr, print_module
from relay_hw.text.metadata import encode_array

HEADER = '#[version = "0.0.5"]\n'
LIST = "type List[A] { Cons(A, List[A]), Nil }\n"


def same(left: str, right: str) -> None:
    assert structural_equal(parse_expr(left), parse_expr(right)), print_expr(parse_expr(left))


# Texts that mean the same.
SAME = [
    ("1 + 2 * 3", "add(1, multiply(2, 3))"),
    ("1 - 2 - 3", "subtract(subtract(1, 2), 3)"),
    ("8 / 4 / 2", "divide(divide(8, 4), 2)"),
    ("1 < 2 == 3 >= 4", "equal(less(1, 2), greater_equal(3, 4))"),
    ("1 <= 2 != True", "not_equal(less_equal(1, 2), True)"),
    ("(1 + 2) * 3", "multiply(add(1, 2), 3)"),
    ("--10", "10"),
    ("---10", "-10"),
    ("1f", "1.0f"),
    ("1f", "10e-1f32"),
    ("3i32", "3"),
    ("3000000000", "3000000000i64"),
    ("%0 = 1; %1 = (%0, %0); %1", "%7 = 1; (%7, %7)"),
    ("1; 2", "let %_ = 1; 2"),
    ("{ 1; { 2 } }", "let %a = 1; 2"),
    ("let %x = (1; 2); %x", "let %x = (let %_ = 1; 2); %x"),
    ("(1,)", "( 1 , )"),
    ("(1, 2,)", "(1, 2)"),
    ("((1, 2)).1", "(1, 2).1"),
    ("fn (%x: int) { %x }", "fn (%y: int32) { %y }"),
    ("fn (%x: Tensor[(2,), float]) { %x }", "fn (%x: Tensor[(2), float32]) { %x }"),
    ("fn (%x: Tensor[(), int8]) { %x }", "fn (%x: int8) { %x }"),
    ("fn (%x: (int32)) { %x }", "fn (%x: (int32,)) { %x }"),
    ("fn (%x, Primitive=1, Compiler=\"ccompiler\") { %x }", "fn (%y, Compiler=\"ccompiler\", Primitive=1,) { %y }"),
    ("fn (%x {virtual_device=meta[VirtualDevice][0]}: int32) { %x }", "fn (%x: int32) { %x }"),
    ("fn () { 1 }()", "(fn () { 1 })()"),
    ("// one\n1 /* two /* nested */ still */ + 2 // three", "1 + 2"),
    ("nn.softmax(1f, axis=-1)", "nn.softmax(1f)"),
    ("nn.conv2d(1f, 2f, strides=[2, 2], out_dtype=None)", "nn.conv2d(1f, 2f, strides=(2, 2))"),
    ("let %f = fn (%x) { %x }; let %x = 1; %f(%x)", "let %g = fn (%y) { %y }; let %z = 1; %g(%z)"),
    ("if (True) { let %x = 1; %x } else { 2 }", "if (True) { let %y = 1; %y } else { 2 }"),
    ("ref_write(ref(1), 2)", "ref_write(ref(1), 2)"),
    ("match (1) { %x => %x }", "match (1) { %y => %y, }"),
    ("1 - 2", "subtract(1,2)"),
    ("(1)+(2)", "1 + 2"),
    ("\t1\r\n+\n2 ", "1 + 2"),
]  # fmt: skip


@pytest.mark.parametrize(("left", "right"), SAME)
def test_same(left: str, right: str) -> None:
    same(left, right)


def test_a_match_needs_no_parentheses_around_its_data() -> None:
    same("let %d = 1; match %d { %x => %x }", "let %d = 1; match (%d) { %x => %x }")
    expr = parse_expr("match? (1) { _ => 2 }")
    assert isinstance(expr, relay.Match) and not expr.complete


def test_literals() -> None:
    for text, dtype, value in (
        ("1", "int32", 1),
        ("1i16", "int16", 1),
        ("2147483648", "int64", 2**31),
        ("-2147483648", "int32", -(2**31)),
        ("2.5f", "float32", 2.5),
        ("2.5f64", "float64", 2.5),
        ("1e3f16", "float16", 1000),
        ("-inff", "float32", float("-inf")),
        ("True", "bool", True),
    ):
        found = parse_expr(text)
        assert isinstance(found, relay.Constant) and str(found.data.dtype) == dtype and found.data == value


def test_constructors() -> None:
    mod = parse(f"{HEADER}{LIST}def @main() {{ (Cons(1, Nil), Cons(2, Nil())) }}")
    body = mod["main"].body
    assert isinstance(body, relay.Tuple)
    assert [str(field.checked_type) for field in body.fields] == ["List[int32]"] * 2
    assert mod.types["List"].constructors[1].tag == 1


def test_places() -> None:
    mod = parse(f"{HEADER}def @main(%x: int32) {{\n  let %y = %x + 1;\n  %y\n}}", "file.relay")
    let = mod["main"].body
    assert isinstance(let, relay.Let)
    assert str(let.span) == "file.relay:3:3" and str(let.value.span) == "file.relay:3:12"
    assert let.value.span is not None and (let.value.span.end_line, let.value.span.end_column) == (3, 18)


def test_graph_variables_are_numbered_anew_in_each_function() -> None:
    mod = parse(f"{HEADER}def @f() {{ %0 = 1; %0 }}\ndef @main() {{ %0 = 2f; %0 }}")
    assert str(mod["f"].ret_type) == "int32" and str(mod["main"].ret_type) == "float32"


def test_names_that_tvm_prints_but_cannot_read() -> None:
    mod = parse(
        f"{HEADER}def @main(%onnx::Conv_1: int32, %model.0.weight: int32) {{ (%onnx::Conv_1, %model.0.weight) }}"
    )
    assert [param.name_hint for param in mod["main"].params] == ["onnx::Conv_1", "model.0.weight"]
    projection = parse_expr("let %x.y = (1, 2); %x.y.1")
    assert isinstance(projection, relay.Let) and isinstance(projection.body, relay.TupleGetItem)


def test_a_dump_of_tvm() -> None:
    """As TVM 0.18 prints a small network, with types in comments."""
    text = """#[version = "0.0.5"]
def @main(%data: Tensor[(1, 3, 8, 8), float32] /* ty=Tensor[(1, 3, 8, 8), float32] span=from_string:2:11 */, %w: Tensor[(4, 3, 3, 3), float32] /* ty=Tensor[(4, 3, 3, 3), float32] */) -> Tensor[(1, 4), float32] {
  %0 = nn.conv2d(%data, %w, padding=[1, 1, 1, 1], channels=4, kernel_size=[3, 3]) /* ty=Tensor[(1, 4, 8, 8), float32] span=from_string:3:8 */;
  %1 = nn.bias_add(%0, meta[relay.Constant][0] /* ty=Tensor[(4), float32] */) /* ty=Tensor[(1, 4, 8, 8), float32] */;
  %2 = nn.batch_norm(%1, meta[relay.Constant][0], meta[relay.Constant][0], meta[relay.Constant][0], meta[relay.Constant][0], epsilon=1e-05f);
  %3 = %2.0 /* ty=Tensor[(1, 4, 8, 8), float32] */;
  %4 = fn (%p0: Tensor[(1, 4, 8, 8), float32], Primitive=1) -> Tensor[(1, 4, 8, 8), float32] {
    nn.relu(%p0)
  };
  %5 = %4(%3);
  %6 = nn.global_avg_pool2d(%5);
  nn.batch_flatten(%6)
}

#[metadata]
{
  "root": 1,
  "nodes": [
    {"type_key": ""},
    {"type_key": "Map", "keys": ["relay.Constant"], "data": [2]},
    {"type_key": "Array", "data": [3]},
    {"type_key": "relay.Constant", "attrs": {"_checked_type_": "0", "data": "0", "span": "0", "virtual_device_": "0"}}
  ],
  "b64ndarrays": [
    "P6G0lvBAXt0AAAAAAAAAAAEAAAAAAAAAAQAAAAIgAQAEAAAAAAAAABAAAAAAAAAAAACAPwAAAEAAAEBAAACAQA=="
  ],
  "attrs": {"tvm_version": "0.18.0"}
}
"""
    mod = parse(text)
    assert str(mod["main"].ret_type) == "Tensor[(1, 4), float32]"
    constant = next(node for node in relay.ir.visit.post_order(mod["main"]) if isinstance(node, relay.Constant))
    assert constant.data.tolist() == [1, 2, 3, 4]
    assert structural_equal(parse(print_module(mod)), mod)


def test_encoding_of_constants_is_tvms() -> None:
    blob = "P6G0lvBAXt0AAAAAAAAAAAEAAAAAAAAAAQAAAAIgAQAEAAAAAAAAABAAAAAAAAAAAACAPwAAAEAAAEBAAACAQA=="
    assert encode_array(np.array([1, 2, 3, 4], "float32")) == blob


def test_other_operators_may_be_given() -> None:
    op = relay.Op("my.double", 1, lambda types, attrs, solver: types[0], lambda attrs, values, ty: values[0] * 2)
    mod = parse(HEADER + "def @main() { my.double(21) }", find_op=lambda name: op if name == op.name else None)
    assert relay.interp.evaluate(mod) == 42


# Each error: (text, its sentence with place)
ERRORS = [
    ("", 'p:1:1: module must begin with #[version = "0.0.5"]'),
    ("def @main() { 1 }", 'p:1:1: module must begin with #[version = "0.0.5"]'),
    ('#[version = "0.0.4"]', "p:1:1: version of the text format must be 0.0.5, not 0.0.4"),
    ("#[hello]", 'p:1:1: line must be #[version = "0.0.5"] or #[metadata], not #[hello]'),
    (HEADER + "def main() { 1 }", "p:2:5: definition must have @name here, not main"),
    (HEADER + "def @main() { 1 } def @main() { 1 }", "p:2:23: @main must be defined once"),
    (HEADER + "def @main() { }", "p:2:15: text must have an expression here, not }"),
    (HEADER + "def @main() { 1", "p:2:16: function must have } here, not end of text"),
    (HEADER + "def @main() { 1; }", "p:2:18: text must have an expression here, not }"),
    (HEADER + "def @main() { %x }", "p:2:15: %x must be bound before it is used"),
    (HEADER + "def @main(%data: int32) { %dta }", "p:2:27: %dta must be bound before it is used; did you mean %data?"),
    (HEADER + "def @main(%x: int32, %x: int32) { 1 }", "p:2:22: parameter %x must be declared once"),
    (HEADER + "def @main() { (let %x = 1; %x) + %x }", "p:2:34: %x must be bound before it is used"),
    (HEADER + "def @main() { @f() }", "p:2:15: @f must be defined"),
    (HEADER + "def @main() { %0 }", "p:2:15: %0 must be defined before it is used"),
    (HEADER + "def @main() { %0 = 1; %0 = 2; %0 }", "p:2:23: %0 must be defined once"),
    (HEADER + "def @main() { nn.foo(1) }", "p:2:15: nn.foo must be an operator or a constructor"),
    (
        HEADER + "def @main() { nn.conv2(1) }",
        "p:2:15: nn.conv2 must be an operator or a constructor; did you mean nn.conv2d?",
    ),
    (
        HEADER + "def @main(%x: int32) { -%x }",
        "p:2:24: text must have an expression here, not -; there is no sign before it: write negative(...)",
    ),
    (HEADER + "def @main() { let %x 1; %x }", "p:2:22: let must have = here, not 1"),
    (HEADER + "def @main() { let x = 1; x }", "p:2:19: let must have %name here, not x"),
    (HEADER + "def @main() { let %x = { 1 }; %x }", "p:2:24: text must have an expression here, not {"),
    (HEADER + "def @main() { let %x = match (1) { _ => 1 }; %x }", "p:2:24: text must have an expression here, not match"),
    (HEADER + "def @main() { let %x = 1 }", "p:2:26: let must have ; here, not }"),
    (HEADER + "def @main() { if (True) { 1 } }", "p:2:31: if must have else here, not }"),
    (HEADER + "def @main() { match (1) { Foo => 1 } }", "p:2:27: pattern Foo must be a constructor"),
    (HEADER + "def @main() { match (1) { 1 => 1 } }", "p:2:27: arm of match must have a pattern here, not 1"),
    (HEADER + "def @main() { match (1) { _ -> 1 } }", "p:2:29: arm of match must have => here, not ->"),
    (HEADER + "def @main() { add(1 2) }", "p:2:21: call must have , or ) here, not 2"),
    (HEADER + "def @main() { 1+2 }", "p:2:15: number must be like 1, 1i64, 1f or 1f64, not 1+2: write spaces around + and -"),
    (HEADER + "def @main() { 1.0 }", "p:2:15: number must be like 1, 1i64, 1f or 1f64, not 1.0: a float ends in f"),
    (HEADER + "def @main() { 1i8 }", "p:2:15: number must be like 1, 1i64, 1f or 1f64, not 1i8"),
    (HEADER + "def @main() { 99999i16 }", "p:2:15: integer must fit int16, not 99999i16"),
    (HEADER + "def @main() { 99999999999999999999 }", "p:2:15: integer must fit int64, not 99999999999999999999"),
    (HEADER + "def @main() { " + "9" * 101 + " }", "p:2:15: number must have at most 100 digits, not 101"),
    (HEADER + "def @main() { 1e39f }", "p:2:15: number must fit float32, not 1e39f"),
    (HEADER + "def @main() { $ }", "p:2:15: character must begin a token, not '$'"),
    (HEADER + "def @main(\r) { 1 }", "p:2:11: carriage return must be followed by a line feed"),
    (HEADER + 'def @main(a="x) { 1 }', 'p:2:13: string must end with "'),
    (HEADER + "/* no end", "p:2:1: comment must end with */"),
    (HEADER + "def @main(%x: Tensor[(2), int32) { 1 }", "p:2:32: tensor type must have ] here, not )"),
    (HEADER + "def @main(%x: Tensor[(-1), int32]) { 1 }", "p:2:23: dimension must be an integer of at least 0 or ?, not -1"),
    (HEADER + "def @main(%x: Tensor[(1), int7]) { 1 }", "p:2:27: element type must be like int8, int32, float32 or bool, not int7"),
    (HEADER + "def @main(%x: int7x4) { 1 }", "p:2:15: element type must be like int8, int32, float32 or bool, not int7x4"),
    (HEADER + "def @main(%x: List[int32]) { 1 }", "p:2:15: type List must be defined"),
    (HEADER + "def @main(%x: 3) { 1 }", "p:2:15: text must have a type here, not 3"),
    (HEADER + "def @main[A, A]() { 1 }", "p:2:14: type parameter A must be declared once"),
    (HEADER + LIST + LIST, "p:3:6: type List must be defined once"),
    (HEADER + LIST + "type L2 { Nil }", "p:3:11: constructor Nil must be defined once"),
    (HEADER + "type 3", "p:2:6: definition of a type must have a name here, not 3"),
    (HEADER + "1 2", "p:2:3: module must have def, type or extern here, not 2"),
    (HEADER + "def @main() { nn.relu(1f, axis=1) }", "p:2:27: attribute axis must be left out: nn.relu has no attributes"),
    (HEADER + "def @main() { nn.softmax(1f, axs=1) }", "p:2:30: attribute of nn.softmax must be one of axis, not axs; did you mean axis?"),
    (HEADER + "def @main() { nn.dense(1f, 1f) }", "p:2:15: attribute units of nn.dense must be given"),
    (HEADER + 'def @main() { nn.softmax(1f, axis="x") }', 'p:2:30: attribute axis of nn.softmax must be an integer, not "x"'),
    (HEADER + "def @main() { nn.conv2d(1f, 1f, strides=[1, True, None]) }", "p:2:33: attribute strides of nn.conv2d must be a list of integers, not [1, True, None]"),
    (HEADER + "def @main() { nn.softmax(1f, axis=1, axis=2) }", "p:2:38: attribute axis must be given once"),
    (HEADER + "def @main() { nn.softmax(1f, axis=%x) }", "p:2:35: attribute must have a number, string, list, True, False or None here, not %x"),
    (HEADER + "def @main(%f: fn () -> int32) { %f(a=1) }", "p:2:36: attribute a must belong to a call of an operator"),
    (HEADER + "def @main() { meta[relay.Constant][0] }", "p:2:15: meta[relay.Constant][0] must be a value of the metadata section"),
    (HEADER + "def @main() { 1 }\n#[metadata]\n{", "p:3:1: metadata must be JSON as save_json writes it: Expecting property name enclosed in double quotes, line 2, column 2"),
    (HEADER + "def @main() { 1 }\n#[metadata]\n{}", "p:3:1: metadata must be JSON as save_json writes it: 'nodes'"),
    (HEADER + "def @main(%x: " + "(" * 101 + ")" * 101 + ") { 1 }", "p:2:115: types, patterns and attributes must be nested at most 100 deep"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "sentence"), ERRORS, ids=lambda value: None)
def test_error(text: str, sentence: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse(text, "p")
    assert str(caught.value) == sentence
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["1 2", "free_var %x; free_var %x; 1", "%x", "def @f() { 1 }"])
def test_error_in_a_bare_expression(text: str) -> None:
    with pytest.raises(ParseError, match=r"^p:1:"):
        parse_expr(text, "p")


def test_the_place_is_underlined() -> None:
    with pytest.raises(ParseError) as caught:
        parse(HEADER + "def @main(%data: int32) {\n\t%data + %dta * 2\n}", "p")
    assert caught.value.detail == " %data + %dta * 2\n         ^^^^"
    with pytest.raises(TypeCheckError) as wrong:
        parse(HEADER + "def @main() {\n  if (1) {\n    2 } else { 3 }\n}", "p")
    assert wrong.value.detail == "  if (1) {\n      ^"


BAD_METADATA: list[Any] = [
    "[]", "1", "null", "{}", '{"root": 1, "nodes": []}', '{"root": 0, "nodes": [{"type_key": "Array"}]}', "[" * 100_000,
    '{"root": 0, "nodes": [{"type_key": "Map", "keys": ["a"], "data": [7]}]}',
    '{"root": 0, "nodes": [{"type_key": "Map", "keys": ["a"], "data": []}]}',
    '{"root": 0, "nodes": [{"type_key": "Map", "keys": ["a"], "data": [1]}, {"data": [2]}, {"type_key": "relay.Constant", "attrs": {"data": "5"}}]}',
]  # fmt: skip


@pytest.mark.parametrize("section", BAD_METADATA)
def test_bad_metadata(section: str) -> None:
    with pytest.raises(ParseError, match=r"^p:1:3: (root of )?metadata must be"):
        parse_expr(f"1 #[metadata]\n{section}", "p")


def _blob_cases() -> list[str]:
    good = encode_array(np.arange(6, dtype="int32").reshape(2, 3))
    raw = bytearray(base64.b64decode(good))
    cases = [good[:-8], "", "AAAA", "!!!!"]
    for place in (0, 16, 20, 24, 25, 26, 28, 36, 44):
        bad = bytearray(raw)
        bad[place] ^= 0x7F
        cases.append(base64.b64encode(bytes(bad)).decode())
    return cases


@pytest.mark.parametrize("blob", _blob_cases())
def test_damaged_constants_end_with_a_sentence(blob: str) -> None:
    node = '{"type_key": "relay.Constant", "attrs": {"data": "0"}}'
    nodes = f'[{{"type_key": "Map", "keys": ["relay.Constant"], "data": [1]}}, {{"type_key": "Array", "data": [2]}}, {node}]'
    text = f'meta[relay.Constant][0] #[metadata]\n{{"root": 0, "nodes": {nodes}, "b64ndarrays": ["{blob}"]}}'
    try:
        found = parse_expr(text, "p")
    except ParseError as error:
        assert "\n" not in str(error)
    else:
        # A device number may be anything.
        assert isinstance(found, relay.Constant) and found.data.shape == (2, 3)


# Fuzzing: whatever the text, the answer is a program or an error of the family.

FRAGMENTS = [
    HEADER.strip(), "def", "@main", "@f", "(", ")", "{", "}", "[", "]", "%x", "%0", "%y", ":", ";", ",", "=", "=>", "->", "let", "fn", "if",
    "else", "match", "match?", "type", "extern", "free_var", "ref", "ref_read", "ref_write", "List", "Cons", "Nil", "A", "_", "int32", "bool",
    "Tensor", "Tensor[(1, ?), float32]", "1", "2f", "-", "+", "*", "/", "<", "==", ".", ".0", "True", "None", "nn.relu", "add", "nn.conv2d",
    "strides=[1, 1]", "axis=1", "reshape", "newshape=[0, -1]", '"text"', "meta[relay.Constant][0]", "#[metadata]", "{}", "//", "/*", "*/", "\n",
]  # fmt: skip


def survives(text: str) -> None:
    for read in (parse, parse_expr):
        try:
            read(text, "p")
        except RelayHwError as error:
            assert "\n" not in str(error)


@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.sampled_from(FRAGMENTS), max_size=30))
def test_fuzz_tokens(parts: list[str]) -> None:
    survives(" ".join(parts))
    survives(HEADER + "def @main(%x: int32, %y: Tensor[(2), float32]) { " + " ".join(parts) + " }")


@settings(max_examples=100, deadline=None)
@given(st.text())
def test_fuzz_characters(text: str) -> None:
    survives(text)


SEED = (
    HEADER
    + LIST
    + """def @f[A](%l: List[A], %x: Tensor[(2, ?), float32]) -> int32 {
  %0 = nn.dense(%x, %x, units=None);
  let %r: ref(int32) = ref(1);
  ref_write(%r, 2);
  match (%l) { Cons(_, %t) => 1 + @f(%t, %0), Nil => if (1 < 2) { ref_read(%r) } else { (3, 4f).0 } }
}
"""
)


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_fuzz_damaged_programs(data: st.DataObject) -> None:
    text = SEED
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(text)))
        end = min(len(text), start + data.draw(st.integers(0, 8)))
        text = (
            text[:start]
            + data.draw(st.one_of(st.just(""), st.sampled_from(FRAGMENTS), st.text(max_size=2)))
            + text[end:]
        )
    survives(text)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.sampled_from(sorted(op.name for op in relay.op.OPS)), st.data())
def test_fuzz_operators(name: str, data: st.DataObject) -> None:
    """Any arguments and attributes of the right syntax: a typed program or a sentence."""
    op = relay.op.get(name)
    names = [field for field in getattr(op.attrs_type, "__dataclass_fields__", {})]
    values = st.sampled_from(
        (
            "0",
            "1",
            "-1",
            "2f",
            "[1, 1]",
            "[]",
            "[[1, 2]]",
            "None",
            "True",
            '"NCHW"',
            '"int8"',
            '""',
            "[-7]",
            "99999999999",
        )
    )
    args = st.sampled_from(("%x", "%y", "%z", "1", "2f", "True", "()", "(%x, %x)", "%w"))
    given_args = data.draw(st.lists(args, max_size=6))
    attrs = [f"{field}={data.draw(values)}" for field in names if data.draw(st.integers(0, 3))]
    params = "%x: Tensor[(1, 4, 6, 6), float32], %y: Tensor[(2, ?), int8], %z: int32, %w"
    survives(f"{HEADER}def @main({params}) {{ {name}({', '.join(given_args + attrs)}) }}")


def test_virtual_devices_of_tvm_become_names() -> None:
    devices = [
        {"type_key": "VirtualDevice", "attrs": {"device_type_int": kind, "virtual_device_id": number, "target": "0"}}
        for kind, number in (("2", "1"), ("1", "0"), ("-1", "-1"), ("99", "3"))
    ]
    nodes = [
        {"type_key": ""},
        {"type_key": "Map", "keys": ["VirtualDevice"], "data": [2]},
        {"type_key": "Array", "data": [3, 4, 5, 6]},
        *devices,
    ]
    section = json.dumps({"root": 1, "nodes": nodes, "b64ndarrays": []})
    calls = "".join(f"on_device(%x, virtual_device=meta[VirtualDevice][{index}]), " for index in range(4))
    text = f'#[version = "0.0.5"]\ndef @main(%x {{virtual_device=meta[VirtualDevice][0]}}: int32) {{ ({calls}) }}\n'
    body = parse(text + f"#[metadata]\n{section}")["main"].body
    assert isinstance(body, relay.Tuple)
    found = [part.attrs.virtual_device for part in body.fields if isinstance(part, relay.Call)]
    assert found == ["cuda(1)", "cpu(0)", "", "device99(3)"]
    with pytest.raises(
        ParseError, match=r"meta\[VirtualDevice\]\[0\] must be a device of the metadata section: .*cuda"
    ):
        parse(text)
    named = parse(text.replace("meta[VirtualDevice][3]", '"cuda(0)"') + f"#[metadata]\n{section}")["main"].body
    assert isinstance(named, relay.Tuple) and isinstance(named.fields[3], relay.Call)
    assert named.fields[3].attrs.virtual_device == "cuda(0)"


def test_a_graph_variable_that_uses_parameters_of_another_function() -> None:
    text = """#[version = "0.0.5"]
def @first(%n: int32) {
  %0 = add(%n, 1);
  %0
}
def @second(%m: int32) {
  add(%0, %m)
}
"""
    with pytest.raises(WellFormedError, match=r"^<text>:2:12: %n in @second must be bound before it is used"):
        parse(text)


def test_an_operator_that_is_a_value_has_a_place() -> None:
    text = '#[version = "0.0.5"]\ndef @main(%x: int32) {\n  (add, %x)\n}\n'
    with pytest.raises(
        TypeCheckError, match=r"^<text>:3:4: operator add must be called, not used as a value"
    ) as caught:
        parse(text)
    assert caught.value.detail == "  (add, %x)\n   ^^^"


def test_a_literal_of_too_many_dimensions() -> None:
    whole = parse(f'#[version = "0.0.5"]\ndef @main() {{ {"[" * 32}1{"]" * 32} }}\n')
    assert whole["main"].body.data.ndim == 32
    with pytest.raises(ParseError, match=r"^<text>:2:\d+: tensor must have at most 32 dimensions$"):
        parse(f'#[version = "0.0.5"]\ndef @main() {{ {"[" * 70}1{"]" * 70} }}\n')


@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_rows_of_signs(count: int) -> None:
    head = '#[version = "0.0.5"]\n'
    assert parse(f"{head}def @main() {{ {'-' * count}1 }}")["main"].body.data == (-1) ** count
    with pytest.raises(ParseError, match="there is no sign before it"):
        parse(f"{head}def @main(%x: int32) {{ {'-' * count}%x }}")
    negated = parse_tolerant(f"{head}def @main(%x: int32) {{ {'-' * count}%x }}").mod["main"].body
    assert sum(isinstance(node, Call) for node in post_order(negated)) == count
    # The last sign may belong to an arrow.
    with pytest.raises(ParseError, match=r"must have \{ here, not -" if count > 1 else "must have a type here, not {"):
        parse(f"{head}def @main(%x: int32) {'-' * count}> {{ %x }}")


def test_the_index_of_a_projection() -> None:
    head = '#[version = "0.0.5"]\ndef @main(%x: ((int32, int32), int32)) { '
    assert parse(head + "%x.0.1 }")["main"].body.index == 1
    with pytest.raises(ParseError, match="function must have } here, not -1"):
        parse(head + "%x.0-1 }")
    with pytest.raises(TypeCheckError, match=r"index of a tuple of 2 fields must be in \[0, 2\), not -5"):
        parse(head + "%x.-5 }")
