"""What an ONNX model asks for is counted before it is made: nodes, nesting, functions, texts, elements."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from relay_hw.errors import InputError
from relay_hw.frontend import from_onnx
from relay_hw.interp import evaluate
from relay_hw.limits import Limits, OnnxOptions

OPSETS = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]


def model(nodes: Sequence[Any], weights: Sequence[Any] = (), functions: Sequence[Any] = ()) -> onnx.ModelProto:
    """`nodes` from x, two numbers, to y."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])
    graph = helper.make_graph(list(nodes), "net", [x], [y], list(weights))
    return helper.make_model(graph, functions=list(functions), opset_imports=OPSETS, ir_version=8)


def function(name: str, nodes: Sequence[Any], attributes: Sequence[str] = ()) -> onnx.FunctionProto:
    """From a to b."""
    return helper.make_function("own", name, ["a"], ["b"], list(nodes), OPSETS, list(attributes))


def call(name: str, source: str, target: str, **attrs: Any) -> onnx.NodeProto:
    return helper.make_node(name, [source], [target], domain="own", **attrs)


def doubling(count: int) -> onnx.ModelProto:
    """Functions of which each calls the one before twice."""
    found = [function("f0", [helper.make_node("Neg", ["a"], ["b"])])]
    for number in range(1, count):
        inner = f"f{number - 1}"
        found.append(function(f"f{number}", [call(inner, "a", "c"), call(inner, "c", "b")]))
    return model([call(f"f{count - 1}", "x", "y")], functions=found)


def test_functions_are_written_out_by_numbers_first() -> None:
    small = doubling(5)
    mod, _ = from_onnx(small)
    x = np.array([1, 2], np.float32)
    assert np.array_equal(evaluate(mod, {"x": x}), x)
    bomb = doubling(40)
    assert len(bomb.SerializeToString()) < 3000
    sentence = r"nodes of function f15 of net with its functions written out must be at most 50,000, not 98,302"
    with pytest.raises(InputError, match=sentence):
        from_onnx(bomb)
    with pytest.raises(InputError, match="bytes of functions of function f4 of net when they are written out must be"):
        from_onnx(doubling(5), options=OnnxOptions(limits=Limits(inlined_bytes=1000)))
    with pytest.raises(InputError, match="functions that call functions of net must be at most 4, not 5"):
        from_onnx(small, options=OnnxOptions(limits=Limits(nesting=4)))


def test_what_a_call_gives_counts_wherever_it_is_used() -> None:
    """Four constants of the caller's tensor, in a function that is called four times."""
    nodes = [helper.make_node("Constant", [], [f"k{number}"]) for number in range(4)]
    for node in nodes:
        node.attribute.add(name="value", ref_attr_name="given", type=onnx.AttributeProto.TENSOR)
    total = helper.make_node("Sum", ["a", *(f"k{number}" for number in range(4))], ["b"])
    value = numpy_helper.from_array(np.ones(2000, np.float32))
    calls = [call("quad", "x" if not number else f"y{number}", f"y{number + 1}", given=value) for number in range(4)]
    given = model([*calls, helper.make_node("Identity", ["y4"], ["y"])],
                  functions=[function("quad", [*nodes, total], ["given"])])  # fmt: skip
    with pytest.raises(InputError, match=r"bytes of functions of net .* at most 100,000, not 1[23]\d,\d\d\d"):
        from_onnx(given, options=OnnxOptions(limits=Limits(inlined_bytes=100_000)))


def test_functions_must_not_call_themselves_or_be_there_twice() -> None:
    looped = [function("f", [call("g", "a", "b")]), function("g", [call("f", "a", "b")])]
    with pytest.raises(InputError, match=r"functions of net must not call themselves: (f calls g|g calls f) calls"):
        from_onnx(model([call("f", "x", "y")], functions=looped))
    twice = [function("f", [helper.make_node(name, ["a"], ["b"])]) for name in ("Neg", "Abs")]
    with pytest.raises(InputError, match=r"a function of net must be defined once, unlike own\.f"):
        from_onnx(model([call("f", "x", "y")], functions=twice))


def test_nodes_are_counted_wherever_they_lie() -> None:
    names = ["x", *(f"t{number}" for number in range(999)), "y"]
    chain = model([helper.make_node("Relu", [a], [b]) for a, b in pairwise(names)])
    with pytest.raises(InputError, match="nodes of net must be at most 999, not 1,000: --limit nodes=NUMBER"):
        from_onnx(chain, options=OnnxOptions(limits=Limits(nodes=999)))
    inner = helper.make_graph([helper.make_node("Neg", ["x"], ["z"])], "inner", [],
                              [helper.make_tensor_value_info("z", TensorProto.FLOAT, None)])  # fmt: skip
    condition = numpy_helper.from_array(np.array(True), "c")
    both = model([helper.make_node("If", ["c"], ["y"], then_branch=inner, else_branch=inner)], [condition])
    with pytest.raises(InputError, match="nodes of net must be at most 18, not 19"):
        from_onnx(both, options=OnnxOptions(limits=Limits(nodes=18)))
    with pytest.raises(InputError, match="graphs inside of graphs of net must be at most 0, not 1"):
        from_onnx(both, options=OnnxOptions(limits=Limits(nesting=0)))


def test_types_inside_of_types_are_no_depth_of_ours() -> None:
    given = model([helper.make_node("Identity", ["x"], ["y"])])
    kind = given.graph.input[0].type
    for _ in range(3000):
        kind.sequence_type.elem_type.tensor_type.elem_type = 1
        kind = kind.sequence_type.elem_type
    with pytest.raises(InputError, match="types inside of types of x of net must be at most 48, not 49"):
        from_onnx(given)


def test_names_and_lists_are_counted() -> None:
    given = model([helper.make_node("Relu", ["x"], ["y"], name="n" * 5000)])
    with pytest.raises(InputError, match="bytes of names, texts and lists of net must be at most 4,000, not 5,"):
        from_onnx(given, options=OnnxOptions(limits=Limits(string_bytes=4000)))
    given = model([helper.make_node("Constant", [], ["y"], value_ints=list(range(1000)))])
    with pytest.raises(InputError, match="bytes of names, texts and lists of net must be at most 8,000, not 8,"):
        from_onnx(given, options=OnnxOptions(limits=Limits(string_bytes=8000)))


@pytest.mark.parametrize(
    ("dims", "sentence"),
    [
        ([1 << 40, 1 << 40], "the elements of tensor w of net must be at most 268,435,456, not 18,446,744,073,709,"),
        ([-1, 4], "tensor w of net must have sizes of at least 0, not -1x4"),
        ([1] * 33, "tensor w of net must have at most 32 axes, not 33"),
    ],
)  # fmt: skip
def test_sizes_of_tensors(dims: list[int], sentence: str) -> None:
    weight = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=dims)
    with pytest.raises(InputError, match=sentence):
        from_onnx(model([helper.make_node("Add", ["x", "w"], ["y"])], [weight]))
    # As an attribute it is the same.
    with pytest.raises(InputError, match=sentence):
        from_onnx(model([helper.make_node("Constant", [], ["y"], value=weight)]))
