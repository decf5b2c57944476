"""Small ONNX models and data for them: what tests of the runtime and the command line compile and run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

SHAPE = (3, 8, 8)
CLASSES = 5
Weights = list[onnx.TensorProto]


class _Graph:
    """Nodes one after the other; weights are random but always the same."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: Weights = []
        self.last = "image"

    def weight(self, *shape: int) -> str:
        name = f"w{len(self.weights)}"
        values = self.rng.normal(size=shape) / np.sqrt(np.prod(shape[1:]))
        self.weights.append(numpy_helper.from_array(values.astype(np.float32), name))
        return name

    def add(self, operator: str, inputs: Sequence[str] = (), name: str = "", **attrs: Any) -> None:
        output = name or f"{operator.lower()}{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, [self.last, *inputs], [output], output, **attrs))
        self.last = output

    def conv(self, name: str, out: int, inner: int, kernel: int = 3, **attrs: Any) -> None:
        self.add("Conv", [self.weight(out, inner, kernel, kernel), self.weight(out)], name, **attrs)

    def save(self, path: Path, shape: Sequence[int]) -> Path:
        image = helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, *shape])
        scores = helper.make_tensor_value_info(self.last, TensorProto.FLOAT, [1, CLASSES])
        graph = helper.make_graph(self.nodes, "net", [image], [scores], self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
        model.ir_version = 8
        onnx.save(model, path)
        return path


def save_plain(path: Path) -> Path:
    """A network that lies wholly on the accelerator but for its borders."""
    net = _Graph(1)
    net.conv("conv_a", 8, 3, pads=[1, 1, 1, 1])
    net.add("Relu")
    net.add("MaxPool", name="pool", kernel_shape=[2, 2], strides=[2, 2])
    net.conv("conv_b", 6, 8)
    net.add("Flatten")
    net.add("Gemm", [net.weight(CLASSES, 24), net.weight(CLASSES)], "fc", transB=1)
    net.add("Softmax", name="scores", axis=-1)
    return net.save(path, SHAPE)


def save_mixed(path: Path) -> Path:
    """A network with a softmax and a convolution of too many taps, which stay on the host."""
    net = _Graph(2)
    net.conv("conv_a", 8, 3, pads=[1, 1, 1, 1])
    net.add("Softmax", name="squash", axis=1)
    net.conv("conv_g", 8, 8, 47, pads=[23, 23, 23, 23])
    net.conv("conv_b", 4, 8, strides=[2, 2])
    net.add("Flatten")
    net.add("Gemm", [net.weight(CLASSES, 36), net.weight(CLASSES)], "fc", transB=1)
    net.add("Softmax", name="scores", axis=-1)
    return net.save(path, SHAPE)


def save_branches(path: Path) -> Path:
    """A network with a shortcut around a convolution."""
    net = _Graph(5)
    net.conv("conv_a", 16, 3, pads=[1, 1, 1, 1])
    net.add("Relu", name="relu_a")
    net.conv("conv_b", 16, 16, pads=[1, 1, 1, 1])
    net.add("Add", ["relu_a"], "sum")
    net.add("Relu", name="relu_b")
    net.add("MaxPool", name="pool", kernel_shape=[2, 2], strides=[2, 2])
    net.conv("conv_c", 8, 16)
    net.add("Flatten")
    net.add("Gemm", [net.weight(CLASSES, 32), net.weight(CLASSES)], "fc", transB=1)
    net.add("Softmax", name="scores", axis=-1)
    return net.save(path, SHAPE)


def save_unsupported(path: Path) -> Path:
    """A network with an operator that nothing here knows."""
    net = _Graph(3)
    net.conv("conv_a", 4, 3)
    net.add("Flatten")
    net.add("Gemm", [net.weight(CLASSES, 144), net.weight(CLASSES)], "fc", transB=1)
    net.add("RandomUniformLike", name="strange")
    return net.save(path, SHAPE)


def images(count: int, seed: int = 0) -> np.ndarray:
    """float32 [count, 3, 8, 8]."""
    return np.random.default_rng(seed).normal(size=(count, *SHAPE)).astype(np.float32)


def save_data(path: Path, count: int, seed: int = 0, labels: bool = False) -> Path:
    """An .npz with `count` images, perhaps labelled."""
    extra = {"labels": np.arange(count) % CLASSES} if labels else {}
    np.savez(path, image=images(count, seed), **extra)
    return path


def save_batch(path: Path, source: Path, size: int) -> Path:
    """The model of `source` for `size` images at once."""
    model = onnx.load(source)
    for item in (*model.graph.input, *model.graph.output):
        item.type.tensor_type.shape.dim[0].dim_value = size
    onnx.save(model, path)
    return path
