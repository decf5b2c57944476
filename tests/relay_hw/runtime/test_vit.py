"""A vision transformer as ONNX files have it: between layers activations stay integers, attention of 49 tokens too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from relay_hw import frontend
from relay_hw.interp import evaluate
from relay_hw.runtime import compile_model
from relay_hw.runtime.execute import Executor
from relay_hw.target.accel.devices import open_device

PATCH, SIDE, WIDTH, HEADS, BLOCKS, CLASSES = 4, 7, 64, 4, 2, 10
TOKENS = SIDE * SIDE


class Writer:
    """Nodes and seeded weights of a file."""

    def __init__(self) -> None:
        self._rng = np.random.default_rng(5)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []

    def node(self, kind: str, *inputs: str, **attributes: Any) -> str:
        name = f"{kind}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [name], name, **attributes))
        return name

    def weight(self, value: Any) -> str:
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def number(self, value: float) -> str:
        return self.weight(np.float32(value))

    def normal(self, shape: tuple[int, ...], deviation: float, mean: float = 0.0) -> str:
        return self.weight(self._rng.normal(mean, deviation, shape).astype("float32"))

    def linear(self, x: str, inputs: int, units: int) -> str:
        product = self.node("MatMul", x, self.normal((inputs, units), inputs**-0.5))
        return self.node("Add", product, self.normal((units,), 0.1))

    def norm(self, x: str) -> str:
        """A layer norm in nine operators."""
        centered = self.node("Sub", x, self.node("ReduceMean", x, axes=[-1]))
        variance = self.node("ReduceMean", self.node("Pow", centered, self.number(2)), axes=[-1])
        root = self.node("Sqrt", self.node("Add", variance, self.number(1e-5)))
        scaled = self.node("Mul", self.node("Div", centered, root), self.normal((WIDTH,), 0.2, 1))
        return self.node("Add", scaled, self.normal((WIDTH,), 0.2))

    def gelu(self, x: str) -> str:
        erf = self.node("Erf", self.node("Div", x, self.number(2**0.5)))
        half = self.node("Mul", x, self.node("Add", erf, self.number(1)))
        return self.node("Mul", half, self.number(0.5))

    def attention(self, x: str) -> str:
        split = self.weight(np.array([1, TOKENS, HEADS, WIDTH // HEADS]))
        q, k, v = (self.node("Reshape", self.linear(x, WIDTH, WIDTH), split) for _ in range(3))
        q, v = (self.node("Transpose", one, perm=[0, 2, 1, 3]) for one in (q, v))
        scores = self.node("MatMul", q, self.node("Transpose", k, perm=[0, 2, 3, 1]))
        soft = self.node("Softmax", self.node("Div", scores, self.number((WIDTH / HEADS) ** 0.5)), axis=-1)
        mixed = self.node("Transpose", self.node("MatMul", soft, v), perm=[0, 2, 1, 3])
        joined = self.node("Reshape", mixed, self.weight(np.array([1, TOKENS, WIDTH])))
        return self.linear(joined, WIDTH, WIDTH)


def vit() -> onnx.ModelProto:
    w = Writer()
    patches = w.node("Conv", "image", w.normal((WIDTH, 3, PATCH, PATCH), 0.1), strides=[PATCH] * 2)
    x = w.node("Transpose", w.node("Reshape", patches, w.weight(np.array([1, WIDTH, TOKENS]))), perm=[0, 2, 1])
    for _ in range(BLOCKS):
        x = w.node("Add", w.attention(w.norm(x)), x)
        x = w.node("Add", w.linear(w.gelu(w.linear(w.norm(x), WIDTH, 2 * WIDTH)), 2 * WIDTH, WIDTH), x)
    scores = w.linear(w.norm(x), WIDTH, CLASSES)
    ends = [
        helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, PATCH * SIDE, PATCH * SIDE]),
        helper.make_tensor_value_info(scores, TensorProto.FLOAT, [1, TOKENS, CLASSES]),
    ]
    graph = helper.make_graph(w.nodes, "vit", ends[:1], ends[1:], w.weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def test_a_vision_transformer_is_integers_throughout(tmp_path: Path) -> None:
    path = tmp_path / "vit.onnx"
    onnx.save(vit(), path)
    data = {"image": np.random.default_rng(1).normal(size=(6, 3, PATCH * SIDE, PATCH * SIDE)).astype("float32")}
    mod, _ = frontend.from_onnx(path, freeze_params=True)
    compiled = compile_model(mod, calibration=data)
    on_host = [row.operator for row in compiled.layers if row.where == "host"]
    on_device = [row.operator for row in compiled.layers if row.where == "accel"]
    assert on_host == ["qnn.quantize", "qnn.dequantize"]
    assert on_device.count("accel.layer_norm") == 2 * BLOCKS + 1 and on_device.count("accel.softmax") == BLOCKS
    assert on_device.count("accel.batch_matmul") == 2 * BLOCKS and on_device.count("accel.dense") == 6 * BLOCKS + 1
    assert len(compiled.segments) == 1
    artifact = compiled.save(tmp_path / "build")
    (have,) = Executor(artifact, open_device("functional", artifact.config)).run(data).outputs.values()
    (same,) = Executor(artifact, None).run(data).outputs.values()
    assert np.array_equal(have, same)
    want = np.concatenate([evaluate(mod, {"image": data["image"][n : n + 1]}) for n in range(6)]).reshape(have.shape)
    assert 10 * np.log10(np.square(want).sum() / np.square(have - want).sum()) > 26
