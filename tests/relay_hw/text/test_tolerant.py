"""Text that the strict parser refuses: what papers, guides and older versions print."""

from __future__ import annotations

import pytest

import relay_hw as relay
from relay_hw.analysis import structural_equal
from relay_hw.errors import ParseError, TypeCheckError
from relay_hw.text import Repaired, parse, parse_tolerant

# Each in the manner of one document: sums and products of older names, elisions, a named loop.
OLD = """def @scale_shift(%a, %b, %c) {
  %1 = mul(%a, %b)
  %2 = sub(%1, %c)
  %2
}
def @twice(%a) {
  %1 = @scale_shift(%a, 2, 1)
  @scale_shift(%1, 2, 1)
}
"""
ELIDED = """def @main(%image: Tensor[(1, 3, 8, 8), float32], %onnx::Conv_7: Tensor[(4, 3, 3, 3), float32], ...,
    %model.24.conv.weight: Tensor[(1, 4, 1, 1), float32]) {
  %0 = nn.conv2d(%image, %onnx::Conv_7, channels=4, kernel_size=[3, 3]);
  %1 = nn.bias_add(%0, %onnx::Conv_8);
  ...
  %7 = nn.relu(%5);
  %8 = (%1, %7)
}
"""
LOOP = (
    "fn %loop(%i: Tensor[(1), int32], %n: Tensor[(1), int32]) { %0 = less(%i, %n) "
    "if (min(%0)) { %1 = add(%i, meta[Constant][0]) %loop(%1, %n) } else { (%i, %n) } } "
    "%loop(meta[Constant][1], meta[Constant][2])"
)


def read(text: str) -> Repaired:
    """What is repaired is text of the strict format."""
    found = parse_tolerant(text, "doc")
    if found.problem is None:
        assert structural_equal(parse(found.mod.astext()), found.mod)
        assert parse_tolerant(found.mod.astext()).notes == ()
    return found


def messages(found: Repaired) -> list[str]:
    return [note.message for note in found.notes]


def test_strict_text_needs_no_note() -> None:
    assert read('#[version = "0.0.5"]\ndef @main(%x: int32) { let %y = %x + 1; %y }').notes == ()


def test_older_names_and_missing_semicolons() -> None:
    found = read(OLD)
    assert {"mul is called multiply", "sub is called subtract", 'version "0.0.5" is taken'} <= set(messages(found))
    assert messages(found).count("; is put at the end of this binding") == 3
    assert isinstance(found.problem, TypeCheckError)
    assert found.problem.message.startswith("type of %a must be annotated")
    body = found.mod["scale_shift"].body
    assert isinstance(body, relay.Call) and isinstance(body.op, relay.Op) and body.op.name == "subtract"


def test_annotated_it_has_types_and_a_value() -> None:
    typed = OLD.replace("%a, %b, %c)", "%a: int32, %b: int32, %c: int32) -> int32").replace(
        "(%a) {", "(%a: int32) {", 1
    )
    found = read(typed)
    assert found.problem is None
    assert relay.create_executor(mod=found.mod).evaluate("twice")(5) == 17


def test_elisions_and_names_that_nothing_defines() -> None:
    found = read(ELIDED)
    names = [param.name_hint for param in found.mod["main"].params]
    assert names == ["image", "onnx::Conv_7", "model.24.conv.weight", "onnx::Conv_8", "v5"]
    assert "parameters are left out here; those that are used follow at the end" in messages(found)
    assert "statements are left out here" in messages(found)
    assert "%5 is not defined: it becomes parameter %v5" in messages(found)
    assert "the result is the last binding" in messages(found)
    # What stands between is unknown, so one parameter has no type.
    assert found.problem is not None and "%v5" in found.problem.message


def test_a_named_function_is_a_recursive_let() -> None:
    found = read(LOOP)
    main = found.mod["main"]
    assert [param.name_hint for param in main.params] == ["constant_0", "constant_1", "constant_2"]
    assert isinstance(main.body, relay.Let) and main.body.var.name_hint == "loop"
    whole = (
        LOOP.replace("meta[Constant][0]", "[1]").replace("meta[Constant][1]", "[0]").replace("meta[Constant][2]", "[5]")
    )
    found = read(whole)
    assert found.problem is None
    assert [int(part[0]) for part in relay.create_executor(mod=found.mod).evaluate()()] == [5, 5]


def test_a_parenthesis_on_a_new_line_is_no_call() -> None:
    found = read("def @main(%x: int32) {\n  %1 = negative(%x)\n  (%1, %x)\n}")
    assert isinstance(found.mod["main"].body, relay.Tuple)


def test_the_notation_of_the_papers() -> None:
    found = read(
        "type L[A] { C(A, L[A]), N }\n"
        "def @main(%l: L[int32]) {\n"
        "  let %r = ref(1); %r := -!%r + 4;\n"
        "  match (%l) { | C(%h, %t) -> %h | N -> sq(!%r) }\n}"
    )
    assert found.problem is None
    wanted = ["e := e is written ref_write(e, e)", "!e is written ref_read(e)", "-> of an arm is written =>"]
    assert {*wanted, "-e is written negative(e)", "sq(e) is a product"} <= set(messages(found))
    nil = relay.interp.ConstructorValue(found.mod.types["L"].constructors[1])
    assert relay.create_executor(mod=found.mod).evaluate()(nil) == 9


def test_zero_of_a_tensor_type() -> None:
    found = read("Zero Tensor[(2, 3), int8]")
    assert str(found.mod["main"].func_type.ret_type) == "Tensor[(2, 3), int8]"
    with pytest.raises(ParseError, match="type after Zero must be a tensor of fixed sizes, not \\(int8,\\)"):
        parse_tolerant("Zero (int8)")


def test_every_note_says_where() -> None:
    notes = read(OLD).notes
    assert [str(note).split(":")[:2] for note in notes[:2]] == [["doc", "1"], ["doc", "2"]]
    assert list(notes) == sorted(notes, key=lambda note: (note.span.line, note.span.column))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("def @main(%x: int32) { %0 = frobnicate(%x) %0 }", "frobnicate must be an operator or a constructor"),
        ("def @main(%x: int32) { @other(%x) }", "@other must be defined"),
        ("def @main(%x: int32 { %x }", "function must have , or ) here, not {"),
        ("def @main(%x: int32) { add(%x, 1 }", "call must have , or ) here, not }"),
    ],
)
def test_what_stays_an_error(text: str, sentence: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse_tolerant(text, "doc")
    assert caught.value.message == sentence
    assert "^" in caught.value.detail


@pytest.mark.parametrize("text", [OLD, ELIDED, LOOP, "def @f(%x: int32) { !%x }", "def @f(%x: int32) { ... }"])
def test_the_strict_parser_refuses_all_of_it(text: str) -> None:
    with pytest.raises(ParseError):
        parse(text)
