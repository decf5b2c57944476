"""Modules as JSON: saving then loading is the identity; what does not follow the schema is refused in one sentence."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import relay_hw as relay
from relay_hw.analysis import infer_type, structural_equal, structural_hash
from relay_hw.errors import ParseError, RelayHwError, TypeCheckError, UnsupportedError, WellFormedError
from relay_hw.interp import evaluate
from relay_hw.ir.types import DimVar
from relay_hw.ir.visit import post_order
from relay_hw.prelude import LIBRARIES, load_library
from relay_hw.text import parse, print_module
from relay_hw.text.metadata import write_metadata
from tests.relay_hw.programs import INPUTS, modules
from tests.relay_hw.text.test_round_trip import ANY_SCALAR, ANY_TENSOR, same

QUIET = settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))


def check_round_trip(mod: relay.IRModule) -> relay.IRModule:
    text = relay.save_json(mod)
    again = relay.load_json(text)
    assert structural_equal(mod, again)
    assert structural_hash(mod) == structural_hash(again)
    assert list(mod.functions) == list(again.functions) and list(mod.types) == list(again.types)
    assert relay.save_json(again) == text
    return again


@QUIET
@given(modules())
def test_saving_then_loading_gives_an_equal_program(mod: relay.IRModule) -> None:
    typed = infer_type(mod)
    again = check_round_trip(typed)
    # JSON keeps names, so the text is the same to the letter.
    assert print_module(again, show_types=True) == print_module(typed, show_types=True)
    assert same(evaluate(typed, INPUTS), evaluate(again, INPUTS))


@QUIET
@given(modules())
def test_untyped_programs_are_typed_when_they_are_loaded(mod: relay.IRModule) -> None:
    assert structural_equal(relay.load_json(relay.save_json(mod)), infer_type(mod))


@settings(max_examples=100, deadline=None)
@given(st.one_of(ANY_SCALAR, ANY_TENSOR))
def test_every_constant_to_the_bit(data: np.ndarray) -> None:
    mod = infer_type(relay.IRModule.from_expr(relay.Function([], relay.Constant(data))))
    again = check_round_trip(mod)["main"].body
    assert isinstance(again, relay.Constant)
    assert again.data.dtype == data.dtype and again.data.shape == data.shape and again.data.tobytes() == data.tobytes()


@pytest.mark.parametrize("name", LIBRARIES)
def test_libraries(name: str) -> None:
    check_round_trip(load_library(name))


def test_spans_and_sharing_are_kept() -> None:
    text = '#[version = "0.0.5"]\ndef @main(%x: int32) {\n  %0 = add(%x, 1);\n  multiply(%0, %0)\n}\n'
    mod = parse(text, "some.relay")
    again = relay.load_json(relay.save_json(mod))
    body = again["main"].body
    assert isinstance(body, relay.Call) and body.args[0] is body.args[1]
    pairs = zip(post_order(mod["main"]), post_order(again["main"]), strict=True)
    assert all(a.span == b.span for a, b in pairs) and body.span is not None and body.span.line == 4


def test_nodes_that_functions_share_are_saved_once() -> None:
    big = relay.Constant(np.arange(1000, dtype="float32"))
    mod = relay.IRModule({"f": relay.Function([], big), "g": relay.Function([], big)})
    text = relay.save_json(mod)
    assert text.count('"constant"') == 1
    assert structural_equal(relay.load_json(text), infer_type(mod))


def test_attributes_dimensions_references_and_quantifiers() -> None:
    n, a = DimVar("n"), relay.TypeVar("A")
    x = relay.Var("x", relay.TensorType((1, 3, 8, relay.ANY)))
    v = relay.Var("v", relay.TensorType((n, 2), "float16"))
    poly = relay.Var("f", relay.FuncType((a, relay.RefType(a)), relay.TupleType([v.type_annotation, a]), (a,)))  # type: ignore[list-item]
    clip = relay.clip(x, float("-inf"), float("inf"))
    conv = relay.nn.conv2d(clip, relay.Constant(np.ones((4, 3, 3, 3), "float32")), strides=(2, 1), padding=(1, 0, 1, 0))
    attrs = {"Primitive": 1, "Compiler": "accel", "note": 'a "quoted" \n ü', "list": (1, (2.5, None), True)}
    main = relay.Function([x, v, poly], relay.Tuple([conv, v]), attrs=attrs)
    mod = infer_type(relay.IRModule({"main": main}, attrs={"stage": "imported", "record": object()}))
    again = check_round_trip(mod)
    assert dict(again["main"].attrs) == attrs and dict(again.attrs) == {"stage": "imported"}
    assert str(again["main"].checked_type) == str(mod["main"].checked_type)


def test_a_long_chain_needs_no_deep_python_stack() -> None:
    x = relay.Var("x", relay.scalar_type("int32"))
    lets = [(relay.Var(f"v{i}"), relay.RefCreate(x)) for i in range(5_000)]
    body: relay.Expr = x
    for var, value in lets:
        body = relay.Let(var, value, body)
    text = relay.save_json(relay.IRModule.from_expr(relay.Function([x], body)))
    assert relay.save_json(relay.load_json(text)).count('"let"') == len(lets)


# Refusals

SMALL = parse(
    """#[version = "0.0.5"]
type List[A] { Cons(A, List[A]), Nil }
def @main(%x: Tensor[(2), int32], %f: fn(int32) -> int32, %l: List[int32]) -> (int32, Tensor[(2), int32]) {
  let %r = ref(meta[relay.Constant][0]);
  let %_ = ref_write(%r, add(%x, ref_read(%r)));
  match (%l) {
    Cons(%y, _) => { (if (%y < 3) { %f(%y) } else { 2 }, clip(ref_read(%r), a_min=0f, a_max=5f)) },
    Nil => { (@main(%x, fn (%z: int32) -> int32 { %z }, Nil)).0; (1, %x) },
  }
}
#[metadata]
"""
    + write_metadata({"relay.Constant": [relay.Constant(np.array([1, 2], "int32"))]})
)


def document() -> Any:
    return json.loads(relay.save_json(SMALL))


def paths(value: Any, here: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [here, *(path for key, part in items for path in paths(part, (*here, key)))]


JUNK = st.one_of(
    st.sampled_from((None, True, False, -1, 0, 1, 2, 3, 5, 10**30, 0.5, "", "?", "_", "int32", "List", "main", [], {})),
    st.sampled_from(([0], [[]], {"var": 0}, {"float": "nan"}, {"constant": {}}, "int8", "object", "add", "Nil")),
    st.integers(0, 40),
)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_whatever_is_changed_is_loaded_or_refused_in_one_sentence(data: st.DataObject) -> None:
    changed = document()
    for _ in range(data.draw(st.integers(1, 2))):
        path = data.draw(st.sampled_from([path for path in paths(changed) if path]))
        holder = changed
        for key in path[:-1]:
            holder = holder[key]
        if data.draw(st.booleans()) and isinstance(holder, dict):
            del holder[path[-1]]
        else:
            holder[path[-1]] = data.draw(JUNK)
    try:
        relay.load_json(json.dumps(changed))
    except RelayHwError as error:
        assert error.message and len(str(error)) < 600


def test_the_text_cut_anywhere_is_refused() -> None:
    text = relay.save_json(SMALL)
    for end in range(0, len(text) - 2, 97):
        with pytest.raises(ParseError, match="<json>:"):
            relay.load_json(text[:end])


def change(**fields: Any) -> Callable[[Any], Any]:
    return lambda doc: doc | fields


def node(kind: str, **fields: Any) -> Callable[[Any], Any]:
    def apply(doc: Any) -> Any:
        row = next(row for row in doc["nodes"] if row["node"] == kind)
        row.update(fields)
        return doc

    return apply


def first(table: str, **fields: Any) -> Callable[[Any], Any]:
    def apply(doc: Any) -> Any:
        doc[table][0].update(fields)
        return doc

    return apply


@pytest.mark.parametrize(
    ("edit", "sentence"),
    [
        (lambda doc: [], "document must be an object, not a list"),
        (lambda doc: {}, "document must have the field format"),
        (change(format="tvm"), 'document must have the format "relay-hw module", not tvm'),
        (change(version=2), "version of the document must be 1, not 2"),
        (change(nodes=5), "document: nodes must be a list, not 5"),
        (change(dims=[1]), "dims must be strings, not 1"),
        (change(nodes=[3]), r"nodes\[0\] must be an object, not 3"),
        (change(functions={"main": 10**6}), r"functions: main must count within the \d+ earlier nodes, not 1000000"),
        (change(functions={"main": 0}), "functions: main must be a function, not Var"),
        (change(spans=[[1, 2]]), r"spans\[0\] must be a name and four integers, not \[1, 2\]"),
        (node("let", var=True), r"nodes\[\d+\]: var must count within the \d+ earlier nodes, not true"),
        (node("let", node="lett"), r"nodes\[\d+\]: node must be a kind of the schema, not lett"),
        (node("function", params=[2, "x"]), r"nodes\[\d+\]: params must count within the \d+ earlier nodes, not \"x\""),
        (node("constant", dtype="object"), r"nodes\[\d+\]: dtype must be an element type of numpy, not object"),
        (node("constant", data="!"), r"nodes\[\d+\]: data must be base64"),
        (node("constant", data="AAAA"), r"nodes\[\d+\]: data must hold 8 bytes, not 3"),
        (node("constant", dtype="bool", shape=[8]), "data of booleans must be bytes 0 and 1"),
        (node("constant", shape=[0, 1 << 40, 1 << 40], data=""), "shape must have a size that fits into 64 bits"),
        (node("constant", shape=[-1]), "shape must be at most 32 integers of at least 0"),
        (node("op", name="add2"), r"nodes\[\d+\]: an operator must be one of"),
        (node("call", attrs={"axis": 1}), r"nodes\[\d+\]: attribute axis must be left out: add has no attributes"),
        (node("call", attrs={"a": {}}), r"nodes\[\d+\].attrs: attribute must be a number, a string, a list or null"),
        (first("types", type="tensr"), r"types\[0\]: type must be a kind of the schema, not tensr"),
        (first("types", type="tensor", shape=[-2], dtype="int8"), r"types\[0\]: dimension must be an integer of at"),
        (first("types", type="tensor", shape=[{"dim": 0}], dtype="int8"), "dim must count within the 0 dims, not 0"),
        (first("types", type="tensor", shape=[], dtype="int7"), "dtype must be like int8, int32, float32 or bool"),
        (first("types", type="hole", kind="Sort"), "kind must be one of Type, Dim, Shape"),
        (first("types", type="ref", value=0), r"types\[0\]: value must count within the 0 types, not 0"),
        (first("data_types", extern=0), r"data_types\[0\]: extern must be true or false, not 0"),
        (
            first("data_types", constructors=[]),
            r"nodes\[\d+\].* must be a constructor of the document, not",
        ),
    ],
)
def test_refusals(edit: Callable[[Any], Any], sentence: str) -> None:
    with pytest.raises((ParseError, UnsupportedError), match=sentence) as caught:
        relay.load_json(json.dumps(edit(document())), "file.json")
    assert str(caught.value).startswith("file.json: ")


def test_text_that_is_no_json() -> None:
    with pytest.raises(ParseError, match=r"file.json:2:1: file must be JSON"):
        relay.load_json('{"format":\n}', "file.json")
    with pytest.raises(ParseError, match="JSON must have at most 200 lists and objects inside one another, not more"):
        relay.load_json("[" * 200_000)
    with pytest.raises(ParseError, match="JSON"):
        relay.load_json('{"version": ' + "9" * 5000 + "}")


def test_deep_types() -> None:
    doc = document()
    doc["types"] = [{"type": "tuple", "fields": []}, *({"type": "ref", "value": i} for i in range(500))]
    with pytest.raises(ParseError, match=r"types\[\d+\]: types must be nested at most 100 deep"):
        relay.load_json(json.dumps(doc))


def test_an_invalid_program_names_its_file() -> None:
    types = [{"type": "tensor", "shape": [2], "dtype": "float32"}]
    nodes = [
        {"node": "var", "name": "x", "type": 0},
        {"node": "op", "name": "add"},
        {"node": "call", "op": 1, "args": [0]},
        {"node": "function", "params": [0], "body": 2},
    ]
    document = json.loads(relay.save_json(relay.IRModule.from_expr(relay.const(1))))
    changed = document | {"types": types, "nodes": nodes, "functions": {"main": 3}, "spans": []}
    with pytest.raises(TypeCheckError, match=r"^net\.json: add must have 2 arguments, not 1"):
        relay.load_json(json.dumps(changed), "net.json")


def test_invalid_programs() -> None:
    x = relay.Var("x", relay.scalar_type("int32"))
    text = relay.save_json(relay.IRModule.from_expr(relay.Function([], x)))
    with pytest.raises(WellFormedError, match="%x in @main must be bound before it is used"):
        relay.load_json(text)
    text = relay.save_json(relay.IRModule.from_expr(relay.Function([x], relay.TupleGetItem(x, 0))))
    with pytest.raises(TypeCheckError):
        relay.load_json(text)
    cons = load_library("prelude").types["List"].constructors[0]
    with pytest.raises(WellFormedError, match="constructor Cons must be one of type List of the module"):
        relay.save_json(relay.IRModule.from_expr(relay.Function([], cons)))
    with pytest.raises(WellFormedError, match="attribute must be a number, a string or a list of them, not <object"):
        relay.save_json(relay.IRModule.from_expr(relay.Function([], relay.const(1), attrs={"a": object()})))


@settings(max_examples=20, deadline=None)
@given(hnp.arrays("float64", 3))
def test_float_attributes_to_the_bit(values: np.ndarray) -> None:
    x = relay.Var("x", relay.TensorType((2,)))
    attrs = {str(i): float(value) for i, value in enumerate(values)}
    again = check_round_trip(infer_type(relay.IRModule.from_expr(relay.Function([x], x, attrs=attrs))))
    found = np.array(list(again["main"].attrs.values()))
    assert found.tobytes() == values.tobytes() or (np.isnan(found) == np.isnan(values)).all()
