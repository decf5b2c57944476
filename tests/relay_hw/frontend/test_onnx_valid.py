"""What onnx's checker and onnxruntime refuse is refused here; a model that a rule is bent for is on a written list."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from relay_hw.errors import RelayHwError, UnsupportedError
from relay_hw.frontend import from_onnx
from relay_hw.ir.types import TensorType
from relay_hw.limits import Limits, OnnxOptions

Change = Callable[[onnx.ModelProto], object]


def plain() -> onnx.ModelProto:
    """y = relu(reshape(x) + w) of opset 17."""
    nodes = [
        helper.make_node("Reshape", ["x", "sizes"], ["r"], "shaped"),
        helper.make_node("Add", ["r", "w"], ["a"], "sum"),
        helper.make_node("LeakyRelu", ["a"], ["y"], "act", alpha=0.5),
    ]
    weights = [numpy_helper.from_array(np.array([2, -1], np.int64), "sizes"),
               numpy_helper.from_array(np.ones(3, np.float32), "w")]  # fmt: skip
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [6])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 3])
    graph = helper.make_graph(nodes, "net", [x], [y], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def _attr(model: onnx.ModelProto) -> Any:
    return model.graph.node[2].attribute[0]


def _sizes(*values: int) -> Change:
    def change(model: onnx.ModelProto) -> None:
        model.graph.initializer[0].CopyFrom(numpy_helper.from_array(np.array(values, np.int64), "sizes"))

    return change


def _opset(version: int, domain: str = "") -> Change:
    return lambda model: (
        setattr(model.opset_import[0], "version", version) or setattr(model.opset_import[0], "domain", domain)
    )


def _bytes_as_name(model: onnx.ModelProto) -> None:
    node = model.graph.node[0]
    node.ParseFromString(node.SerializeToString().replace(b"shaped", b"\xff\xfeaped"))


def _input(number: int, name: str) -> Change:
    return lambda model: model.graph.node[number].input.__setitem__(0, name)


def _output(number: int, name: str) -> Change:
    return lambda model: model.graph.node[number].output.__setitem__(0, name)


WRONG: dict[str, tuple[Change, str]] = {
    "no IR version": (lambda m: m.ClearField("ir_version"), "the IR version of net must be from 3 to [0-9]+, not 0"),
    "an IR version to come": (lambda m: setattr(m, "ir_version", 99), "IR version of net must be from 3 to [0-9]+"),
    "an IR version without opsets": (lambda m: setattr(m, "ir_version", 2), "IR version of net must be from 3 to"),
    "opset 0": (_opset(0), r"the opset of net must be from 1 to \d+, not 0"),
    "a negative opset": (_opset(-3), r"the opset of net must be from 1 to \d+, not -3"),
    "opset 2^31": (_opset(1 << 31), r"the opset of net must be from 1 to \d+, not 2147483648"),
    "opset 2^62": (_opset(1 << 62), r"the opset of net must be from 1 to \d+, not 4611686018427387904"),
    "opset to come": (_opset(999), r"the opset of net must be from 1 to \d+, not 999"),
    "an opset twice": (lambda m: m.opset_import.add(domain="ai.onnx", version=17), "must import each domain once"),
    "a version of 2^40": (lambda m: m.opset_import.add(domain="own", version=1 << 40), "the version of domain own of"),
    "no output": (lambda m: m.graph.ClearField("output"), "model must hold an output, not net, which holds none"),
    "an output without name": (lambda m: m.graph.output[0].ClearField("name"), "inputs and outputs of net must have n"),
    "an input without name": (lambda m: m.graph.input.add(), "inputs and outputs of net must have names"),
    "no operator": (lambda m: m.graph.node[2].ClearField("op_type"), "node act of net must have an operator"),
    "an attribute twice": (lambda m: m.graph.node[2].attribute.add().CopyFrom(_attr(m)), "names, unlike alpha"),
    "an attribute without name": (lambda m: _attr(m).ClearField("name"), "different names, unlike an empty one"),
    "an attribute without type": (lambda m: _attr(m).ClearField("type"), "must have a type that onnx knows, not 0"),
    "an attribute of another type": (lambda m: setattr(_attr(m), "type", 7), "must hold ints by its type, not f"),
    "an attribute of no type": (
        lambda m: (setattr(_attr(m), "type", 2), _attr(m).ClearField("f")), "net must be a model by onnx's rules: "
    ),
    "an attribute by reference": (
        lambda m: setattr(_attr(m), "ref_attr_name", "outer"), "alpha of node act of net must have a value outside of"
    ),
    "yes or no as 2": (
        lambda m: (m.graph.node[2].attribute.append(helper.make_attribute("keepdims", 2))),
        "keepdims of node act of net must be 0 or 1, not 2",
    ),
    "another number of outputs": (
        lambda m: m.graph.node[2].attribute.append(helper.make_attribute("num_outputs", 3)),
        "num_outputs of node act of net must be its 1 outputs, not 3",
    ),
    "a list of no type": (
        lambda m: m.graph.node[2].CopyFrom(helper.make_node("SequenceMap", ["b"], ["y"], "act", body=helper.make_graph(
            [helper.make_node("Neg", ["p"], ["q"])], "body", [helper.make_empty_tensor_value_info("p")],
            [helper.make_empty_tensor_value_info("q")]))),
        "act: SequenceMap must read a list whose type is known, unlike b|by onnx's rules|defined tensor",
    ),
    "an attribute that there is not": (
        lambda m: setattr(_attr(m), "name", "alfa"), "by onnx's rules: Unrecognized attribute: alfa for operator Leaky"
    ),
    "a name that is no text": (
        _bytes_as_name,
        r"names of net must be UTF-8, not b'\\xff\\xfeaped'",
    ),
    "two results of one name": (_output(0, "y"), "net must be a model|must read a defined tensor, not r"),
    "a result like the input": (_output(2, "x"), "by onnx's rules|output y of net must be defined"),
    "a result like a weight": (lambda m: (_output(1, "w")(m), _input(2, "w")(m)), "must be a model by onnx's rules"),
    "a result twice": (
        lambda m: m.graph.node.append(helper.make_node("Neg", ["a"], ["y"])), "net must be a model by onnx's rules"
    ),
    "a weight twice": (
        lambda m: m.graph.initializer.append(m.graph.initializer[1]), "weight w of net must occur once"
    ),
    "an input twice": (lambda m: m.graph.input.append(m.graph.input[0]), "net must be a model by onnx's rules"),
    "a later tensor": (_input(0, "y"), "node shaped of net must read a defined tensor, not y"),
    "its own result": (_input(1, "a"), "node sum of net must read a defined tensor, not a"),
    "too many inputs": (lambda m: m.graph.node[2].input.append("w"), "net must be a model by onnx's rules: Node"),
    "too few inputs": (lambda m: m.graph.node[1].input.pop(), "node sum of net|by onnx's rules|sum: "),
    "too many results": (lambda m: m.graph.node[2].output.append("z"), "net must be a model by onnx's rules: Node"),
    "an axis of 2^62": (
        lambda m: m.graph.node[2].CopyFrom(helper.make_node("Softmax", ["a"], ["y"], "act", axis=1 << 62)),
        "axis of node act of net must be at most 32 from 0, not 4611686018427387904",
    ),
    "two open sizes": (_sizes(-1, -1), r"shaped: sizes of Reshape must be at least 0, one of them perhaps -1"),
    "negative sizes": (_sizes(-2, -3), r"shaped: sizes of Reshape must be at least 0"),
    "sizes that do not fit": (_sizes(4, 2), "shaped: "),
    "a negative dimension": (lambda m: m.graph.initializer[1].dims.__setitem__(0, -3), "have sizes of at least 0"),
    "data too short": (lambda m: setattr(m.graph.initializer[1], "raw_data", b"123"), "w of net must be a whole"),
    "data too long": (lambda m: setattr(m.graph.initializer[1], "raw_data", b"1" * 16), "w of net must be a whole"),
    "data of no type": (lambda m: setattr(m.graph.initializer[1], "data_type", 0), "w of net must be a whole"),
    "data of a type to come": (lambda m: setattr(m.graph.initializer[1], "data_type", 99), "w of net must be a whole"),
    "another element type": (
        lambda m: setattr(m.graph.output[0].type.tensor_type, "elem_type", TensorProto.INT32), "by onnx's rules"
    ),
    "another output shape": (
        lambda m: setattr(m.graph.output[0].type.tensor_type.shape.dim[1], "dim_value", 4), "by onnx's rules"
    ),
    "an empty graph": (lambda m: m.graph.Clear(), "model must hold a graph, not model, which holds none"),
}  # fmt: skip


def test_the_model_itself_is_accepted() -> None:
    onnx.checker.check_model(plain(), full_check=True)
    assert from_onnx(plain())[0]["main"].body.type == TensorType((2, 3), "float32")


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_refused_in_one_line(name: str) -> None:
    change, sentence = WRONG[name]
    model = plain()
    change(model)
    with pytest.raises(RelayHwError, match=sentence) as caught:
        from_onnx(model)
    assert "\n" not in str(caught.value)


def test_unknown_operators_are_listed_and_the_rest_is_checked() -> None:
    model = plain()
    for number in (0, 2):
        model.graph.node[number].op_type += "Strange"
    with pytest.raises(UnsupportedError, match=r"not 2 nodes: ReshapeStrange .* LeakyReluStrange"):
        from_onnx(model)


def test_functions_that_do_not_fit() -> None:
    model = plain()
    opsets = [helper.make_opsetid("", 17)]
    body = [helper.make_node("Neg", ["a"], ["b"])]
    model.functions.append(helper.make_function("own", "f", ["a"], ["b"], body, opsets))
    model.opset_import.append(helper.make_opsetid("own", 1))
    model.graph.node[2].CopyFrom(helper.make_node("f", ["a", "a", "a"], ["y"], domain="own"))
    with pytest.raises(RelayHwError, match=r"functions of net must fit where they are called: |by onnx's rules"):
        from_onnx(model)


def test_exceptions_to_the_checker() -> None:
    """The list at the head of valid.py."""
    model = plain()
    model.ir_version = 3
    with pytest.raises(onnx.checker.ValidationError, match="in initializer but not in graph input"):
        onnx.checker.check_model(model)
    assert from_onnx(model)
    model = plain()
    model.graph.output[0].type.tensor_type.ClearField("shape")
    assert from_onnx(model)
    model.graph.output[0].ClearField("type")
    with pytest.raises(onnx.checker.ValidationError, match="'type' of 'value_info' is required"):
        onnx.checker.check_model(model)
    assert from_onnx(model)
    model = plain()
    model.graph.input[0].type.tensor_type.ClearField("shape")
    with pytest.raises(onnx.checker.ValidationError, match="'shape' of 'type' is required"):
        onnx.checker.check_model(model)
    assert from_onnx(model, shape={"x": (6,)})


def test_large_weights_are_checked_by_their_types() -> None:
    model = plain()
    model.graph.initializer[1].CopyFrom(numpy_helper.from_array(np.ones((2, 3000), np.float32), "w"))
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 6000
    with pytest.raises(RelayHwError, match="net must be a model by onnx's rules: Inference error"):
        from_onnx(model)
    model.graph.output[0].type.tensor_type.shape.dim[1].dim_value = 3000
    assert from_onnx(model)


def test_a_file_is_read_into_as_much_memory_as_it_has_bytes(tmp_path: Path) -> None:
    """Python's read takes memory for what is asked for, however short the file is."""
    import tracemalloc

    path = tmp_path / "net.onnx"
    onnx.save(plain(), path)
    from_onnx(path)
    tracemalloc.start()
    try:
        from_onnx(path, options=OnnxOptions(limits=Limits(file_bytes=1 << 30)))
        assert tracemalloc.get_traced_memory()[1] < 100 << 20
    finally:
        tracemalloc.stop()
