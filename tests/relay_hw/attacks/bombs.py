"""Attacks by small models that ask for much: functions, loops, constants, sizes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper

from tests.relay_hw.attacks.table import (
    OPSETS,
    Attack,
    Deed,
    checked,
    folded,
    info,
    model,
    node,
    of_model,
    weight,
)


def _function(name: str, nodes: list[onnx.NodeProto], attributes: tuple[str, ...] = ()) -> onnx.FunctionProto:
    return helper.make_function("own", name, ["a"], ["b"], nodes, OPSETS, list(attributes))


def _call(name: str, source: str, target: str) -> onnx.NodeProto:
    return helper.make_node(name, [source], [target], domain="own")


def _doubling(count: int) -> onnx.ModelProto:
    found = [_function("f0", [node("Neg", ["a"], "b")])]
    for number in range(1, count):
        inner = f"f{number - 1}"
        found.append(_function(f"f{number}", [_call(inner, "a", "c"), _call(inner, "c", "b")]))
    return model([_call(f"f{count - 1}", "x", "y")], functions=found)


def _calls(*pairs: tuple[str, str]) -> onnx.ModelProto:
    """Functions each of which calls another once."""
    return model(
        [_call(pairs[0][0], "x", "y")], functions=[_function(one, [_call(two, "a", "b")]) for one, two in pairs]
    )


def _copied() -> onnx.ModelProto:
    """A megabyte that each of 64 calls gives to a function that uses it 64 times."""
    inner = [node("Constant", [], f"k{number}") for number in range(64)]
    for one in inner:
        one.attribute.add(name="value", ref_attr_name="given", type=onnx.AttributeProto.TENSOR)
    function = _function("f", [*inner, node("Sum", ["a", *(f"k{k}" for k in range(64))], "b")], ("given",))
    outer = [_call("f", "a" if not k else f"c{k}", f"c{k + 1}") for k in range(64)]
    for one in outer:
        one.attribute.add(name="given", ref_attr_name="given", type=onnx.AttributeProto.TENSOR)
    whole = _function("g", [*outer, node("Identity", ["c64"], "b")], ("given",))
    start = _call("g", "x", "y")
    start.attribute.add(name="given", type=onnx.AttributeProto.TENSOR).t.CopyFrom(
        weight("", [0] * (1 << 18), "float32")
    )
    return model([start], functions=[function, whole])


def _branches(depth: int) -> onnx.GraphProto:
    if not depth:
        return helper.make_graph([node("Neg", ["x"], "z0")], "g0", [], [info("z0", None)])
    inner = _branches(depth - 1)
    both = node("If", ["c"], f"z{depth}", then_branch=inner, else_branch=inner)
    return helper.make_graph([both], f"g{depth}", [], [info(f"z{depth}", None)])


def _loop(depth: int) -> onnx.GraphProto:
    """Each level needs two trials, and converts the level inside from the start in each."""
    nodes = [node("Concat", [f"v{depth}"] * 2, f"w{depth}", axis=0), node("Identity", [f"g{depth}"], f"h{depth}")]
    if depth:
        nodes.append(helper.make_node("Loop", ["n", "", "w"], [f"u{depth}"], f"loop_{depth}", body=_loop(depth - 1)))
    kinds = (TensorProto.INT64, TensorProto.BOOL, TensorProto.FLOAT)
    inputs = [info(f"{key}{depth}", [] if key != "v" else None, kind) for key, kind in zip("igv", kinds, strict=True)]
    outputs = [info(f"h{depth}", [], TensorProto.BOOL), info(f"w{depth}", None)]
    return helper.make_graph(nodes, f"body_{depth}", inputs, outputs)


def _loops() -> onnx.ModelProto:
    weights = [weight("n", 3), weight("w", [1, 1], "float32")]
    return model([node("Loop", ["n", "", "x"], "y", body=_loop(20))], weights)


def _rows() -> onnx.ModelProto:
    """2^60 rows of a loop's result."""
    nodes = [node("Identity", ["g"], "h"), node("Neg", ["x"], "row")]
    inputs = [info("i", [], TensorProto.INT64), info("g", [], TensorProto.BOOL)]
    body = helper.make_graph(nodes, "body", inputs, [info("h", [], TensorProto.BOOL), info("row")])
    return model([node("Loop", ["n", ""], "y", body=body)], [weight("n", 1 << 60)])


def _scans() -> onnx.ModelProto:
    """Scan of opset 8: a loop for each of 2^24 images."""
    body = helper.make_graph([node("Neg", ["a"], "b")], "body", [info("a", [1])], [info("b", [1])])
    given = model([node("Scan", ["", "x"], "y", body=body, num_scan_inputs=1)], inputs=[info("x", [1 << 24, 1, 1])])
    given.opset_import[0].version = 8
    return given


def _chain(count: int) -> onnx.ModelProto:
    names = ["x", *(f"t{number}" for number in range(count - 1)), "y"]
    return model([node("Relu", [names[k]], names[k + 1]) for k in range(count)])


def _doubled(operator: str, size: int, **attrs: int) -> onnx.ModelProto:
    nodes = [node(operator, [f"c{k}"] * 2, f"c{k + 1}", **attrs) for k in range(60)]
    return folded(nodes, [weight("c0", [1] * size, "float32")])


def _made(operator: str, *weights: onnx.TensorProto, **attrs: object) -> onnx.ModelProto:
    return folded([node(operator, [one.name for one in weights], "c", **attrs)], weights)


def _full(*sizes: int, then: str = "", **attrs: object) -> onnx.ModelProto:
    nodes = [node("ConstantOfShape", ["s"], "c")]
    if then:
        nodes.append(node(then, ["c"] * (2 if then == "MatMul" else 1), "d", **attrs))
    return folded(nodes, [weight("s", sizes)])


def _declared(*dims: int, then: str = "Relu") -> onnx.ModelProto:
    return model([node(then, ["x"], "y")], inputs=[info("x", dims)])


def _held(name: str, dims: list[int], data: bytes = b"", kind: int = TensorProto.FLOAT) -> Attack:
    tensor = TensorProto(name="w", data_type=kind, dims=dims, raw_data=data)
    return of_model(name, lambda: model([node("Add", ["x", "w"], "y")], [tensor]))


def _sparse() -> onnx.ModelProto:
    given = model([node("Add", ["x", "w"], "y")])
    made = given.graph.sparse_initializer.add(dims=[1 << 40])
    made.values.CopyFrom(weight("w", [1], "float32"))
    made.indices.CopyFrom(weight("at", [5]))
    return given


def _sparse_constant() -> onnx.ModelProto:
    constant = node("Constant", [], "c")
    value = constant.attribute.add(name="sparse_value", type=onnx.AttributeProto.SPARSE_TENSOR).sparse_tensor
    value.CopyFrom(_sparse().graph.sparse_initializer[0])
    return model([constant, node("Add", ["x", "c"], "y")])


def _types(depth: int) -> onnx.ModelProto:
    given = model([node("Identity", ["x"], "y")])
    kind = given.graph.input[0].type
    for _ in range(depth):
        kind.sequence_type.elem_type.tensor_type.elem_type = 1
        kind = kind.sequence_type.elem_type
    return given


def _nested_bytes(folder: Path) -> Deed:
    """20,000 messages inside of one another, which no protobuf of ours would write."""
    data = b""
    for _ in range(20_000):
        data = b"\x32" + _varint(len(data)) + data  # an attribute's graph
    path = folder / "net.onnx"
    path.write_bytes(b"\x3a" + _varint(len(data)) + data)
    return ["check", str(path)]


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes([*found, value])


def _untrusted(folder: Path) -> Deed:
    return checked(folder, _doubling(40), "--untrusted")


def _deeper_than_can_be(folder: Path) -> Deed:
    return checked(folder, _calls(*((f"f{k}", f"f{k + 1}") for k in range(200))), "--limit", "nesting=1000000")


def _sized(operator: str, size: int, *before: str) -> onnx.ModelProto:
    """An operator whose sizes or axes are an input that says how many of them there are."""
    kinds = [info("x", (2, 3)), *(info(name, (size,), TensorProto.INT64) for name in ("s", *before))]
    return model([node(operator, ["x", "s", *before], "y")], inputs=kinds)


def _parts(count: int, **attrs: int) -> onnx.ModelProto:
    """A Split whose attributes do not say what its outputs are."""
    split = onnx.helper.make_node("Split", ["x"], ["y", *(f"p{k}" for k in range(1, count))], **attrs)
    given = model([split])
    given.opset_import[0].version = 18
    return given


def _asked(count: int) -> onnx.ModelProto:
    """Decisions one after the other."""
    ifs = [node("If", ["c"], f"t{k}", then_branch=_branches(0), else_branch=_branches(0)) for k in range(count)]
    return model([*ifs, node("Identity", [f"t{count - 1}"], "y")], [weight("c", True, "bool")])


def _normalized() -> onnx.ModelProto:
    """Running means of a normalization that does not train."""
    names = [weight(name, [1, 1], "float32") for name in ("s", "b", "m", "v")]
    made = onnx.helper.make_node("BatchNormalization", ["x", "s", "b", "m", "v"], ["h", "mean", "y"])
    return model([made], names, inputs=[info("x", (1, 2))])


def _scanned_by_many() -> onnx.ModelProto:
    given = model([node("Scan", ["", "x", "x"], "y", num_scan_inputs=(1 << 63) - 1, body=_branches(0))])
    given.opset_import[0].version = 8
    given.ir_version = 3
    return given


def _untyped_list() -> onnx.ModelProto:
    body = helper.make_graph([node("Neg", ["p"], "q")], "body", [info("p", None)], [info("q", None)])
    given = model([node("SequenceMap", ["x"], "y", body=body)])
    given.graph.input[0].ClearField("type")
    return given


def _recurrent(steps: int = 3, hidden: int = 1 << 40) -> onnx.ModelProto:
    kinds = [info("x", (steps, 1, 2))]
    weights = [weight("w", np.ones((1, 12, 2)), "float32"), weight("r", np.ones((1, 12, 4)), "float32")]
    return model([node("GRU", ["x", "w", "r"], "y", hidden_size=hidden)], weights, inputs=kinds)


_V = weight("v", [1] * 64, "float32")

ATTACKS = (
    of_model("functions that double, 40 deep (1.6 kB; hangs onnx.checker and onnxruntime)", lambda: _doubling(40)),
    Attack("functions that double, untrusted", _untrusted),
    of_model("a function that calls itself", lambda: _calls(("f", "f"))),
    of_model("functions that call one another", lambda: _calls(("f", "g"), ("g", "h"), ("h", "f"))),
    Attack("200 functions, each called by the one before, and no limit", _deeper_than_can_be),
    of_model(
        "200 functions, each called by the one before", lambda: _calls(*((f"f{k}", f"f{k + 1}") for k in range(200)))
    ),
    of_model("a tensor copied to 4,096 places by functions", _copied),
    of_model(
        "branches inside of branches, 2^15 nodes",
        lambda: model(
            [node("If", ["c"], "y", then_branch=_branches(14), else_branch=_branches(14))], [weight("c", True, "bool")]
        ),
    ),
    of_model("loops inside of loops, 2^20 trials", _loops),
    of_model("a loop of 2^60 steps that collects rows", _rows),
    of_model("a scan of opset 8 over 2^24 images", _scans),
    of_model("a chain of 100,000 nodes", lambda: _chain(100_000)),
    of_model(
        "a sequence of 2^20 pieces",
        lambda: model(
            [node("SplitToSequence", ["x"], "s"), node("SequenceLength", ["s"], "y")], inputs=[info("x", [1 << 20])]
        ),
    ),
    of_model("ConstantOfShape 2^28 (144 bytes)", lambda: _full(1 << 28)),
    of_model("ConstantOfShape 2^40", lambda: _full(1 << 40)),
    of_model("ConstantOfShape 2^62 by 2^62", lambda: _full(1 << 62, 1 << 62)),
    of_model("ConstantOfShape -1", lambda: _full(-1)),
    of_model("Expand 2^36", lambda: _made("Expand", weight("v", 1, "float32"), weight("n", [1 << 18, 1 << 18]))),
    of_model("Range to 1e12", lambda: _made("Range", weight("a", 0), weight("b", 10**12), weight("d", 1))),
    of_model(
        "Range of infinitely many",
        lambda: _made("Range", *(weight(n, v, "float32") for n, v in (("a", 0), ("b", 1e38), ("d", 1e-38)))),
    ),
    of_model(
        "Range to NaN",
        lambda: _made("Range", *(weight(n, v, "float32") for n, v in (("a", 0), ("b", float("nan")), ("d", 1)))),
    ),
    of_model("Tile 2^40", lambda: _made("Tile", _V, weight("n", [1 << 40]))),
    of_model("Pad 2^40", lambda: _made("Pad", _V, weight("n", [1 << 40, 1 << 40]))),
    of_model("Pad 2^40 that wraps", lambda: _made("Pad", _V, weight("n", [1 << 40, 1 << 40]), mode="wrap")),
    of_model("Pad -2^62", lambda: _made("Pad", _V, weight("n", [-(1 << 62), -(1 << 62)]))),
    of_model("Concat that doubles 60 times", lambda: _doubled("Concat", 64, axis=0)),
    of_model(
        "Add of 60 constants of 64 MB",
        lambda: folded(
            [node("ConstantOfShape", ["s"], "c0"), *(node("Add", [f"c{k}"] * 2, f"c{k + 1}") for k in range(60))],
            [weight("s", [1 << 24])],
        ),
    ),
    of_model(
        "OneHot of depth 2^40",
        lambda: _made("OneHot", weight("n", [1, 2]), weight("d", 1 << 40), weight("v", [0, 1], "float32")),
    ),
    of_model(
        "Resize to 2^60",
        lambda: folded(
            [node("Resize", ["v", "", "", "n"], "c", mode="linear")],
            [weight("v", [[[[1, 2], [3, 4]]]], "float32"), weight("n", [1, 1, 1 << 30, 1 << 30])],
        ),
    ),
    of_model(
        "Resize by 1e30",
        lambda: folded(
            [node("Resize", ["v", "", "n"], "c")],
            [weight("v", [[[[1, 2], [3, 4]]]], "float32"), weight("n", [1, 1, 1e30, 1e30], "float32")],
        ),
    ),
    of_model(
        "Gather of 2^27 rows",
        lambda: folded(
            [node("ConstantOfShape", ["s"], "z", value=weight("", [0])), node("Gather", ["v", "z"], "c")],
            [_V, weight("s", [1 << 27])],
        ),
    ),
    of_model("MatMul of 4,096 by 4,096 constants", lambda: _full(4096, 4096, then="MatMul")),
    of_model(
        "a window of 1,024 by 1,024 over constants",
        lambda: _full(1, 1, 2048, 2048, then="MaxPool", kernel_shape=[1024, 1024]),
    ),
    of_model(
        "pads of 2^40",
        lambda: _full(1, 1, 2, 2, then="MaxPool", kernel_shape=[1, 1], pads=[1 << 40] * 4, strides=[1 << 40] * 2),
    ),
    of_model("a determinant of 2,048 by 2,048", lambda: _full(4, 2048, 2048, then="Det")),
    of_model(
        "MelWeightMatrix of 2^40",
        lambda: _made(
            "MelWeightMatrix",
            weight("n", 1 << 40),
            weight("l", 1 << 40),
            weight("r", 8000),
            weight("p", 0, "float32"),
            weight("q", 4000, "float32"),
        ),
    ),
    of_model("an input of 2^40 elements", lambda: _declared(1 << 20, 1 << 20)),
    of_model("EyeLike of 2^40", lambda: _declared(1 << 20, 1 << 20, then="EyeLike")),
    of_model("an input of 100 axes", lambda: _declared(*([1] * 100))),
    of_model("Reshape to 2^62", lambda: model([node("Reshape", ["x", "s"], "y")], [weight("s", [1 << 62, 2])])),
    of_model("types inside of types, 3,000 deep", lambda: _types(90)),
    of_model("Unsqueeze by 2^31 axes", lambda: _sized("Unsqueeze", 1 << 31)),
    of_model("Expand by 2^27 sizes", lambda: _sized("Expand", 1 << 27)),
    of_model("Slice by 2^27 bounds", lambda: _sized("Slice", 1 << 27, "e")),
    of_model("Pad by 2^27 widths", lambda: _sized("Pad", 1 << 27)),
    of_model("Split that says fewer outputs than it has (aborts onnx)", lambda: _parts(2, num_outputs=1)),
    of_model("Split that says 2^40 outputs", lambda: _parts(2, num_outputs=1 << 40)),
    of_model("the largest of 200,000", lambda: model([node("Max", ["x"] * 200_000, "y")])),
    of_model("12,000 decisions", lambda: _asked(12_000)),
    of_model("BatchNormalization that gives what only training knows", _normalized),
    of_model("a GRU of 2^27 steps", lambda: _recurrent(1 << 27, 4)),
    of_model("an LSTM's input of 2^33 elements", lambda: _recurrent(1 << 32, 4)),
    of_model("a scan of 2^63 inputs", _scanned_by_many),
    of_model("a list of no type (ends onnx)", _untyped_list),
    of_model("a GRU of another size than its weights", _recurrent),
    Attack("CVE-2025-4565: messages inside of messages, 20,000 deep", _nested_bytes),
    _held("a weight of 2^40", [1 << 40]),
    _held("a weight of 2^66", [1 << 33, 1 << 33]),
    _held("a weight of 2^256", [1 << 62] * 4),
    _held("a weight of negative size", [-2, -4], b"\0" * 32),
    _held("a weight of 100 axes", [1] * 100, b"\0" * 4),
    _held("a weight with too few bytes", [1 << 20], b"\0" * 4),
    _held("a weight with too many bytes", [2], b"\0" * 4096),
    _held("a weight of no type", [2], b"\0" * 8, 0),
    _held("a weight of words", [2], b"\0" * 8, TensorProto.STRING),
    of_model("a sparse weight of 2^40", _sparse),
    of_model("a sparse constant of 2^40", _sparse_constant),
)
