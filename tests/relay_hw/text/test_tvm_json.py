"""JSON graphs of TVM: what an independent writer makes of generated programs, older spellings, damaged documents."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any, get_args, get_type_hints

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import relay_hw as relay
from relay_hw.analysis import infer_type, structural_equal
from relay_hw.errors import InputError, ParseError, RelayHwError, UnsupportedError
from relay_hw.ir.types import DimVar, IncompleteType
from relay_hw.ir.visit import pattern_vars
from relay_hw.op.contraction import ScanAttrs
from relay_hw.text import load_json, parse
from relay_hw.text.metadata import encode_array
from relay_hw.text.tvm.reader import read_graph
from relay_hw.text.tvm.writer import save_tvm_json
from tests.relay_hw.programs import random_module

# Integers that TVM's records declare as objects.
OBJECTS = {("take", "batch_dims"), ("repeat", "repeats"), ("stack", "axis"), ("gather_nd", "batch_dims")}
ALWAYS = {"_checked_type_": "0", "span": "0", "virtual_device_": "0"}


class Writer:
    """The format as TVM 0.18 writes it. `has_strings`: names are nodes, as in newer versions; else literals."""

    def __init__(self, has_strings: bool = True) -> None:
        self.nodes: list[dict[str, Any]] = [{"type_key": ""}]
        self.arrays: list[str] = []
        self.known: dict[Any, str] = {}
        self.has_strings = has_strings

    def document(self, root: Any) -> str:
        place = self.write(root)
        attrs = {"tvm_version": "0.18.0"}
        return json.dumps({"root": int(place), "nodes": self.nodes, "b64ndarrays": self.arrays, "attrs": attrs})

    def add(self, type_key: str, **attrs: str) -> str:
        self.nodes.append({"type_key": type_key, "attrs": {**ALWAYS, **attrs}})
        return str(len(self.nodes) - 1)

    def array(self, items: Any) -> str:
        data = [int(self.write(item)) for item in items]
        self.nodes.append({"type_key": "Array", "data": data} if data else {"type_key": "Array"})
        return str(len(self.nodes) - 1)

    def mapping(self, pairs: Any) -> str:
        data = [int(self.write(part)) for pair in pairs for part in pair]
        self.nodes.append({"type_key": "Map", "data": data})
        return str(len(self.nodes) - 1)

    def string(self, text: str) -> str:
        if not self.has_strings:
            return text
        self.nodes.append({"type_key": "runtime.String", "repr_str": text})
        return str(len(self.nodes) - 1)

    def write(self, item: Any) -> str:
        if item is None:
            return "0"
        if isinstance(item, (int, tuple)):
            return self.fresh(item)
        if item not in self.known:
            self.known[item] = self.fresh(item)
        return self.known[item]

    def fresh(self, item: Any) -> str:
        w = self.write
        match item:
            case relay.IRModule():
                functions = self.mapping([(relay.GlobalVar(name), f) for name, f in item.functions.items()])
                types = self.mapping([(data.header, data) for data in item.types.values()])
                return self.add("IRModule", functions=functions, type_definitions=types, source_map="0", attrs="0")
            case int():
                return self.add("IntImm", dtype="int32", value=str(item))
            case tuple():
                return self.array(item)
            case relay.Function(params=params, body=body, ret_type=ret, type_params=type_params):
                return self.add(
                    "relay.Function", params=self.array(params), body=w(body), ret_type=w(ret),
                    type_params=self.array(type_params), attrs=self.dictionary(item.attrs),
                )  # fmt: skip
            case relay.Call(op=op, args=args):
                attrs = self.attributes(op, item.attrs)
                types = "0" if isinstance(op, relay.Op) else self.array(item.type_args)
                return self.add("relay.Call", op=w(op), args=self.array(args), attrs=attrs, type_args=types)
            case relay.Op(name=name):
                self.nodes.append({"type_key": "Op", "repr_str": name})
                return str(len(self.nodes) - 1)
            case relay.Var(name_hint=name, type_annotation=ty):
                identity = self.add("relay.Id", name_hint=self.string(name))
                return self.add("relay.Var", vid=identity, type_annotation=w(ty))
            case relay.GlobalVar(name_hint=name):
                return self.add("GlobalVar", name_hint=self.string(name))
            case relay.Constant(data=data):
                self.arrays.append(encode_array(data))
                return self.add("relay.Constant", data=str(len(self.arrays) - 1))
            case relay.Tuple(fields=parts):
                return self.add("relay.Tuple", fields=self.array(parts))
            case relay.TupleGetItem(tuple_value=value, index=index):
                return self.add("relay.TupleGetItem", tuple_value=w(value), index=str(index))
            case relay.Let(var=var, value=value, body=body):
                return self.add("relay.Let", var=w(var), value=w(value), body=w(body))
            case relay.If():
                parts = {name: w(getattr(item, name)) for name in ("cond", "true_branch", "false_branch")}
                return self.add("relay.If", **parts)
            case relay.RefCreate(value=value):
                return self.add("relay.RefCreate", value=w(value))
            case relay.RefRead(ref=ref):
                return self.add("relay.RefRead", ref=w(ref))
            case relay.RefWrite(ref=ref, value=value):
                return self.add("relay.RefWrite", ref=w(ref), value=w(value))
            case relay.Match(data=data, clauses=clauses, complete=complete):
                data_at = w(data)
                return self.add("relay.Match", data=data_at, clauses=self.array(clauses), complete=str(int(complete)))
            case relay.Clause(lhs=lhs, rhs=rhs):
                return self.add("relay.Clause", lhs=w(lhs), rhs=w(rhs))
            case relay.PatternVar(var=var):
                return self.add("relay.PatternVar", var=w(var))
            case relay.PatternConstructor(constructor=constructor, patterns=inner):
                return self.add("relay.PatternConstructor", constructor=w(constructor), patterns=self.array(inner))
            case relay.PatternTuple(patterns=inner):
                return self.add("relay.PatternTuple", patterns=self.array(inner))
            case relay.PatternWildcard():
                return self.add("relay.PatternWildcard")
            case relay.Constructor(name_hint=name, inputs=inputs, belong_to=owner, tag=tag):
                return self.add(
                    "relay.Constructor", name_hint=self.string(name), inputs=self.array(inputs), belong_to=w(owner),
                    tag=str(tag),
                )  # fmt: skip
            case relay.TypeData(header=header, type_vars=type_vars, constructors=constructors):
                parts = {"type_vars": self.array(type_vars), "constructors": self.array(constructors)}
                return self.add("relay.TypeData", header=w(header), **parts)
            case _:
                return self.type(item)

    def type(self, item: Any) -> str:
        w = self.write
        match item:
            case relay.TensorType(shape=shape, dtype=dtype):
                return self.add("relay.TensorType", shape=self.array(shape), dtype=str(dtype))
            case relay.TupleType(fields=parts):
                return self.add("TupleType", fields=self.array(parts))
            case relay.FuncType(arg_types=args, ret_type=ret, type_params=params):
                parts = {"type_params": self.array(params), "type_constraints": self.array(())}
                return self.add("FuncType", arg_types=self.array(args), ret_type=w(ret), **parts)
            case relay.RefType(value=value):
                return self.add("relay.RefType", value=w(value))
            case relay.TypeCall(func=func, args=args):
                return self.add("TypeCall", func=w(func), args=self.array(args))
            case relay.GlobalTypeVar(name=name):
                return self.add("GlobalTypeVar", name_hint=self.string(name), kind="5")
            case relay.TypeVar(name=name):
                return self.add("TypeVar", name_hint=self.string(name), kind="0")
            case IncompleteType():
                return self.add("IncompleteType", kind="0")
            case DimVar(name=name):
                return self.add("tir.SizeVar", name=self.string(name), dtype="int32")
            case relay.ir.types.Any():
                return self.add("tir.Any", dtype="int32")
        raise AssertionError(item)

    def dictionary(self, attrs: Any) -> str:
        names = list(attrs)
        data = [int(self.simple(attrs[name])) for name in names]
        self.nodes.append({"type_key": "Map", "keys": names, "data": data})
        return self.add("DictAttrs", __dict__=str(len(self.nodes) - 1))

    def simple(self, value: Any) -> str:
        if value is None:
            return "0"
        if isinstance(value, str):
            self.nodes.append({"type_key": "runtime.String", "repr_str": value})
            return str(len(self.nodes) - 1)
        if isinstance(value, (tuple, list)):
            data = [int(self.simple(part)) for part in value]
            self.nodes.append({"type_key": "Array", "data": data})
            return str(len(self.nodes) - 1)
        return self.add("IntImm", dtype="int32", value=str(int(value)))

    def attributes(self, op: Any, record: Any) -> str:
        if record is None:
            return "0"
        written: dict[str, str] = {"a_field_of_another_version": "0"}
        hints = get_type_hints(type(record))
        for field in fields(record):
            value = getattr(record, field.name)
            options = get_args(hints[field.name]) or (hints[field.name],)
            is_node = int in options and type(None) in options
            is_list = isinstance(value, tuple) or any("tuple" in str(option) for option in options)
            if is_node or is_list or (op.name, field.name) in OBJECTS:
                written[field.name] = self.simple(value)
            elif isinstance(value, str) and "dtype" not in field.name:
                written[field.name] = self.string(value)
            else:
                written[field.name] = "" if value is None else str(int(value) if isinstance(value, bool) else value)
        return self.add("relay.attrs.SomeAttrs", **written)


def same(mod: relay.IRModule, has_strings: bool = True) -> None:
    typed = infer_type(mod)
    assert structural_equal(load_json(Writer(has_strings).document(typed)), typed)


@pytest.mark.parametrize("first", range(0, 120, 30))
def test_generated_programs(first: int) -> None:
    for seed in range(first, first + 30):
        same(random_module(seed, depth=3), has_strings=seed % 2 == 0)


NETWORK = """#[version = "0.0.5"]
def @main(%x: Tensor[(1, 3, 16, ?), float32], %w: Tensor[(8, 3, 3, 3), float32], %n: Tensor[(n, 2), int64], Inline=1) {
  %0 = nn.conv2d(%x, %w, strides=[2, 2], padding=[1, 1, 1, 1], channels=8, kernel_size=[3, 3], groups=1);
  %1 = nn.batch_flatten(nn.max_pool2d(nn.leaky_relu(%0, alpha=0.125f), pool_size=[2, 2], ceil_mode=True));
  %2 = sum(clip(%1, a_min=-1f, a_max=6f), axis=[1], keepdims=True);
  %3 = layout_transform(%0, src_layout="NCHW", dst_layout="NHWC");
  %4 = split(%2, indices_or_sections=1, axis=1);
  (%2, %3, %4.0, cast(%n, dtype="int8"), take(%2, 0, axis=0, mode="clip"), reshape(%2, newshape=[-1]))
}
"""


@pytest.mark.parametrize("has_strings", [True, False])
def test_a_network_with_attributes_of_every_form(has_strings: bool) -> None:
    mod = parse(NETWORK)
    same(mod, has_strings)
    again = load_json(Writer(has_strings).document(mod))
    assert dict(again["main"].attrs) == {"Inline": 1}


def test_an_expression_becomes_main() -> None:
    x = relay.var("x", shape=(2,))
    text = Writer().document(relay.add(x, relay.const(np.float32(1))))
    assert str(load_json(text)["main"].func_type) == "fn (Tensor[(2), float32]) -> Tensor[(2), float32]"


def test_a_long_chain_needs_no_deep_stack() -> None:
    nodes: list[dict[str, Any]] = [{"type_key": ""}]
    nodes += [{"type_key": "relay.Id", "attrs": {"name_hint": "x"}}]
    nodes += [{"type_key": "relay.TensorType", "attrs": {"dtype": "float32", "shape": "0"}}]
    nodes += [{"type_key": "relay.Var", "attrs": {"vid": "1", "type_annotation": "2"}}]
    nodes += [{"type_key": "relay.Op", "global_key": "negative"}]
    for _ in range(3_000):
        last = len(nodes) - 1 if len(nodes) > 5 else 3
        nodes.append({"type_key": "Array", "data": [last]})
        nodes.append({"type_key": "relay.Call", "attrs": {"op": "4", "args": str(len(nodes) - 1), "attrs": "0"}})
    mod = load_json(json.dumps({"root": len(nodes) - 1, "nodes": nodes}))
    assert str(mod["main"].func_type.ret_type) == "float32"


def test_names_of_type_variables_before_tvm_0_7() -> None:
    nodes = [
        {"type_key": ""},
        {"type_key": "relay.TypeVar", "attrs": {"kind": "0", "span": "0", "var": "2"}},
        {"type_key": "Variable", "attrs": {"dtype": "int32", "name": "in0"}},
        {"type_key": "relay.Id", "attrs": {"name_hint": "x"}},
        {"type_key": "relay.Var", "attrs": {"vid": "3", "type_annotation": "1"}},
        {"type_key": "Array", "data": [4]},
        {"type_key": "Array", "data": [1]},
        {"type_key": "relay.Function", "attrs": {"params": "5", "body": "4", "ret_type": "1", "type_params": "6"}},
    ]
    assert str(load_json(json.dumps({"root": 7, "nodes": nodes}))["main"].func_type) == "fn [in0](in0) -> in0"


def damaged(**changes: Any) -> str:
    document = json.loads(Writer().document(parse(NETWORK)))
    return json.dumps({**document, **changes})


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (damaged(root=10**6), "root must count within the"),
        (damaged(nodes=[1]), "nodes must be a list of objects"),
        (damaged(b64ndarrays=3), "b64ndarrays must be a list"),
        (damaged(root=0), "root of the graph must be a module or an expression"),
        (json.dumps({"root": 1, "nodes": [{}, {"type_key": "tir.PrimFunc"}]}), "kind of node must be one of Relay's"),
        (json.dumps({"root": 1, "nodes": [{}, {"type_key": "Array", "data": [1]}]}), "must not contain itself"),
        (
            json.dumps({"root": 1, "nodes": [{}, {"type_key": "relay.Constant", "attrs": {"data": "3"}}]}),
            "data must count within the 0 arrays, not 3",
        ),
        (
            json.dumps({"root": 1, "nodes": [{}, {"type_key": "Map", "keys": ["a", "b"], "data": [0]}]}),
            r"nodes\[1\]: a Map must have a value for each of its 2 keys, not 1",
        ),
        (
            json.dumps({"root": 1, "nodes": [{}, {"type_key": "Map", "data": [2, 2]}, {"type_key": "Array"}]}),
            r"nodes\[1\]: keys of a Map must be names or nodes of a program",
        ),
        (
            json.dumps({"root": 1, "nodes": [{}, {"type_key": "IRModule", "attrs": {"functions": "2"}}, {"type_key":
                "Array", "data": [0]}]}),
            r"nodes\[1\]: functions must be a Map",
        ),
        (
            json.dumps({"root": 1, "nodes": [{}, {"type_key": "relay.RefCreate", "attrs": {"value": "2"}}, {"type_key":
                "te.Tensor"}]}),
            r"nodes\[2\]: kind of node must be one of Relay's, not te.Tensor",
        ),
        (
            json.dumps({"root": 1, "nodes": [{}, {"type_key": "Tuple", "attrs": {"fields": "2"}}, {"type_key": "Array",
                "data": [3]}, {"type_key": "te.Tensor"}]}),
            r"nodes\[3\]: kind of node must be one of Relay's, not te.Tensor",
        ),
    ],
)  # fmt: skip
def test_refusals(text: str, sentence: str) -> None:
    with pytest.raises(ParseError, match=sentence):
        load_json(text)


def test_indices_in_lists_may_be_texts() -> None:
    nodes = [
        {},
        {"type_key": "Map", "keys": ["main"], "data": ["2"]},
        {"type_key": "Array", "data": ["0"]},
        {"type_key": "IRModule", "attrs": {"functions": "1"}},
    ]
    with pytest.raises(ParseError, match=r"nodes\[3\]: functions must map GlobalVar to Function"):
        load_json(json.dumps({"root": 3, "nodes": nodes}))


def test_an_operator_that_nobody_knows() -> None:
    text = json.dumps({"root": 1, "nodes": [{}, {"type_key": "Op", "repr_str": "nn.correlation"}]})
    with pytest.raises(UnsupportedError, match=r"operator nn\.correlation is not implemented yet"):
        load_json(text)


SMALL = json.loads(Writer().document(infer_type(random_module(3, depth=2))))


@given(st.data())
@settings(max_examples=200)
def test_whatever_is_changed_is_loaded_or_refused_in_one_sentence(data: st.DataObject) -> None:
    document = json.loads(json.dumps(SMALL))
    node = data.draw(st.sampled_from(document["nodes"][1:]))
    value = data.draw(
        st.one_of(st.integers(-2, 10**6), st.text(max_size=3), st.none(), st.lists(st.integers(), max_size=2))
    )
    inner = node.get("attrs")
    if inner and data.draw(st.booleans()):
        inner[data.draw(st.sampled_from(sorted(inner)))] = value
    else:
        node[data.draw(st.sampled_from(sorted(node)))] = value
    try:
        load_json(json.dumps(document))
    except RelayHwError as error:
        assert "\n" not in str(error)


def test_every_pattern_variable_is_one_variable() -> None:
    mod = infer_type(random_module(11, depth=4))
    again = load_json(Writer().document(mod))
    for function in again.functions.values():
        found: list[relay.Var] = []
        relay.analysis.post_order_visit(
            function,
            lambda node, found=found: found.extend(
                var for clause in getattr(node, "clauses", ()) for var in pattern_vars(clause.lhs)
            ),
        )
        assert len(set(found)) == len(found)


def called(op: str, size: int = 3, **attrs: str) -> str:
    """A call of `op` of a matrix of 2 rows with the fields `attrs`; node 10 is the list [2, 2]."""
    nodes: list[dict[str, Any]] = [{"type_key": ""}]
    nodes += [{"type_key": "IntImm", "attrs": {"dtype": "int32", "value": str(dim)}} for dim in (2, size)]
    nodes += [{"type_key": "Array", "data": [1, 2]}]
    nodes += [{"type_key": "relay.TensorType", "attrs": {"dtype": "float32", "shape": "3"}}]
    nodes += [{"type_key": "relay.Var", "attrs": {"name_hint": "x", "type_annotation": "4"}}]
    nodes += [{"type_key": "Array", "data": [5]}, {"type_key": "Op", "attrs": {"name": op}}]
    nodes += [{"type_key": "relay.attrs.AnyAttrs", "attrs": attrs}]
    nodes += [{"type_key": "relay.Call", "attrs": {"op": "7", "args": "6", "attrs": "8"}}]
    nodes += [{"type_key": "Array", "data": [1, 1]}]
    return json.dumps({"root": 9, "nodes": nodes})


def test_attributes_in_every_spelling() -> None:
    def result(op: str, **attrs: str) -> str:
        return str(load_json(called(op, **attrs))["main"].func_type.ret_type)

    assert result("sum", axis="0", keepdims="True") == result("sum", keepdims="1") == "Tensor[(1, 1), float32]"
    assert result("sum", axis="0", keepdims="False") == result("sum", keepdims="0") == "float32"
    assert result("shape_of", dtype="void") == result("shape_of", dtype="") == "Tensor[(2), int32]"
    assert result("shape_of", dtype="int64") == "Tensor[(2), int64]"
    # Nothing where something must be is the default, if there is one.
    assert load_json(called("cumsum", 1, axis="2", exclusive="0"))["main"].body.attrs == ScanAttrs(1, None, False)
    assert load_json(called("cumsum", 1, exclusive="2"))["main"].body.attrs == ScanAttrs(None, None, True)
    assert result("tile", reps="10") == "Tensor[(4, 6), float32]"
    with pytest.raises(ParseError, match="attribute reps of tile must be given"):
        result("tile", reps="0")


@pytest.mark.parametrize(
    ("op", "attrs", "sentence"),
    [
        ("sum", {"keepdims": "2"}, r"nodes\[8\]: keepdims must be 0 or 1, not 2"),
        ("nn.softmax", {"axis": "first"}, r"nodes\[8\]: axis must be a number, not first"),
        ("expand_dims", {}, "attribute axis of expand_dims must be given"),
        ("sum", {"axis": "4"}, r"nodes\[4\]: attribute must be a number, a string or a list, not TensorType"),
    ],
)
def test_attributes_that_nobody_can_read(op: str, attrs: dict[str, str], sentence: str) -> None:
    with pytest.raises(ParseError, match=sentence):
        load_json(called(op, **attrs))


def test_functions_of_other_languages_and_attributes_without_plain_form_are_left_out() -> None:
    x = relay.var("x", shape=(2,))
    attrs = {"Primitive": 1, "Compiler": "vta", "nested": (1, ("a", 2)), "target": 5, "flag": 7}
    saved = json.loads(save_tvm_json(relay.IRModule({"main": relay.Function([x], relay.exp(x), attrs=attrs)})))
    nodes = saved["nodes"]
    for node in nodes:
        match node:
            case {"type_key": "IntImm", "attrs": {"value": "5"}}:
                node["type_key"] = "Target"
            case {"type_key": "IntImm", "attrs": {"value": "7"}}:
                node["attrs"].update(dtype="bool", value="1")
    functions = next(node for node in nodes if node["type_key"] == "Map" and "keys" not in node)
    functions["data"] += [len(nodes), len(nodes) + 1]
    nodes += [{"type_key": "GlobalVar", "attrs": {"name_hint": "kernel"}}, {"type_key": "tir.PrimFunc"}]
    mod = load_json(json.dumps(saved))
    assert list(mod.functions) == ["main"]
    assert dict(mod["main"].attrs) == {"Primitive": 1, "Compiler": "vta", "nested": (1, ("a", 2)), "flag": True}


def test_what_is_no_program() -> None:
    nodes: list[dict[str, Any]] = [{"type_key": ""}, {"type_key": "IntImm", "attrs": {"dtype": "int32", "value": "3"}}]
    assert read_graph({"root": 1, "nodes": nodes}) == 3 and read_graph({"root": 0, "nodes": nodes}) is None
    with pytest.raises(ParseError, match="root of the graph must be a module or an expression, not int"):
        load_json(json.dumps({"root": 1, "nodes": nodes}))


# The writer


@pytest.mark.parametrize("seed", range(0, 40, 5))
def test_saved_programs_are_those_of_the_independent_writer(seed: int) -> None:
    mod = infer_type(random_module(seed, depth=3))
    mine, theirs = json.loads(save_tvm_json(mod)), json.loads(Writer().document(mod))

    def kinds(document: Any) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for node in document["nodes"]:
            if "relay.attrs" not in node["type_key"]:
                found.setdefault(node["type_key"], set()).update(set(node.get("attrs", {})) - set(ALWAYS))
        return found

    assert kinds(mine) == kinds(theirs)
    assert structural_equal(load_json(json.dumps(mine)), mod)


def attributes_of(call: relay.Call) -> dict[str, Any]:
    """The record of a call as it is saved, with what its nodes stand for."""
    saved = json.loads(save_tvm_json(call))
    record = next(node for node in saved["nodes"] if node["type_key"].startswith("relay.attrs."))
    nodes = {name: saved["nodes"][int(text)] if text.isdecimal() else None for name, text in record["attrs"].items()}
    return {"": record["type_key"], "nodes": nodes, **record["attrs"]}


def test_each_attribute_is_written_as_its_record_declares_it() -> None:
    x = relay.var("x", shape=(2, 4, 6, 6))
    places = relay.var("places", shape=(2,), dtype="int32")
    found = attributes_of(relay.op.one_hot(places, relay.const(1.0), relay.const(0.0), 5, -1, "float32"))
    assert found[""] == "relay.attrs.OneHotAttrs" and found["depth"] == "5" and found["dtype"] == "float32"
    found = attributes_of(relay.op.cumsum(x, axis=2, exclusive=True))
    assert found[""] == "relay.attrs.ScanopAttrs"
    assert found["nodes"]["exclusive"]["attrs"] == {"dtype": "bool", "span": "0", "value": "1"}
    assert found["nodes"]["axis"]["attrs"]["value"] == "2"
    found = attributes_of(relay.op.nn.avg_pool2d(x, (2, 2), layout="NCHW", ceil_mode=True))
    assert found["nodes"]["layout"] == {"type_key": "runtime.String", "repr_str": "NCHW"} and found["ceil_mode"] == "1"
    found = attributes_of(relay.op.layout_transform(x, "NCHW", "NHWC"))
    assert (found["src_layout"], found["dst_layout"]) == ("NCHW", "NHWC")


def test_what_the_writer_refuses() -> None:
    with pytest.raises(InputError, match="a program for TVM must be made of its nodes, not of set"):
        save_tvm_json(relay.Function([], relay.const(1), attrs={"a": {1}}))
