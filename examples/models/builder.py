"""Networks in ONNX, layer by layer, with seeded weights: what the files of this folder are written with.

In: layers and their sizes. Out: a checked `onnx.ModelProto` whose bytes depend on these and the seed alone.
A few images run through the layers as they are added: batch norms get the statistics that they find there.
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

from examples.models import exact

Array = NDArray[Any]
Pads = tuple[int, int, int, int]
OPSET = 13
IR_VERSION = 8
INPUT = "input"
EPSILON = 1e-5
# Weights are whole numbers of 16 bits, below this, with a common factor.
WEIGHT_LIMIT = 1 << 15
# Images from which statistics are taken: at least so many, more of them where they are small.
SAMPLES = 4
SAMPLE_PIXELS = 1 << 17
MOST_SAMPLES = 32


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """A tensor of the network: its name, its shape [1, C, ...], and what the sample images make of it."""

    name: str
    shape: tuple[int, ...]
    data: Array

    @property
    def channels(self) -> int:
        """Size of axis 1."""
        return self.shape[1]


class Network:
    """A network under construction. Layers are called by name; a weight depends on the seed and its own name."""

    def __init__(self, name: str, shape: Sequence[int], seed: int = 0) -> None:
        self.name = name
        self.seed = seed
        fitting = SAMPLE_PIXELS // prod(shape[1:]) if len(shape) > 1 else SAMPLES
        samples = images(shape, min(max(SAMPLES, fitting), MOST_SAMPLES), seed + 1)
        data = exact.rounded(samples.astype(np.float64) * exact.GRID)
        self.input = Value(INPUT, (1, *shape), data)
        self._nodes: list[onnx.NodeProto] = []
        self._tensors: list[onnx.TensorProto] = []

    def conv(
        self,
        x: Value,
        name: str,
        channels: int,
        kernel: int | tuple[int, int],
        stride: int = 1,
        pads: int | Pads = 0,
        groups: int = 1,
        bias: bool = False,
    ) -> Value:
        """Conv with weights of deviation 1/√fan-in. `pads`: top, left, bottom, right."""
        size = (kernel, kernel) if isinstance(kernel, int) else kernel
        around: Pads = (pads,) * 4 if isinstance(pads, int) else pads
        weight = self._weight(
            (channels, x.channels // groups, *size), f"{name}.weight", x.channels // groups * prod(size)
        )
        data = exact.conv(x.data, weight.steps, weight.scale, stride, around, groups)
        parameters = [weight.values]
        if bias:
            parameters.append(self._near(0.0, channels, f"{name}.bias"))
            data = exact.rounded(data + (parameters[1].astype(np.float64) * exact.GRID)[:, None, None])
        high, wide = ((n + around[i] + around[i + 2] - size[i]) // stride + 1 for i, n in enumerate(x.shape[2:]))
        attributes = {"kernel_shape": size, "strides": [stride] * 2, "pads": around, "group": groups}
        return self._node("Conv", name, [x], (1, channels, high, wide), data, parameters, **attributes)

    def conv_transpose(self, x: Value, name: str, channels: int, kernel: int, stride: int, pads: int) -> Value:
        """ConvTranspose with a square kernel, a multiple of the stride: each output sums kernel²/stride² taps."""
        fan_in = x.channels * (kernel // stride) ** 2
        weight = self._weight((x.channels, channels, kernel, kernel), f"{name}.weight", fan_in)
        data = exact.conv_transpose(x.data, weight.steps, weight.scale, stride, pads)
        high, wide = ((n - 1) * stride + kernel - 2 * pads for n in x.shape[2:])
        attributes = {"kernel_shape": [kernel] * 2, "strides": [stride] * 2, "pads": [pads] * 4}
        return self._node("ConvTranspose", name, [x], (1, channels, high, wide), data, [weight.values], **attributes)

    def dense(self, x: Value, name: str, units: int, bias: bool = True) -> Value:
        """Gemm of a vector with weights [units, inputs] of deviation 1/√inputs."""
        weight = self._weight((units, x.channels), f"{name}.weight", x.channels)
        data = exact.dense(x.data, weight.steps, weight.scale)
        parameters = [weight.values]
        if bias:
            parameters.append(self._near(0.0, units, f"{name}.bias"))
        return self._node("Gemm", name, [x], (1, units), data, parameters, transB=1)

    def batch_norm(self, x: Value, name: str) -> Value:
        """BatchNormalization with the statistics of the sample images: results near mean 0 and variance 1."""
        scale, bias = (self._near(mean, x.channels, f"{name}.{part}") for mean, part in ((1, "scale"), (0, "bias")))
        mean, variance = exact.moments(x.data)
        factor = scale / np.sqrt(variance + EPSILON)
        offset = (bias - mean * factor) * exact.GRID
        tail = (1,) * (x.data.ndim - 2)
        data = exact.rounded(x.data * factor.reshape(-1, *tail) + offset.reshape(-1, *tail))
        statistics = [value.astype(np.float32) for value in (scale, bias, mean, variance)]
        return self._node("BatchNormalization", name, [x], x.shape, data, statistics, epsilon=EPSILON)

    def relu(self, x: Value, name: str) -> Value:
        """Relu."""
        return self._node("Relu", name, [x], x.shape, np.maximum(x.data, 0))

    def relu6(self, x: Value, name: str) -> Value:
        """Clip to [0, 6]."""
        bounds = [np.array(bound, np.float32) for bound in (0, 6)]
        return self._node("Clip", name, [x], x.shape, np.clip(x.data, 0, 6 * exact.GRID), bounds)

    def norm_relu(self, x: Value, name: str) -> Value:
        """Batch norm and Relu behind the layer called `name`."""
        return self.relu(self.batch_norm(x, f"{name}.norm"), f"{name}.relu")

    def norm_relu6(self, x: Value, name: str) -> Value:
        """Batch norm and Clip to [0, 6] behind the layer called `name`."""
        return self.relu6(self.batch_norm(x, f"{name}.norm"), f"{name}.relu6")

    def hard_sigmoid(self, x: Value, name: str) -> Value:
        """HardSigmoid: x / 6 + 1/2 between 0 and 1."""
        return self._node("HardSigmoid", name, [x], x.shape, _hard_sigmoid(x.data), alpha=1 / 6, beta=0.5)

    def hard_swish(self, x: Value, name: str) -> Value:
        """x times its HardSigmoid."""
        return self.multiply(x, self.hard_sigmoid(x, f"{name}.sigmoid"), name)

    def sigmoid(self, x: Value, name: str) -> Value:
        """Sigmoid."""
        return self._node("Sigmoid", name, [x], x.shape, exact.sigmoid(x.data))

    def silu(self, x: Value, name: str) -> Value:
        """x times its Sigmoid."""
        return self.multiply(x, self.sigmoid(x, f"{name}.sigmoid"), name)

    def norm_silu(self, x: Value, name: str) -> Value:
        """Batch norm and x times its Sigmoid behind the layer called `name`."""
        return self.silu(self.batch_norm(x, f"{name}.norm"), f"{name}.silu")

    def norm_hard_swish(self, x: Value, name: str) -> Value:
        """Batch norm and x times its HardSigmoid behind the layer called `name`."""
        return self.hard_swish(self.batch_norm(x, f"{name}.norm"), f"{name}.swish")

    def multiply(self, x: Value, y: Value, name: str) -> Value:
        """Mul, of a map with one of its size or with a number for each channel."""
        return self._node("Mul", name, [x, y], x.shape, exact.rounded(x.data * y.data / exact.GRID))

    def tanh(self, x: Value, name: str) -> Value:
        """Tanh, as the last layer."""
        return self._node("Tanh", name, [x], x.shape, x.data)

    def softmax(self, x: Value, name: str) -> Value:
        """Softmax over axis 1, as the last layer."""
        return self._node("Softmax", name, [x], x.shape, x.data, axis=1)

    def add(self, x: Value, y: Value, name: str) -> Value:
        """Add."""
        return self._node("Add", name, [x, y], x.shape, exact.rounded(x.data + y.data))

    def concat(self, parts: Sequence[Value], name: str, axis: int = 1) -> Value:
        """Concat, of maps along their channels."""
        data = np.concatenate([part.data for part in parts], axis=axis)
        return self._node("Concat", name, parts, (1, *data.shape[1:]), data, axis=axis)

    def halves(self, x: Value, name: str) -> tuple[Value, Value]:
        """Split of the channels in two."""
        half = x.channels // 2
        whole = self._node("Split", name, [x], x.shape, x.data, axis=1)
        self._nodes[-1].output[:] = [f"{name}.first", f"{name}.second"]
        shape = (1, half, *whole.shape[2:])
        first, second = x.data[:, :half], x.data[:, half:]
        return Value(f"{name}.first", shape, first), Value(f"{name}.second", shape, second)

    def doubled(self, x: Value, name: str) -> Value:
        """Resize to twice the height and width, each pixel four times."""
        data = x.data.repeat(2, axis=2).repeat(2, axis=3)
        scales = np.array([1, 1, 2, 2], np.float32)
        attributes = {"mode": "nearest", "nearest_mode": "floor", "coordinate_transformation_mode": "asymmetric"}
        found = self._node("Resize", name, [x], (1, *data.shape[1:]), data, [scales], **attributes)
        # Its second input, a region, is left out.
        self._nodes[-1].input.insert(1, "")
        return found

    def max_pool(self, x: Value, name: str, kernel: int, stride: int, pads: int) -> Value:
        """MaxPool."""
        high, wide = ((n + 2 * pads - kernel) // stride + 1 for n in x.shape[2:])
        data = exact.max_pool(x.data, kernel, stride, pads)
        attributes = {"kernel_shape": [kernel] * 2, "strides": [stride] * 2, "pads": [pads] * 4}
        return self._node("MaxPool", name, [x], (1, x.channels, high, wide), data, **attributes)

    def halved(self, x: Value, name: str) -> Value:
        """AveragePool of 2x2 with stride 2, without the last row and column of odd maps."""
        high, wide = (size // 2 for size in x.shape[2:])
        whole = x.data[:, :, : 2 * high, : 2 * wide].reshape(-1, x.channels, high, 2, wide, 2)
        data = exact.rounded(whole.mean(axis=(3, 5)))
        attributes = {"kernel_shape": [2, 2], "strides": [2, 2]}
        return self._node("AveragePool", name, [x], (1, x.channels, high, wide), data, **attributes)

    def average_pool(self, x: Value, name: str) -> Value:
        """AveragePool of the whole map."""
        kernel = x.shape[2:]
        return self._node("AveragePool", name, [x], (1, x.channels, 1, 1), exact.average(x.data), kernel_shape=kernel)

    def global_average_pool(self, x: Value, name: str) -> Value:
        """GlobalAveragePool."""
        return self._node("GlobalAveragePool", name, [x], (1, x.channels, 1, 1), exact.average(x.data))

    def flatten(self, x: Value, name: str) -> Value:
        """Flatten from axis 1 on."""
        return self._node("Flatten", name, [x], (1, prod(x.shape)), x.data.reshape(len(x.data), -1), axis=1)

    def reshape(self, x: Value, name: str, shape: tuple[int, ...]) -> Value:
        """The same numbers in another shape, [1, ...]."""
        data = x.data.reshape(-1, *shape[1:])
        return self._node("Reshape", name, [x], shape, data, [np.array(shape, np.int64)])

    def model(self, output: Value, name: str) -> onnx.ModelProto:
        """The network; its one output, the last layer's, is called `name`."""
        self._nodes[-1].output[0] = name
        graph = helper.make_graph(
            self._nodes,
            self.name,
            [helper.make_tensor_value_info(INPUT, TensorProto.FLOAT, self.input.shape)],
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, output.shape)],
            self._tensors,
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], producer_name="relay-hw")
        model.ir_version = IR_VERSION
        onnx.checker.check_model(model, full_check=True)
        return model

    def _weight(self, shape: tuple[int, ...], name: str, fan_in: int) -> _Weight:
        """Uniform weights of mean 0 and deviation 1/√fan-in.

        From raw bits, whose stream numpy keeps for ever; that of its distributions may change.
        """
        count = prod(shape)
        bits = np.random.PCG64([self.seed, crc32(name.encode())]).random_raw(-(-count // 4))
        # Odd numbers: none is 0, and their mean is.
        steps = (np.asarray(bits, "<u8").view("<u2")[:count] | 1).astype(np.float64)
        steps -= WEIGHT_LIMIT
        return _Weight(steps.reshape(shape), sqrt(3 / fan_in) / WEIGHT_LIMIT)

    def _near(self, mean: float, count: int, name: str) -> Array:
        """float32 [count] near `mean`."""
        return (mean + self._weight((count,), name, 100).values).astype(np.float32)

    def _node(
        self,
        operator: str,
        name: str,
        inputs: Sequence[Value],
        shape: tuple[int, ...],
        data: Array,
        parameters: Sequence[Array] = (),
        **attributes: Any,
    ) -> Value:
        names = [value.name for value in inputs]
        for part, array in zip(_PARTS.get(operator, ()), parameters, strict=False):
            self._tensors.append(numpy_helper.from_array(np.ascontiguousarray(array), f"{name}.{part}"))
            names.append(f"{name}.{part}")
        self._nodes.append(helper.make_node(operator, names, [f"{name}.out"], name=name, **attributes))
        return Value(f"{name}.out", shape, data)


@dataclass(frozen=True, slots=True, eq=False)
class _Weight:
    """`steps` · `scale`; steps are whole numbers below WEIGHT_LIMIT in float64."""

    steps: Array
    scale: float

    @property
    def values(self) -> Array:
        """float32."""
        return (self.steps * self.scale).astype(np.float32)


# What an operator's parameters are called, in their order.
_PARTS = {
    "Conv": ("weight", "bias"),
    "ConvTranspose": ("weight",),
    "Gemm": ("weight", "bias"),
    "BatchNormalization": ("scale", "bias", "mean", "var"),
    "Clip": ("min", "max"),
    "Reshape": ("shape",),
    "Resize": ("scales",),
}


def _hard_sigmoid(data: Array) -> Array:
    """x / 6 + 1/2 between 0 and 1, in steps of the samples' grid."""
    return exact.rounded(np.clip(data / 6 + exact.GRID / 2, 0, exact.GRID))


def same(shape: Sequence[int], kernel: tuple[int, int], stride: int) -> Pads:
    """Pads of TensorFlow's SAME on a value [1, C, H, W]: the odd one below and at the right."""
    totals = [
        max((-(-size // stride) - 1) * stride + extent - size, 0)
        for size, extent in zip(shape[2:], kernel, strict=True)
    ]
    return (totals[0] // 2, totals[1] // 2, totals[0] - totals[0] // 2, totals[1] - totals[1] // 2)


def images(shape: Sequence[int], count: int, seed: int = 0) -> NDArray[np.float32]:
    """`count` random images [count, *shape] of mean about 0 and deviation about 1, with structure of every size.

    A shape of one axis gets plain noise.
    """
    parts = [_noise((count, *shape), [seed, 1])]
    while len(shape) == 3 and 1 << len(parts) < max(shape[1:]):
        step = 1 << len(parts)
        coarse = _noise((count, shape[0], *(-(-size // step) for size in shape[1:])), [seed, step])
        parts.append(coarse.repeat(step, 2).repeat(step, 3)[:, :, : shape[1], : shape[2]])
    return (sum(parts) * sqrt(3 / len(parts))).astype(np.float32)


def _noise(shape: Sequence[int], seed: list[int]) -> Array:
    """Uniform in [-1, 1)."""
    bits = np.asarray(np.random.PCG64(seed).random_raw(prod(shape)), np.uint64)
    return (bits >> np.uint64(40)).astype(np.float64).reshape(shape) / (1 << 23) - 1
