"""Attacks by models that break the rules of graphs, and files that are no models."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import onnx

from tests.relay_hw.attacks.table import Attack, Deed, checked, info, model, node, of_model, weight


def _plain() -> onnx.ModelProto:
    nodes = [node("Reshape", ["x", "s"], "r"), node("Add", ["r", "w"], "a"), node("LeakyRelu", ["a"], "y", alpha=0.5)]
    return model(nodes, [weight("s", [1, 2]), weight("w", [1, 2], "float32")])


def _changed(name: str, change: Callable[[onnx.ModelProto], object]) -> Attack:
    def make() -> onnx.ModelProto:
        given = _plain()
        change(given)
        return given

    return of_model(name, make)


def _quantized(key: str, value: float) -> Attack:
    """A convolution of integers whose scale `key` is no scale."""

    def make() -> onnx.ModelProto:
        scales = {"sx": 0.1, "sw": 0.02, "sy": 0.2} | {key: value}
        weights = [weight(name, number, "float32") for name, number in scales.items()]
        weights += [weight("z", 0, "int8"), weight("w", [[[[1]], [[-2]]]] * 2, "int8")]
        nodes = [
            node("QuantizeLinear", ["x", "sx", "z"], "q"),
            node("QLinearConv", ["q", "sx", "z", "w", "sw", "z", "sy", "z"], "r"),
            node("DequantizeLinear", ["r", "sy", "z"], "y"),
        ]
        return model(nodes, weights, inputs=[info("x", (1, 2, 4, 4))])

    return of_model(f"integers: the scale {key} is {value}", make)


def _file(name: str, data: bytes) -> Attack:
    def make(folder: Path) -> Deed:
        (folder / "net.onnx").write_bytes(data)
        return ["check", str(folder / "net.onnx")]

    return Attack(name, make)


def _cut(folder: Path) -> Deed:
    words = checked(folder, _plain())
    path = folder / "net.onnx"
    path.write_bytes(path.read_bytes()[:-40])
    return words


def _huge(folder: Path) -> Deed:
    path = folder / "net.onnx"
    with path.open("wb") as file:
        file.truncate(1 << 40)  # takes no room
    return ["check", str(path)]


def _pipe(folder: Path) -> Deed:
    os.mkfifo(folder / "net.onnx")
    return ["check", str(folder / "net.onnx")]


def _device(folder: Path) -> Deed:
    (folder / "net.onnx").symlink_to("/dev/zero")
    return ["check", str(folder / "net.onnx")]


def _not_text(given: onnx.ModelProto) -> None:
    first = given.graph.node[0]
    first.ParseFromString(first.SerializeToString().replace(b"make_r", b"\xff\xfeke_r"))


def _attr(given: onnx.ModelProto) -> onnx.AttributeProto:
    return given.graph.node[2].attribute[0]


def _result(number: int, name: str) -> Callable[[onnx.ModelProto], object]:
    return lambda given: given.graph.node[number].output.__setitem__(0, name)


def _opset(version: int) -> Callable[[onnx.ModelProto], object]:
    return lambda given: setattr(given.opset_import[0], "version", version)


ATTACKS = (
    _changed("a result's name twice", lambda m: m.graph.node.append(node("Neg", ["a"], "y"))),
    _changed("a weight's name twice", lambda m: m.graph.initializer.append(m.graph.initializer[1])),
    _changed("an input's name twice", lambda m: m.graph.input.append(m.graph.input[0])),
    _changed("a result named like the input", _result(2, "x")),
    _changed("a graph that is a circle", lambda m: m.graph.node[0].input.__setitem__(0, "y")),
    _changed("a node that reads its own result", lambda m: m.graph.node[1].input.__setitem__(0, "a")),
    _changed("a tensor that nobody defines", lambda m: m.graph.node[1].input.__setitem__(1, "zz")),
    _changed("an output that nobody defines", lambda m: setattr(m.graph.output[0], "name", "zz")),
    _changed("opset 2^31", _opset(1 << 31)),
    _changed("opset 2^62", _opset(1 << 62)),
    _changed("opset -1", _opset(-1)),
    _changed("opset 0", _opset(0)),
    _changed("CVE-2026-44512: an opset that converters choke on", _opset(1)),
    _changed("IR version 2^40", lambda m: setattr(m, "ir_version", 1 << 40)),
    _changed("no IR version", lambda m: m.ClearField("ir_version")),
    _changed("two open sizes in Reshape", lambda m: m.graph.initializer[0].CopyFrom(weight("s", [-1, -1]))),
    _changed("negative sizes in Reshape", lambda m: m.graph.initializer[0].CopyFrom(weight("s", [-2, -1]))),
    _changed("an attribute twice", lambda m: m.graph.node[2].attribute.append(_attr(m))),
    _changed("an attribute of another type", lambda m: setattr(_attr(m), "type", 7)),
    _changed("an attribute without value", lambda m: _attr(m).Clear()),
    _changed("an attribute by reference outside of functions", lambda m: setattr(_attr(m), "ref_attr_name", "k")),
    _changed("1,000 inputs of a node that takes one", lambda m: m.graph.node[2].input.extend(["w"] * 1000)),
    _changed("no operator", lambda m: m.graph.node[1].ClearField("op_type")),
    _changed("an operator that there is not", lambda m: setattr(m.graph.node[1], "op_type", "A" * 100_000)),
    _changed("a name that is no text", _not_text),
    _changed("no inputs, no nodes", lambda m: m.graph.Clear()),
    _changed("an axis of 2^62", lambda m: m.graph.node[2].CopyFrom(node("Softmax", ["a"], "y", axis=1 << 62))),
    _changed("a permutation of the same axis", lambda m: m.graph.node[2].CopyFrom(
        node("Transpose", ["a"], "y", perm=[0, 0]))),
    _changed("a cast to no type", lambda m: m.graph.node[2].CopyFrom(node("Cast", ["a"], "y", to=1 << 40))),
    _changed("an equation of 10,000 letters", lambda m: m.graph.node[2].CopyFrom(
        node("Einsum", ["a"], "y", equation="i" * 10_000))),
    _changed("terminal controls in an operator", lambda m: setattr(m.graph.node[1], "op_type", "\x1b]0;x\x07\nAdd")),
    *(
        _quantized(key, value)
        for key in ("sx", "sw", "sy")
        for value in (0.0, -0.1, float("nan"), float("inf"), float("-inf"))
    ),
    _file("an empty file", b""),
    _file("a text", b"this is no model\n" * 100),
    _file("one byte a million times", b"\x0a" * 1_000_000),
    _file("a length of 2^63", b"\x3a" + b"\xff" * 9 + b"\x01"),
    _file("a group that never ends", b"\x3b" * 100_000),
    Attack("a model cut short", _cut),
    Attack("a model of 2^40 bytes", _huge),
    Attack("a model that is a pipe without writer", _pipe),
    Attack("a model that is a device", _device),
)  # fmt: skip
