"""Networks of tokens in ONNX, with seeded weights: what transformers of this folder are written with.

In: layers and their sizes. Out: a checked `onnx.ModelProto` of the operators that PyTorch's exporter writes, whose
bytes depend on these and the seed alone. No data run through the layers: each tensor has the power that is expected of
it, by which batch norms get their statistics. As in trained ones, norms make a few channels much larger than others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod, sqrt
from typing import Any
from zlib import crc32

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

Array = NDArray[Any]
# The first with LayerNormalization.
OPSET = 17
IR_VERSION = 8
# One channel of so many is an outlier, so many times as large as others.
OUTLIER_EVERY = 61
OUTLIER = 4.0
# Mean squares that are left of standard normal numbers.
SILU_POWER = 0.3557
GELU_POWER = 0.4252
SIGMOID_POWER = 0.2934


@dataclass(frozen=True, slots=True)
class Value:
    """A tensor of the network: its name, its shape, and the mean square that its elements are expected to have."""

    name: str
    shape: tuple[int, ...]
    power: float = 1.0

    @property
    def width(self) -> int:
        """Size of the last axis."""
        return self.shape[-1]


class Graph:
    """A network under construction. A weight depends on the seed and its own name."""

    def __init__(self, name: str, seed: int = 0) -> None:
        self.name = name
        self.seed = seed
        self._nodes: list[onnx.NodeProto] = []
        self._tensors: dict[str, onnx.TensorProto] = {}
        self._inputs: list[onnx.ValueInfoProto] = []

    def input(self, name: str, shape: Sequence[int], kind: int = TensorProto.FLOAT) -> Value:
        """An input of the network."""
        self._inputs.append(helper.make_tensor_value_info(name, kind, shape))
        return Value(name, tuple(shape))

    def constant(self, name: str, array: Array, power: float = 1.0) -> Value:
        """A tensor that is part of the model; of one name there is one."""
        self._tensors.setdefault(name, numpy_helper.from_array(np.asarray(array, order="C"), name))
        return Value(name, array.shape, power)

    def number(self, value: float) -> Value:
        """One float32 number."""
        return self.constant(f"number_{value!r}", np.array(value, np.float32), value**2)

    def node(
        self, operator: str, name: str, inputs: Sequence[Value], shape: Sequence[int], power: float = 1.0, **given: Any
    ) -> Value:
        """An operator with one result."""
        self._nodes.append(helper.make_node(operator, [x.name for x in inputs], [f"{name}.out"], name=name, **given))
        return Value(f"{name}.out", tuple(shape), power)

    # Layers

    def linear(self, x: Value, name: str, units: int, bias: bool = True) -> Value:
        """MatMul with weights [inputs, units] of deviation 1/√inputs, and Add of a bias."""
        weight = self.random((x.width, units), f"{name}.weight", 1 / sqrt(x.width))
        shape = (*x.shape[:-1], units)
        made = self.node("MatMul", f"{name}.MatMul", [x, weight], shape, x.power)
        return self.node("Add", f"{name}.Add", [self._bias(name, units), made], shape, made.power) if bias else made

    def gemm(self, x: Value, name: str, units: int) -> Value:
        """Gemm of rows with weights [units, inputs] and a bias."""
        weight = self.random((units, x.width), f"{name}.weight", 1 / sqrt(x.width))
        return self.node("Gemm", name, [x, weight, self._bias(name, units)], (x.shape[0], units), x.power, transB=1)

    def conv(self, x: Value, name: str, channels: int, kernel: Sequence[int], bias: bool = True, **given: Any) -> Value:
        """Conv with odd kernels' padding, or none where the stride is the kernel. `given`: stride, groups."""
        stride, groups = given.get("stride", 1), given.get("groups", 1)
        pads = [0 if size == stride else size // 2 for size in kernel]
        fan_in = x.shape[1] // groups * prod(kernel)
        inputs = [x, self.random((channels, x.shape[1] // groups, *kernel), f"{name}.weight", 1 / sqrt(fan_in))]
        inputs += [self._bias(name, channels)] if bias else []
        sizes = [(n + 2 * pad - k) // stride + 1 for n, pad, k in zip(x.shape[2:], pads, kernel, strict=True)]
        attributes = {"kernel_shape": list(kernel), "strides": [stride] * len(kernel), "pads": pads * 2}
        return self.node("Conv", name, inputs, (1, channels, *sizes), x.power, group=groups, **attributes)

    def batch_norm(self, x: Value, name: str) -> Value:
        """BatchNormalization to a variance near 1."""
        count = x.shape[1]
        scale, bias = self.near(1.0, count, f"{name}.weight"), self.near(0.0, count, f"{name}.bias")
        mean = self.near(0.0, count, f"{name}.running_mean")
        variance = self.constant(f"{name}.running_var", np.full(count, x.power, np.float32))
        return self.node("BatchNormalization", name, [x, scale, bias, mean, variance], x.shape, epsilon=1e-5)

    def layer_norm(self, x: Value, name: str, epsilon: float = 1e-5) -> Value:
        """LayerNormalization of the last axis."""
        inputs = [x, self._factors(x, name), self._bias(name, x.width)]
        return self.node("LayerNormalization", name, inputs, x.shape, epsilon=epsilon, axis=-1)

    def layer_norm_in_parts(self, x: Value, name: str, epsilon: float = 1e-5) -> Value:
        """The same as exporters write it for opsets below 17."""
        scale, bias = self._factors(x, name), self._bias(name, x.width)
        mean = self.mean(x, f"{name}.ReduceMean")
        centered = self.node("Sub", f"{name}.Sub", [x, mean], x.shape)
        square = self.node("Pow", f"{name}.Pow", [centered, self.number(2.0)], x.shape)
        variance = self.node("Add", f"{name}.Add", [self.mean(square, f"{name}.Var"), self.number(epsilon)], mean.shape)
        root = self.node("Sqrt", f"{name}.Sqrt", [variance], mean.shape)
        normal = self.node("Div", f"{name}.Div", [centered, root], x.shape)
        scaled = self.node("Mul", f"{name}.Mul", [normal, scale], x.shape)
        return self.node("Add", f"{name}.Add_1", [scaled, bias], x.shape)

    def rms_norm(self, x: Value, name: str, epsilon: float = 1e-5) -> Value:
        """RMS norm of the last axis, as the LLaMA of Hugging Face has it."""
        scale = self._factors(x, name)
        square = self.node("Pow", f"{name}.Pow", [x, self.number(2.0)], x.shape)
        mean = self.mean(square, f"{name}.ReduceMean")
        more = self.node("Add", f"{name}.Add", [mean, self.number(epsilon)], mean.shape)
        root = self.node("Sqrt", f"{name}.Sqrt", [more], mean.shape)
        inverse = self.node("Reciprocal", f"{name}.Reciprocal", [root], mean.shape)
        normal = self.node("Mul", f"{name}.Mul", [x, inverse], x.shape)
        return self.node("Mul", f"{name}.Mul_1", [scale, normal], x.shape)

    # Functions

    def gelu(self, x: Value, name: str) -> Value:
        """x times the normal distribution's integral, by Erf."""
        ratio = self.node("Div", f"{name}.Div", [x, self.number(sqrt(2))], x.shape)
        more = self.node("Add", f"{name}.Add", [self.node("Erf", f"{name}.Erf", [ratio], x.shape), self.one()], x.shape)
        product = self.node("Mul", f"{name}.Mul", [x, more], x.shape)
        return self.node("Mul", f"{name}.Mul_1", [product, self.number(0.5)], x.shape, x.power * GELU_POWER)

    def silu(self, x: Value, name: str) -> Value:
        """x times its Sigmoid."""
        gate = self.node("Sigmoid", f"{name}.Sigmoid", [x], x.shape, SIGMOID_POWER)
        return self.node("Mul", f"{name}.Mul", [x, gate], x.shape, x.power * SILU_POWER)

    def softmax(self, x: Value, name: str) -> Value:
        """Softmax of the last axis."""
        return self.node("Softmax", name, [x], x.shape, axis=-1)

    def one(self) -> Value:
        """The number 1."""
        return self.number(1.0)

    def add(self, x: Value, y: Value, name: str) -> Value:
        """Add."""
        return self.node("Add", name, [x, y], np.broadcast_shapes(x.shape, y.shape), x.power + y.power)

    def mul(self, x: Value, y: Value, name: str) -> Value:
        """Mul."""
        return self.node("Mul", name, [x, y], np.broadcast_shapes(x.shape, y.shape), x.power * y.power)

    def matmul(self, x: Value, y: Value, name: str, power: float = 1.0) -> Value:
        """MatMul of two computed tensors."""
        return self.node("MatMul", name, [x, y], (*x.shape[:-1], y.width), power)

    def mean(self, x: Value, name: str) -> Value:
        """ReduceMean of the last axis, which stays."""
        return self.node("ReduceMean", name, [x], (*x.shape[:-1], 1), axes=[-1], keepdims=1)

    # Moves

    def reshape(self, x: Value, name: str, shape: Sequence[int]) -> Value:
        """Reshape to known sizes."""
        sizes = self.constant(f"{name}.shape", np.array(shape, np.int64))
        return self.node("Reshape", name, [x, sizes], shape, x.power)

    def transpose(self, x: Value, name: str, perm: Sequence[int]) -> Value:
        """Transpose."""
        return self.node("Transpose", name, [x], [x.shape[axis] for axis in perm], x.power, perm=list(perm))

    def concat(self, parts: Sequence[Value], name: str, axis: int) -> Value:
        """Concat."""
        shape = list(parts[0].shape)
        shape[axis] = sum(part.shape[axis] for part in parts)
        return self.node("Concat", name, parts, shape, max(part.power for part in parts), axis=axis)

    def split(self, x: Value, name: str, parts: int, axis: int) -> list[Value]:
        """Split in equal parts."""
        shape = list(x.shape)
        shape[axis] //= parts
        sizes = self.constant(f"{name}.split", np.full(parts, shape[axis], np.int64))
        self.node("Split", name, [x, sizes], shape, axis=axis)
        self._nodes[-1].output[:] = [f"{name}.out.{number}" for number in range(parts)]
        return [Value(found, tuple(shape), x.power) for found in self._nodes[-1].output]

    def unbind(self, x: Value, name: str) -> list[Value]:
        """Split of the first axis into parts that lack it."""
        zero = self.constant("axes_0", np.array([0], np.int64))
        parts = self.split(x, f"{name}.Split", x.shape[0], 0)
        return [
            self.node("Squeeze", f"{name}.Squeeze_{number}", [part, zero], x.shape[1:], x.power)
            for number, part in enumerate(parts)
        ]

    def unsqueeze(self, x: Value, name: str, axis: int) -> Value:
        """Unsqueeze."""
        axes = self.constant(f"axes_{axis}", np.array([axis], np.int64))
        return self.node("Unsqueeze", name, [x, axes], (*x.shape[:axis], 1, *x.shape[axis:]), x.power)

    def slice(self, x: Value, name: str, axis: int, begin: int, end: int) -> Value:
        """Slice of an axis."""
        numbers = (self.constant(f"index_{value}", np.array([value], np.int64)) for value in (begin, end, axis, 1))
        shape = list(x.shape)
        shape[axis] = end - begin
        return self.node("Slice", name, [x, *numbers], shape, x.power)

    def take(self, x: Value, name: str, index: int, axis: int) -> Value:
        """Gather of one index of an axis, which goes."""
        at = self.constant(f"scalar_{index}", np.array(index, np.int64))
        return self.node("Gather", name, [x, at], (*x.shape[:axis], *x.shape[axis + 1 :]), x.power, axis=axis)

    def embedding(self, ids: Value, name: str, count: int, width: int) -> Value:
        """Gather of rows of a table with outlier channels."""
        table = self.random((count, width), f"{name}.weight", 1.0)
        return self.node("Gather", name, [table, ids], (*ids.shape, width))

    # Numbers

    def random(self, shape: tuple[int, ...], name: str, deviation: float) -> Value:
        """Uniform weights of mean 0."""
        return self.constant(name, self._uniform(shape, name, deviation), deviation**2)

    def near(self, mean: float, count: int, name: str) -> Value:
        """Numbers [count] near `mean`."""
        return self.constant(name, self._near(mean, count, name), mean**2)

    def _near(self, mean: float, count: int, name: str) -> Array:
        return self._uniform((count,), name, 0.1) + np.float32(mean)

    def _uniform(self, shape: tuple[int, ...], name: str, deviation: float) -> Array:
        """From raw bits, whose stream numpy keeps for ever; that of its distributions may change."""
        count = prod(shape)
        bits = np.random.PCG64([self.seed, crc32(name.encode())]).random_raw(-(-count // 4))
        # Odd numbers: none is 0, and their mean is.
        steps = (np.asarray(bits, "<u8").view("<u2")[:count] | 1).astype(np.float32) - (1 << 15)
        return (steps * np.float32(sqrt(3) * deviation / (1 << 15))).reshape(shape)

    def _bias(self, name: str, units: int) -> Value:
        return self.near(0.0, units, f"{name}.bias")

    def _factors(self, x: Value, name: str) -> Value:
        """Factors of a norm near 1, of outliers larger. Each norm has outliers of its own: the same ones in all would
        become all that the network has."""
        is_outlier = (np.arange(x.width) + crc32(name.encode())) % OUTLIER_EVERY == 0
        factor = np.where(is_outlier, np.float32(OUTLIER), np.float32(1))
        return self.constant(f"{name}.weight", self._near(1.0, x.width, f"{name}.weight") * factor)

    def model(self, outputs: Sequence[tuple[Value, str]]) -> onnx.ModelProto:
        """The network with outputs of these names."""
        names = {value.name: name for value, name in outputs}
        for node in self._nodes:
            for part in (node.input, node.output):
                part[:] = [names.get(one, one) for one in part]
        found = [helper.make_tensor_value_info(name, TensorProto.FLOAT, value.shape) for value, name in outputs]
        graph = helper.make_graph(self._nodes, self.name, self._inputs, found, list(self._tensors.values()))
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], producer_name="relay-hw")
        model.ir_version = IR_VERSION
        onnx.checker.check_model(model, full_check=True)
        return model
